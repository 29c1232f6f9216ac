# Completion of kiln for bash: source <(kiln completion bash)
_kiln()
{
    local IFS=$'\n'
    # shellcheck disable=SC2207 # a line is a word
    COMPREPLY=($("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o bashdefault -o default -F _kiln kiln
