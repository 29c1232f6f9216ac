#!/usr/bin/env bash
# kiln launch: its command lines, its restarts and its signals, with an mpirun and an ssh that are scripts of this test.
set -euo pipefail
kiln=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
cd "$dir"
unset "${!OMPI_@}" "${!SLURM_@}" "${!PMIX_@}" WORLD_SIZE RANK LOCAL_RANK MASTER_ADDR
unset "${!CUDA_@}" "${!OPENBLAS_@}" "${!OMP_@}" "${!NCCL_@}" "${!UCX_@}" "${!FI_@}" "${!KILN_@}" LD_LIBRARY_PATH
export HOME=$dir/home PATH=$dir/bin:$PATH
mkdir home bin
printf '# hosts\nh1 slots=8\nh2 slots=8\n' >hosts
flags=(--input_dir in --config_file c.json --output_dir model)
launch=("$kiln" launch)

# line TEXT command...: the one line of standard output of a dry run has the text
line()
{
    local text=$1
    shift
    expect 0 "" "$@"
    grep -qF -- "$text" "$dir/out" || fail "'$text' is not in: $(cat "$dir/out")"
}
ranks="-H h1:8,h2:8"
dry=("${launch[@]}" --dry-run --cores_per_host 48)

# one machine; several; every form of a command
line " --bind-to core --map-by ppr:2:node:PE=24 -n 2 -H localhost:2 $kiln launch --as_rank $kiln pretrain ${flags[*]}" \
    "${dry[@]}" --num_ranks 2 kiln pretrain "${flags[@]}"
grep -q '^1 host, 2 ranks; each rank is bound to 24 of its host.s 48 cores$' err || fail "no binding: $(cat err)"
line "-n 16 $ranks $kiln launch --as_rank $kiln pretrain --do_train" "${dry[@]}" --hostfile hosts -- pretrain --do_train \
    "${flags[@]}"
line "--mca plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=5 -p 3022'" "${dry[@]}" --hostfile hosts --ssh_port 3022 pretrain \
    "${flags[@]}"
line "--as_rank 'two\\x0alines'" "${dry[@]}" --num_ranks 2 $'two\nlines'
line "env CUDA_VISIBLE_DEVICES=0,2 $kiln launch" "${dry[@]}" --hostfile hosts --include h2:0,2 pretrain "${flags[@]}"
line "-n 15 -H h1:8,h2:7" "${dry[@]}" --hostfile hosts --exclude h2:7 pretrain "${flags[@]}"
line "--ntasks-per-node=8 --cpu-bind=cores" "${launch[@]}" --dry-run --launcher slurm --num_gpus 8 pretrain "${flags[@]}"
line "srun --mpi=pmix" env SLURM_JOB_ID=7 "${launch[@]}" --dry-run pretrain "${flags[@]}"
line "-n 16 $ranks" env OMPI_MCA_orte_default_hostfile=hosts "${dry[@]}" pretrain "${flags[@]}"
line "mpirun -n 8 --bind-to core $kiln pretrain" "${launch[@]}" --dry-run mpirun -n 8 --bind-to core "$kiln" pretrain \
    "${flags[@]}"
line "$kiln launch --as_rank ./a.out -n" "${dry[@]}" --num_ranks 2 ./a.out -n

# the documents' lines: 002's as it is logged, the scripts' with a hostfile
line "-n 8 -H localhost:8 -x MASTER_PORT $kiln launch --as_rank $kiln pretrain --use_hpu" "${dry[@]}" \
    --world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgMywgNCwgNSwgNiwgN119 --master_addr= --master_port=29500 --no_python \
    --no_local_rank \
    python -u ./run_pretraining.py --use_hpu "${flags[@]}"
line "-n 8 -H h1:4,h2:4 -x MASTER_ADDR $kiln launch --as_rank $kiln pretrain" "${dry[@]}" --num_nodes 2 --num_gpus 4 \
    --no_local_rank --no_python --hostfile hosts --master_addr h1 python3 -u run_pretraining.py "${flags[@]}"

# environment files: home's, then this folder's, then the flag's; a line that is none is an error
printf 'A=home\nB=2\n' >home/.deepspeed_env
printf 'A=here\n' >.deepspeed_env
printf 'C=a b\n' >more
line "-x B -x A -x C " "${dry[@]}" --hostfile hosts --env_file more pretrain "${flags[@]}" || true
grep -q '^environment: A=home B=2 A=here C=a b$' out || fail "environment: $(cat out)"
echo 'export D=1' >more
expect 64 "more, line 1: 'export D=1' is not NAME=VALUE" "${dry[@]}" --hostfile hosts --env_file more pretrain "${flags[@]}"

printf 'A=1\0B=2\n' >more
expect 64 "more, line 1: the line has a NUL byte" "${dry[@]}" --hostfile hosts --env_file more pretrain "${flags[@]}"
mkfifo pipe
for bad in pipe /dev/zero; do
    expect 65 "$bad is not a regular file" "${patient[@]}" "${dry[@]}" --hostfile hosts --env_file $bad pretrain "${flags[@]}"
    expect 65 "$bad is not a regular file" "${patient[@]}" "${dry[@]}" --hostfile $bad pretrain "${flags[@]}"
done
# a file that nobody named, and that others may have written
chmod go+w .deepspeed_env
expect 64 "./.deepspeed_env can be written by other users" "${dry[@]}" --hostfile hosts pretrain "${flags[@]}"
if [ "$(id -u)" -eq 0 ]; then
    chmod go-w .deepspeed_env
    chown 65534 .deepspeed_env
    expect 64 "./.deepspeed_env belongs to another user" "${dry[@]}" --hostfile hosts pretrain "${flags[@]}"
    chown "$(id -u)" .deepspeed_env
fi
chmod go-w .deepspeed_env
for place in . home; do
    mv $place/.deepspeed_env own
    ln -s "$PWD/own" $place/.deepspeed_env
    expect 64 "$place/.deepspeed_env is a symbolic link: it would set variables" "${dry[@]}" --hostfile hosts pretrain "${flags[@]}"
    mv own $place/.deepspeed_env
done
chmod go+w home/.deepspeed_env
expect 64 "home/.deepspeed_env can be written by other users" "${dry[@]}" --hostfile hosts pretrain "${flags[@]}"
chmod go-w home/.deepspeed_env
# hosts keep their domains
printf 'w.1.foo.net slots=8\nw.2.foo.net slots=8\n' >long
line "-H w.1.foo.net:8,w.2.foo.net:8" "${dry[@]}" --hostfile long pretrain "${flags[@]}"
line "--mca orte_keep_fqdn_hostnames 1" "${dry[@]}" --hostfile long pretrain "${flags[@]}"

# what is wrong is said before anything starts
expect 64 "the number of ranks is missing" "${launch[@]}" pretrain "${flags[@]}"
expect 64 "needs COMMAND..." "${launch[@]}" --num_ranks 2
expect 64 "kiln pretrain: unknown flag --no_such" "${launch[@]}" --num_ranks 2 pretrain "${flags[@]}" --no_such
expect 64 "is not one of the scripts" "${launch[@]}" --num_ranks 2 python train.py
expect 64 "--num_nodes is 2, but without --hostfile" "${launch[@]}" --num_nodes 2 --num_gpus 8 pretrain "${flags[@]}"
expect 65 "--hostfile: cannot open none" "${launch[@]}" --hostfile none pretrain "${flags[@]}"
expect 64 "--include names the host 'h3'" "${launch[@]}" --hostfile hosts --include h3 pretrain "${flags[@]}"
expect 64 "is not a host" "${launch[@]}" --hostfile hosts --master_addr 'h1;ls' pretrain "${flags[@]}"
rm home/.deepspeed_env .deepspeed_env

# a fake mpirun: notes its words and A, then does what the next line of `script` says
cat >bin/mpirun <<'SH'
#!/usr/bin/env bash
echo "$*" >>words
echo "A=${A:-}" >>words
n=$(wc -l <script)
IFS= read -r next <script
[ "$n" -lt 2 ] || sed -i 1d script
eval "$next"
SH
cat >bin/ssh <<'SH'
#!/usr/bin/env bash
for host; do case $host in h[0-9]) break ;; esac; done
echo "$*" >>asked
! grep -qx "$host" lost 2>/dev/null || { echo "ssh: connect to host $host port 22: Connection timed out" >&2; exit 255; }
printf '4\n4\n2\n' # threads that may be used, all threads, cores
SH
chmod +x bin/mpirun bin/ssh
mkdir model
run=("${launch[@]}" --backoff 0.1 --grace 1)

# restarts: each new checkpoint counts anew; the flag is added once; the environment is the file's
echo A=1 >.deepspeed_env
cat >script <<'SH'
mkdir model/ckpt_5; echo '{"event":"step","step":7}' >model/log.jsonl; echo 'kiln: error: rank 1 on h2 ended by signal 9, Killed' >&2; exit 137
mkdir model/ckpt_9; exit 74
exit 97
echo done
SH
expect 0 done "${run[@]}" --num_ranks 2 --max_restarts 2 pretrain "${flags[@]}"
[ "$(wc -l <words)" = 8 ] && [ "$(grep -c '^A=1$' words)" = 4 ] || fail "starts: $(cat words)"
! sed -n 1p words | grep resume_from >/dev/null || fail "the first start resumes"
[ "$(grep -c -- '--resume_from_checkpoint$' words)" = 3 ] || fail "resumed: $(cat words)"
grep -qF 'rank 1 on h2 failed after step 7: it ended by signal 9, Killed' err || fail "no name: $(cat err)"
grep -qF 'from ckpt_9' err || fail "no checkpoint: $(cat err)"
echo 'kiln: error: the disk is full >>>' >said
echo 'cat said >&2; exit 74' >script
expect 74 "no more restarts (--max_restarts): the job failed (exit code 74): the disk is full >>>" \
    "${run[@]}" --num_ranks 2 --max_restarts 1 pretrain "${flags[@]}"
echo 'echo "kiln: error: wrong data" >&2; exit 65' >script
: >words
expect 65 "the job failed (exit code 65): wrong data" "${run[@]}" --num_ranks 2 pretrain "${flags[@]}"
[ "$(wc -l <words)" = 2 ] || fail "65 was started again"

# a rank failed, and mpirun waits for ever: it is ended, and SIGKILL takes what ignores the rest
echo 'trap "" TERM; echo "kiln: error: rank 0 on h1 ended with exit code 98" >&2; sleep 1000 & wait; sleep 1000' >script # time: longer than the test
expect 137 "rank 0 on h1 failed: it ended with exit code 98" "${run[@]}" --num_ranks 2 --max_restarts 0 pretrain "${flags[@]}"

# SIGTERM becomes SIGUSR1, "save and leave", which is no reason to restart
for signal in TERM USR1; do
    rm -f ready
    echo 'trap "echo saved; exit 75" USR1; touch ready; for i in {1..6000}; do sleep 0.05; done' >script # time: until the signal, which a sleep delays
    "${run[@]}" --num_ranks 2 pretrain "${flags[@]}" >out.txt 2>err.txt &
    await $! test -e ready
    kill -$signal $!
    wait $! && code=0 || code=$?
    [ "$code" = 75 ] && grep -q saved out.txt || fail "SIG$signal: $code $(cat err.txt)"
done

# hosts are asked first; a lost one is left out of a restart if enough remain
: >asked
echo 'exit 0' >script
expect 0 "2 hosts, 16 ranks; not bound to cores: a host has fewer cores than ranks" "${run[@]}" --hostfile hosts pretrain \
    "${flags[@]}"
[ "$(grep -c . asked)" = 2 ] || fail "asked: $(cat asked)"
printf 'h2\n' >lost
expect 69 "h2: timeout: h2 does not answer" "${run[@]}" --hostfile hosts pretrain "${flags[@]}"
rm lost
: >words
printf 'echo h2 >lost; exit 205\nexit 0\n' >script
expect 0 "h2 does not answer" "${run[@]}" --hostfile hosts --min_hosts 1 pretrain "${flags[@]}"
sed -n 3p words | grep -F -- '-n 8 -H h1:8 ' >/dev/null || fail "the lost host is still used: $(cat words)"
rm lost
printf 'echo h2 >lost; exit 205\nexit 0\n' >script
expect 69 "1 of 2 hosts answer, but 2 are needed; --min_hosts" "${run[@]}" --hostfile hosts --max_restarts 1 pretrain \
    "${flags[@]}"

# the rank's guard says how it ended, and passes signals on
expect 3 "kiln: error: rank 5 on " env OMPI_COMM_WORLD_RANK=5 "$kiln" launch --as_rank sh -c 'exit 3'
expect 137 "ended by signal 9, Killed" env OMPI_COMM_WORLD_RANK=0 "$kiln" launch --as_rank sh -c 'kill -9 $$'
expect 69 "cannot start ./none" "$kiln" launch --as_rank ./none
# time: until the signal
OMPI_COMM_WORLD_RANK=0 "$kiln" launch --as_rank bash -c 'trap "exit 75" USR1; touch up; for i in {1..6000}; do sleep 0.05; done' \
    2>err.txt &
await $! test -e up
kill -USR1 $!
wait $! && code=0 || code=$?
[ "$code" = 75 ] || fail "the guard: $code"

# kiln launch is killed: the launcher hears of it, and goes on although nobody reads what it prints
cat >bin/mpirun <<'END'
#!/bin/bash
trap 'echo told >&2; echo "$PRTE_MCA_prte_keep_fqdn_hostnames" >told; exit 75' USR1
echo $$ >up
for i in {1..6000}; do sleep 0.05; done # time: until the signal
END
chmod +x bin/mpirun
rm -f up told
"$kiln" launch --num_ranks 1 --cores_per_host 1 ./a.out >/dev/null 2>&1 &
await $! test -s up
kill -9 $!
await "$(cat up)" test -s told
[ "$(cat told)" = 1 ] || fail "the launcher was not told that the supervisor is gone"
echo "test_launch: command lines, restarts, signals, lost hosts"
