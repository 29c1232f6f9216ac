# Makes the demo's text from two Bibles: each verse of the King James Bible, followed by the same verse of the
# World English Bible, so that many hidden words can be found in the twin of their sentence; a document is a
# chapter.
#
#   awk -v OUT=DIR -v BOOKS="Genesis;Exodus;..." -f two_bibles.awk reading=web WEB.txt reading=kjv KJV.txt
#
# WEB.txt is what diatheke prints for the books named ("Genesis 1:1: In ..."; verses may run over several lines), KJV.txt
# what bible prints for the same books in the same order ("Ge1:1 In ...").  WEB.txt may be empty.  Every tenth
# chapter is left out of DIR/text.txt: its verses are for questions, in DIR/asked.txt, those of the others in DIR/learn.txt,
# both in the words of the King James Bible.  DIR/train.jsonl and DIR/heldout.jsonl have the same chapters as documents, a line
# of JSON each, every translation apart and each verse behind its place ("Ge1:1"): what is held out of one is held out of the other.

BEGIN {
    n_books = split(BOOKS, books, ";")
    for (i = 1; i <= n_books; i++) number[books[i]] = i
}

reading == "web" && match($0, /^ *[A-Z][A-Za-z ]* [0-9]+:[0-9]+: /) {
    where = substr($0, 1, RLENGTH - 2)
    sub(/^ +/, "", where)
    book = where
    sub(/ [0-9:]+$/, "", book)
    sub(/^.* /, "", where)
    verse = book in number ? number[book] " " where : ""
    $0 = substr($0, RLENGTH + 1)
    if (verse != "") web[verse] = ""
}

# What follows an empty line is a heading, and a line in brackets the name of the text.
reading == "web" {
    if (/^ *$/ || /^\(eng/) verse = ""
    if (verse == "") next
    gsub(/“|”/, "\"")
    gsub(/‘|’/, "'")
    gsub(/—/, " - ")
    gsub(/Godcreated/, "God created")
    for (i = 1; i <= NF; i++) web[verse] = web[verse] (web[verse] == "" ? "" : " ") $i
    next
}

function append_json(text, verse)
{
    gsub(/[\\"]/, "\\\\&", verse)
    return text (text == "" ? "" : "\\n") verse
}

function write_json(text)
{
    if (text != "") print "{\"text\": \"" text "\"}" > (OUT (asked ? "/heldout.jsonl" : "/train.jsonl"))
}

function end_chapter()
{
    write_json(kjv_text)
    write_json(web_text)
    kjv_text = web_text = ""
}

{
    label = $1
    split(label, place, ":")
    $1 = ""
    sub(/^ /, "")
    if (place[1] != chapter) {
        end_chapter()
        chapter = place[1]
        asked = ++n_chapters % 10 == 0
        abbreviation = chapter
        sub(/[0-9]+$/, "", abbreviation)
        if (abbreviation != last) n_read++
        last = abbreviation
        if (!asked) printf("\n") > (OUT "/text.txt")
    }
    print > (OUT (asked ? "/asked.txt" : "/learn.txt"))
    verse = n_read " " substr(chapter, length(abbreviation) + 1) ":" place[2]
    kjv_text = append_json(kjv_text, label " " $0)
    if (web[verse] != "") web_text = append_json(web_text, label " " web[verse])
    if (asked) next
    print > (OUT "/text.txt")
    if (web[verse] != "") print web[verse] > (OUT "/text.txt")
}

END { end_chapter() }
