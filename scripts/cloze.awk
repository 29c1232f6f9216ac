# Makes SQuAD-format questions from the lines of two texts, after the entity questions of Hill et al. 2015
# (arXiv:1511.02301). In a sentence with at least two different names each name is hidden in turn: the
# question is the text around it, with [MASK] in its place, and the answer is the name. Every question about a
# sentence has a different answer, so the question has to be read.
#
#   awk -v OUT=DIR -v MAX=26000 -v ASKED=ASKED.txt -f cloze.awk ASKED.txt LEARN.txt
#
# writes MAX questions about the sentences of LEARN.txt to DIR/train.json, a tenth of that about those of ASKED.txt to
# DIR/dev.json, and three of the latter as QUESTION|ANSWER|CONTEXT to DIR/examples.txt; fewer if the text has
# no more. Sentences with non-ASCII characters are left out, so that bytes are characters.

function escaped(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); gsub(/\t/, " ", s); return s }

function letters_of(word) { gsub(/[^A-Za-z]+$/, "", word); return word }

# The places of the different names of a sentence, and their number; names are capitalised words inside it.
function find_names(words, n, places,    i, name, found, seen)
{
    for (i = 2; i <= n; i++) {
        name = letters_of(words[i])
        if (name ~ /^[A-Z][a-z][a-z]+$/ && words[i - 1] !~ /[.?!:;,"]$/ && !seen[name]++) places[++found] = i
    }
    return found
}

# The five words on either side of the name.
function question_of(words, n, place,    i, q)
{
    for (i = place > 6 ? place - 5 : 1; i <= n && i <= place + 5; i++)
        q = q (q == "" ? "" : " ") (i == place ? "[MASK]" substr(words[i], length(letters_of(words[i])) + 1) : words[i])
    sub(/[^A-Za-z\]]+$/, "", q)
    return q "?"
}

function add(sentence,    words, n, i, places, n_names, starts, asked, file, name, question)
{
    n = split(sentence, words, " ")
    asked = FILENAME == ASKED
    if (n_questions[asked] >= (asked ? MAX / 10 : MAX)) return
    if (n < 8 || n > 60 || (n_names = find_names(words, n, places)) < 2) return
    sentence = words[1]
    for (i = 2; i <= n; i++) {
        starts[i] = length(sentence) + 1
        sentence = sentence " " words[i]
    }
    file = asked ? DEV : TRAIN
    printf("%s{\"title\":\"%d\",\"paragraphs\":[{\"context\":\"%s\",\"qas\":[", n_contexts[asked]++ ? ",\n" : "",
        n_contexts[asked], escaped(sentence)) > file
    for (i = 1; i <= n_names; i++) {
        name = letters_of(words[places[i]])
        question = question_of(words, n, places[i])
        n_questions[asked]++
        printf("%s{\"id\":\"q%d\",\"question\":\"%s\",\"answers\":[{\"text\":\"%s\",\"answer_start\":%d}]}",
            i > 1 ? "," : "", ++total, escaped(question), name, starts[places[i]]) > file
    }
    printf("]}]}") > file
    if (asked && n_contexts[asked] % 100 == 5 && n_examples++ < 3) printf("%s|%s|%s\n", question, name, sentence) > EXAMPLES
}

BEGIN {
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
