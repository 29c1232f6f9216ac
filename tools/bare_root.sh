#!/usr/bin/env bash
# Runs the README's two commands as a new user would: debootstrap makes a Debian 12 with only make, git and
# certificates, this commit is cloned there, then `scripts/demo.sh --ci` and `make test` run. It uses no data
# of the developers, and of this machine's settings only the Debian mirror and the network. The counts are in
# build-bare/results.xml.
#
# Everything runs in a mount and a process namespace that end with this script, however it ends: no mount is
# visible outside or left behind. The root is removed from outside, where it is plain files.
# Skips with 77 if namespaces are not allowed.  usage: tools/bare_root.sh, as root
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/cli/expect.sh
base=$PWD/build-bare
root=$base/root

say() { printf '\n== bare: %s\n' "$*"; }

# The mirror of Debian 12 that apt uses here.
find_mirror()
{
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk '/^https?:/ && $2 == "bookworm" && $3 == "main" { found = $1 } END { print found ? found : "http://deb.debian.org/debian" }'
}

# Makes the root, in the namespaces.
make_root()
{
    local mirror
    mirror=$(find_mirror)
    say "Debian 12 from $mirror: make, git, ca-certificates"
    debootstrap --variant=minbase --include=make,git,ca-certificates bookworm "$root" "$mirror" >"$base/debootstrap.log" 2>&1 ||
        skip chroot "debootstrap cannot make a Debian 12 from $mirror ($(tail -n 1 "$base/debootstrap.log")); a network, and a disk that devices can be made on, enable this"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump | grep -iE '^Acquire::(https?::.*proxy|Check-)' >"$root/etc/apt/apt.conf.d/90host" || true
    printf '[safe]\n\tdirectory = *\n' >"$base/gitconfig" # whoever owns the checkout
    GIT_CONFIG_GLOBAL=$base/gitconfig git clone --quiet --no-local "$PWD" "$root/root/kiln"
}

# in_root COMMAND: runs it in the clone.
in_root()
{
    local start=$SECONDS status=0
    say "$1"
    env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot "$root" sh -c "cd ~/kiln && $1" </dev/null || status=$?
    say "$1: exit code $status after $((SECONDS - start)) s"
    return "$status"
}

if [ "${1:-}" = --in-namespaces ]; then
    make_root
    failed=0
    in_root "scripts/demo.sh --ci" || failed=1
    in_root "make test" || failed=1
    cp "$root/root/kiln/build/results.xml" "$base/" || failed=1
    exit "$failed"
fi

[ "$(id -u)" -eq 0 ] || skip chroot "only root can make a Debian to try kiln in; run it as root"
git -c safe.directory='*' rev-parse --quiet --verify HEAD >/dev/null || skip git "there is no commit to clone; git and a checkout enable this"
tools/install_deps.sh debootstrap debian-archive-keyring || skip chroot "debootstrap cannot be installed"
namespaces=(unshare --mount --pid --fork --kill-child --mount-proc)
"${namespaces[@]}" true || skip chroot "this machine allows no namespaces with mounts of their own; a container needs CAP_SYS_ADMIN"

rm -rf --one-file-system "$base"
mkdir -p "$base"
finish()
{
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap finish EXIT
setpriv --pdeathsig KILL "${namespaces[@]}" tools/bare_root.sh --in-namespaces &
child=$!
wait "$child"
