#!/usr/bin/env bash
# `make bench`: kiln and its peers, measured in one run on this machine, alternating, medians of three.
#
# Peers: PyTorch with Hugging Face transformers, and Hugging Face tokenizers, from PyPI in a virtual environment under
# build/ (PEERS_PYTHON names another interpreter that has them).  Text: that of `make demo`, which is made if
# missing. BENCH="mini" measures one model only, BENCH=decoder GPT-2 only (bench/decoder.sh),
# BENCH=squad question answering only (bench/squad.sh), BENCH=reference the
# way from a dump to HDF5 files only (bench/reference.sh), BENCH=load the making of batches only (bench/load.sh), BENCH=generation decoders only (bench/generation.sh),
# BENCH=vectors sentences only (bench/vectors.sh), BENCH=python vectors from Python only (bench/python.sh), BENCH=serving servers only (bench/serving.sh), BENCH=avx2 with AVX2 alone (bench/avx2.sh),
# BENCH=weak_scaling ranks only (bench/weak_scaling.sh, which needs no peers), BENCH=text tokenizers only, BENCH=learn what hours of training
# teach, which nothing else includes (bench/learn.sh); LENGTHS="512" and
# DTYPES="bf16" select rows; REPEATS=1 is faster; TEXTS="VOCAB,uncased,FILE ..." adds rows of WordPiece, BPE_TEXTS="VOCAB_JSON,MERGES,FILE ..." of BPE.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${BENCH:-}" != weak_scaling ] || exec bench/weak_scaling.sh
[ "${BENCH:-}" != learn ] || exec bench/learn.sh
. bench/common.sh

[ -s "$work/store/train.json" ] ||
    $kiln prepare --input "$text" --input_format lines --one_sentence_per_line --vocab_file "$work/vocab.txt" --do_lower_case \
        --output_dir "$work/store" 2>/dev/null

# Tokens per second of kiln, the median of its steps behind the warm-up, and the mean length of its sequences:
# config length batch dtype steps short_seq_prob
kiln_rate()
{
    local flags=()
    [ "$4" = bf16 ] && flags=(--autocast)
    rm -rf "$work/out"
    $kiln pretrain --input_dir "$work/store" --config_file "$1" --output_dir "$work/out" --max_seq_length "$2" \
        --max_predictions_per_seq "$(($2 * 15 / 100 + 1))" --train_batch_size "$3" --short_seq_prob "$6" --optimizer adamw \
        --max_steps "$5" --learning_rate 1e-4 --eval_steps 0 --skip_checkpoint --disable_progress_bar "${flags[@]}" \
        >/dev/null 2>&1
    sed -n 's/.*"event":"step".*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$work/out/log.jsonl" | tail -n +3 | median
}

echo "$(date +%F), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
"$python" -c 'import torch, transformers, tokenizers as t
print("torch", torch.__version__, torch.backends.mkldnn.is_available() and "with oneDNN", "transformers", transformers.__version__, "tokenizers", t.__version__)'
$kiln doctor
echo
# "natural lengths": enough sequences are shortened to make the mean length that of English Wikipedia, of
# which 1.2 fill a row of 128 tokens and 2.0 a row of 512; the peer pads.
row "pre-training step, tokens/s" kiln PyTorch ratio
for shape in "tiny 128 32 12 0.33" "mini 128 32 8 0.33" "mini 512 8 8 1" "base 128 8 6 0.33" "base 512 2 6 1"; do
    read -r name length batch steps cut <<<"$shape"
    [ -z "${BENCH:-}" ] || [ "$BENCH" = "$name" ] || continue
    [[ " ${LENGTHS:-128 512} " == *" $length "* ]] || continue
    for dtype in ${DTYPES:-fp32 bf16}; do
        config=configs/bert_$name.json
        : >"$work/kiln.txt"
        : >"$work/natural.txt"
        : >"$work/torch.txt"
        for _ in $(seq "${REPEATS:-3}"); do
            kiln_rate "$config" "$length" "$batch" $dtype "$steps" 0 >>"$work/kiln.txt"
            kiln_rate "$config" "$length" "$batch" $dtype "$steps" "$cut" >>"$work/natural.txt"
            "$python" bench/peers/torch_bert.py "$config" "$length" "$batch" $dtype "$vocab" 2>/dev/null >>"$work/torch.txt"
        done
        peer=$(median <"$work/torch.txt")
        row "BERT-$name s$length B$batch $dtype" "$(median <"$work/kiln.txt")" "$peer"
        mean=$(ratio "$(logged tokens_per_second "$work/out/log.jsonl")" "$(logged sequences_per_second "$work/out/log.jsonl")")
        row "  natural lengths, mean $mean, with padding" \
            "$(awk "BEGIN { print $length / $mean * $(median <"$work/natural.txt") }")" "$peer"
    done
done

[ -n "${BENCH:-}" ] && [ "$BENCH" != decoder ] || { echo; bench/decoder.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != squad ] || { echo; bench/squad.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != reference ] || { echo; bench/reference.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != load ] || { echo; bench/load.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != generation ] || { echo; bench/generation.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != vectors ] || { echo; bench/vectors.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != python ] || { echo; bench/python.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != serving ] || { echo; bench/serving.sh; }
[ -n "${BENCH:-}" ] && [ "$BENCH" != avx2 ] || { echo; bench/avx2.sh; }
[ -n "${BENCH:-}" ] || { echo; bench/weak_scaling.sh; }

echo
# Text in memory to ids in memory, in MB per second of processor time of one thread: name vocabulary cased|uncased|any text
tokenizer_rows()
{
    : >"$work/kiln.txt"
    : >"$work/hf.txt"
    for _ in $(seq "${REPEATS:-3}"); do
        build/tests/tokenizer_rate "$2" "$3" 1 "$4" 2>/dev/null | cut -d" " -f1 >>"$work/kiln.txt"
        "$python" bench/peers/hf_tokenizers.py "$2" "$3" "$4" >>"$work/hf.txt"
    done
    row "$1" "$(median <"$work/kiln.txt")" "$(median <"$work/hf.txt")"
}

row "WordPiece, one thread, MB/s" kiln tokenizers ratio
tokenizer_rows "King James Bible, uncased" "$work/vocab.txt" uncased "$text"
for script in korean russian chinese mixed; do # made-up text: real letters, invented words
    made=$work/$script.txt
    [ -s "$made" ] || python3 tools/make_script_text.py $script 20 >"$made"
    for case in uncased cased; do
        lower=()
        [ $case = cased ] || lower=(--do_lower_case)
        [ -s "$work/vocab_${script}_$case.txt" ] || $kiln vocab --input "$made" --input_format lines --replace_invalid_utf8 \
            --vocab_size 30522 --limit_alphabet 6000 "${lower[@]}" --vocab_file "$work/vocab_${script}_$case.txt" 2>/dev/null
        tokenizer_rows "$script, $case" "$work/vocab_${script}_$case.txt" $case "$made"
    done
done
for files in ${TEXTS:-}; do # real text that is at hand: VOCAB,cased|uncased,FILE
    IFS=, read -r vocab_file case file <<<"$files"
    tokenizer_rows "$(basename "$file"), $case" "$vocab_file" "$case" "$file"
done

# A unigram of SentencePiece's with as many pieces as XLM-R's, the same measure.
unigram=$work/unigram
[ -s "$unigram/tokenizer.json" ] || { mkdir -p "$unigram" && "$python" bench/peers/hf_tokenizers.py "$unigram" unigram "$text" >/dev/null; }
echo
row "Unigram, one thread, MB/s" kiln tokenizers ratio
tokenizer_rows "King James Bible" "$unigram" any "$text"

# Byte-level BPE of GPT-2's pattern, the same measure. gigatoken reads a file, its fastest way; warm: the same text again.
bpe_rows() # name VOCAB_JSON MERGES TEXT
{
    : >"$work/kiln.txt"
    : >"$work/peers.txt"
    for _ in $(seq "${REPEATS:-3}"); do
        build/tests/tokenizer_rate "$2" "$3" 1 "$4" 2>/dev/null >>"$work/kiln.txt"
        "$python" bench/peers/bpe_peers.py "$2" "$3" "$4" 2>/dev/null >>"$work/peers.txt"
    done
    peer() { sed -n "s/^$1 //p" "$work/peers.txt" | median; }
    kiln_cold=$(cut -d" " -f1 "$work/kiln.txt" | median)
    row "$1, cold" "$kiln_cold" "$(peer gigatoken)"
    row "$1, warm" "$(cut -d" " -f2 "$work/kiln.txt" | median)" "$(peer gigatoken_warm)"
    row "  beside tiktoken" "$kiln_cold" "$(peer tiktoken)"
    row "  beside tokenizers" "$kiln_cold" "$(peer tokenizers)"
}

"$python" -c 'import gigatoken, tiktoken' 2>/dev/null || "$python" -m pip install --quiet gigatoken tiktoken
[ -s "$work/bpe/vocab.json" ] || { mkdir -p "$work/bpe" && $kiln vocab --input "$text" --input_format lines --kind bpe \
    --vocab_file "$work/bpe/vocab.json" --vocab_size 8192 2>/dev/null; }
echo
row "Byte-level BPE, one thread, MB/s" kiln gigatoken ratio
bpe_rows "King James Bible" "$work/bpe/vocab.json" "$work/bpe/merges.txt" "$text"
for files in ${BPE_TEXTS:-}; do # real text that is at hand: VOCAB_JSON,MERGES,FILE
    IFS=, read -r vocab_file merges_file file <<<"$files"
    bpe_rows "$(basename "$file")" "$vocab_file" "$merges_file" "$file"
done
