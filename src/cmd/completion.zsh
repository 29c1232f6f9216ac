#compdef kiln
# Completion of kiln for zsh: source <(kiln completion zsh)
_kiln()
{
    local -a found
    found=(${(f)"$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if [[ -n $found ]]; then
        found=("${(@)found//:/\\:}")
        found=("${(@)found/$'\t'/:}")
        _describe kiln found
    else
        _files
    fi
}
if [[ $funcstack[1] == _kiln ]]; then _kiln "$@"; else compdef _kiln kiln; fi
