/* Windows of a store of tokens: each is a sample once an epoch, in another order in the next; labels are the
 * next tokens; so it is in Megatron-LM's order; a blend takes each set's next sample; ids of another
 * tokenizer are refused by place.
 *
 * `test_token_windows write DIR N` writes stores of N documents, DIR/train and DIR/heldout, and a
 * tokenizer.json, for tests/cli/test_pretrain_decoder.sh. */
#include "order_fixture.h"
#include "test.h"

#include "core/rng.h"
#include "data/gpt/window_batches.h"
#include "io/file.h"
#include "data/text_batch.h"
#include "io/safetensors.h"

#include <unistd.h>

enum { WORDS = 262, LENGTH = 8, DOCUMENTS = 20 };

/* Documents of random tokens, or in which each follows from the one before it, for a model to learn. */
static void write_store(const char *prefix, int n_documents, uint64_t seed, bool is_regular)
{
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, prefix, WORDS));
    for (int d = 0; d < n_documents; d++) {
        struct rng_stream r = rng_stream(rng_key(seed, (uint64_t)d));
        int32_t ids[64];
        int64_t n = 20 + rng_below(&r, 44);
        for (int64_t i = 0; i < n; i++) {
            ids[i] = is_regular && i > 0 ? (7 * ids[i - 1] + 3) % 50
                                         : (int32_t)rng_below(&r, is_regular ? 50 : WORDS);
        }
        indexed_writer_add(&w, ids, n);
        indexed_writer_end_document(&w);
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    indexed_writer_close(&w);
}

static struct token_windows windows_of(const struct indexed *x, const char *path)
{
    return (struct token_windows){
        .index = x, .path = path, .end = x->n_tokens, .length = LENGTH, .n_words = WORDS, .seed = 7};
}

static struct window_batches batches_of(const struct token_windows *sets, const struct set_blend *blend)
{
    return (struct window_batches){.sets = sets, .blend = blend, .batch_size = 4, .micro_size = 2};
}

/* The number of the window whose tokens these are, or -1. */
static int64_t find_window(const struct token_windows *w, const int32_t *ids)
{
    for (int64_t i = 0; i < token_windows_count(w); i++) {
        int32_t own[LENGTH];
        indexed_copy(w->index, own, w->first + i * LENGTH, LENGTH);
        if (memcmp(own, ids, sizeof own) == 0) {
            return i;
        }
    }
    return -1;
}

static void test_epochs(const struct token_windows *w)
{
    struct window_batches batches = batches_of(w, NULL);
    struct batch_source source = window_batches_source(&batches, 2);
    struct batch_step step;
    int64_t n = token_windows_count(w), steps = n / batches.batch_size;
    int *seen = calloc((size_t)n, sizeof *seen);
    EXPECT(seen != NULL && steps * batches.batch_size == n, "%lld windows", (long long)n);
    EXPECT_OK(batch_step_init(&step, 2, source.layout, source.limits));
    int32_t first_of_epoch[2][LENGTH];
    for (int64_t s = 1; s <= 2 * steps; s++) {
        EXPECT_OK(source.fill(source.self, s, &step));
        for (int k = 0; k < 2; k++) {
            const struct batch *b = &step.micro[k];
            EXPECT(b->n_sequences == 2 && b->n_real_labels == 2 * LENGTH, "%lld labels",
                   (long long)b->n_real_labels);
            for (int i = 0; i < 2; i++) {
                const int32_t *ids = b->ids + i * LENGTH,
                              *labels = b->fields[TEXT_MASKED_LABELS] + i * LENGTH;
                int64_t window = find_window(w, ids);
                int32_t next;
                EXPECT(window >= 0, "a sample is no window");
                indexed_copy(w->index, &next, w->first + (window + 1) * LENGTH, 1);
                EXPECT(memcmp(labels, ids + 1, (LENGTH - 1) * sizeof *ids) == 0 && labels[LENGTH - 1] == next,
                       "a label is not the next token");
                seen[window]++;
            }
        }
        if ((s - 1) % steps == 0) {
            memcpy(first_of_epoch[(s - 1) / steps], step.micro[0].ids, sizeof first_of_epoch[0]);
        }
        for (int64_t i = 0; s == steps && i < n; i++) {
            EXPECT(seen[i] == 1, "window %lld was %d samples of an epoch", (long long)i, seen[i]);
        }
    }
    EXPECT(memcmp(first_of_epoch[0], first_of_epoch[1], sizeof first_of_epoch[0]) != 0,
           "epochs have one order");
    batch_step_fini(&step);
    free(seen);
}

static void test_foreign(struct token_windows w)
{
    struct window_batches batches = batches_of(&w, NULL);
    struct batch_source source = window_batches_source(&batches, 2);
    struct batch_step step;
    EXPECT_OK(batch_step_init(&step, 2, source.layout, source.limits));
    w.n_words = 40;
    EXPECT_ERROR(source.fill(source.self, 1, &step), STATUS_DATA, "but the vocabulary has 40 pieces");
    batch_step_fini(&step);
}

/* In Megatron-LM's order a sample is S + 1 tokens of its documents, one behind the other. */
static void test_order(struct token_windows w)
{
    struct sample_order order;
    struct batch_step step;
    struct order_fixture fixture =
        order_fixture_build(&order, &(struct sample_order_config){.sizes = w.index->sizes,
                                                                  .end = w.index->n_sequences,
                                                                  .n_wanted = 300,
                                                                  .seq_length = LENGTH,
                                                                  .seed = 42});
    int32_t *text = malloc((size_t)w.index->n_tokens * (size_t)order.n_epochs * sizeof *text);
    int64_t *begins = malloc((size_t)(order.n_documents + 1) * sizeof *begins), n = 0;
    EXPECT(text != NULL && begins != NULL && order.n_epochs > 1, "%lld epochs", (long long)order.n_epochs);
    for (int64_t d = 0; d < order.n_documents; d++) {
        int64_t from = indexed_offset(w.index, order.document[d]),
                end = indexed_offset(w.index, order.document[d] + 1);
        begins[d] = n;
        indexed_copy(w.index, text + n, from, end - from);
        n += end - from;
    }
    w.order = &order;
    struct window_batches batches = batches_of(&w, NULL);
    struct batch_source source = window_batches_source(&batches, 2);
    EXPECT_OK(batch_step_init(&step, 2, source.layout, source.limits));
    for (int64_t s = 1; s <= 75; s++) {
        EXPECT_OK(source.fill(source.self, s, &step));
        for (int64_t i = 0; i < 4; i++) {
            const struct batch *b = &step.micro[i / 2];
            const int32_t *ids = b->ids + i % 2 * LENGTH,
                          *labels = b->fields[TEXT_MASKED_LABELS] + i % 2 * LENGTH;
            const int32_t *start = order.starts + 2 * (int64_t)order.shuffled[4 * (s - 1) + i];
            const int32_t *wanted = text + begins[start[0]] + start[1];
            EXPECT(memcmp(ids, wanted, LENGTH * sizeof *ids) == 0 &&
                       memcmp(labels, wanted + 1, LENGTH * sizeof *ids) == 0,
                   "sample %lld is of other tokens", (long long)(4 * (s - 1) + i));
        }
    }
    batch_step_fini(&step);
    order_fixture_free(&fixture);
    free(begins);
    free(text);
}

/* A blend takes each set's samples in the set's own order, in training and held out. */
static void test_blend(const struct token_windows *w)
{
    enum { STEPS = 30 };
    struct token_windows sets[2] = {*w, *w};
    static const double shares[] = {0.75, 0.25};
    struct set_blend blend;
    struct batch_step step, one;
    struct batch heldout;
    int64_t middle = w->index->n_sequences / 2, taken[2] = {0};
    sets[0].end = sets[1].first = indexed_offset(w->index, middle);
    sets[1].seed = 11;
    EXPECT_OK(set_blend_build(&blend, STEPS * 4, shares, 2));
    struct window_batches batches = batches_of(sets, &blend);
    struct batch_source source = window_batches_source(&batches, 2);
    EXPECT_OK(batch_step_init(&step, 2, source.layout, source.limits));
    EXPECT_OK(batch_step_init(&one, 1, source.layout, text_batch_limits(1, LENGTH, LENGTH)));
    EXPECT_OK(text_batch_init(&heldout, source.limits));
    EXPECT(source.heldout_batches(source.self, INT64_MAX) == STEPS * 2, "held-out batches");
    for (int64_t s = 1; s <= STEPS; s++) {
        EXPECT_OK(source.fill(source.self, s, &step));
        for (int64_t i = 0; i < 4; i++) {
            const struct batch *b = &step.micro[i / 2];
            int64_t g = 4 * (s - 1) + i;
            int set = set_blend_at(&blend, g).set;
            batch_clear(one.micro);
            EXPECT_OK(token_windows_add(&sets[set], taken[set], (int32_t)g, one.micro));
            EXPECT(memcmp(b->ids + i % 2 * LENGTH, one.micro->ids, LENGTH * sizeof *b->ids) == 0,
                   "sample %lld is not the next of set %d", (long long)g, set);
            EXPECT_OK(source.heldout(source.self, INT64_MAX, g / 2, &heldout));
            batch_clear(one.micro);
            EXPECT_OK(token_windows_add_heldout(&sets[set], taken[set]++, 0, one.micro));
            EXPECT(memcmp(heldout.ids + i % 2 * LENGTH, one.micro->ids, LENGTH * sizeof *b->ids) == 0,
                   "held-out sample %lld is not the next of set %d", (long long)g, set);
        }
    }
    EXPECT(taken[0] == 90 && taken[1] == 30, "%lld and %lld samples", (long long)taken[0],
           (long long)taken[1]);
    double counts[WORDS] = {0}, n = 0;
    EXPECT_OK(source.count_words(source.self, counts, WORDS));
    for (int i = 0; i < WORDS; i++) {
        n += counts[i];
    }
    EXPECT(n == (double)(w->end - w->first), "%g words were counted", n);
    batch_fini(&heldout);
    batch_step_fini(&one);
    batch_step_fini(&step);
    set_blend_fini(&blend);
}

/* For the shell test. */
static void write_directory(const char *directory, int n_documents)
{
    char path[512];
    struct safetensors golden;
    snprintf(path, sizeof path, "%s/train", directory);
    write_store(path, n_documents, 1, true);
    snprintf(path, sizeof path, "%s/heldout", directory);
    write_store(path, n_documents / 4, 2, true);
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    const struct stored_tensor *e = safetensors_find(&golden, "gpt2/tokenizer.json");
    snprintf(path, sizeof path, "%s/tokenizer.json", directory);
    EXPECT_OK(file_write_atomic(path, e->data, e->bytes));
    safetensors_close(&golden);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "write") == 0) {
        write_directory(argv[2], atoi(argv[3]));
        return 0;
    }
    char directory[] = "/tmp/kiln_windows_XXXXXX", prefix[64];
    struct indexed x;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(prefix, sizeof prefix, "%s/train", directory);
    write_store(prefix, DOCUMENTS, 1, false);
    EXPECT_OK(indexed_open(&x, prefix));
    struct token_windows w = windows_of(&x, prefix);
    w.end = 4 * (token_windows_count(&w) / 4) * LENGTH + 1; /* whole batches */
    test_epochs(&w);
    test_foreign(w);
    test_order(w);
    test_blend(&w);
    w.end = LENGTH;
    EXPECT(token_windows_count(&w) == 0, "a window needs one more token");
    indexed_close(&x);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
