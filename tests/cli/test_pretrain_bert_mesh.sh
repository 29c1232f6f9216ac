#!/usr/bin/env bash
# `kiln pretrain` of BERT on meshes of ranks: tensor parallel, and with stages, the losses of one process with lamb and with Muon; one
# process goes on from what a mesh saved, and a mesh from what one process saved; early stopping; what does not go together is one sentence.
. "$(dirname "$0")/begin_ranks.sh"

batch=(--global_batch_size 16 --gradient_accumulation_steps 4 --eval_samples 32)
tp2=(--tensor-model-parallel-size 2)

# losses OUT [FROM]: of the steps after FROM, and of the evaluations
losses()
{
    awk -F'"global_step":' -v from="${2:-0}" 'NF > 1 && $2 + 0 > from' "$dir/$1/log.jsonl" |
        grep -oE '"(step_loss|mlm_loss|nsp_loss|eval_mlm_loss|eval_nsp_loss|grad_norm)":[^,}]*'
}

# near A B [FROM]
near()
{
    losses "$1" "${3:-0}" >"$dir/wanted"
    losses "$2" "${3:-0}" >"$dir/got"
    [ -s "$dir/wanted" ] || fail "$1 has no losses: $(cat "$dir/$1/log.jsonl")"
    paste -d: "$dir/wanted" "$dir/got" |
        awk -F: '$1 != $3 || $2 - $4 > 1e-5 * $2 || $4 - $2 > 1e-5 * $2 { exit 1 }' ||
        fail "$1 and $2: $(paste "$dir/wanted" "$dir/got")"
}

pretrain 1 one "${batch[@]}"
pretrain 2 tp2 "${batch[@]}" "${tp2[@]}"
near one tp2
[ "$(grep -o '"parameters":[0-9]*' "$dir/one/log.jsonl")" = "$(grep -o '"parameters":[0-9]*' "$dir/tp2/log.jsonl")" ] ||
    fail "a slice is not the model: $(head -1 "$dir/tp2/log.jsonl")"
grep -q "^mesh: the first rank has 0\.0[45]" "$dir/err" || fail "the first rank's part is not announced: $(cat "$dir/err")"
pretrain 4 all "${batch[@]}" "${tp2[@]}" --pipeline-model-parallel-size 2
near one all
"$kiln" inspect --diff "$dir/one/ckpt_6" "$dir/tp2/ckpt_6" >/dev/null 2>&1 && fail "slices have the bits of one rank: nothing was compared"
expect 0 '' "$kiln" fill --model "$dir/tp2/ckpt_6" 'the king went to the [MASK].'

# from one mesh to another
for to in 'tp2 1' 'one 2 --tensor-model-parallel-size 2' 'tp2 4 --tensor-model-parallel-size 2 --zero_stage 1'; do
    # shellcheck disable=SC2086
    set -- $to
    from=$1 n=$2
    shift 2
    mkdir "$dir/moved" && cp -r "$dir/$from/ckpt_3" "$dir/moved/"
    pretrain "$n" moved "${batch[@]}" "$@" --resume_from_checkpoint
    grep -q "^resumed from .*ckpt_3" "$dir/err" || fail "$n ranks did not resume: $(cat "$dir/err")"
    near "$from" moved 3
    rm -rf "$dir/moved"
done

# Muon takes whole matrices, of which ranks have slices
pretrain 1 muon "${batch[@]}" --optimizer muon
pretrain 2 muon_tp2 "${batch[@]}" "${tp2[@]}" --optimizer muon
near muon muon_tp2

# a run that ends early, at a rate that is much too high: all ranks end, and the best checkpoint becomes a model
pretrain 4 early "${batch[@]}" "${tp2[@]}" --pipeline-model-parallel-size 2 --max_steps 40 --learning_rate 0.2 --optimizer adamw \
    --eval_steps 2 --early_stopping_patience 2
best=$(sed -nE 's/.*has not fallen for 2 evaluations.* at step ([0-9]+)$/\1/p' "$dir/err")
[ -n "$best" ] || fail "it did not end early: $(cat "$dir/err")"
grep -q "saved $dir/early/best from ckpt_$best, with a held-out loss of" "$dir/err" || fail "no best model: $(cat "$dir/err")"
"$kiln" export --model "$dir/early/ckpt_$best" --output_dir "$dir/exported" >/dev/null 2>&1 || fail "ckpt_$best is not there: $(ls "$dir/early")"
cmp "$dir/exported/model.safetensors" "$dir/early/best/model.safetensors" || fail "best/ is not the best"

# refused N TEXT FLAG...
refused()
{
    local n=$1 text=$2
    shift 2
    pretrain_command "$n" refused "${batch[@]}" "$@"
    "${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" && fail "accepted: $*"
    grep -qF -- "$text" "$dir/err" || fail "'$text' is not in: $(cat "$dir/err")"
    [ ! -e "$dir/refused" ] || fail "refused, and written: $*"
}
refused 1 'is a mesh of 2 ranks, but 1 was started' "${tp2[@]}"
refused 3 'tensor parallel over 3 ranks needs a multiple of 3 heads' --tensor-model-parallel-size 3
refused 2 'take scales of whole tensors' "${tp2[@]}" --fp8
refused 1 '--emulate_world: tensor-parallel size 2 x' "${tp2[@]}" --emulate_world 3
