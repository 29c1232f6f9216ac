#!/usr/bin/env bash
# Several hosts on one machine: each has namespaces of its own for network, name, processes, mounts and shared memory, an sshd on
# port 3022, and its own ~/.ssh; a bridge in one more namespace connects them, and nothing else.  Needs root.
#
#   hosts.sh up N              make h1 to hN at 10.99.0.1 and so on; prints nothing
#   hosts.sh down              end all their processes, remove everything
#   hosts.sh exec HOST cmd...  run a command there
#   hosts.sh kill HOST         the host is lost, with its processes
#   hosts.sh cut|heal HOST     its cable is pulled, put back
#
# HOSTS_DIR is a folder of the caller's for their files.
set -euo pipefail
state=${HOSTS_DIR:?a folder for the hosts}
bridge=kilnsw

# on HOST cmd...: in its namespaces
on()
{
    local host=$1
    shift
    nsenter -t "$(cat "$state/$host.pid")" -n -u -i -p -m -- env HOME=/root TMPDIR="$state/$host.tmp" "$@"
}

make_keys()
{
    ssh-keygen -q -t ed25519 -N '' -f "$state/id"
    ssh-keygen -q -t ed25519 -N '' -f "$state/host_key"
    {
        echo 127.0.0.1 localhost
        for i in $(seq "$1"); do echo "10.99.0.$i h$i"; done
    } >"$state/etc_hosts"
    cat >"$state/sshd_config" <<X
Port 3022
HostKey $state/host_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
X
    for i in $(seq "$1"); do
        local ssh=$state/h$i.ssh
        mkdir -p "$ssh" "$state/h$i.tmp"
        cp "$state/id" "$ssh/id_ed25519"
        cp "$state/id.pub" "$ssh/authorized_keys"
        chmod 700 "$ssh"
        for k in $(seq "$1"); do echo "[h$k]:3022 $(cut -d' ' -f1,2 "$state/host_key.pub")"; done >"$ssh/known_hosts"
        { cat "$state/sshd_config"; echo "SetEnv TMPDIR=$state/h$i.tmp"; } >"$state/h$i.sshd_config"
    done
}

# begin HOST: its first process waits for a network, then becomes sshd
begin()
{
    local host=$1 outer inner
    setsid unshare -n -u -i -m -p --fork --kill-child --mount-proc bash -c "
        hostname $host
        mount --make-rprivate /
        mount --bind $state/etc_hosts /etc/hosts
        mkdir -p /root/.ssh /run/sshd
        mount --bind $state/$host.ssh /root/.ssh
        mount -t tmpfs -o size=2g tmpfs /dev/shm
        ip link set lo up
        until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
        exec /usr/sbin/sshd -D -f $state/$host.sshd_config -E $state/$host.log" >"$state/$host.out" 2>&1 </dev/null &
    outer=$!
    for _ in $(seq 200); do
        inner=$(pgrep -P $outer | head -1 || true)
        if [ -n "$inner" ] && [ "$(nsenter -t "$inner" -u hostname 2>/dev/null)" = "$host" ]; then
            break
        fi
        sleep 0.02
    done
    echo "$inner" >"$state/$host.pid"
}

up()
{
    local i
    mkdir -p "$state"
    make_keys "$1"
    ip netns add $bridge
    ip -n $bridge link add br0 type bridge
    ip -n $bridge link set br0 up
    for i in $(seq "$1"); do
        begin "h$i"
        ip link add "kv$i" netns "$(cat "$state/h$i.pid")" type veth peer name "p$i" netns $bridge
        nsenter -t "$(cat "$state/h$i.pid")" -n sh -c \
            "ip addr add 10.99.0.$i/24 dev kv$i; ip link set kv$i name eth0; ip link set eth0 up"
        ip -n $bridge link set "p$i" master br0 up
    done
    for i in $(seq "$1"); do
        for _ in $(seq 100); do
            ! on h1 ssh -p 3022 -o BatchMode=yes -o ConnectTimeout=2 "h$i" true 2>/dev/null || break
            sleep 0.1
        done
    done
}

down()
{
    local file
    for file in "$state"/h*.pid; do
        [ ! -s "$file" ] || kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    ip netns del $bridge 2>/dev/null || true
    rm -rf "$state"
}

verb=$1
shift
case $verb in
up) up "$1" ;;
down) down ;;
exec) on "$@" ;;
kill) kill -9 "$(cat "$state/$1.pid")" ;;
cut) ip -n $bridge link set "p${1#h}" down ;;
heal) ip -n $bridge link set "p${1#h}" up ;;
*) echo "usage: hosts.sh up N | down | exec HOST cmd... | kill HOST | cut HOST | heal HOST" >&2; exit 64 ;;
esac
