#!/usr/bin/env bash
# Runs every mode of kiln in every number format of a device, on a small model and text of its own, and prints a table in Markdown:
# what runs, and what is refused with a sentence.  docs/supported.md is made by it, and test_supported
# holds the two together.
# usage: tools/supported.sh KILN [cpu|cuda [MODES]]      MODES: an extended regular expression of the rows to run
# On cuda with a GPU, or with the kernels emulated on the cpu (build/tests/emulated_kiln/kiln, 10 minutes for all rows).
set -euo pipefail
kiln=${1:?usage: tools/supported.sh KILN [cpu|cuda [MODES]]}
device=${2:-cpu}
modes=${3:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../tests/cli/corpus.sh"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

make_store
make_questions
printf 'sentence,label\nthe king went,yes\nthe river came,no\nthe city gave,yes\n' >"$dir/texts.csv"
printf 'the\tO\nking\tB-X\n\nthe\tO\nriver\tO\n\n' >"$dir/words.conll"
awk '{ print } NR == 40 { exit }' "$dir/corpus.txt" >"$dir/book.txt"
for packed in "" --packed; do
    "$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
        --one_sentence_per_line --output_dir "$dir/files$packed" --format hdf5 --dupe_factor 1 --max_seq_length 32 \
        --max_predictions_per_seq 5 $packed 2>/dev/null
done

# Of decoders: lines of JSON, a tokenizer and a store of tokens.
mkdir "$dir/bpe" "$dir/tokens"
awk 'NF { printf "{\"text\": \"%s\"}\n", $0 }' "$dir/corpus.txt" >"$dir/lines.jsonl"
"$kiln" vocab --input "$dir/lines.jsonl" --kind bpe --vocab_size 300 --vocab_file "$dir/bpe/vocab.json" >/dev/null 2>&1
"$kiln" prepare --format gpt --input "$dir/lines.jsonl" --vocab_file "$dir/bpe/tokenizer.json" --append_eod --output_prefix "$dir/tokens/of" \
    2>/dev/null
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}' >"$dir/GPT-2.json"
echo '{"model_type": "bloom", "seq_length": 32, "hidden_size": 24, "n_layer": 2, "n_head": 3}' >"$dir/BLOOM.json"

formats="fp32 bf16 fp8 fp16"
[ "$device" = cpu ] || formats="fp32 tf32 bf16 fp8 fp16"

# The flags of a format, of commands that train.
flags_of() { case $1 in fp32) ;; bf16) echo --autocast ;; *) echo "--$1" ;; esac; }

# cell command...: what becomes of it.
cell()
{
    local code=0
    "$@" >"$dir/out" 2>"$dir/err" || code=$?
    case $code in
        0) echo "runs" ;;
        64) grep -Eq "fp16|fp8|tf32" "$dir/err" && echo "refused" || code=1 ;;
    esac
    [ "$code" -eq 0 ] || [ "$code" -eq 64 ] || { echo "fails"; cat "$dir/err" >&2; }
}

n=0
pretrain() # directory, flags...
{
    "$kiln" pretrain --device "$device" --input_dir "$1" --config_file "$dir/config.json" --output_dir "$dir/run$n" \
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 2 --learning_rate 1e-3 --eval_steps 2 \
        --eval_samples 8 --disable_progress_bar "${@:2}"
}

phase2() # flags...
{
    pretrain "$dir/store" "$@" &&
        pretrain "$dir/store" "$@" --phase2 --phase1_end_step 2 --max_seq_length 48 --resume_from_checkpoint
}

tune() # command, file, flags...
{
    "$kiln" "$1" --device "$device" --init_checkpoint "$dir/model" --output_dir "$dir/run$n" --max_seq_length 48 --train_batch_size 8 \
        --max_steps 2 --disable-progress-bar --train_file "$2" --predict_file "$2" "${@:3}"
}

decode() # GPT-2 or BLOOM, flags...
{
    "$kiln" pretrain --device "$device" --input_dir "$dir/tokens" --vocab_file "$dir/bpe/tokenizer.json" --config_file "$dir/$1.json" \
        --output_dir "$dir/run$n" --max_seq_length 32 --train_batch_size 8 --max_steps 2 --optimizer adamw --learning_rate 1e-3 \
        --eval_steps 2 --eval_samples 8 --disable_progress_bar "${@:2}"
}

# The same by the flags of Megatron-DeepSpeed's script.
megatron() # a format
{
    local flags=
    [ "$1" = fp32 ] || flags=--$1
    "$kiln" pretrain-gpt --device "$device" --data-path "$dir/tokens/of_text_document" --vocab-file "$dir/bpe/tokenizer.json" \
        --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 8 \
        --train-iters 2 --lr 1e-3 --eval-iters 1 --output_dir "$dir/run$n" $flags
}

go_on() # GPT-2 or BLOOM, flags...
{
    "$kiln" finetune-gpt --device "$device" --model "$dir/$1" --train_file "$dir/lines.jsonl" --output_dir "$dir/run$n" --max_steps 2 \
        --disable_progress_bar "${@:2}"
}

# A file in the type of the format; a form that has no such type has an empty cell.
written() # form, model, format, the types of the form
{
    local type=${3/fp/f}
    [[ " $4 " == *" $type "* ]] || return 0
    cell "$kiln" convert --model "$dir/$2" --output_dir "$dir/run$n" --to "$1" --type "$type"
}

squad_flags="--max_query_length 24 --skip_cache"

# infer command, format, the rest...: --dtype is the flag of a format where nothing is trained.
infer() { "$kiln" "$1" --device "$device" --dtype "$2" "${@:3}"; }

mode() # a mode and a format
{
    local flags
    flags=$(flags_of "$2")
    case $1 in
        "pretrain, token store") cell pretrain "$dir/store" $flags ;;
        "pretrain, phase 2") cell phase2 $flags ;;
        "pretrain, HDF5 files") cell pretrain "$dir/files" $flags ;;
        "pretrain, packed HDF5 files") cell pretrain "$dir/files--packed" $flags ;;
        "squad, training") cell tune squad "$dir/questions.json" --do_train $squad_flags $flags ;;
        "squad, prediction") cell tune squad "$dir/questions.json" --do_predict --do_eval $squad_flags --init_checkpoint "$dir/squad/model" $flags ;;
        "classify, training") cell tune classify "$dir/texts.csv" --do_train $flags ;;
        "classify, prediction") cell tune classify "$dir/texts.csv" --do_predict --init_checkpoint "$dir/classify/model" $flags ;;
        "tag, training") cell tune tag "$dir/words.conll" --do_train $flags ;;
        "tag, prediction") cell tune tag "$dir/words.conll" --do_predict --init_checkpoint "$dir/tag/model" $flags ;;
        fill) cell infer fill "$2" --model "$dir/model" "the king went to the [MASK]" ;;
        ask) cell infer ask "$2" --model "$dir/squad/model" --context "$dir/book.txt" "who came" ;;
        embed) cell infer embed "$2" --model "$dir/model" "the king went" ;;
        "pretrain, "*) cell decode "${1#pretrain, }" $flags ;;
        pretrain-gpt) cell megatron "$2" ;;
        "finetune-gpt, "*) cell go_on "${1#finetune-gpt, }" $flags ;;
        "generate, "*) cell infer generate "$2" --model "$dir/${1#generate, }" --prompt "the king" --max_new_tokens 4 ;;
        "eval, "*) cell infer eval "$2" --model "$dir/${1#eval, }" --input "$dir/lines.jsonl" ;;
        "convert to Hugging Face, "*) written huggingface "${1##*, }" "$2" f32 ;;
        "convert to GGUF, "*) written gguf "${1##*, }" "$2" "f32 bf16 f16" ;;
        "convert to Megatron, "*) written megatron_deepspeed "${1##*, }" "$2" f32 ;;
        "convert to universal, "*) written universal "${1##*, }" "$2" f32 ;;
        export) cell "$kiln" export --model "$dir/model" --output_dir "$dir/run$n" ;;
    esac
}

# The models that prediction starts from are trained on the cpu, in fp32.
wanted=$device
device=cpu
pretrain "$dir/store" >/dev/null 2>&1
mv "$dir/run0/ckpt_2" "$dir/model"
for command in "squad questions.json $squad_flags" "classify texts.csv" "tag words.conll"; do
    set -- $command
    n=$1
    tune "$1" "$dir/$2" --do_train "${@:3}" >/dev/null 2>&1
    mv "$dir/run$1" "$dir/$1"
done
for name in GPT-2 BLOOM; do
    n=$name
    decode "$name" >/dev/null 2>&1
    mv "$dir/run$n/ckpt_2" "$dir/$name"
done
n=0
device=$wanted

echo "| on $device | $(echo "$formats" | sed 's/ / | /g') |"
echo "|---|$(echo "$formats" | sed 's/[a-z0-9]* */---|/g')"
while read -r name; do
    [[ $name =~ $modes ]] || continue
    row="| $name |"
    for format in $formats; do
        n=$((n + 1))
        if [ "$name" = export ] && [ "$format" != fp32 ]; then
            row="$row |" # a model directory is always fp32
        else
            found=$(mode "$name" "$format")
            row="$row${found:+ $found} |"
        fi
    done
    echo "$row"
done <<MODES
pretrain, token store
pretrain, phase 2
pretrain, HDF5 files
pretrain, packed HDF5 files
squad, training
squad, prediction
classify, training
classify, prediction
tag, training
tag, prediction
fill
ask
embed
export
pretrain, GPT-2
pretrain, BLOOM
pretrain-gpt
finetune-gpt, GPT-2
finetune-gpt, BLOOM
generate, GPT-2
generate, BLOOM
eval, GPT-2
eval, BLOOM
convert to Hugging Face, GPT-2
convert to Hugging Face, BLOOM
convert to GGUF, GPT-2
convert to GGUF, BLOOM
convert to Megatron, GPT-2
convert to Megatron, BLOOM
convert to universal, GPT-2
convert to universal, BLOOM
MODES
