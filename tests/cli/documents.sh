# Reads tests/cli/documents, for the tests that walk them.

# read_documents FILE...: the commands in order: their numbers in numbers, the lines of each in lines.
read_documents()
{
    local line n=0
    numbers=() lines=()
    while IFS= read -r line; do
        if [[ $line =~ ^#\ ([0-9]{3}\.[0-9]+) ]]; then
            n=$((n + 1))
            numbers[n]=${BASH_REMATCH[1]} lines[n]=
        elif [[ -n $line && $line != \#* ]]; then
            lines[n]+=$line$'\n'
        fi
    done < <(cat "$@")
}

# split_command LINES: what the shell makes of it, by the rules of documents/README.md.  exports: assignments before it;
# launcher: the words before the interpreter; script: run_pretraining and so on, empty where it is none of Python's;
# words: those behind.  The documents' own variables stand for a folder of their name.
split_command()
{
    local text=$1 line joined="" all word
    local PYTHON=python3 MPI_ROOT=/usr dllog=dllog output=output dataset=dataset init_ckpt=init_ckpt vocab=vocab
    exports=()
    while IFS= read -r line; do
        if [[ $line =~ ^export\ ([A-Z_]+=.*) ]]; then
            line=${BASH_REMATCH[1]}
            exports+=("${line//\"/}")
        else
            joined+=" ${line%\\}"
        fi
    done <<<"$text"
    joined=${joined%%;*([[:space:]])}
    joined=$(sed -E "s/(<[a-z0-9_-]+>)/'\1'/g" <<<"$joined")
    eval "all=($joined)" # the documents are ours
    launcher=() words=() script=
    for word in "${all[@]}"; do
        if [ -n "$script" ]; then
            words+=("$word")
        elif [[ $word == *.py ]]; then
            script=$(basename "$word" .py)
        elif [[ $word != python* && $word != -u ]]; then
            launcher+=("$word")
        fi
    done
    [ -n "$script" ] || words=("${all[@]}")
}

# read_page FILE NUMBER: the words of the command that a page of docs/migrating has below this number, in words.
read_page()
{
    local line joined="" inside=false
    while IFS= read -r line; do
        if [[ $line =~ ^###\ ([0-9.]+) ]]; then
            inside=false
            [ "${BASH_REMATCH[1]}" != "$2" ] || inside=true
        elif $inside && [[ $line == "    "* ]]; then
            joined+=" ${line%\\}"
        fi
    done <"$1"
    eval "words=($joined)" # the pages are ours
}
