#!/usr/bin/env bash
# LANS on the documents' large models, made small by lans.sh, from the documents' JSON of DeepSpeed: ten losses are those of torch
# in float64 (golden/lans_losses.txt) to six digits, however micro-batches are joined; in bf16, as the JSON has it, to 3 %.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/lans.sh"
need_hdf5
export OMP_NUM_THREADS=2
make_lans_inputs

# compare NAME BOUND LOSS...: kiln's losses in the log of the run NAME are these
compare()
{
    local name=$1 bound=$2
    shift 2
    [ "$(lans_losses "$name" | wc -l)" = 10 ] || fail "$name: not ten losses"
    lans_losses "$name" | awk -v wanted="$*" -v bound="$bound" -v name="$name" '
        BEGIN { n = split(wanted, loss, " ") }
        { off = ($1 - loss[NR]) / loss[NR]; if (off < 0) off = -off; if (!(off <= worst)) { worst = off; at = NR } }
        END { printf "%s: 10 losses within %.2g of torch, %s at step %d\n", name, worst, loss[at], at
              exit !(n == 10 && NR == 10 && worst <= bound) }' || fail "$name: the losses are not those of torch"
}

grep -q '"layer_norm_large_model": true' "$dir/1.5b.json" && grep -q '"num_hidden_layers": 48' "$dir/1.5b.json" ||
    fail "not the model of the document"
while read -r model norm losses; do
    name=$model-$norm
    lans_train "$model" "$name" --loss_norm "$norm" 2>"$dir/log" || fail "$(cat "$dir/log")"
    grep -q "fp32, lans" "$dir/log" || fail "precision or optimizer: $(cat "$dir/log")"
    compare "$name" 1e-6 $losses
    tried=" ${tried:-} $name "
done <"$lans_root/tests/golden/lans_losses.txt"
for model in "${lans_models[@]}"; do
    [[ $tried == *" $model-global "* ]] || fail "no losses of $model"
done

sed -i '/"bf16"/,/}/s/false/true/' "$dir/ds.json"
while read -r model norm losses; do
    [ "$norm" = global ] || continue
    lans_train "$model" "bf16-$model" 2>"$dir/log" || fail "$(cat "$dir/log")"
    grep -q "bf16, lans" "$dir/log" || fail "precision or optimizer: $(cat "$dir/log")"
    compare "bf16-$model" 0.03 $losses
done <"$lans_root/tests/golden/lans_losses.txt"
echo "test_lans: as torch has it"
