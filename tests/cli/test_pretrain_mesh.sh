#!/usr/bin/env bash
# `kiln pretrain-gpt` on meshes of ranks: tensor parallel, pipelines, interleaved ones, and data parallel give the training of one
# rank; any mesh goes on from any other's checkpoint; a run that was killed goes on with the same bits; what does not divide is one
# sentence.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/ranks.sh"
need_mpirun

make_gpt_store
base=(--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 2
    --data-path "$dir/meg_text_document" --split 949,50,1 --vocab-file "$dir/bpe/vocab.json" --merge-file "$dir/bpe/merges.txt"
    --clip-grad 1.0 --seed 42 --global-batch-size 16 --train-iters 12 --lr 1e-2 --log-interval 1 --eval-iters 2 --eval-interval 6
    --save-interval 6 --ngram_tokens 0)

# mesh_command N TP PP OUT FLAG...: sets `command`, a run of N ranks that saves into $dir/OUT
mesh_command()
{
    local n=$1 tp=$2 pp=$3 out=$4
    shift 4
    as_ranks "$n" "$kiln" pretrain-gpt "${base[@]}" --tensor-model-parallel-size "$tp" --pipeline-model-parallel-size "$pp" \
        --save "$dir/$out" --load "$dir/$out" "$@"
}

# mesh N TP PP OUT FLAG...: runs it, with its losses in $dir/OUT.losses
mesh()
{
    mesh_command "$@"
    runs
    grep -oE '^ iteration +[0-9]+/|lm loss: [^|]*|grad norm: [^|]*|lm loss value: [^|]*' "$dir/out" >"$dir/$4.losses"
}

# near A B: losses within the last digits that a line has
near()
{
    paste <(grep -oE '[0-9.]+E[+-][0-9]+' "$dir/$1.losses") <(grep -oE '[0-9.]+E[+-][0-9]+' "$dir/$2.losses") |
        awk '{ d = $1 - $2; if (NF != 2 || d > 2e-4 || d < -2e-4) exit 1 }' || fail "$1 and $2: $(paste "$dir/$1.losses" "$dir/$2.losses")"
}

# sends_what_is_planned NAME MESH CHUNKS [OPTIMIZER]: the bytes that ranks of the last run sent in a step are those of its plan
sends_what_is_planned()
{
    local sent optimizer=${4:-adam}
    sent=$(sed -nE 's/.*traffic: a rank sent ([0-9.]+) MB to other slices in a step, ([0-9.]+) to other stages and ([0-9.]+) to.*/\1 \2 \3/p' "$dir/err")
    "$kiln" plan --config "$dir/$1/ckpt_3/config.json" --mesh "$2" --chunks "$3" --device cpu --dry_run --json --optimizer "$optimizer" \
        --max_seq_length 32 --micro_batch_size 2 --global_batch_size 16 >"$dir/plan" || fail "no plan of $1"
    awk -v sent="$sent" '{ gsub(/[",:]/, "") } $1 == "slices_send_bytes" { slices = $2 } $1 == "stages_send_bytes" { stages = $2 }
        $1 == "tied_send_bytes" { stages += $2 }
        $1 == "replicas_send_bytes" { a = slices > a ? slices : a; b = stages > b ? stages : b; c = $2 > c ? $2 : c }
        END { p = sprintf("%.6f %.6f %.6f", a / 1e6, b / 1e6, c / 1e6); print p; exit p != sent }' "$dir/plan" >"$dir/planned" ||
        fail "$1: ranks sent $sent MB to slices, stages and replicas, planned $(cat "$dir/planned")"
}

mesh 1 1 1 one
mesh 2 1 2 pp2
grep -q '^ *1 *1 *0 *0 ' "$dir/err" || fail "no table of the mesh: $(cat "$dir/err")"
mesh 2 1 2 chunks --num-layers-per-virtual-pipeline-stage 1
mesh 4 1 4 pp4
mesh 2 1 2 embeddings --pp-partition-method 'type:transformer|embedding'
mesh 2 2 1 tp2
mesh 8 4 2 tp4pp2
mesh 8 2 2 all --num-layers-per-virtual-pipeline-stage 1 --zero-stage=1
mesh 2 2 1 rows --sequence-parallel
mesh 8 2 2 all_rows --sequence-parallel --num-layers-per-virtual-pipeline-stage 1 --zero-stage=1 --checkpoint-activations
mesh 1 1 1 one_rank_of_rows --sequence-parallel
for m in pp2 chunks pp4 embeddings tp2 tp4pp2 all rows all_rows; do
    near one $m
done
cmp "$dir/one.losses" "$dir/one_rank_of_rows.losses" || fail "a rank alone divides its rows"
for m in chunks pp4 embeddings; do
    cmp "$dir/pp2.losses" "$dir/$m.losses" || fail "$m has other losses than pp2"
    same_weights pp2/ckpt_12 $m/ckpt_12
done
expect 0 '' "$kiln" generate --model "$dir/tp4pp2/ckpt_12" --prompt 'The king' --max_new_tokens 4

# from one mesh to another: the last steps are those of the run that saved
for to in '1 1 1' '2 1 2' '2 2 1' '8 4 2'; do
    for from in one pp2 tp4pp2; do
        mkdir "$dir/moved" && cp -r "$dir/$from/ckpt_6" "$dir/moved/"
        # shellcheck disable=SC2086
        mesh $to moved
        sed -n '/^ iteration *7/,$p' "$dir/$from.losses" >"$dir/rest.losses"
        near moved rest
        rm -rf "$dir/moved"
    done
done

mkdir "$dir/moved" && cp -r "$dir/tp4pp2/ckpt_6" "$dir/moved/"
mesh 4 2 2 moved --sequence-parallel
sed -n '/^ iteration *7/,$p' "$dir/tp4pp2.losses" >"$dir/rest.losses"
near moved rest
rm -rf "$dir/moved"

# the same bits after a rank was killed, in the instant in which a checkpoint got its name
mesh_command 4 2 2 killed
at_call "torn 1" "$dir/killed/ckpt_6" "${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" && fail "no rank was killed"
[ "$(cat "$dir/mark")" = rename ] && [ -e "$dir/killed/ckpt_6" ] && [ ! -e "$dir/killed/ckpt_12" ] ||
    fail "killed at $(cat "$dir/mark"): $(ls "$dir/killed")"
mesh 4 2 2 killed
mesh 4 2 2 whole
same_weights whole/ckpt_12 killed/ckpt_12

# through shared memory and by messages; with ZeRO 1 replicas would send unequal shards
mesh 8 2 2 window --train-iters 3
sends_what_is_planned window 2x2x2 1
KILN_COMM_WINDOW=0 mesh 8 2 2 messages --train-iters 3 --num-layers-per-virtual-pipeline-stage 1
sends_what_is_planned messages 2x2x2 2

# Muon makes whole matrices orthogonal, of which ranks have slices
mesh 1 1 1 muon_one --train-iters 3 --recipe modern
mesh 4 2 2 muon --train-iters 3 --recipe modern
near muon_one muon
sends_what_is_planned muon 2x2x1 1 muon

# each stage of a pipeline writes a trace, from which its bubble is counted
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
mesh 4 2 2 traced --train-iters 3 --profile --profile_steps 2:3 --num-layers-per-virtual-pipeline-stage 1
traces=("$dir/traced/profile/trace_2_3.json" "$dir/traced/profile/trace_2_3_rank_2.json")
[ "$(ls "$dir/traced/profile")" = "$(printf '%s\n' "${traces[@]##*/}")" ] || fail "traces: $(ls "$dir/traced/profile")"
for trace in "${traces[@]}"; do
    grep -q '"name":"wait for a stage"' "$trace" || fail "no wait in $trace"
done
if command -v python3 >/dev/null; then
    for trace in "${traces[@]}"; do
        python3 "$tools/check_trace.py" "$trace" || fail "$trace"
    done
    python3 "$tools/../bench/count_bubble.py" 8 2 "${traces[@]}" >"$dir/bubble" || fail "no bubble is counted"
    grep -qE "^by turns, .*: [0-9.]+ %, [0-9.]+ of the formula's 5.88 %" "$dir/bubble" || fail "no bubble: $(cat "$dir/bubble")"
fi

# refused N TEXT FLAG...
refused()
{
    local n=$1 text=$2
    shift 2
    as_ranks "$n" "$kiln" pretrain-gpt "${base[@]}" --save "$dir/refused" "$@"
    "${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" && fail "accepted: $*"
    grep -qF -- "$text" "$dir/err" || fail "'$text' is not in: $(cat "$dir/err")"
    [ ! -e "$dir/refused" ] || fail "refused, and written: $*"
}
# a loss that is not finite is looked into by all ranks together
as_ranks 2 "$kiln" pretrain-gpt "${base[@]}" --tensor-model-parallel-size 2 --save "$dir/diverged" --lr 100 --init-method-std 10 \
    --optimizer sgd --clip-grad 0 --train-iters 20
"${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" && fail "weights of 1e38 have losses"
grep -q 'the first tensor that is not finite is' "$dir/err" || fail "a loss that is not finite: $(cat "$dir/err")"

refused 2 'is a mesh of 4 ranks, but 2 were started' --tensor-model-parallel-size 4
refused 3 '--num-layers 4 is not a multiple of --pipeline-model-parallel-size 3' --pipeline-model-parallel-size 3
refused 3 'tensor parallel over 3 ranks needs a multiple of 3 heads' --tensor-model-parallel-size 3
refused 2 'does not divide the 2 layers of a stage' --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3
refused 2 'runs 2 micro-batches at a time, but a step has 3' --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 \
    --global-batch-size 6
refused 4 "--pp-partition-method 'type:mlp' is not uniform" --pipeline-model-parallel-size 4 --pp-partition-method type:mlp
refused 4 'make no 4 parts that have a layer each' --pipeline-model-parallel-size 4 --pp-partition-method 'type:transformer|embedding'
refused 4 'use ZeRO stage 0 or 1' --pipeline-model-parallel-size 2 --zero-stage=2
