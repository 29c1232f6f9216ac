#!/usr/bin/env bash
# Uses what is in dist/ as a user of a bare Debian 12 does: the static program before any library is there; then the packages are
# installed, a model is trained, a C program and Python answer as the program does, and nothing is left once they are removed.
# Skips with 77 if namespaces are not allowed.  usage: tools/check_packages.sh, as root (make check-packages makes the packages first)
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bare_common.sh
base=$PWD/build-deb/bare
root=$base/root

# Paths of the root that have kiln's name, but for what this script put there and the logs of apt.
left_over() { find "$root" -xdev -name '*kiln*' ! -path "$root/root/*" ! -path "$root/var/log/*" ! -path "$root/var/cache/apt/*"; }

if [ "${1:-}" = --in-namespaces ]; then
    bare_debian ca-certificates
    mkdir "$root/root/kiln"
    cp -r dist/*.deb dist/kiln-*-linux-* docs/howto "$root/root/kiln"
    in_root "mv kiln-*-linux-* k && ./k --version && ./k train howto --output_dir a --hours 0.005 2>&1 | tail -n 6 &&
        ./k generate --model a/model --prompt 'The model' --max_new_tokens 8 && ./k serve --model a/model --dry_run"
    in_root "apt-get update -qq && apt-get install -y -qq ./*.deb make gcc libc6-dev pkg-config >log 2>&1 || { tail log && false; }"
    in_root "kiln --version && kiln doctor | grep '^mpi .*/lib/kiln/libkiln_mpi.so' && kiln train /usr/share/doc/kiln/docs/howto --output_dir b --hours 0.005 2>&1 | tail -n 6"
    in_root "kiln generate --model b/model --prompt 'The model' --max_new_tokens 8 --temperature 0 >by_program && cat by_program"
    in_root "cp -r /usr/share/doc/libkiln-dev/examples/continue_text c && pkg-config --cflags --libs kiln && make -C c && ./c/continue_text b/model 'The model'"
    in_root "python3 -c \"import kiln; print('The model' + kiln.CausalLM('b/model').generate('The model', max_new_tokens=8, temperature=0))\" | cmp - by_program"
    in_root "python3 -m kiln --version && ls /usr/share/man/man1/kiln.1.gz"
    in_root "apt-get purge -y -qq kiln libkiln0 libkiln-dev python3-kiln >log 2>&1 || { tail log && false; }"
    [ -z "$(left_over)" ] || fail "left behind: $(left_over)"
    say "used and removed: $(cd dist && echo *.deb)"
    exit
fi
bare_enter tools/check_packages.sh
