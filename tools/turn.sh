# shellcheck shell=bash
# Sourced by scripts that run a part of something in turn. Sets $turn, which goes up by one with each commit, so that N commits in a row
# take every part of N once (KILN_TURN=7 sets it, to repeat a run), and $changed, the files that the commits since origin/main have changed, or, where
# that is this commit, those of the last four hours. In a shallow clone the turn is
# some digits of the commit, in a tree without git the day, and there nothing has changed.
git() { command git -c safe.directory='*' "$@"; }
changed=
turn=$((10#$(date +%j)))
if now=$(git show -s --format=%ct HEAD 2>/dev/null); then
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then # the number of commits is not known here
        turn=$((16#$(git rev-parse HEAD | cut -c1-6)))
    else
        turn=$(git rev-list --count HEAD)
    fi
    base=$(git merge-base origin/main HEAD 2>/dev/null || true)
    if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
        changed=$(git diff --name-only "$base" HEAD)
    else
        changed=$(git log --since="$((now - 14400))" --name-only --format= | sort -u)
    fi
fi
if [ -n "${KILN_TURN:-}" ]; then
    [[ $KILN_TURN =~ ^[0-9]{1,9}$ ]] || { echo "KILN_TURN is '$KILN_TURN', but must be a whole number of at most 9 digits" >&2 && exit 64; }
    turn=$((10#$KILN_TURN))
fi
