# Completion of kiln for fish: kiln completion fish | source
function __kiln_complete
    set -l words (commandline -opc) "$(commandline -ct)"
    set -l found ($words[1] complete $words[2..] 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c kiln -f -a '(__kiln_complete)'
