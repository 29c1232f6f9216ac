# Training in jobs of Slurm, on the first two hosts; sourced by test_hosts.sh.  Daemons of this test's own: munged with its own key
# and socket, slurmctld on h1, and a slurmd on each host, which end with the hosts.

# Slurm on h1 and h2; munged is $munged.
start_slurm()
{
    local slurm=$dir/slurm i
    mkdir -p "$slurm/state" "$slurm/munge"
    head -c 128 /dev/urandom >"$slurm/munge/key"
    chmod 600 "$slurm/munge/key"
    munged --foreground --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" --pid-file="$slurm/munge/pid" \
        --seed-file="$slurm/munge/seed" --log-file="$slurm/munge/log" >"$slurm/munge/out" 2>&1 &
    munged=$!
    disown # the test waits for all others
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=h1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket,cred_expire=5
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
NodeName=h[1-2] CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=p Nodes=h[1-2] Default=YES State=UP MaxTime=INFINITE
CONF
    echo PMIxCliTmpDirBase=/dev/shm >"$slurm/mpi.conf"
    export SLURM_CONF=$slurm/slurm.conf
    "$hosts" exec h1 slurmctld -D >"$slurm/slurmctld.out" 2>&1 &
    disown
    for i in 1 2; do
        mkdir -p "$slurm/spool.h$i"
        "$hosts" exec h$i slurmd -D -N h$i >"$slurm/slurmd.$i.out" 2>&1 &
        disown
    done
    for _ in {1..100}; do
        [ "$("$hosts" exec h1 sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
        sleep 0.2
    done
    return 1
}

# job_shows TEXT: the job's record has it
job_shows() { "$hosts" exec h1 scontrol show job "$job" 2>/dev/null | grep -E -- "$1" >/dev/null; }
job_ends()
{
    local i
    for i in {1..300}; do
        ! job_shows "JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)" || break
        # a job that was queued again waits for two minutes; each update puts it off a little
        [ $((i % 20)) != 0 ] || ! job_shows "JobState=PENDING" || "$hosts" exec h1 scontrol update JobId="$job" StartTime=now 2>/dev/null || true
        sleep 0.2
    done
    job_shows "JobState=COMPLETED"
}

# deploy's script with this test's training: its kiln launch and its --output_dir are kept
make_job()
{
    mkdir -p "$dir/bin"
    grep -v '^#SBATCH --gpus-per-node' "$here/../../deploy/slurm/pretrain.sbatch" >"$dir/job.sbatch"
    cat >"$dir/bin/kiln" <<SH
#!/bin/bash
line=()
while [ "\$1" != pretrain ]; do
    line+=("\$1")
    shift
done
for word; do
    case \$word in --output_dir=*) out=\$word ;; esac
done
exec $kiln "\${line[@]}" pretrain ${training[*]} ${fixed[*]} --resume_from_checkpoint "\$out"
SH
    chmod +x "$dir/bin/kiln"
}

# submit OUT: $job is its number
submit()
{
    : >"$dir/err"
    job=$("$hosts" exec h1 env PATH="$dir/bin:$PATH" RUN_PATH="$dir" dataset="$dir" dllog="$dir/dllog" output="$dir/$1" \
        sbatch --parsable --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 --time=5 --output="$dir/err" "$dir/job.sbatch")
}

slurm_whole_again() { [ "$code" = 0 ] && grep -qF -- "$2" "$dir/err" && job_shows "Restarts=$3" && same "$1"; }

slurm_part()
{
    verdict "Slurm: two hosts are idle" start_slurm
    on_h1 srun --mpi=pmix -N 2 -n 4 "$kiln" pretrain "${training[@]}" "${fixed[@]}" --output_dir "$dir/by_srun"
    verdict "Slurm: srun --mpi=pmix, two ranks on each host; the same bits ($took s)" whole_again by_srun "ranks: 4 over MPI, 2 on this node"
    on_h1 srun --mpi=pmix -N 1 -n 1 "$kiln" pretrain "${training[@]}" "${fixed[@]}" --output_dir "$dir/by_one"
    verdict "Slurm: a job step of one task is one process; the same bits ($took s)" whole_again by_one "phase 1: $steps steps"
    on_h1 srun --mpi=none -N 2 -n 2 "$kiln" pretrain "${training[@]}" --output_dir "$dir/by_none"
    verdict "Slurm: srun without --mpi=pmix is refused" wanted 69 20 "SLURM_STEP_NUM_TASKS is 2: this process is one of several"
    make_job
    : >"$dir/out"
    submit in_job
    harm_after in_job signal_rank h2 KILL --newest
    job_ends && code=0 || code=1
    verdict "Slurm: in a job a rank is killed; the same bits; $(recovery in_job)" slurm_whole_again in_job "on h2 failed after step" 0
    submit preempted
    harm_after preempted "$hosts" exec h1 scancel --batch --signal=USR1 "$job"
    job_ends && code=0 || code=1
    verdict "Slurm: USR1 saves, and the job is queued again; the same bits; $(recovery preempted)" slurm_whole_again preempted \
        "stopped by a signal; the state is saved" 1
}

if type -P slurmctld slurmd srun sbatch scontrol munged | awk 'END { exit NR != 6 }'; then
    slurm_part
else
    lack slurm "training in jobs of Slurm; install slurm-wlm and munge"
fi
