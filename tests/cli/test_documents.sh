#!/usr/bin/env bash
# Every command line of the five documents that kiln replaces, in kiln's form, as a dry run: in an empty folder, and in one
# with the documents' configurations.  What asks for several ranks without a launcher that serves them says so; what is inside
# passes alone. docs/migrating has each of them.
. "$(dirname "$0")/begin.sh"
shopt -s extglob
tests=$(cd "$(dirname "$0")" && pwd)
configs=$tests/../../configs
. "$tests/documents.sh"
unset "${!OMPI_@}" "${!SLURM_@}" WORLD_SIZE RANK LOCAL_RANK
mkdir "$dir/empty" "$dir/configured" "$dir/configured/scripts"
cp "$configs/bert_large.json" "$dir/configured/bert_config.json"
cp "$configs/bert_1.2b.json" "$dir/configured/bert_config_1.2B.json"
cp "$configs/bert_1.5b.json" "$dir/configured/scripts/bert_1.5b_config.json"

cat >"$dir/configured/scripts/deepspeed_config_bert_1.5b.json" <<JSON
{"steps_per_print": 48, "train_batch_size": 12288, "train_micro_batch_size_per_gpu": 16, "gradient_clipping": 1.0,
 "tensorboard": {"enabled": true, "output_path": "./results/bert_1.5b/tensorboard", "job_name": "bert_1.5b_lans_zero1_bf16"},
 "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}
JSON

declare -A command_of=([run_pretraining]=pretrain [run_squad]=squad [pack_pretraining_data_pytorch]=pack)
declare -A n_of=([pretrain]=0 [squad]=0 [pack]=0)
n_lines=0 n_launched=0 n_scripts=0 n_lans=0

# ranks: what the launcher's words ask for, as it would tell each process
ranks()
{
    local i
    for ((i = 0; i < ${#launcher[@]}; i++)); do
        case ${launcher[i]} in
        -n) told=("OMPI_COMM_WORLD_SIZE=${launcher[i + 1]}") named="OMPI_COMM_WORLD_SIZE is ${launcher[i + 1]}" ;;
        --world_info=*) flags+=("${launcher[i]}") named="--world_info is for 8 ranks" ;;
        --no_* | --master_*) flags+=("${launcher[i]}") ;;
        esac
    done
}

# walk COMMAND: dry runs of it
walk()
{
    told=() flags=() named=
    ranks
    if [ -n "$named" ]; then
        expect 69 "$named" env "${told[@]}" "$kiln" "$1" "${flags[@]}" "${words[@]}" --dry-run
        n_launched=$((n_launched + 1))
    fi
    [[ " ${words[*]} " != *" --optimizer=lans "* ]] || n_lans=$((n_lans + 1))
    cd "$dir/empty"
    expect 0 "missing: --" env "${exports[@]}" "$kiln" "$1" "${words[@]}" --dry-run
    grep -q "^dry run: " "$dir/err" || fail "no end: $(cat "$dir/err")"
    cat "$dir/err" >>"$dir/said"
    expect 64 "unknown flag --no_such_flag" "$kiln" "$1" "${words[@]}" --dry-run --no_such_flag
    [ -z "$(ls -A)" ] || fail "something was written: $(ls -A)"
    cd "$dir/configured"
    [ "$1" = pack ] || expect 0 "M parameters" env "${exports[@]}" "$kiln" "$1" "${words[@]}" --dry-run
    n_of[$1]=$((n_of[$1] + 1))
}

# check_page NUMBER COMMAND: the page has the document's words behind kiln's, or for a script its name
check_page()
{
    local number=$1 wanted=("${words[@]# }")
    [ -z "$2" ] || wanted=(kiln "$2" "${wanted[@]}")
    read_page "$tests/../../docs/migrating/${number%.*}.md" "$number"
    [ ${#words[@]} -gt 0 ] || fail "docs/migrating has no command $number"
    if [ -z "$2" ]; then
        [ "$(basename "${words[-1]}")" = "$(basename "${wanted[-1]}")" ] || fail "$number: ${words[*]}, not ${wanted[*]}"
    else
        [ "${words[*]}" = "${wanted[*]}" ] || fail "$number: docs/migrating has ${words[*]}, not ${wanted[*]}"
    fi
    words=("${wanted[@]}")
}

read_documents "$tests"/documents/*.txt
for i in "${!numbers[@]}"; do
    split_command "${lines[i]}"
    n_lines=$((n_lines + 1))
    command=${command_of[${script:-none}]:-}
    check_page "${numbers[i]}" "$command"
    if [ -z "$script" ]; then
        n_scripts=$((n_scripts + 1))
        continue
    fi
    [ -n "$command" ] || fail "${numbers[i]}: kiln has nothing for $script.py"
    split_command "${lines[i]}"
    walk "$command"
done
echo \
    "test_documents: $n_lines command lines: ${n_of[pretrain]} pretrain, ${n_of[squad]} squad, ${n_of[pack]} pack, $n_launched of them" \
    "for a launcher, $n_lans for LANS; $n_scripts scripts have tests of their own"
# the slips of the documents were met
grep -q "^a backslash before '--num_steps_per_checkpoint=200' is ignored" "$dir/said" || fail "no backslash"
[ "$(grep -c "^--output_dir= /tmp/results/checkpoints: the space after '=' is ignored" "$dir/said")" -eq 2 ] || fail "no space"
grep -q "^warning: --init_checkpoint is <path-to-checkpoint>, a placeholder" "$dir/said" || fail "no placeholder"
grep -q "^missing: --eval_script data/squad/v1.1/evaluate-v1.1.py: leave it out" "$dir/said" || fail "no script"
grep -q "without a meaning here: .*PT_HPU_LAZY_MODE" "$dir/said" || fail "no variable"
[ $n_lines -eq 54 ] && [ "${n_of[pretrain]}" -eq 26 ] && [ "${n_of[squad]}" -eq 13 ] && [ "${n_of[pack]}" -eq 2 ] || fail "counts"
