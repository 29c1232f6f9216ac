# A small corpus, vocabulary and token store for the tests that drive `kiln pretrain`; sourced with $kiln and $dir set.
# The text is made from a word list with a fixed generator, so it is the same everywhere.
make_store()
{
    awk 'BEGIN {
        words = "the a king city river stone went came saw built gave and of in to over his her people house light water day"
        n = split(words " night men land great small old new", w, " ");
        s = 1;
        for (d = 0; d < 60; d++) {
            for (l = 0; l < 12; l++) {
                line = "";
                s = (s * 16807) % 2147483647;
                for (k = 4 + s % 9; k > 0; k--) { s = (s * 16807) % 2147483647; line = line w[1 + s % n] " "; }
                print line ".";
            }
            print "";
        }
    }' >"$dir/corpus.txt"
    "$kiln" vocab --input "$dir/corpus.txt" --vocab_size 120 --vocab_file "$dir/vocab.txt" --do_lower_case 2>/dev/null
    "$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
        --one_sentence_per_line --holdout_fraction 0.1 --output_dir "$dir/store" 2>/dev/null
    cat >"$dir/config.json" <<JSON
{"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
 "max_position_embeddings": 64}
JSON
}

# make_gpt_store [LINES]: lines of JSON, byte-level BPE of them in GPT-2's form, and the store of a decoder: $dir/meg_text_document.
make_gpt_store()
{
    local i
    for i in $(seq "${1:-150}"); do
        echo "{\"text\": \"The king number $i went to the city, and the queen number $((i * 7 % 100)) came in from the garden.\"}"
    done >"$dir/lines.jsonl"
    mkdir "$dir/bpe"
    "$kiln" vocab --input "$dir/lines.jsonl" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 300 >/dev/null 2>&1
    "$kiln" prepare --format gpt --input "$dir/lines.jsonl" --vocab_file "$dir/bpe/vocab.json" --merge_file "$dir/bpe/merges.txt" \
        --append_eod --output_prefix "$dir/meg" >/dev/null 2>&1
}

# A model of make_store's after five steps: $model.
make_model()
{
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/pre" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 16 --max_steps 5 --learning_rate 1e-3 --eval_steps 0 2>/dev/null
    model=$dir/pre/ckpt_5
}

# Questions whose answer is the one place in a text about people and things.
make_questions()
{
    awk 'BEGIN {
        n_places = split("city river house land", place, " ")
        n = split("king stone people light water day night men", w, " ")
        printf "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": ["
        s = 7
        for (p = 0; p < 200; p++) {
            s = (s * 16807) % 2147483647; answer = place[1 + s % n_places]
            s = (s * 16807) % 2147483647; at_word = 1 + s % 10
            context = ""
            for (i = 1; i <= 10; i++) {
                if (i == at_word) start = length(context) + (i > 1)
                s = (s * 16807) % 2147483647
                context = context (i > 1 ? " " : "") (i == at_word ? answer : w[1 + s % n])
            }
            printf "%s{\"context\": \"%s\", \"qas\": [{\"id\": \"q%d\", \"question\": \"in the\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]}]}",
                (p > 0 ? ", " : ""), context, p, answer, start
        }
        print "]}]}"
    }' >"$dir/questions.json"
}

# learns METRIC ABOVE: the array `command` runs, and the score that it tells is higher
learns()
{
    "${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
    awk -v name="$1" -v bound="$2" '{ for (i = 1; i < NF; i++) if ($i == name && $(i + 1) + 0 > bound) found = 1 }
        END { exit !found }' "$dir/log" || fail "$1 is not above $2: $(tail -1 "$dir/log")"
}

# resumes_to WHOLE FLAGS...: `pretrain` with these flags, killed at its first checkpoint and resumed as the run "killed", ends its
# 30
# steps with the bytes of the run WHOLE.  Wants expect.sh, pretrain, and pretrain_command, which sets the array `command`.
resumes_to()
{
    local whole=$1 file
    shift
    pretrain_command killed "$@"
    start_held "${command[@]}"
    stop_held KILL "$dir/killed"
    [ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
    pretrain killed "$@" --resume_from_checkpoint 2>"$dir/log"
    grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
    for file in model.safetensors optimizer.safetensors trainer_state.json; do
        cmp "$dir/$whole/ckpt_30/$file" "$dir/killed/ckpt_30/$file" || fail "$file differs"
    done
}
