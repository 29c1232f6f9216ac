#!/usr/bin/env bash
# kiln netcheck between two names of this machine, with an ssh that is a script of this test: the table, each failure with what
# mends it, and the two ends of a test.  make test-hosts does it between hosts that are apart.
. "$(dirname "$0")/begin.sh"
cd "$dir"
unset "${!OMPI_@}"
mkdir bin
export PATH=$dir/bin:$PATH
printf 'localhost slots=2\n127.0.0.1 slots=2\n' >hosts
cat >bin/ssh <<'SH'
#!/usr/bin/env bash
while [ $# -gt 1 ]; do case $1 in -o | -p) shift 2 ;; *) break ;; esac; done
host=$1
shift
[ ! -e "$host.broken" ] || { cat "$host.broken" >&2; exit 255; }
sh -c "$*"
SH
chmod +x bin/ssh
check=("$kiln" netcheck --hostfile hosts --ssh_port 3022)

expect 0 "2 of 2 pairs work" "${check[@]}"
[ "$(grep -cE '^(localhost|127.0.0.1) .* ok +ok +[0-9]+ +[0-9.e+]+$' out)" = 2 ] || fail "the table: $(cat out)"
expect 0 "2 hosts, 2 pairs" "${check[@]}" --dry_run

# a login that fails from one host to the other: named in its direction
echo 'Host key verification failed.' >127.0.0.1.broken
expect 69 "localhost -> 127.0.0.1: unknown host key: 127.0.0.1 is not in known_hosts: ssh-keyscan -p 3022 -H 127.0.0.1" \
    "${check[@]}"
grep -q '^1 of 2 pairs work$' out || fail "the table: $(cat out)"
rm 127.0.0.1.broken

# a host that is not reached at all, and one whose name is none
printf 'localhost slots=2\nnowhere.invalid slots=2\n' >hosts
echo 'ssh: Could not resolve hostname nowhere.invalid: Name or service not known' >nowhere.invalid.broken
expect 69 "nowhere.invalid: unknown host: no address for nowhere.invalid" "${check[@]}"
expect 69 "2 of 2 pairs of hosts failed" "${check[@]}"
printf 'localhost slots=2\nx;touch${IFS}bad slots=2\n' >hosts
expect 64 "is not a host" "${check[@]}"
[ ! -e bad ] || fail "a name was run"
printf 'localhost slots=2\n127.0.0.1 slots=2\n' >hosts
expect 69 "localhost: there is no interface none0" "${check[@]}" --interface none0
expect 64 "--hostfile FILE is missing" "$kiln" netcheck
echo 'localhost slots=2' >hosts
expect 64 "there is no pair to test" "${check[@]}"

# the server answers only who has its token, and ends with the last of its clients: not by its time, as an older one is still there
"$kiln" netcheck --serve --clients 1 --seconds 60 >older
"$kiln" netcheck --serve --clients 1 --seconds 60 >served
read -r _ port token <served
# a stranger who says nothing, or not enough, does not keep a place
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
printf x >&4
for stranger in 3 4; do
    read -r -t 30 _ <&$stranger && how=0 || how=$?
    [ $how -eq 1 ] || fail "a stranger's connection stays: $how"
done
exec 3>&- 4>&-
expect 0 "accepts a connection, but no data arrives" "$kiln" netcheck --peers "127.0.0.1:$port:${token//[0-9]/a}"
expect 0 "$(printf 'tcp\t127.0.0.1\tok\t')" "$kiln" netcheck --peers "127.0.0.1:$port:$token"
until "$kiln" netcheck --peers "127.0.0.1:$port:$token" >refused && grep -q "127.0.0.1 refuses port $port" refused; do
    sleep 0.02 # time: between two looks, until it has ended
done
read -r _ port token <older
expect 0 "$(printf 'tcp\t127.0.0.1\tok\t')" "$kiln" netcheck --peers "127.0.0.1:$port:$token"
expect 64 "HOST:PORT:TOKEN" "$kiln" netcheck --peers "127.0.0.1:1"
expect 64 "is not a host" "$kiln" netcheck --peers "-o:1:$token"
echo "test_netcheck: pairs, causes, servers"
