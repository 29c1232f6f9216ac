# shellcheck shell=bash
# Functions of tools/bare_root.sh and check_packages.sh: a Debian 12 in $root, a folder of $base; sourced in the root of the checkout.
#
# Everything runs in a mount and a process namespace that end with the script, however it ends: no mount is
# visible outside or left behind. The root is removed from outside, where it is plain files.
. tests/cli/expect.sh

say() { printf '\n== bare: %s\n' "$*"; }

# The mirror of Debian 12 that apt uses here.
find_mirror()
{
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk '/^https?:/ && $2 == "bookworm" && $3 == "main" { found = $1 } END { print found ? found : "http://deb.debian.org/debian" }'
}

# bare_debian PACKAGE...: makes the root with these packages, in the namespaces.
bare_debian()
{
    local mirror
    mirror=$(find_mirror)
    say "Debian 12 from $mirror: $*"
    debootstrap --variant=minbase --include="$(IFS=, && echo "$*")" bookworm "$root" "$mirror" >"$base/debootstrap.log" 2>&1 ||
        skip chroot "debootstrap cannot make a Debian 12 from $mirror ($(tail -n 1 "$base/debootstrap.log")); a network, and a disk that devices can be made on, enable this"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump | grep -iE '^Acquire::(https?::.*proxy|Check-)' >"$root/etc/apt/apt.conf.d/90host" || true
}

# in_root COMMAND: runs it in ~/kiln of the root.
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

need_root()
{
    [ "$(id -u)" -eq 0 ] || skip chroot "only root can make a Debian to try kiln in; run it as root"
}

# bare_enter SCRIPT: what a script does to run itself in namespaces; the root is removed in the end.
bare_enter()
{
    local namespaces=(unshare --mount --pid --fork --kill-child --mount-proc)
    need_root
    tools/install_deps.sh debootstrap debian-archive-keyring || skip chroot "debootstrap cannot be installed"
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
    setpriv --pdeathsig KILL "${namespaces[@]}" "$1" --in-namespaces &
    child=$!
    wait "$child"
}
