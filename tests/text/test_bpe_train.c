/* Tests of the trainer of byte-level BPE: pieces and merges are those of `tokenizers`
 * (tests/golden/make_bpe_train.py), also from counts that went to a file; what was learned gives back the
 * bytes of any text; impossible wishes are refused. */
#include "test.h"

#include "core/rng.h"
#include "text/bpe_json.h"
#include "text/bpe_tokenizer.h"
#include "text/bpe_train.h"
#include "text/word_counter.h"

/* Trains on texts, each counted by one of n_counters in turn, with at most memory_words in memory. */
static struct status train(struct bpe_train_result *made, const json_t *lines,
                           const struct bpe_train_options *o, int n_counters, size_t memory_words)
{
    enum { MOST_COUNTERS = 3 };
    struct word_counter counters[MOST_COUNTERS];
    struct word_tally tally;
    struct progress silent = progress_begin(false);
    EXPECT_OK(word_tally_init(&tally, "/tmp/kiln-test-bpe", memory_words));
    for (int i = 0; i < n_counters; i++) {
        EXPECT_OK(word_counter_init_pieces(&counters[i], &tally, o->pattern, n_counters));
    }
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        EXPECT_OK(word_counter_add(&counters[i % (size_t)n_counters], json_string_value(line),
                                   json_string_length(line)));
    }
    for (int i = 0; i < n_counters; i++) {
        EXPECT_OK(word_counter_end(&counters[i]));
        word_counter_fini(&counters[i]);
    }
    EXPECT(memory_words == WORD_TALLY_MEMORY_WORDS || tally.file_bytes > 0, "the pieces go to the file");
    struct status s = bpe_train(made, &tally, o, &silent);
    word_tally_fini(&tally);
    return s;
}

static struct bpe_train_options options_of(const json_t *golden)
{
    const char *pattern = json_string_value(json_object_get(golden, "pattern"));
    return (struct bpe_train_options){
        .vocab_size = json_integer_value(json_object_get(golden, "vocab_size")),
        .min_frequency = json_integer_value(json_object_get(golden, "min_frequency")),
        .pattern = strcmp(pattern, "bloom") == 0 ? BPE_BLOOM : BPE_GPT2,
    };
}

static void expect_pieces(const struct bpe_train_result *made, const json_t *golden, size_t number)
{
    const json_t *wanted = json_object_get(golden, "pieces");
    json_t *pieces;
    EXPECT_OK(json_parse(&pieces, buf_text(&made->vocab), made->vocab.n, "vocab.json"));
    EXPECT(json_object_size(pieces) == json_array_size(wanted), "case %zu: %zu pieces, not %zu", number,
           json_object_size(pieces), json_array_size(wanted));
    for (size_t id = 0; id < json_array_size(wanted); id++) {
        const char *text = json_string_value(json_array_get(wanted, id));
        const json_t *here = json_object_get(pieces, text);
        EXPECT(here != NULL && json_integer_value(here) == (json_int_t)id, "case %zu: '%s' is not piece %zu",
               number, text, id);
    }
    json_decref(pieces);
}

static void expect_merges(const struct bpe_train_result *made, const json_t *golden, size_t number)
{
    const json_t *wanted = json_object_get(golden, "merges");
    struct buf text = {0};
    buf_puts(&text, "#version: 0.2\n");
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        buf_puts(&text, json_string_value(json_array_get(wanted, i)));
        buf_putc(&text, '\n');
    }
    EXPECT(text.n == made->merges.n && memcmp(text.data, made->merges.data, text.n) == 0,
           "case %zu: other merges", number);
    buf_fini(&text);
}

/* decode(encode(x)) = x, for text of the case and for bytes that are no text. */
static void expect_bytes_back(const struct bpe_train_result *made, const json_t *golden)
{
    struct tokenizer t;
    struct added_tokens added = {0};
    struct tokenizer_scratch scratch;
    struct id_list ids = {0};
    struct buf text = {0}, back = {0};
    json_t *root;
    EXPECT_OK(json_parse(&root, buf_text(&made->tokenizer), made->tokenizer.n, "tokenizer.json"));
    EXPECT_OK(bpe_tokenizer_init(&t, &added, root, buf_text(&made->tokenizer), made->tokenizer.n,
                                 "tokenizer.json"));
    json_decref(root);
    const json_t *lines = json_object_get(golden, "lines");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        buf_puts(&text, json_string_value(json_array_get(lines, i)));
        buf_putc(&text, '\n');
    }
    struct rng_stream random = rng_stream(rng_key(11, 0));
    for (int i = 0; i < 2000; i++) {
        buf_putc(&text, (char)rng_below(&random, 256));
    }
    EXPECT_OK(tokenizer_scratch_init(&scratch, &t));
    EXPECT_OK(tokenizer_encode_ids(&scratch, &ids, buf_text(&text), text.n));
    EXPECT_OK(tokenizer_decode(&t, &back, ids.ids, ids.n));
    EXPECT(back.n == text.n && memcmp(back.data, text.data, text.n) == 0, "%zu of %zu bytes come back",
           back.n, text.n);
    tokenizer_scratch_fini(&scratch);
    added_tokens_fini(&added);
    tokenizer_fini(&t);
    id_list_fini(&ids);
    buf_fini(&text);
    buf_fini(&back);
}

static void golden_is_learned(void)
{
    json_error_t error;
    json_t *cases = json_load_file(KILN_SOURCE_DIR "/tests/golden/bpe_train.json", 0, &error);
    EXPECT(json_array_size(cases) > 20, "tests/golden/bpe_train.json: %s", error.text);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *golden = json_array_get(cases, i), *lines = json_object_get(golden, "lines");
        struct bpe_train_options o = options_of(golden);
        struct bpe_train_result made;
        EXPECT_OK(train(&made, lines, &o, 1, WORD_TALLY_MEMORY_WORDS));
        expect_pieces(&made, golden, i);
        expect_merges(&made, golden, i);
        expect_bytes_back(&made, golden);
        bpe_train_fini(&made);
        EXPECT_OK(train(&made, lines, &o, 3, 4)); /* the same from a file of counts */
        expect_merges(&made, golden, i);
        bpe_train_fini(&made);
    }
    json_decref(cases);
}

/* More than 2^32 occurrences of a pair decide as exactly as few. */
static void counts_have_64_bits(void)
{
    static const struct {
        const char *word;
        int64_t count;
    } words[] = {{"ab", INT64_C(1) << 33}, {"cd", (INT64_C(1) << 33) + 1}, {"ef", INT64_C(4294967295)}};
    struct word_tally tally;
    struct word_counts counts = {0};
    struct progress silent = progress_begin(false);
    struct bpe_train_result made;
    size_t index;
    EXPECT_OK(word_tally_init(&tally, NULL, WORD_TALLY_MEMORY_WORDS));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        EXPECT(word_counts_add(&counts, &index, words[i].word, 2, words[i].count), "memory");
    }
    EXPECT_OK(word_tally_take(&tally, &counts));
    word_counts_fini(&counts);
    EXPECT_OK(bpe_train(&made, &tally, &(struct bpe_train_options){300, 1, BPE_GPT2}, &silent));
    EXPECT(strcmp(buf_text(&made.merges), "#version: 0.2\nc d\na b\ne f\n") == 0, "%s",
           buf_text(&made.merges));
    bpe_train_fini(&made);
    word_tally_fini(&tally);
}

static void impossible_wishes_are_refused(void)
{
    struct bpe_train_result made;
    json_t *none = json_array(), *some = json_pack("[s]", "text");
    EXPECT_ERROR(
        train(&made, none, &(struct bpe_train_options){300, 1, BPE_GPT2}, 1, WORD_TALLY_MEMORY_WORDS),
        STATUS_DATA, "no words");
    bpe_train_fini(&made);
    EXPECT_ERROR(
        train(&made, some, &(struct bpe_train_options){259, 1, BPE_BLOOM}, 1, WORD_TALLY_MEMORY_WORDS),
        STATUS_USAGE, "at least 260");
    bpe_train_fini(&made);
    json_decref(none);
    json_decref(some);
}

int main(void)
{
    golden_is_learned();
    counts_have_64_bits();
    impossible_wishes_are_refused();
    return 0;
}
