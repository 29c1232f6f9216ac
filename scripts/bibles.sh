# The text of the demos: real English prose from Debian packages, the King James Bible and, if available, the World English Bible, which
# says the same in other words.  Sourced by scripts/demo.sh and scripts/demo_gpt.sh, which set $work.

books=(Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth "I Samuel" "II Samuel" "I Kings" "II Kings"
    "I Chronicles" "II Chronicles" Ezra Nehemiah Esther Job Psalms Proverbs Ecclesiastes "Song of Solomon" Isaiah Jeremiah
    Lamentations Ezekiel Daniel Hosea Joel Amos Obadiah Jonah Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi
    Matthew Mark Luke John Acts Romans "I Corinthians" "II Corinthians" Galatians Ephesians Philippians Colossians
    "I Thessalonians" "II Thessalonians" "I Timothy" "II Timothy" Titus Philemon Hebrews James "I Peter" "II Peter" "I John"
    "II John" "III John" Jude "Revelation of John")

# bibles: writes the files of scripts/two_bibles.awk to $work
bibles()
{
    tools/install_deps.sh bible-kjv bible-kjv-text >&2
    PATH=$PATH:/usr/games bible -f gen1:1-rev22:21 >"$work/kjv.txt"
    : >"$work/web.txt"
    if tools/install_deps.sh sword-text-web diatheke >&2; then
        for book in "${books[@]}"; do diatheke -b engWEB2015eb -f plain -k "$book"; done >"$work/web.txt"
    else
        echo "the World English Bible cannot be had, so the text is the King James Bible alone: expect less of it"
    fi
    LC_ALL=C awk -v OUT="$work" -v BOOKS="$(IFS=';'; echo "${books[*]}")" -f scripts/two_bibles.awk \
        reading=web "$work/web.txt" reading=kjv "$work/kjv.txt"
}
