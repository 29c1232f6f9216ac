# Lines of text to SQuAD-format questions, after the entity questions of Hill et al. 2015 (arXiv:1511.02301): in a sentence
# one name is hidden, the question is what stands around it with "who" in its place, and the answer is the name.
#
#   awk -v OUT=DIR -v MAX=16000 -f cloze.awk
#
# takes the first MAX sentences that have a name; every tenth goes to DIR/dev.json, the others to
# DIR/train.json; DIR/examples.txt has three of the former as QUESTION|ANSWER|CONTEXT.  Sentences with other than ASCII
# characters are left out, so that bytes are characters.

function escaped(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); gsub(/\t/, " ", s); return s }

function letters_of(word) { gsub(/[^A-Za-z]+$/, "", word); return word }

# Names are capitalised words inside a sentence; random() picks one of them.
function find_name(words, n,    i, found, places)
{
    for (i = 2; i <= n; i++)
        if (letters_of(words[i]) ~ /^[A-Z][a-z][a-z]+$/ && words[i - 1] !~ /[.?!:;,"]$/)
            places[++found] = i
    return found ? places[1 + int(found * random())] : 0
}

function random() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }

# The five words on either side of the name.
function question_of(words, n, place,    i, q)
{
    for (i = place > 6 ? place - 5 : 1; i <= n && i <= place + 5; i++)
        q = q (q == "" ? "" : " ") (i == place ? "who" : words[i])
    return letters_of(q) "?"
}

function add(sentence,    words, n, place, i, start, file, question, name)
{
    n = split(sentence, words, " ")
    if (n < 8 || n > 60 || !(place = find_name(words, n)) || total >= MAX) return
    name = letters_of(words[place])
    question = question_of(words, n, place)
    sentence = words[1]
    for (i = 2; i <= n; i++) {
        if (i == place) start = length(sentence) + 1
        sentence = sentence " " words[i]
    }
    file = ++total % 10 == 0 ? DEV : TRAIN
    if (total % 100 == 50 && n_examples++ < 3) printf("%s|%s|%s\n", question, name, sentence) > EXAMPLES
    printf("%s{\"title\":\"%d\",\"paragraphs\":[{\"context\":\"%s\",\"qas\":[{\"id\":\"q%d\",\"question\":\"%s\"," \
        "\"answers\":[{\"text\":\"%s\",\"answer_start\":%d}]}]}]}", count[file]++ ? ",\n" : "", total, escaped(sentence),
        total, escaped(question), name, start) > file
}

BEGIN {
    seed = 42
    TRAIN = OUT "/train.json"
    DEV = OUT "/dev.json"
    EXAMPLES = OUT "/examples.txt"
    printf("") > EXAMPLES
    printf("{\"version\":\"1.1\",\"data\":[\n") > TRAIN
    printf("{\"version\":\"1.1\",\"data\":[\n") > DEV
}

/[^ -~]/ || /[<>|]/ { next }

{
    if (NF > 60) gsub(/[.?!] +/, "&\n")
    n_sentences = split($0, sentences, "\n")
    for (s = 1; s <= n_sentences; s++) add(sentences[s])
}

END {
    printf("\n]}\n") > TRAIN
    printf("\n]}\n") > DEV
}
