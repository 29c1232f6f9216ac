#include "data/bert/bert_loader.h"

#include "core/rng.h"
#include "data/bert/masking.h"
#include "data/bert/nsp.h"

#include <math.h>
#include <stdlib.h>

/* Purposes of keys: any distinct numbers. */
enum {
    PURPOSE_ORDER = 0x6f726472,
    PURPOSE_PAIR = 0x70616972,
    PURPOSE_MASK = 0x6d61736b,
    PURPOSE_TURN = 0x7475726e,
    PURPOSE_SHIFT = 0x73686966
};

/* Held-out draws are the same in every run, so that their losses can be compared between runs. */
static const uint64_t HELDOUT_SEED = 0x68656c646f7574;

struct draw {
    uint64_t seed, epoch;
    int64_t sample;
};

static uint64_t draw_key(struct draw d, uint64_t purpose)
{
    return rng_key(rng_key(rng_key(d.seed, purpose), d.epoch), (uint64_t)d.sample);
}

struct status bert_loader_set_tokens(struct bert_loader_config *c, const struct tokenizer *t)
{
    TRY(tokenizer_require(t, 1U << SPECIAL_CLASS | 1U << SPECIAL_SEPARATOR | 1U << SPECIAL_MASK,
                          "predicting masked tokens"));
    if (t->frame.given) {
        struct input_frame bert = input_frame_bert(t->special[SPECIAL_CLASS], t->special[SPECIAL_SEPARATOR]);
        FAIL_IF(!input_frame_equal(&t->frame, &bert), STATUS_DATA,
                "pre-training frames text as [CLS] A [SEP] B [SEP], but the post_processor "
                "of the tokenizer.json has other special tokens or segments");
    }
    c->vocab_size = t->n;
    c->pad_id = tokenizer_tail_id(t);
    c->cls_id = t->special[SPECIAL_CLASS];
    c->sep_id = t->special[SPECIAL_SEPARATOR];
    c->mask_id = t->special[SPECIAL_MASK];
    return status_ok();
}

static struct status find_continuing(struct bert_loader *l)
{
    const struct tokenizer *t = l->config.whole_words;
    CHECK(t->n == l->config.vocab_size, "words of %d pieces, not %d", (int)t->n, (int)l->config.vocab_size);
    l->continues = malloc((size_t)t->n);
    FAIL_IF(l->continues == NULL, STATUS_MEMORY, "out of memory for the words of %d pieces", (int)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        l->continues[id] = tokenizer_continues_word(t, id);
    }
    l->config.whole_words = NULL;
    return status_ok();
}

/* ---- the form of sequences: the arithmetic of a configuration, without a token of the store ---- */

enum { MIN_SEQ_LENGTH = 5 }; /* one token in each segment of [CLS] A [SEP] B [SEP] */

static struct status check_sizes(const struct bert_loader_config *c)
{
    FAIL_IF(c->batch.max_seq_length < MIN_SEQ_LENGTH, STATUS_USAGE,
            "max_seq_length %lld is below %d: [CLS] A [SEP] B [SEP]", (long long)c->batch.max_seq_length,
            MIN_SEQ_LENGTH);
    FAIL_IF(c->max_predictions_per_seq < 1 || c->max_predictions_per_seq > c->batch.max_seq_length,
            STATUS_USAGE, "max_predictions_per_seq %lld is outside 1..%lld (max_seq_length)",
            (long long)c->max_predictions_per_seq, (long long)c->batch.max_seq_length);
    TRY(batch_check_cut(c->batch.train_batch_size, c->batch.gradient_accumulation_steps));
    int64_t n = c->batch.train_batch_size / c->batch.gradient_accumulation_steps;
    int64_t most = (INT32_MAX - BATCH_TOKEN_BUCKET) / c->batch.max_seq_length;
    FAIL_IF(n > most || c->batch.train_batch_size > INT32_MAX, STATUS_USAGE,
            "a micro-batch of %lld sequences of %lld tokens is too large (at most %lld); "
            "raise gradient_accumulation_steps",
            (long long)n, (long long)c->batch.max_seq_length, (long long)most);
    return status_ok();
}

struct status bert_loader_check(const struct bert_loader_config *c)
{
    TRY(check_sizes(c));
    FAIL_IF(!(c->masked_lm_prob > 0 && c->masked_lm_prob <= 1), STATUS_USAGE,
            "masked_lm_prob %g is outside (0, 1]", c->masked_lm_prob);
    CHECK(c->n_groups <= 1 || c->batch.gradient_accumulation_steps % c->n_groups == 0,
          "%lld groups of %lld micro-batches", (long long)c->n_groups,
          (long long)c->batch.gradient_accumulation_steps);
    FAIL_IF(c->even_masks && c->batch.max_seq_length > MASKING_MOST_TURNS, STATUS_USAGE,
            "even_masks needs sequences of at most %d tokens, but they may have %lld", MASKING_MOST_TURNS,
            (long long)c->batch.max_seq_length);
    FAIL_IF(!(c->short_seq_prob >= 0 && c->short_seq_prob <= 1), STATUS_USAGE,
            "short_seq_prob %g is outside [0, 1]", c->short_seq_prob);
    const int32_t special[] = {c->pad_id, c->cls_id, c->sep_id, c->mask_id};
    for (int i = 0; i < 4; i++) {
        CHECK(special[i] >= 0 && special[i] < c->vocab_size, "special token %d of %d", (int)special[i],
              (int)c->vocab_size);
    }
    return status_ok();
}

/* The special tokens of a sequence: around a pair of ranges or, without next-sentence prediction, around
 * one. */
static struct input_form frame_of(const struct bert_loader_config *c)
{
    struct input_frame frame = input_frame_bert(c->cls_id, c->sep_id);
    return c->no_nsp ? frame.one : frame.pair;
}

/* The most tokens of a sequence without the special ones. */
static int64_t most_tokens(const struct bert_loader_config *c)
{
    struct input_form frame = frame_of(c);
    return c->batch.max_seq_length - input_form_n_special(&frame);
}

/* Sequences of a micro-batch. */
static int64_t micro_size(const struct bert_loader_config *c)
{
    return c->batch.train_batch_size / c->batch.gradient_accumulation_steps;
}

struct batch_limits bert_loader_limits(const struct bert_loader_config *c)
{
    return text_batch_limits(micro_size(c), c->batch.max_seq_length, c->max_predictions_per_seq);
}

struct status bert_loader_open(struct bert_loader *l, struct bert_loader_config config)
{
    *l = (struct bert_loader){.config = config};
    TRY(bert_loader_check(&config));
    CHECK(config.part.before != NULL || !ramp_is_given(&config.mask_rate),
          "a ramp without the part of the run");
    struct status s = config.whole_words != NULL ? find_continuing(l) : status_ok();
    if (!failed(s)) {
        s = sample_map_build(&l->map, config.store, most_tokens(&config));
    }
    if (!failed(s) && config.balance_tokens && config.n_groups > 1) {
        s = token_balance_create(&l->balance, config.batch.train_batch_size, config.batch.max_seq_length,
                                 (int)config.n_groups);
    }
    if (failed(s)) {
        bert_loader_close(l);
    }
    return s;
}

void bert_loader_close(struct bert_loader *l)
{
    token_balance_destroy(l->balance);
    sample_map_fini(&l->map);
    free(l->continues);
    *l = (struct bert_loader){0};
}

struct status bert_loader_init_step(const struct bert_loader_config *c, struct batch_step *step)
{
    return batch_step_init(step, c->batch.gradient_accumulation_steps, &text_batch_layout,
                           bert_loader_limits(c));
}

/* Opening a store does not check its ids (io/indexed.h), so they are checked where they are copied. */
static struct status copy_tokens(const struct bert_loader *l, int32_t *ids, struct nsp_range range)
{
    int64_t n = range.end - range.begin;
    indexed_copy(l->config.store, ids, range.begin, n);
    for (int64_t i = 0; i < n; i++) {
        FAIL_IF(ids[i] < 0 || ids[i] >= l->config.vocab_size, STATUS_DATA,
                "token %lld of the store has id %d, but the vocabulary has %d words; it "
                "belongs to another vocabulary or is damaged",
                (long long)(range.begin + i), (int)ids[i], (int)l->config.vocab_size);
    }
    return status_ok();
}

static int64_t length(struct nsp_range range)
{
    return range.end - range.begin;
}

static struct nsp_pair draw_pair(const struct bert_loader *l, struct draw draw)
{
    const struct bert_loader_config *c = &l->config;
    struct rng_stream stream = rng_stream(draw_key(draw, PURPOSE_PAIR));
    return nsp_draw(c->store, sample_map_at(&l->map, draw.sample), most_tokens(c), c->short_seq_prob,
                    &stream);
}

static struct nsp_range draw_window(const struct bert_loader *l, struct draw draw)
{
    const struct bert_loader_config *c = &l->config;
    struct rng_stream stream = rng_stream(draw_key(draw, PURPOSE_PAIR));
    return nsp_draw_window(c->store, sample_map_at(&l->map, draw.sample), most_tokens(c), c->short_seq_prob,
                           &stream);
}

/* Tokens of the sequence of this draw: its bounds are drawn, and nothing is read. */
static int64_t sequence_length(const struct bert_loader *l, struct draw draw)
{
    struct input_form frame = frame_of(&l->config);
    int64_t n_special = input_form_n_special(&frame);
    if (l->config.no_nsp) {
        return length(draw_window(l, draw)) + n_special;
    }
    struct nsp_pair pair = draw_pair(l, draw);
    return length(pair.a) + length(pair.b) + n_special;
}

/* The ranges of one sample; without next-sentence prediction the second is empty. */
static struct nsp_pair draw_parts(const struct bert_loader *l, struct draw draw)
{
    return l->config.no_nsp ? (struct nsp_pair){.a = draw_window(l, draw), .label = NSP_NO_LABEL}
                            : draw_pair(l, draw);
}

/* Appends these parts of the store and the special tokens around them. */
static struct status add_parts(const struct bert_loader *l, struct batch *b, const struct nsp_pair *parts,
                               int32_t sequence_key)
{
    struct input_form frame = frame_of(&l->config);
    int64_t n_a = length(parts->a), n_b = length(parts->b), n = n_a + n_b + input_form_n_special(&frame);
    int32_t *ids = text_batch_add(b, n, input_form_n_first(&frame, n_a, n_b), parts->label, sequence_key);
    input_form_write(&frame, ids, n_a, n_b);
    TRY(copy_tokens(l, ids + frame.before.n, parts->a));
    return copy_tokens(l, ids + input_form_second_at(&frame, n_a), parts->b);
}

/* The turns of a sequence in epoch draw.epoch: a cycle has the number of epochs in which the last rate masks
 * each token once, and each cycle draws an order of its own. */
static struct masking_turns turns_of(const struct bert_loader_config *c, struct draw draw,
                                     struct nsp_range first, struct nsp_range second)
{
    struct input_form frame = frame_of(c);
    uint64_t n = (uint64_t)fmax(nearbyint(1 / c->masked_lm_prob), 1);
    return (struct masking_turns){
        .key = rng_key(rng_key(draw.seed, PURPOSE_TURN), draw.epoch / n),
        .turn = (double)(draw.epoch % n) / (double)n,
        .n_first = length(first),
        .shift = {first.begin - frame.before.n, second.begin - input_form_second_at(&frame, length(first))}};
}

/* Masks the batch's last sequence, of these parts of the store. */
static void mask_last(const struct bert_loader *l, struct batch *b, double rate, struct draw draw,
                      const struct nsp_pair *parts)
{
    struct masking_turns turns = turns_of(&l->config, draw, parts->a, parts->b);
    const struct bert_loader_config *c = &l->config;
    int64_t begin = b->fields[TEXT_CLS_ROWS][b->n_sequences - 1], n = b->n_real_tokens - begin;
    const struct masking_rules rules = {.masked_lm_prob = rate,
                                        .keep_rate = c->mask_keep_rate,
                                        .max_predictions = c->max_predictions_per_seq,
                                        .cls_id = c->cls_id,
                                        .sep_id = c->sep_id,
                                        .mask_id = c->mask_id,
                                        .vocab_size = c->vocab_size,
                                        .turns = c->even_masks ? &turns : NULL,
                                        .continues = l->continues};
    struct rng_stream mask_stream = rng_stream(draw_key(draw, PURPOSE_MASK));
    int64_t m = masking_apply(&rules, b->ids + begin, n, text_batch_masked_positions(b),
                              text_batch_masked_labels(b), &mask_stream);
    text_batch_take_masked(b, m);
}

static struct status add_sequence(const struct bert_loader *l, struct batch *b, double mask_rate,
                                  struct draw draw, int32_t sequence_key)
{
    struct nsp_pair parts = draw_parts(l, draw);
    TRY(add_parts(l, b, &parts, sequence_key));
    mask_last(l, b, mask_rate, draw, &parts);
    return status_ok();
}

/* Every second sequence begins at a random position (Kiyono et al. 2021, arXiv:2109.05644), so that positions
 * after those of the longest sequence are trained too; the others begin at 0, as text does when the model is
 * used. */
static void shift_last(const struct bert_loader *l, struct batch *b, struct draw draw)
{
    int64_t begin = b->fields[TEXT_CLS_ROWS][b->n_sequences - 1],
            room = l->config.n_positions - b->n_real_tokens + begin;
    struct rng_stream stream = rng_stream(draw_key(draw, PURPOSE_SHIFT));
    int32_t shift =
        room < 1 || rng_below(&stream, 2) == 0 ? 0 : (int32_t)rng_below(&stream, (uint32_t)room + 1);
    for (int64_t i = begin; i < b->n_real_tokens; i++) {
        b->positions[i] += shift;
    }
}

/* Sequence number g of the run under `seed`. */
static struct draw draw_at(const struct bert_loader *l, uint64_t seed, uint64_t g, bool in_order)
{
    uint64_t n = (uint64_t)l->map.n_samples;
    struct draw d = {.seed = seed, .epoch = g / n};
    uint64_t order = rng_key(rng_key(seed, PURPOSE_ORDER), d.epoch);
    d.sample = (int64_t)(in_order ? g % n : rng_permute(order, n, g % n));
    return d;
}

/* Number `i` of the sequences of a step, which begin with number `first` of the run. */
static struct draw draw_of_step(const struct bert_loader *l, uint64_t first, int64_t i)
{
    return draw_at(l, l->config.seed, first + (uint64_t)i, l->config.batch.in_order);
}

static void deal(const struct bert_loader *l, uint64_t first)
{
    int64_t n = l->config.batch.train_batch_size;
    for (int64_t i = 0; i < n; i++) {
        l->balance->lengths[i] = (int32_t)sequence_length(l, draw_of_step(l, first, i));
    }
    token_balance_deal(l->balance, n);
}

/* The number in the step of the k-th micro-batch here.  Balanced ones are numbered rank by rank. */
static int64_t micro_number(const struct bert_loader *l, const struct batch_step *out, int64_t k)
{
    int64_t number = batch_step_number(out, k), n = l->config.batch.gradient_accumulation_steps;
    return l->balance != NULL && out->apart > 1 ? number % out->apart * (n / out->apart) + number / out->apart
                                                : number;
}

static double mask_rate_at(const struct bert_loader *l, int64_t step)
{
    const struct ramp *ramp = &l->config.mask_rate;
    const struct run_part *part = &l->config.part;
    return ramp_is_given(ramp) ? ramp_at(ramp, part->before(part->context, step)) : l->config.masked_lm_prob;
}

struct status bert_loader_step(const struct bert_loader *l, int64_t step, struct batch_step *out)
{
    const struct bert_loader_config *c = &l->config;
    int64_t last = batch_step_number(out, out->n_micro - 1);
    CHECK(step >= 1 && last < c->batch.gradient_accumulation_steps, "step %lld up to micro-batch %lld",
          (long long)step, (long long)last);
    double mask_rate = mask_rate_at(l, step);
    int64_t n = micro_size(c);
    uint64_t first = ((uint64_t)step - 1) * (uint64_t)c->batch.train_batch_size;
    if (l->balance != NULL) {
        deal(l, first);
    }
    for (int64_t k = 0; k < out->n_micro; k++) {
        struct batch *b = &out->micro[k];
        int64_t number = micro_number(l, out, k);
        batch_clear(b);
        for (int64_t at = number * n; at < (number + 1) * n; at++) {
            int64_t i = l->balance != NULL ? l->balance->dealt[at] : at;
            struct draw draw = draw_of_step(l, first, i);
            TRY(add_sequence(l, b, mask_rate, draw, (int32_t)i));
            shift_last(l, b, draw);
        }
        batch_finish(b, c->pad_id);
    }
    batch_step_count(out);
    return status_ok();
}

static int64_t heldout_samples(const struct bert_loader *l, int64_t n)
{
    return n < l->map.n_samples ? n : l->map.n_samples;
}

static int64_t source_heldout_batches(const void *self, int64_t n)
{
    const struct bert_loader *l = self;
    int64_t size = micro_size(&l->config);
    return (heldout_samples(l, n) + size - 1) / size;
}

static struct status source_heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct bert_loader *l = self;
    CHECK(index >= 0 && index < source_heldout_batches(l, n), "held-out batch %lld of %lld", (long long)index,
          (long long)source_heldout_batches(l, n));
    int64_t size = micro_size(&l->config);
    int64_t begin = index * size;
    int64_t end = heldout_samples(l, n);
    end = end - begin < size ? end : begin + size;
    batch_clear(out);
    for (int64_t i = begin; i < end; i++) {
        TRY(add_sequence(l, out, l->config.masked_lm_prob, draw_at(l, HELDOUT_SEED, (uint64_t)i, false),
                         (int32_t)(i - begin)));
    }
    batch_finish(out, l->config.pad_id);
    return status_ok();
}

static struct status source_fill(const void *self, int64_t step, struct batch_step *out)
{
    return bert_loader_step(self, step, out);
}

static struct status source_count_words(const void *self, double *counts, int64_t vocab_size)
{
    enum { CHUNK = 65536 };
    const struct indexed *store = ((const struct bert_loader *)self)->config.store;
    int32_t *ids = malloc(CHUNK * sizeof *ids);
    FAIL_IF(ids == NULL, STATUS_MEMORY, "out of memory for counting words");
    for (int64_t begin = 0; begin < store->n_tokens; begin += CHUNK) {
        int64_t n = store->n_tokens - begin < CHUNK ? store->n_tokens - begin : CHUNK;
        indexed_copy(store, ids, begin, n);
        for (int64_t i = 0; i < n; i++) {
            if (ids[i] >= 0 && ids[i] < vocab_size) {
                counts[ids[i]]++;
            }
        }
    }
    free(ids);
    return status_ok();
}

struct batch_source bert_loader_source(const struct bert_loader *l)
{
    return (struct batch_source){.self = l,
                                 .layout = &text_batch_layout,
                                 .limits = bert_loader_limits(&l->config),
                                 .n_micro = l->config.batch.gradient_accumulation_steps,
                                 .fill = source_fill,
                                 .heldout_batches = source_heldout_batches,
                                 .heldout = source_heldout,
                                 .count_words = source_count_words};
}
