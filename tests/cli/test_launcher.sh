#!/usr/bin/env bash
# What a launcher tells by variables and flags: one process is fine, one of several is refused before anything is read or
# written.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
cd "$dir"
pretrain=("$kiln" pretrain --input_dir none --config_file none.json --output_dir run)
squad=("$kiln" squad --init_checkpoint none --output_dir run --do_predict --predict_file none.json)

# variables of several ranks without a launcher under which they find each other
for told in WORLD_SIZE=8 OMPI_COMM_WORLD_SIZE=2 PMI_SIZE=2 MV2_COMM_WORLD_SIZE=4 SLURM_STEP_NUM_TASKS=2; do
    expect 69 "${told/=/ is }" env "$told" "${pretrain[@]}"
    expect 69 "or unset ${told%=*}" env "$told" "${squad[@]}" --dry_run
done
# a rank that finds no others says it itself
expect 69 "WORLD_SIZE is 2" env RANK=1 WORLD_SIZE=2 "${pretrain[@]}"
expect 64 "WORLD_SIZE is 'many', but must be a number of ranks" env WORLD_SIZE=many "${pretrain[@]}"
[ ! -e run ] || fail "a refused rank wrote something"

# the only rank goes on to its input, which is not there
for told in "WORLD_SIZE=1 RANK=0 LOCAL_RANK=0" "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0" "LOCAL_RANK=-1" \
    "SLURM_NTASKS=8 SLURM_NPROCS=8 SLURM_PROCID=0" "SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0" "RANK="; do
    # shellcheck disable=SC2086 # several assignments
    expect 65 "none" env $told "${pretrain[@]}"
done

expect 65 "none" "${pretrain[@]}" --local_rank=-1
expect 65 "none" "${pretrain[@]}" --local-rank 0
expect 69 "--local_rank is 1, but no launcher has started this process" "${pretrain[@]}" --local_rank 1
expect 65 "none" "${squad[@]}" --world_info eyJsb2NhbGhvc3QiOiBbMF19                     # {"localhost": [0]}
expect 69 "--world_info is for 3 ranks, but no launcher" "${squad[@]}" --world_info eyJhIjogWzAsIDFdLCAiYiI6IFswXX0= \
    # {"a": [0, 1], "b": [0]}
expect 64 "--world_info, decoded from base64" "${squad[@]}" --world_info '*'
expect 69 "--num_nodes is 2, but no launcher" "${pretrain[@]}" --num_nodes=2
expect 69 "--num_gpus is 8, but no launcher" "${pretrain[@]}" --num_nodes=1 --num_gpus 8
expect 69 "--hostfile is hosts, but no launcher" "${pretrain[@]}" --hostfile hosts
expect 65 "none" "${pretrain[@]}" --num_nodes 1 --num_gpus 1 --master_addr= --master_port=29500 --no_python --no_local_rank

# variables of the replaced systems are named once
expect 65 "environment variables without a meaning here: PT_HPU_LAZY_MODE" env PT_HPU_LAZY_MODE=0 "${pretrain[@]}"
for variable in HCCL_OVER_OFI HABANA_LOGS TORCH_COMPILE_DEBUG LD_PRELOAD MASTER_PORT; do
    expect 65 "environment variables without a meaning here: " env $variable= "${squad[@]}"
    [ "$(grep -c "$variable" err)" -eq 1 ] || fail "$variable is not named once: $(cat err)"
done

# a command that does not train may run on every rank
expect 0 "kiln" env WORLD_SIZE=8 RANK=3 "$kiln" doctor --dry_run
echo "test_launcher: one of several without the others is refused"
