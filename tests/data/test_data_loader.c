/* Tests of data/bert/bert_loader and data/text_batch: steps are a pure function, cuts into micro-batches
 * change only the cut, an epoch visits every sample once, and every field of a batch is what its head
 * says. */
#include "data/bert/bert_loader.h"
#include "fixture_loader.h"

enum { VOCAB = 60000 };

static struct bert_loader_config config_of(const struct indexed *store)
{
    struct bert_loader_config c = fixture_loader(store, VOCAB);
    c.seed = 42;
    c.batch.max_seq_length = 48;
    c.max_predictions_per_seq = 7;
    c.batch.train_batch_size = 12;
    c.batch.gradient_accumulation_steps = 3;
    return c;
}

static void same_ints(const int32_t *a, const int32_t *b, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        EXPECT(a[i] == b[i], "%s[%lld]: %d against %d", what, (long long)i, a[i], b[i]);
    }
}

static void same_batches(const struct batch *a, const struct batch *b)
{
    EXPECT(a->n_tokens == b->n_tokens && a->n_real_tokens == b->n_real_tokens && a->n_labels == b->n_labels &&
               a->n_sequences == b->n_sequences && a->n_streams == b->n_streams &&
               a->max_seqlen == b->max_seqlen,
           "sizes");
    same_ints(a->ids, b->ids, a->n_tokens, "ids");
    same_ints(a->fields[TEXT_TYPES], b->fields[TEXT_TYPES], a->n_tokens, "types");
    same_ints(a->positions, b->positions, a->n_tokens, "positions");
    same_ints(a->row_keys, b->row_keys, 2 * a->n_tokens, "row_keys");
    same_ints(a->cu_seqlens, b->cu_seqlens, a->n_streams + 1, "cu_seqlens");
    same_ints(a->fields[TEXT_MASKED_ROWS], b->fields[TEXT_MASKED_ROWS], a->n_labels, "masked_rows");
    same_ints(a->fields[TEXT_MASKED_LABELS], b->fields[TEXT_MASKED_LABELS], a->n_labels, "masked_labels");
    same_ints(a->fields[TEXT_CLS_ROWS], b->fields[TEXT_CLS_ROWS], a->n_sequences, "cls_rows");
    same_ints(a->fields[TEXT_PAIR_LABELS], b->fields[TEXT_PAIR_LABELS], a->n_sequences, "nsp_labels");
}

/* The words of the store that sequence k of a batch was made of: its tokens with the masks undone. */
static int64_t restore(const struct batch *b, int64_t k, int32_t *ids)
{
    int32_t begin = b->cu_seqlens[k], end = b->cu_seqlens[k + 1];
    memcpy(ids, b->ids + begin, (size_t)(end - begin) * sizeof *ids);
    for (int64_t m = 0; m < b->n_real_labels; m++) {
        if (b->fields[TEXT_MASKED_ROWS][m] >= begin && b->fields[TEXT_MASKED_ROWS][m] < end) {
            ids[b->fields[TEXT_MASKED_ROWS][m] - begin] = b->fields[TEXT_MASKED_LABELS][m];
        }
    }
    return end - begin;
}

static void check_sequence(const struct batch *b, int64_t k, const struct bert_loader_config *c)
{
    int32_t ids[64];
    int64_t n = restore(b, k, ids);
    int32_t begin = b->cu_seqlens[k];
    EXPECT(n >= 5 && n <= c->batch.max_seq_length && b->fields[TEXT_CLS_ROWS][k] == begin,
           "sequence of %lld tokens", (long long)n);
    EXPECT(ids[0] == FIXTURE_CLS && ids[n - 1] == FIXTURE_SEP, "[CLS] ... [SEP]");
    int64_t a_end = 1;
    while (ids[a_end] != FIXTURE_SEP) {
        a_end++;
    }
    EXPECT(a_end > 1 && a_end < n - 2, "an empty segment");
    for (int64_t i = 0; i < n; i++) {
        EXPECT(b->fields[TEXT_TYPES][begin + i] == (i > a_end) && b->positions[begin + i] == i,
               "types and positions");
        bool special = i == 0 || i == a_end || i == n - 1;
        EXPECT((ids[i] < FIXTURE_N_SPECIAL) == special, "special tokens");
        bool follows = i > 1 && !special && ids[i - 1] >= FIXTURE_N_SPECIAL;
        EXPECT(!follows || ids[i] == ids[i - 1] + 1, "a segment is a range of the store");
    }
    /* The next sentences follow at once, up to what truncation took from between; random ones come from
     * elsewhere. */
    EXPECT(b->fields[TEXT_PAIR_LABELS][k] == 0 || b->fields[TEXT_PAIR_LABELS][k] == 1, "label %d",
           b->fields[TEXT_PAIR_LABELS][k]);
    if (b->fields[TEXT_PAIR_LABELS][k] == 0 && n < c->batch.max_seq_length) {
        EXPECT(ids[a_end + 1] == ids[a_end - 1] + 1, "the next sentence follows");
    }
}

static void check_batch(const struct batch *b, const struct bert_loader_config *c)
{
    EXPECT(b->n_tokens % BATCH_TOKEN_BUCKET == 0 && b->n_tokens - b->n_real_tokens < BATCH_TOKEN_BUCKET,
           "bucket of tokens");
    EXPECT(b->n_labels % BATCH_LABEL_BUCKET == 0 && b->n_labels - b->n_real_labels < BATCH_LABEL_BUCKET,
           "bucket of labels");
    EXPECT(b->n_streams == b->n_sequences + (b->n_tokens > b->n_real_tokens), "streams");
    EXPECT(b->cu_seqlens[0] == 0 && b->cu_seqlens[b->n_streams] == b->n_tokens, "cu_seqlens");
    int64_t longest = 0;
    for (int64_t k = 0; k < b->n_streams; k++) {
        int64_t n = b->cu_seqlens[k + 1] - b->cu_seqlens[k];
        longest = n > longest ? n : longest;
    }
    EXPECT(longest == b->max_seqlen && longest <= b->limits.max_seqlen, "max_seqlen");
    for (int64_t k = 0; k < b->n_sequences; k++) {
        check_sequence(b, k, c);
    }
    for (int64_t i = b->n_real_tokens; i < b->n_tokens; i++) {
        EXPECT(b->ids[i] == FIXTURE_PAD && b->positions[i] == 0 && b->fields[TEXT_TYPES][i] == 0, "tail");
    }
    for (int64_t m = 0; m < b->n_labels; m++) {
        bool real = m < b->n_real_labels;
        EXPECT(real ? b->fields[TEXT_MASKED_LABELS][m] >= FIXTURE_N_SPECIAL
                    : b->fields[TEXT_MASKED_LABELS][m] == -1,
               "label %lld", (long long)m);
        EXPECT(!real || m == 0 || b->fields[TEXT_MASKED_ROWS][m] > b->fields[TEXT_MASKED_ROWS][m - 1],
               "masked rows ascend");
    }
}

static void batches_are_what_their_head_says(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l;
    struct batch_step step;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    for (int64_t s = 1; s <= 200; s++) {
        EXPECT_OK(bert_loader_step(&l, s, &step));
        int64_t n_tokens = 0, n_masked = 0;
        for (int64_t k = 0; k < step.n_micro; k++) {
            check_batch(&step.micro[k], &c);
            EXPECT(step.micro[k].n_sequences == 4, "a third of the batch");
            EXPECT(step.micro[k].row_keys[0] == 4 * k, "row keys go through the global batch");
            n_tokens += step.micro[k].n_real_tokens;
            n_masked += step.micro[k].n_real_labels;
        }
        EXPECT(step.n_tokens == n_tokens && step.n_labels[TEXT_MASKED_LABELS] == n_masked &&
                   step.n_sequences == 12 && step.n_labels[TEXT_PAIR_LABELS] == 12,
               "counts of the global batch");
    }
    batch_step_fini(&step);
    bert_loader_close(&l);
}

static void steps_are_a_pure_function(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l, again;
    struct batch_step first, second;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_open(&again, c));
    EXPECT_OK(bert_loader_init_step(&c, &first));
    EXPECT_OK(bert_loader_init_step(&c, &second));
    for (int64_t s = 1; s <= 20; s++) {
        EXPECT_OK(bert_loader_step(&l, s, &first));
    }
    EXPECT_OK(bert_loader_step(&again, 20, &second));
    for (int64_t k = 0; k < first.n_micro; k++) {
        same_batches(&first.micro[k], &second.micro[k]);
    }
    EXPECT_OK(bert_loader_step(&again, 1000000, &second)); /* far epochs cost nothing */
    batch_step_fini(&first);
    batch_step_fini(&second);
    bert_loader_close(&again);
    bert_loader_close(&l);
}

/* How many of the store's samples begin with the same word in two epochs. */
static int64_t same_beginnings(const struct indexed *store, bool in_order, int64_t *n)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l;
    struct batch_step epochs[2];
    int64_t same = 0;
    c.batch.in_order = in_order;
    c.batch.train_batch_size = c.batch.gradient_accumulation_steps = 1;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &epochs[0]));
    EXPECT_OK(bert_loader_init_step(&c, &epochs[1]));
    *n = l.map.n_samples;
    for (int64_t s = 1; s <= *n; s++) {
        int32_t first[48], second[48];
        EXPECT_OK(bert_loader_step(&l, s, &epochs[0]));
        EXPECT_OK(bert_loader_step(&l, s + *n, &epochs[1]));
        restore(&epochs[0].micro[0], 0, first);
        restore(&epochs[1].micro[0], 0, second);
        same += first[1] == second[1];
    }
    batch_step_fini(&epochs[0]);
    batch_step_fini(&epochs[1]);
    bert_loader_close(&l);
    return same;
}

static void samples_may_come_in_the_stores_order(const struct indexed *store)
{
    int64_t n;
    EXPECT(2 * same_beginnings(store, true, &n) > n, "the order changes from epoch to epoch");
    EXPECT(4 * same_beginnings(store, false, &n) < n, "the order does not change");
}

static void cuts_change_only_the_cut(const struct indexed *store)
{
    struct bert_loader_config whole = config_of(store), parts = whole;
    whole.batch.gradient_accumulation_steps = 1;
    parts.batch.gradient_accumulation_steps = 4;
    struct bert_loader l_whole, l_parts;
    struct batch_step one, four;
    EXPECT_OK(bert_loader_open(&l_whole, whole));
    EXPECT_OK(bert_loader_open(&l_parts, parts));
    EXPECT_OK(bert_loader_init_step(&whole, &one));
    EXPECT_OK(bert_loader_init_step(&parts, &four));
    EXPECT_OK(bert_loader_step(&l_whole, 7, &one));
    EXPECT_OK(bert_loader_step(&l_parts, 7, &four));
    EXPECT(one.n_tokens == four.n_tokens &&
               one.n_labels[TEXT_MASKED_LABELS] == four.n_labels[TEXT_MASKED_LABELS],
           "counts");
    int64_t row = 0, label = 0;
    for (int64_t k = 0; k < four.n_micro; k++) {
        const struct batch *b = &four.micro[k];
        same_ints(one.micro[0].ids + row, b->ids, b->n_real_tokens, "ids");
        same_ints(one.micro[0].row_keys + 2 * row, b->row_keys, 2 * b->n_real_tokens, "row_keys");
        same_ints(one.micro[0].fields[TEXT_MASKED_LABELS] + label, b->fields[TEXT_MASKED_LABELS],
                  b->n_real_labels, "labels");
        row += b->n_real_tokens;
        label += b->n_real_labels;
    }
    batch_step_fini(&one);
    batch_step_fini(&four);
    bert_loader_close(&l_whole);
    bert_loader_close(&l_parts);
}

/* The micro-batches of a rank are those of the whole step. */
static void ranks_make_their_part(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l;
    struct batch_step all, part;
    c.batch.gradient_accumulation_steps = 4;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &all));
    EXPECT_OK(bert_loader_step(&l, 7, &all));
    int64_t n_tokens = 0;
    for (int rank = 0; rank < 3; rank++) {
        EXPECT_OK(batch_step_init_part(&part, 4, rank, 3, false, &text_batch_layout, bert_loader_limits(&c)));
        EXPECT_OK(bert_loader_step(&l, 7, &part));
        struct batch_step wanted = batch_step_part(&all, rank, 3);
        EXPECT(part.n_micro == wanted.n_micro && part.n_micro >= 1 && part.n_all_micro == 4, "%lld of %lld",
               (long long)part.n_micro, (long long)part.n_all_micro);
        for (int64_t k = 0; k < part.n_micro; k++) {
            same_batches(&part.micro[k], &wanted.micro[k]);
        }
        n_tokens += part.n_tokens;
        batch_step_fini(&part);
        EXPECT_OK(batch_step_init_part(&part, 4, rank, 3, true, &text_batch_layout, bert_loader_limits(&c)));
        EXPECT_OK(bert_loader_step(&l, 7, &part));
        EXPECT(part.n_micro == (rank == 0 ? 2 : 1), "%lld in turn", (long long)part.n_micro);
        for (int64_t k = 0; k < part.n_micro; k++) {
            same_batches(&part.micro[k], &all.micro[rank + 3 * k]);
        }
        batch_step_fini(&part);
    }
    EXPECT(n_tokens == all.n_tokens, "%lld tokens", (long long)n_tokens);
    batch_step_fini(&all);
    bert_loader_close(&l);
}

/* Over one epoch every sample is used once: the pieces of A and B that begin a sample are all different. */
static void epochs_differ_and_cover(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    c.batch.train_batch_size = c.batch.gradient_accumulation_steps = 1;
    c.batch.max_seq_length = 512; /* nothing is truncated: every A begins where its sample begins */
    c.max_predictions_per_seq = 80;
    struct bert_loader l;
    struct batch_step step;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    int64_t n = l.map.n_samples;
    char *seen = calloc((size_t)store->n_tokens, 1);
    int64_t n_same = 0;
    int32_t *first_epoch = malloc((size_t)n * sizeof *first_epoch);
    for (int64_t s = 1; s <= 2 * n; s++) {
        EXPECT_OK(bert_loader_step(&l, s, &step));
        int32_t ids[512];
        restore(&step.micro[0], 0, ids);
        int32_t begin = ids[1] - FIXTURE_N_SPECIAL;
        EXPECT(seen[begin] == (s > n), "sample at token %d, step %lld of %lld", begin, (long long)s,
               (long long)n);
        seen[begin]++;
        if (s <= n) {
            first_epoch[s - 1] = begin;
        } else {
            n_same += first_epoch[s - 1 - n] == begin;
        }
    }
    EXPECT(n > 100 && n_same < n / 10, "%lld of %lld samples keep their place in the next epoch",
           (long long)n_same, (long long)n);
    free(first_epoch);
    free(seen);
    batch_step_fini(&step);
    bert_loader_close(&l);
}

static void heldout_batches_are_fixed(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader a, b;
    EXPECT_OK(bert_loader_open(&a, c));
    c.seed = 43;
    EXPECT_OK(bert_loader_open(&b, c));
    struct batch x, y;
    EXPECT_OK(text_batch_init(&x, bert_loader_limits(&c)));
    EXPECT_OK(text_batch_init(&y, bert_loader_limits(&c)));
    EXPECT(bert_loader_source(&a).heldout_batches(&a, 10) == 3 &&
               bert_loader_source(&a).heldout_batches(&a, 8) == 2,
           "10 samples by 4");
    EXPECT(bert_loader_source(&a).heldout_batches(&a, INT64_MAX) == (a.map.n_samples + 3) / 4,
           "no more than there are");
    int64_t total = 0;
    for (int64_t i = 0; i < 3; i++) {
        EXPECT_OK(bert_loader_source(&a).heldout(&a, 10, i, &x));
        EXPECT_OK(bert_loader_source(&b).heldout(&b, 10, i, &y));
        check_batch(&x, &c);
        same_batches(&x, &y);
        total += x.n_sequences;
    }
    EXPECT(total == 10, "%lld sequences", (long long)total);
    batch_fini(&x);
    batch_fini(&y);
    bert_loader_close(&a);
    bert_loader_close(&b);
}

static void bad_configurations_are_named(const struct indexed *store)
{
    struct bert_loader l;
    struct bert_loader_config c = config_of(store);
    c.batch.gradient_accumulation_steps = 5;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "train_batch_size 12 is not a positive multiple");
    c = config_of(store);
    c.batch.max_seq_length = 4;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "max_seq_length 4");
    c = config_of(store);
    c.max_predictions_per_seq = 49;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "max_predictions_per_seq 49");
    c = config_of(store);
    c.masked_lm_prob = NAN;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "masked_lm_prob");
    c = config_of(store);
    c.short_seq_prob = 1.5;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "short_seq_prob");
    c = config_of(store);
    c.batch.train_batch_size = (int64_t)1 << 30;
    c.batch.gradient_accumulation_steps = 1;
    EXPECT_ERROR(bert_loader_open(&l, c), STATUS_USAGE, "too large");
}

static void tokens_outside_the_vocabulary_are_refused(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    c.vocab_size = 100;
    struct bert_loader l;
    struct batch_step step;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_ERROR(bert_loader_step(&l, 1, &step), STATUS_DATA, "the vocabulary has 100 words");
    batch_step_fini(&step);
    bert_loader_close(&l);
}

/* Without next sentences: [CLS] A [SEP], all of segment 0, consecutive words of the store, and no label; the
 * rate is that of the configuration. */
static void windows_are_one_segment(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l;
    struct batch_step step, again;
    int64_t n_tokens = 0, n_masked = 0, longest = 0;
    c.no_nsp = true;
    c.masked_lm_prob = 0.3;
    c.max_predictions_per_seq = 15;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_OK(bert_loader_init_step(&c, &again));
    for (int64_t s = 1; s <= 200; s++) {
        EXPECT_OK(bert_loader_step(&l, s, &step));
        EXPECT(step.n_labels[TEXT_PAIR_LABELS] == 0, "%lld labels",
               (long long)step.n_labels[TEXT_PAIR_LABELS]);
        for (int64_t k = 0; k < step.n_micro * step.micro[0].n_sequences; k++) {
            const struct batch *b = &step.micro[k / step.micro[0].n_sequences];
            int64_t of = k % step.micro[0].n_sequences, begin = b->cu_seqlens[of];
            int32_t ids[64];
            int64_t n = restore(b, of, ids);
            longest = n > longest ? n : longest;
            EXPECT(n >= 3 && n <= c.batch.max_seq_length && ids[0] == FIXTURE_CLS &&
                       ids[n - 1] == FIXTURE_SEP,
                   "a sequence of %lld tokens", (long long)n);
            for (int64_t i = 0; i < n; i++) {
                EXPECT(b->fields[TEXT_TYPES][begin + i] == 0 && b->positions[begin + i] == i, "token %lld",
                       (long long)i);
                EXPECT(i < 2 || i == n - 1 || ids[i] == ids[i - 1] + 1, "a window is a range of the store");
            }
        }
        n_tokens += step.n_tokens;
        n_masked += step.n_labels[TEXT_MASKED_LABELS];
    }
    EXPECT(longest == c.batch.max_seq_length, "the longest has %lld tokens", (long long)longest);
    EXPECT_NEAR((double)n_masked / (double)n_tokens, 0.3, 0.01);
    EXPECT_OK(bert_loader_step(&l, 200, &again));
    for (int64_t k = 0; k < step.n_micro; k++) {
        same_batches(&step.micro[k], &again.micro[k]);
    }
    batch_step_fini(&step);
    batch_step_fini(&again);
    bert_loader_close(&l);
}

/* Of the tokens that are in each of 7 epochs from `epoch` on, the part that is predicted once or twice;
 * *first_two: how many of the first epoch are predicted in the eighth, too. */
static double predicted_once_or_twice(struct bert_loader_config c, int64_t *first_two)
{
    enum { EPOCHS = 7 };
    struct bert_loader l;
    struct batch_step step;
    uint8_t *seen = calloc(2 * VOCAB, 1), *predicted = seen + VOCAB;
    int64_t n = 0, n_even = 0;
    c.no_nsp = true;
    c.short_seq_prob = 0;
    c.batch.train_batch_size = c.batch.gradient_accumulation_steps = 1;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    for (int64_t s = 1; s <= (EPOCHS + 1) * l.map.n_samples; s++) {
        int32_t ids[64];
        EXPECT_OK(bert_loader_step(&l, s, &step));
        const struct batch *b = &step.micro[0];
        bool extra = s > EPOCHS * l.map.n_samples;
        for (int64_t i = restore(b, 0, ids) - 2; i > 0 && !extra; i--) {
            seen[ids[i]]++;
        }
        for (int64_t m = 0; m < b->n_real_labels; m++) {
            int32_t id = b->fields[TEXT_MASKED_LABELS][m];
            *first_two += extra && (predicted[id] & 0x80) != 0;
            predicted[id] = (uint8_t)(predicted[id] + !extra) | (s <= l.map.n_samples ? 0x80 : 0);
        }
    }
    for (int32_t id = 0; id < VOCAB; id++) {
        n += seen[id] == EPOCHS;
        n_even += seen[id] == EPOCHS && (predicted[id] & 0x7f) >= 1 && (predicted[id] & 0x7f) <= 2;
    }
    EXPECT(n > 10000, "%lld tokens are in each epoch", (long long)n);
    free(seen);
    batch_step_fini(&step);
    bert_loader_close(&l);
    return (double)n_even / (double)n;
}

/* Drawn anew, a token is predicted once or twice in 7 epochs with a probability of 0.61; by turns, nearly
 * always, and the next cycle has another order. */
static void masks_take_turns(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    int64_t repeated = 0, by_chance = 0;
    c.masked_lm_prob = 1.0 / 7;
    EXPECT_NEAR(predicted_once_or_twice(c, &by_chance), 0.61, 0.04);
    c.even_masks = true;
    double even = predicted_once_or_twice(c, &repeated);
    EXPECT(even > 0.97, "%g of the tokens are predicted once or twice", even);
    EXPECT(repeated < 2 * by_chance, "%lld tokens of the next cycle are those of the first, by chance %lld",
           (long long)repeated, (long long)by_chance);
}

/* The position at which sequence k of a batch begins; its others follow. */
static int32_t first_position(const struct batch *b, int64_t k)
{
    int32_t begin = b->cu_seqlens[k], first = b->positions[begin];
    for (int32_t i = begin; i < b->cu_seqlens[k + 1]; i++) {
        EXPECT(b->positions[i] == first + i - begin, "positions of sequence %lld", (long long)k);
    }
    return first;
}

/* Half of the sequences begin at 0, the others anywhere that they end below n_positions; nothing else
 * changes, and held-out samples do not. */
static void positions_are_shifted(const struct indexed *store)
{
    enum { POSITIONS = 64, STEPS = 40 };
    struct bert_loader_config c = config_of(store), plain_c = c;
    struct bert_loader l, plain;
    struct batch_step step, usual;
    struct batch heldout, usual_heldout;
    int64_t n = 0, n_first = 0, n_last = 0;
    c.n_positions = POSITIONS;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_open(&plain, plain_c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_OK(bert_loader_init_step(&c, &usual));
    for (int64_t i = 1; i <= STEPS; i++) {
        struct batch *b = &step.micro[0];
        EXPECT_OK(bert_loader_step(&l, i, &step));
        EXPECT_OK(bert_loader_step(&plain, i, &usual));
        for (int64_t k = 0; k < b->n_sequences; k++) {
            int32_t first = first_position(b, k), length = b->cu_seqlens[k + 1] - b->cu_seqlens[k];
            EXPECT(first >= 0 && first + length <= POSITIONS, "a sequence of %d at %d", length, first);
            n_first += first == 0;
            n_last += first + length == POSITIONS;
            n++;
        }
        memcpy(b->positions, usual.micro[0].positions, (size_t)b->n_tokens * sizeof *b->positions);
        same_batches(b, &usual.micro[0]);
    }
    EXPECT_NEAR((double)n_first / (double)n, 0.5 + 0.5 / (POSITIONS - 48 + 1), 0.1);
    EXPECT(n_last > 0, "the last position is never reached");
    EXPECT_OK(text_batch_init(&heldout, bert_loader_limits(&c)));
    EXPECT_OK(text_batch_init(&usual_heldout, bert_loader_limits(&c)));
    EXPECT_OK(bert_loader_source(&l).heldout(&l, 4, 0, &heldout));
    EXPECT_OK(bert_loader_source(&plain).heldout(&plain, 4, 0, &usual_heldout));
    same_batches(&heldout, &usual_heldout);
    batch_fini(&heldout);
    batch_fini(&usual_heldout);
    batch_step_fini(&step);
    batch_step_fini(&usual);
    bert_loader_close(&l);
    bert_loader_close(&plain);
}

/* A run of 100 steps. */
static double hundredths(const void *context, int64_t step)
{
    (void)context;
    return (double)(step - 1) / 100;
}

/* Share of masked tokens of a step. */
static double masked_in_step(const struct bert_loader *l, struct batch_step *step, int64_t number)
{
    EXPECT_OK(bert_loader_step(l, number, step));
    return (double)step->n_labels[TEXT_MASKED_LABELS] / (double)step->n_tokens;
}

/* The masks become fewer, as a function of the step; the sequences are what they are without a ramp, and
 * held-out samples have the last rate. */
static void masks_change_with_the_run(const struct indexed *store)
{
    struct bert_loader_config c = config_of(store);
    struct bert_loader l, constant;
    struct batch_step step, whole;
    struct batch held[2];
    c.batch.train_batch_size = 64;
    c.batch.gradient_accumulation_steps = 16;
    c.max_predictions_per_seq = 24;
    c.short_seq_prob = 0;
    EXPECT_OK(bert_loader_open(&constant, c));
    c.mask_rate = (struct ramp){0.45, 0.15, 1};
    c.part = (struct run_part){hundredths, NULL};
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_OK(bert_loader_init_step(&c, &whole));
    EXPECT_NEAR(masked_in_step(&l, &step, 1), 0.45, 0.02);
    EXPECT_NEAR(masked_in_step(&l, &step, 26), 0.375, 0.02);
    EXPECT_OK(bert_loader_step(&constant, 26, &whole));
    int32_t a[64], b[64];
    for (int64_t k = 0; k < 64; k++) {
        int64_t n = restore(&step.micro[k / 4], k % 4, a), n_whole = restore(&whole.micro[k / 4], k % 4, b);
        EXPECT(n == n_whole && memcmp(a, b, (size_t)n * sizeof *a) == 0, "sequence %lld", (long long)k);
    }
    EXPECT_NEAR(masked_in_step(&l, &step, 101), 0.15, 0.01);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(text_batch_init(&held[i], bert_loader_limits(&c)));
        EXPECT_OK(bert_loader_source(&l).heldout(i == 0 ? &l : &constant, 4, 0, &held[i]));
    }
    same_batches(&held[0], &held[1]);
    batch_fini(&held[0]);
    batch_fini(&held[1]);
    batch_step_fini(&step);
    batch_step_fini(&whole);
    bert_loader_close(&l);
    bert_loader_close(&constant);
}

int main(void)
{
    struct indexed store;
    fixture_store(&store, "train", 300, 20, 16,
                  VOCAB); /* fewer tokens than words: every token tells its place */
    EXPECT(store.n_tokens < VOCAB - FIXTURE_N_SPECIAL, "%lld tokens", (long long)store.n_tokens);
    batches_are_what_their_head_says(&store);
    windows_are_one_segment(&store);
    masks_change_with_the_run(&store);
    masks_take_turns(&store);
    positions_are_shifted(&store);
    steps_are_a_pure_function(&store);
    samples_may_come_in_the_stores_order(&store);
    cuts_change_only_the_cut(&store);
    ranks_make_their_part(&store);
    epochs_differ_and_cover(&store);
    heldout_batches_are_fixed(&store);
    bad_configurations_are_named(&store);
    tokens_outside_the_vocabulary_are_refused(&store);
    indexed_close(&store);
    fixture_remove();
    return 0;
}
