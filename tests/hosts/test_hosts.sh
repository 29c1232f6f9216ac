#!/usr/bin/env bash
# kiln netcheck and kiln launch over four hosts that are namespaces of this machine (hosts.sh), with sshd on port 3022: faults of
# hosts and networks, each with what netcheck says of it; and training that goes on after a killed rank, a stopped one, a pulled
# cable, a lost host and a request to leave; and in jobs of Slurm, if it is installed.  It takes minutes: `make test-hosts`.  usage: test_hosts.sh KILN
set -euo pipefail
kiln=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
export HOSTS_DIR=$dir/hosts
. "$here/../cli/expect.sh"
. "$here/../cli/corpus.sh"
[ "$(id -u)" = 0 ] && unshare -n -u -i -m -p --fork --mount-proc true 2>/dev/null || skip namespaces "this user may not make namespaces; run it as root"
for tool in sshd ip nsenter mpirun pgrep; do
    command -v $tool >/dev/null || skip namespaces "there is no $tool; install openssh-server iproute2 util-linux openmpi-bin procps"
done
hosts=$here/hosts.sh
munged=
trap '"$hosts" down; [ -z "$munged" ] || kill "$munged"; rm -rf "$dir"' EXIT
make_store
"$hosts" up 4
for i in 1 2 3 4; do echo "h$i slots=1"; done >"$dir/hostfile"
export OMP_NUM_THREADS=1 # and the limits of waits as they are by default

n_ok=0 n_failed=0
# verdict NAME command...: counts it
verdict()
{
    if "${@:2}"; then
        n_ok=$((n_ok + 1))
        echo "ok      $1"
    else
        n_failed=$((n_failed + 1))
        echo "FAILED  $1"
        tail -n 15 "$dir/err" "$dir/out" | sed 's/^/    /'
    fi
}
wanted() # wanted CODE SECONDS TEXT: the last command's code, time and words
{
    [ "$code" = "$1" ] && [ "$took" -lt "$2" ] && grep -qF -- "$3" "$dir/err" "$dir/out"
}
on_h1() # on_h1 command...: its code, its seconds, its output
{
    local begin=$SECONDS
    code=0
    timeout -k 5 120 "$hosts" exec h1 "$@" >"$dir/out" 2>"$dir/err" || code=$?
    took=$((SECONDS - begin))
}
check=("$kiln" netcheck --hostfile "$dir/hostfile" --ssh_port 3022)

on_h1 "${check[@]}"
verdict "netcheck: all pairs" wanted 0 30 "12 of 12 pairs work"
cp "$dir/out" "$dir/table"
on_h1 "${check[@]}" --interface eth0
verdict "netcheck: the interface is up" wanted 0 30 "12 of 12 pairs work"
"$hosts" exec h3 ip link set eth0 down
on_h1 "${check[@]}"
verdict "netcheck: an interface is down" wanted 69 30 "h3 does not answer: it is down, an interface is (on it: ip link set dev eth0 up)"
"$hosts" exec h3 ip link set eth0 up
"$hosts" exec h2 ip link add idle0 type bridge
on_h1 "${check[@]}" --interface idle0
verdict "netcheck: a named interface is down" wanted 69 30 "h2: interface idle0 is down: ip link set dev idle0 up"
"$hosts" exec h4 sh -c 'mv /root/.ssh/authorized_keys /root/.ssh/away'
on_h1 "${check[@]}"
verdict "netcheck: a wrong key" wanted 69 30 "h4: login refused: h4 refuses the key: ssh-copy-id -p 3022 h4"
"$hosts" exec h4 sh -c 'mv /root/.ssh/away /root/.ssh/authorized_keys'
"$hosts" exec h2 sh -c 'sed -i.bak /h3/d /root/.ssh/known_hosts'
on_h1 "${check[@]}"
verdict "netcheck: a key that one host does not know" wanted 69 30 "h2 -> h3: unknown host key: h3 is not in known_hosts: ssh-keyscan -p 3022 -H h3"
"$hosts" exec h2 sh -c 'mv /root/.ssh/known_hosts.bak /root/.ssh/known_hosts'
{ cat "$dir/hostfile"; echo "h9 slots=1"; } >"$dir/with_h9"
on_h1 "$kiln" netcheck --hostfile "$dir/with_h9" --ssh_port 3022
verdict "netcheck: an unknown host" wanted 69 30 "h9: unknown host: no address for h9"
on_h1 "$kiln" netcheck --hostfile "$dir/hostfile" --ssh_port 3023
verdict "netcheck: a closed port" wanted 69 30 "h2: port closed: nothing listens on port 3023 of h2"
"$hosts" cut h4
on_h1 "${check[@]}"
verdict "netcheck: a pulled cable" wanted 69 30 "h4 does not answer"
"$hosts" heal h4

launch=("$kiln" launch --hostfile "$dir/hostfile" --ssh_port 3022 --interface eth0 --backoff 1 --grace 2)
on_h1 "${launch[@]}" --env_file <(:) --dry-run hostname
verdict "launch: the line" wanted 0 10 "-n 4 -H h1:1,h2:1,h3:1,h4:1"
on_h1 "${launch[@]}" hostname
verdict "launch: a program on every host" test "$code $(sort "$dir/out" | grep -c '^h[1-4]$')" = "0 4"
on_h1 "${launch[@]}" sh -c '[ "$(hostname)" != h3 ] || exit 65; sleep 20'
verdict "launch: an error on a host is named" wanted 65 15 "rank 2 on h3 failed: it ended with exit code 65"

if [ ! -e "$(dirname "$kiln")/libkiln_mpi.so" ]; then
    lack mpi "training over hosts: this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
    echo "test_hosts: $n_ok ok, $n_failed failed"
    [ $n_failed = 0 ]
    exit
fi

steps=${STEPS:-600}
training=(--input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --global_batch_size 48 --gradient_accumulation_steps 12 --max_steps "$steps" --learning_rate 1e-3 --num_steps_per_checkpoint 20
    --keep_checkpoints 2 --log_freq 1 --disable_progress_bar)
# train OUT [flag...] -- [flag...]: flags of launch, then of pretrain
train()
{
    local out=$1 own=()
    shift
    while [ "$1" != -- ]; do
        own+=("$1")
        shift
    done
    shift
    on_h1 "${launch[@]}" "${own[@]}" kiln pretrain "${training[@]}" --output_dir "$dir/$out" "$@"
}
# Once a checkpoint is there: does the harm.
harm_after()
{
    local out=$1
    shift
    for _ in {1..600}; do
        if compgen -G "$dir/$out/ckpt_*" >/dev/null; then
            date +%s.%N >"$dir/harmed"
            "$@"
            return
        fi
        sleep 0.05
    done
}
# Seconds from the harm to the first step of the run that was started after it.
recovery()
{
    awk -v harmed="$(cat "$dir/harmed")" '
        { match($0, /"time":[0-9.]+/); time = substr($0, RSTART + 7, RLENGTH - 7) + 0 }
        /"event":"start"/ && time > harmed { restarted = 1 }
        /"event":"step"/ && restarted { printf "%.1f s to the next logged step", time - harmed; exit }' "$dir/$1/log.jsonl"
}
signal_rank() { "$hosts" exec "$1" pkill "-$2" "${@:3}" -f '^[^ ]*kiln pretrain'; } # signal_rank HOST SIGNAL [flag of pkill...]
same() { "$kiln" inspect --diff "$dir/whole/ckpt_$steps" "$dir/$1/ckpt_$steps" >>"$dir/err" 2>&1; }
whole_again() { [ "$code" = 0 ] && grep -qF -- "$2" "$dir/err" && same "$1"; }
at_end() { [ "$code" = 0 ] && grep -qF -- "$2" "$dir/err" && [ -e "$dir/$1/ckpt_$steps" ]; }
soon() { awk -v took="$(recovery "$1")" 'BEGIN { exit !(took + 0 > 0 && took + 0 <= 15) }'; } # the goal after a silent loss
soon_again() { whole_again "$@" && soon "$1"; }
at_end_soon() { at_end "$@" && soon "$1"; }
fixed=(--reproducible_ranks 4)

train whole -- "${fixed[@]}"
verdict "training: four hosts ($took s)" wanted 0 120 "ckpt_$steps"
harm_after killed signal_rank h3 KILL &
train killed -- "${fixed[@]}"
verdict "training: a rank is killed; the same bits; $(recovery killed)" whole_again killed "rank 2 on h3 failed after step"
printf 'h1 slots=2\nh2 slots=2\n' >"$dir/hosts_two_each"
printf 'h1 slots=2\nh2 slots=1\nh3 slots=1\n' >"$dir/hosts_uneven"
for layout in two_each uneven; do
    train $layout --hostfile "$dir/hosts_$layout" --max_restarts 0 -- "${fixed[@]}"
    verdict "training: hosts with several ranks, $layout; the same bits ($took s)" whole_again $layout "ranks: 4 over MPI, 2 on this node"
done
harm_after one_of_two signal_rank h2 KILL --newest &
train one_of_two --hostfile "$dir/hosts_two_each" -- "${fixed[@]}"
verdict "training: one of a host's two ranks is killed; the same bits; $(recovery one_of_two)" whole_again one_of_two "on h2 failed after step"
harm_after stopped signal_rank h2 STOP &
train stopped -- "${fixed[@]}"
verdict "training: a rank is stopped; the same bits; $(recovery stopped)" soon_again stopped "rank 1 on h2 failed after step"
harm_after told sh -c "'$hosts' exec h1 sh -c 'kill -TERM \$(pgrep -o -f \"kiln launch --hostfile\")'" &
train told -- "${fixed[@]}"
verdict "training: SIGTERM saves on all ranks" wanted 75 60 "the state is saved"
train told -- "${fixed[@]}" --resume_from_checkpoint
verdict "training: and goes on to the same bits" same told
. "$here/slurm_part.sh"
harm_after cut "$hosts" cut h4 &
train cut --min_hosts 2 --
verdict "training: a pulled cable; three hosts go on; $(recovery cut)" at_end_soon cut "h4 does not answer"
"$hosts" heal h4
sleep 1
harm_after lost "$hosts" kill h3 &
train lost --min_hosts 2 --
verdict "training: a lost host; three hosts go on; $(recovery lost)" at_end lost "h3 does not answer"
wait
cat "$dir/table"
echo "test_hosts: $n_ok ok, $n_failed failed"
[ $n_failed = 0 ]
