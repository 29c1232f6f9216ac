#!/usr/bin/env bash
# Runs the README's two commands as a new user would: debootstrap makes a Debian 12 with only make, git and
# certificates, this commit is cloned there, then `scripts/demo.sh --ci` and `make test` run. They use no data
# of the developers, and of this machine's settings only the Debian mirror, the network and KILN_ISA. The counts are in
# build-bare/results.xml.
#
# Then the same root gets what the developers have: their data (../shared, read-only) and tools. What was skipped for lack of
# them runs (build-bare/again.xml), and nvcc makes what is carried to a GPU, every fourth turn and after changes to it.
# Skips with 77 if namespaces are not allowed.  usage: tools/bare_root.sh, as root
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bare_common.sh
. tools/turn.sh
base=$PWD/build-bare
root=$base/root

with=${KILN_ISA:+KILN_ISA=$KILN_ISA} # of `make test`

# Makes the root, in the namespaces.
make_root()
{
    bare_debian make git ca-certificates
    printf '[safe]\n\tdirectory = *\n' >"$base/gitconfig" # whoever owns the checkout
    export GIT_CONFIG_GLOBAL=$base/gitconfig
    git clone --quiet --no-local "$PWD" "$root/root/kiln"
    changed_since=$(git merge-base origin/main HEAD 2>/dev/null) || changed_since=HEAD # of which tests run (tools/turn.sh)
    git -C "$root/root/kiln" update-ref refs/remotes/origin/main "$changed_since"
}

# What was skipped without the developers' data and tools.
test_again()
{
    local skipped
    skipped=$(sed -nE 's/.*<testcase name="([^"]+)".* status="notrun".*/\1/p' "$base/results.xml" | paste -sd '|')
    [ -n "$skipped" ] || return 0
    if [ -d ../shared ]; then
        mkdir "$root/root/shared"
        mount --bind -o ro ../shared "$root/root/shared"
    fi
    in_root "tools/install_deps.sh python3 python3-numpy procps bzip2 binutils >/dev/null && $with tools/test.sh ci -R '^($skipped)\$'" || return 1
    cp "$root/root/kiln/build/results.xml" "$base/again.xml"
}

# What is carried to a GPU, by this machine's nvcc, if it has cuBLASLt, or by that of PyPI. The nvcc of a PATH may be a
# script or a link elsewhere; nvcc itself says where its toolkit is.
make_carried()
{
    local nvcc toolkit
    if [ $((turn % 4)) -ne 0 ] && ! grep -qE '^(src/ops/cuda|src/dev|cmake|tools/(gpu|install_nvcc))' <<<"$changed"; then
        say "what is carried to a GPU is not made in this turn ($turn); it is by: KILN_TURN=0 tools/bare_root.sh"
        return
    fi
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    toolkit=$("$nvcc" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p') || true
    if [ -e "$toolkit/lib64/libcublasLt.so" ]; then
        mkdir -p "$root/usr/local/cuda"
        mount --bind -o ro "$toolkit" "$root/usr/local/cuda"
    fi
    in_root 'export PATH=/usr/local/cuda/bin:$PWD/build/nvcc/bin:$PATH; tools/install_nvcc.sh build/nvcc
        if command -v nvcc; then tools/gpu_carry.sh; else echo "nothing is carried: there is no nvcc"; fi'
}

if [ "${1:-}" = --in-namespaces ]; then
    make_root
    failed=0
    in_root "scripts/demo.sh --ci" || failed=1
    in_root "$with make test" || failed=1
    cp "$root/root/kiln/build/results.xml" "$base/" || exit 1
    test_again || failed=1
    make_carried || failed=1
    exit "$failed"
fi

need_root
git -c safe.directory='*' rev-parse --quiet --verify HEAD >/dev/null || skip git "there is no commit to clone; git and a checkout enable this"
bare_enter tools/bare_root.sh
