#include "task/gpt/gpt_pretrain.h"

#include "core/hash.h"
#include "core/integers.h"
#include "core/log.h"
#include "data/gpt/window_batches.h"
#include "data/text_batch.h"
#include "model/decoder/decoder_family.h"
#include "serve/generate.h"
#include "task/gpt/gpt_order.h"
#include "task/pretrain_inputs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shares of the documents for training, evaluation and test, where one store has all: those of the 13B
 * recipe.  The first two, of 1,000, are those of the tokens where the documents are too few. */
static const char default_split[] = "949,50,1";
enum { TRAIN_SHARE = 949, HELDOUT_SHARE = 50 };

enum part { PART_TRAIN, PART_HELDOUT, PART_TEST, N_PARTS };

/* The samples of one PREFIX.bin and PREFIX.idx, or of a part of its documents. */
struct gpt_set {
    char prefix[PRETRAIN_PATH_BYTES];
    int64_t bounds[N_PARTS + 1]; /* first sequences of the parts, and the end, where one store has all */
    struct token_store store;    /* only the index, for a store without PREFIX.json */
    struct gpt_order order;      /* used with megatron_order */
    bool is_open;
};

struct gpt_data {
    int n_sets;
    struct gpt_set *sets;          /* [n_sets] */
    struct token_windows *windows; /* [n_sets], the samples of each set */
    double *shares;                /* [n_sets], shares of all samples, which sum to 1 */
    struct set_blend blend;        /* used for several sets */
    struct window_batches batches;
};

/* `kiln prepare` says in PREFIX.json with which tokenizer a store was made; preprocess_data.py does not. */
static bool says_tokenizer(const struct gpt_set *g)
{
    return g->store.info.vocab_size > 0;
}

static struct status open_store(struct gpt_set *g, const struct tokenizer *t)
{
    TRY(token_store_open_any(&g->store, g->prefix));
    g->is_open = true;
    return says_tokenizer(g) && t->n > 0 ? token_store_check_vocab(&g->store, g->prefix, t->hash, t->n)
                                         : status_ok();
}

static void close_store(struct gpt_set *g)
{
    if (g->is_open) {
        token_store_close(&g->store);
    }
}

/* Whether the directory holds NAME.idx and NAME.bin; sets their prefix. */
static bool has_store(char prefix[PRETRAIN_PATH_BYTES], const char *directory, const char *name,
                      size_t n_name)
{
    char path[PRETRAIN_PATH_BYTES + 8];
    int n = snprintf(prefix, PRETRAIN_PATH_BYTES, "%s/%.*s", directory, (int)n_name, name);
    if (n >= PRETRAIN_PATH_BYTES) {
        return false;
    }
    snprintf(path, sizeof path, "%s.bin", prefix);
    bool has_bin = file_exists(path);
    snprintf(path, sizeof path, "%s.idx", prefix);
    return has_bin && file_exists(path);
}

/* The number of the stores in a directory whose names begin with `begin`, and the prefix of one. */
static int count_stores(char prefix[PRETRAIN_PATH_BYTES], const char *directory, const char *begin)
{
    char found[PRETRAIN_PATH_BYTES];
    int n = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot != NULL && strcmp(dot, ".idx") == 0 && strncmp(e->d_name, begin, strlen(begin)) == 0 &&
            has_store(found, directory, e->d_name, (size_t)(dot - e->d_name))) {
            memcpy(prefix, found, sizeof found);
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n;
}

static const char *has_too_many(const char *directory)
{
    char prefix[PRETRAIN_PATH_BYTES];
    return count_stores(prefix, directory, "") > 1
               ? "has several stores (PREFIX.idx and PREFIX.bin), and none is named train or train_*"
               : NULL;
}

/* The stores train and heldout, or train_* and heldout_*, are in one directory, or one store has both. */
static bool find_store(char prefix[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    const char *name = heldout ? "heldout" : "train";
    return has_store(prefix, directory, name, strlen(name)) ||
           count_stores(prefix, directory, heldout ? "heldout_" : "train_") == 1 ||
           count_stores(prefix, directory, "") == 1;
}

/* The last part of a path. */
static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool has_prefix(char prefix[PRETRAIN_PATH_BYTES], const char *path)
{
    const char *name = name_in(path);
    char directory[PRETRAIN_PATH_BYTES] = ".";
    if (name != path) {
        snprintf(directory, sizeof directory, "%.*s", (int)(name - 1 - path), path);
    }
    return *name != '\0' && has_store(prefix, directory, name, strlen(name));
}

static bool recognises(char place[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    char prefix[PRETRAIN_PATH_BYTES];
    snprintf(place, PRETRAIN_PATH_BYTES, "%s", directory);
    return find_store(prefix, directory, heldout);
}

static struct status find_heldout(bool *found, char place[PRETRAIN_PATH_BYTES],
                                  const struct pretrain_data *train)
{
    *found = recognises(place, train->place, true);
    return status_ok();
}

static enum part part_of(const struct pretrain_data *d, const struct pretrain_inputs *in)
{
    return d == &in->train ? PART_TRAIN : d == &in->heldout ? PART_HELDOUT : PART_TEST;
}

static const char *const part_names[N_PARTS] = {"training", "held-out", "test"};

/* Without a split this part has all sequences of a store. */
static struct status set_bounds(struct gpt_set *g, enum part part, const char *split)
{
    int64_t n = g->store.info.has_answers ? g->store.index.n_documents : g->store.index.n_sequences;
    if (split != NULL) {
        return sample_order_split(g->bounds, split, n);
    }
    for (int i = 0; i <= N_PARTS; i++) {
        g->bounds[i] = i > (int)part ? n : 0;
    }
    return status_ok();
}

/* Whether the default split leaves no documents to train on, or none held out: then tokens are split. */
static bool has_few_documents(const struct gpt_set *g, const char *split)
{
    const int64_t *b = g->bounds;
    return split == default_split && (b[PART_TRAIN] == b[PART_HELDOUT] || b[PART_HELDOUT] == b[PART_TEST]);
}

/* The last tokens are held out, enough for a window. */
static void split_tokens(struct token_windows *w, const struct gpt_set *g, enum part part)
{
    int64_t n = g->store.index.n_tokens;
    int64_t n_heldout = int_larger(n * HELDOUT_SHARE / (TRAIN_SHARE + HELDOUT_SHARE), w->length + 1);
    int64_t n_train = int_larger(n - n_heldout, 0);
    w->first = part == PART_TRAIN ? 0 : n_train;
    w->end = part == PART_TRAIN ? n_train : part == PART_HELDOUT ? n : n_train;
    if (part == PART_HELDOUT) {
        log_info("%s has too few documents to hold some out: the last %" PRId64 " of its %" PRId64
                 " tokens are held out",
                 g->prefix, n - n_train, n);
    }
}

/* Sets the range of tokens that is this part of the store.  STATUS_DATA: fewer than `least` windows. */
static struct status set_range(struct token_windows *w, const struct gpt_set *g, enum part part,
                               const char *split, int64_t least, bool by_documents)
{
    int64_t first = g->bounds[part], end = g->bounds[part + 1];
    w->first = w->of_answers ? first : indexed_offset(&g->store.index, first);
    w->end = w->of_answers ? end : indexed_offset(&g->store.index, end);
    if (!by_documents && !w->of_answers && has_few_documents(g, split)) {
        split_tokens(w, g, part);
    }
    FAIL_IF(w->of_answers && token_windows_count(w) < least, STATUS_DATA,
            "%s has %" PRId64 " %s examples of its %" PRId64 ": fewer than a batch of %" PRId64 "; give more",
            g->prefix, end - first, part_names[part], g->store.index.n_documents, least);
    FAIL_IF(token_windows_count(w) < least, STATUS_DATA,
            "%s has %" PRId64 " %s tokens in %" PRId64 " documents%s%s: fewer than a batch of %" PRId64
            " sequence%s of %" PRId64 " takes; give more text, or shorter sequences",
            g->prefix, w->end - w->first, part_names[part], end - first,
            split != NULL ? " by the split " : "", split != NULL ? split : "", least, least == 1 ? "" : "s",
            w->length);
    return status_ok();
}

/* Hash that is equal for equal samples: of the sizes, the range, and the first and last MiB of the tokens. */
static uint64_t id_of(const struct gpt_set *g, const struct token_windows *w)
{
    enum { MOST = 1 << 20 };
    size_t n = g->store.index.bin.n < MOST ? g->store.index.bin.n : MOST;
    uint64_t parts[] = {(uint64_t)g->store.index.n_sequences,
                        (uint64_t)g->store.index.n_tokens,
                        (uint64_t)w->first,
                        (uint64_t)w->end,
                        hash_fnv1a(g->store.index.bin.data, n),
                        hash_fnv1a((const char *)g->store.index.bin.data + g->store.index.bin.n - n, n)};
    return hash_fnv1a(parts, sizeof parts);
}

/* Split of the documents of one store; NULL: all of it is for this part.  A given split is that of the store
 * to train on, not of one with --eval_input_dir. */
static const char *split_of(const struct pretrain_data *d, enum part part, const char *prefix,
                            const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    char other[PRETRAIN_PATH_BYTES];
    if (own->split != NULL) {
        return strcmp(d->place, in->train.place) == 0 ? own->split : NULL;
    }
    bool is_shared = o->run.eval_steps > 0 && o->eval_input_dir == NULL &&
                     find_store(other, d->place, part == PART_TRAIN) && strcmp(other, prefix) == 0;
    return is_shared ? default_split : NULL;
}

/* Whether a part has an order: training does, and evaluations that take a known number of samples. */
static bool is_ordered(enum part part, const struct gpt_pretrain_options *own)
{
    return own->megatron_order && (part == PART_TRAIN || own->n_wanted[part] > 0);
}

/* Fewest windows that a set of this part must have; 0 where an order has its own message.  The last batch of
 * held-out windows need not be full. */
static int64_t least_of(const struct gpt_data *d, enum part part, const struct gpt_pretrain_options *own)
{
    bool says = own->split != NULL && is_ordered(part, own);
    return says ? 0 : part == PART_TRAIN && d->n_sets == 1 ? d->batches.micro_size : 1;
}

static struct token_windows windows_of(const struct gpt_set *g, const struct pretrain_inputs *in,
                                       const struct pretrain_options *o)
{
    return (struct token_windows){.index = &g->store.index,
                                  .path = g->prefix,
                                  .of_answers = g->store.info.has_answers,
                                  .length = o->run.batch.max_seq_length,
                                  .n_words = in->tokenizer.n > 0 ? in->tokenizer.n : in->model->n_words,
                                  .seed = (uint64_t)o->run.seed};
}

/* Samples of this part that a run takes, of all sets. */
static int64_t samples_of(enum part part, const struct pretrain_options *o)
{
    int64_t n = ((const struct gpt_pretrain_options *)o->own)->n_wanted[part];
    return n > 0 ? n : o->run.max_steps * o->run.batch.train_batch_size;
}

static struct status order_samples(struct gpt_data *d, int i, enum part part,
                                   const struct pretrain_options *o)
{
    static const char *const splits[N_PARTS] = {"train", "valid", "test"};
    struct gpt_set *g = &d->sets[i];
    int64_t n = samples_of(part, o);
    d->windows[i].order = &g->order.order;
    return gpt_order_plan(
        &g->order,
        &(struct sample_order_config){.sizes = g->store.index.sizes,
                                      .first = g->bounds[part],
                                      .end = g->bounds[part + 1],
                                      .n_wanted = d->n_sets > 1 ? set_blend_wanted(n, d->shares[i]) : n,
                                      .seq_length = o->run.batch.max_seq_length,
                                      .seed = (uint32_t)o->run.seed},
        name_in(g->prefix), splits[part]);
}

/* Names the samples by all sets and their shares. */
static void name_samples(struct pretrain_data *d, const struct gpt_data *g)
{
    uint64_t ids[2 * SET_BLEND_MOST_SETS] = {0};
    int64_t n_samples = 0;
    uint32_t sample = 0;
    size_t n = 0;
    for (int i = 0; i < g->n_sets; i++) {
        ids[2 * i] = id_of(&g->sets[i], &g->windows[i]);
        memcpy(&ids[2 * i + 1], &g->shares[i], sizeof ids[0]);
        n_samples += g->sets[i].order.order.n_samples;
        sample = file_map_sample(sample, &g->sets[i].store.index.bin, 1);
        sample = file_map_sample(sample, &g->sets[i].store.index.idx, 1);
    }
    uint64_t id = g->n_sets > 1 ? hash_fnv1a(ids, 2 * (size_t)g->n_sets * sizeof ids[0]) : ids[0];
    n += (size_t)snprintf(d->id, sizeof d->id, "tokens %016" PRIx64, id);
    if (g->n_sets > 1) {
        n += (size_t)snprintf(d->id + n, sizeof d->id - n, " of %d sets", g->n_sets);
    }
    if (g->windows->order != NULL) {
        n += (size_t)snprintf(d->id + n, sizeof d->id - n, " in Megatron-LM's order of %" PRId64 " samples",
                              n_samples);
    }
    snprintf(d->id + n, sizeof d->id - n, ", sample %08" PRIx32, sample);
}

/* A part that some sets have must be in all: their weights are of every part.  One set alone must have
 * documents to train on. */
static struct status check_part(const struct gpt_data *d, enum part part, const char *split)
{
    bool is_blend = d->n_sets > 1;
    for (int i = 0; i < d->n_sets && split != NULL && (is_blend || part == PART_TRAIN); i++) {
        const struct gpt_set *g = &d->sets[i];
        FAIL_IF(g->bounds[part] == g->bounds[part + 1], STATUS_DATA,
                "%s has no %s documents: the split %s of its %" PRId64
                " documents leaves none%s; change --split%s",
                g->prefix, part_names[part], split, g->store.index.n_sequences,
                is_blend ? ", but each set of a blend needs some" : "",
                is_blend ? ", or leave out the set" : "");
    }
    return status_ok();
}

/* Index files have the names of their stores. */
static struct status check_names(const struct gpt_data *d, const struct gpt_pretrain_options *own)
{
    for (int i = 1; i < d->n_sets && own->megatron_order; i++) {
        for (int k = 0; k < i; k++) {
            const char *one = d->sets[k].prefix, *other = d->sets[i].prefix;
            FAIL_IF(strcmp(one, other) != 0 && strcmp(name_in(one), name_in(other)) == 0, STATUS_USAGE,
                    "%s and %s have the same name, so their index files would have too: rename one, or give "
                    "--megatron_order false",
                    one, other);
        }
    }
    return status_ok();
}

static struct status create_data(struct gpt_data **out, const struct gpt_pretrain_options *own)
{
    struct gpt_data *d = *out = calloc(1, sizeof *d);
    size_t n = own->n_sets > 1 ? (size_t)own->n_sets : 1;
    if (d != NULL) {
        d->sets = calloc(n, sizeof *d->sets);
        d->windows = calloc(n, sizeof *d->windows);
        d->shares = calloc(n, sizeof *d->shares);
    }
    FAIL_IF(d == NULL || d->sets == NULL || d->windows == NULL || d->shares == NULL, STATUS_MEMORY,
            "out of memory for samples");
    d->n_sets = (int)n;
    d->shares[0] = 1;
    if (n > 1) {
        set_blend_shares(d->shares, own->set_weights, own->n_sets);
    }
    return status_ok();
}

static struct status open_set(struct gpt_data *d, int i, const struct pretrain_data *data,
                              const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    enum part part = part_of(data, in);
    struct gpt_set *g = &d->sets[i];
    const char *place = d->n_sets > 1 ? own->set_prefixes[i] : data->place;
    TRY((d->n_sets == 1 && find_store(g->prefix, place, part != PART_TRAIN)) || has_prefix(g->prefix, place)
            ? status_ok()
            : status_error(STATUS_DATA, "%s has no store of tokens", place));
    TRY(open_store(g, &in->tokenizer));
    FAIL_IF(g->store.info.has_answers && own->megatron_order, STATUS_DATA,
            "%s has prompts and answers, which kiln finetune-gpt trains on", g->prefix);
    d->windows[i] = windows_of(g, in, o);
    return set_bounds(g, part, split_of(data, part, g->prefix, in, o));
}

static struct status choose_samples(struct gpt_data *d, int i, const struct pretrain_data *data,
                                    const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    enum part part = part_of(data, in);
    const struct gpt_set *g = &d->sets[i];
    const char *split = split_of(data, part, g->prefix, in, o);
    TRY(set_range(&d->windows[i], g, part, split, least_of(d, part, own), own->megatron_order));
    return is_ordered(part, own) ? order_samples(d, i, part, o) : status_ok();
}

static struct status open_sets(struct gpt_data *d, const struct pretrain_data *data,
                               const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    enum part part = part_of(data, in);
    for (int i = 0; i < d->n_sets; i++) {
        TRY(open_set(d, i, data, in, o));
    }
    TRY(check_part(d, part, own->split));
    TRY(check_names(d, own));
    for (int i = 0; i < d->n_sets; i++) {
        TRY(choose_samples(d, i, data, in, o));
    }
    return d->n_sets > 1 ? set_blend_build(&d->blend, samples_of(part, o), d->shares, d->n_sets)
                         : status_ok();
}

static double steps_per_epoch(const struct gpt_data *d)
{
    int64_t n = 0;
    for (int i = 0; i < d->n_sets; i++) {
        n += token_windows_count(&d->windows[i]);
    }
    return (double)n / (double)d->batches.batch_size;
}

static struct status open(struct pretrain_data *d, const struct pretrain_inputs *in,
                          const struct pretrain_options *o)
{
    struct gpt_data *g;
    struct status created = create_data(&g, o->own);
    d->self = g;
    TRY(created);
    TRY(batch_check_cut(o->run.batch.train_batch_size, o->run.batch.gradient_accumulation_steps));
    g->batches = (struct window_batches){.sets = g->windows,
                                         .blend = g->n_sets > 1 ? &g->blend : NULL,
                                         .batch_size = o->run.batch.train_batch_size,
                                         .micro_size = o->run.batch.train_batch_size /
                                                       o->run.batch.gradient_accumulation_steps,
                                         .growth = o->growth,
                                         .n_groups = pretrain_groups(o)};
    TRY(open_sets(g, d, in, o));
    enum part part = part_of(d, in);
    bool is_checked = split_of(d, part, g->sets->prefix, in, o) == NULL || part == PART_TRAIN;
    d->store = says_tokenizer(g->sets) && is_checked ? &g->sets->store : NULL;
    memcpy(d->store_path, g->sets->prefix, sizeof g->sets->prefix);
    d->longest = o->run.batch.max_seq_length;
    d->source = window_batches_source(&g->batches, o->run.batch.gradient_accumulation_steps);
    d->steps_per_epoch = steps_per_epoch(g);
    d->n_tokens = d->steps_per_epoch * (double)(g->batches.batch_size * o->run.batch.max_seq_length);
    name_samples(d, g);
    return status_ok();
}

static struct status add_checks(const struct pretrain_data *d, struct store_check *check)
{
    const struct gpt_data *g = d->self;
    for (int i = 0; i < g->n_sets; i++) {
        TRY(store_check_add(check, &g->sets[i].store, g->sets[i].prefix));
    }
    return status_ok();
}

static void close(struct pretrain_data *d)
{
    struct gpt_data *g = d->self;
    if (g != NULL) {
        for (int i = 0; i < g->n_sets; i++) {
            gpt_order_close(&g->sets[i].order);
            close_store(&g->sets[i]);
        }
        set_blend_fini(&g->blend);
        free(g->sets);
        free(g->windows);
        free(g->shares);
    }
    free(g);
}

static void add_sizes(struct gpt_order_size *size, const struct pretrain_data *data)
{
    const struct gpt_data *d = data->self;
    for (int i = 0; d != NULL && i < d->n_sets; i++) {
        gpt_order_add_size(size, &d->sets[i].order);
    }
}

static void announce(const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    const struct gpt_data *d = in->train.self;
    struct gpt_order_size size = {0};
    for (int i = 0; i < d->n_sets; i++) {
        const struct gpt_set *g = &d->sets[i];
        char share[40] = "";
        if (d->n_sets > 1) {
            snprintf(share, sizeof share, ", %.4g of the samples", d->shares[i]);
        }
        char samples[80];
        snprintf(samples, sizeof samples,
                 d->windows[i].of_answers ? "%" PRId64 " examples of at most %" PRId64 " tokens"
                                          : "%" PRId64 " windows of %" PRId64,
                 token_windows_count(&d->windows[i]), o->run.batch.max_seq_length);
        log_info("data: %s: %" PRId64 " tokens in %" PRId64 " documents, %s to train on%s", g->prefix,
                 g->store.index.n_tokens, g->store.index.n_documents, samples, share);
    }
    add_sizes(&size, &in->train);
    add_sizes(&size, &in->heldout);
    add_sizes(&size, &in->test);
    gpt_order_announce(&size, o);
}

static struct status begin(struct pretrain_data *data, const struct pretrain_options *o)
{
    struct gpt_data *d = data->self;
    for (int i = 0; i < d->n_sets; i++) {
        TRY(gpt_order_open(&d->sets[i].order, o));
    }
    return status_ok();
}

static bool recognises_prefix(char place[PRETRAIN_PATH_BYTES], const char *path, bool heldout)
{
    char prefix[PRETRAIN_PATH_BYTES];
    (void)heldout;
    snprintf(place, PRETRAIN_PATH_BYTES, "%s", path);
    return has_prefix(prefix, path);
}

/* Whether the split gave this part documents of any set. */
static struct status find_part(bool *found, char place[PRETRAIN_PATH_BYTES],
                               const struct pretrain_data *train, enum part part)
{
    const struct gpt_data *d = train->self;
    *found = false;
    for (int i = 0; i < d->n_sets; i++) {
        *found = *found || d->sets[i].bounds[part + 1] > d->sets[i].bounds[part];
    }
    memcpy(place, train->place, PRETRAIN_PATH_BYTES);
    return status_ok();
}

static struct status find_heldout_part(bool *found, char place[PRETRAIN_PATH_BYTES],
                                       const struct pretrain_data *train)
{
    return find_part(found, place, train, PART_HELDOUT);
}

static struct status find_test_part(bool *found, char place[PRETRAIN_PATH_BYTES],
                                    const struct pretrain_data *train)
{
    return find_part(found, place, train, PART_TEST);
}

static const struct pretrain_source one_store = {.name = "store of tokens",
                                                 .needs_vocabulary = true,
                                                 .of_prefix = true,
                                                 .recognises = recognises_prefix,
                                                 .find_heldout = find_heldout_part,
                                                 .find_test = find_test_part,
                                                 .open = open,
                                                 .begin = begin,
                                                 .add_checks = add_checks,
                                                 .close = close,
                                                 .announce = announce};

static const struct pretrain_source token_store = {.name = "store of tokens",
                                                   .needs_vocabulary = false,
                                                   .recognises = recognises,
                                                   .find_heldout = find_heldout,
                                                   .open = open,
                                                   .begin = begin,
                                                   .close = close,
                                                   .announce = announce};

static const struct pretrain_source *const sources[] = {&token_store, &one_store, NULL};

static enum model_task task(const struct pretrain_options *o)
{
    (void)o;
    return MODEL_TASK_CAUSAL_LM;
}

static struct status assume(struct batch_limits *limits, const struct pretrain_options *o)
{
    *limits = text_batch_limits(o->run.batch.train_batch_size / o->run.batch.gradient_accumulation_steps,
                                o->run.batch.max_seq_length, o->run.batch.max_seq_length);
    return status_ok();
}

/* Counts no more tokens than the run trains on. */
static struct status count_ngrams(struct ngram_score *score, const struct pretrain_inputs *in,
                                  int64_t n_samples, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    const struct gpt_data *g = in->train.self, *h = in->heldout.self;
    struct batch_source heldout = window_batches_source(&h->batches, 1);
    int64_t of_run = pretrain_samples_at(o, o->run.max_steps + 1).before * o->run.batch.max_seq_length;
    int64_t n = o->total_training_time > 0 ? own->ngram_tokens : int_smaller(own->ngram_tokens, of_run);
    bool has_answers = g->windows->of_answers || h->windows->of_answers; /* these are no running text */
    return n > 0 && !has_answers
               ? gpt_counts_measure(score, g->windows, g->shares, g->n_sets, n, &heldout, n_samples)
               : status_ok();
}

/* 32 tokens, chosen as people try a small model, by the same random numbers at each evaluation. */
static struct status draw(struct buf *out, struct session *s, const char *prompt, uint64_t seed)
{
    const struct generate_options o = {
        .max_new_tokens = 32,
        .choice = {.temperature = 0.8, .top_k = 40, .top_p = 1, .repetition_penalty = 1},
        .context_shift = true,
        .seed = seed};
    return generate_one(out, s, prompt, strlen(prompt), &o);
}

#define DECODER                                                                                              \
    .foreign_task = MODEL_TASK_CAUSAL_LM, .sources = sources, .lacks = "has no PREFIX.idx and PREFIX.bin",   \
    .has_too_many = has_too_many, .wants = "a store of tokens in Megatron-LM's format", .task = task,        \
    .assume = assume, .sample = {.task = MODEL_TASK_CAUSAL_LM, .draw = draw}, .count_ngrams = count_ngrams

const struct pretrain_kind gpt2_pretrain = {.family = &gpt2_family, DECODER};
const struct pretrain_kind bloom_pretrain = {.family = &bloom_family, DECODER};
static const struct pretrain_kind others[] = {
    {.family = &gpt_neox_family, DECODER}, {.family = &tied_gpt_neox_family, DECODER},
    {.family = &llama_family, DECODER},    {.family = &tied_llama_family, DECODER},
    {.family = &mistral_family, DECODER},  {.family = &tied_mistral_family, DECODER},
    {.family = &qwen2_family, DECODER},    {.family = &tied_qwen2_family, DECODER},
    {.family = &qwen3_family, DECODER},    {.family = &tied_qwen3_family, DECODER},
    {.family = &olmo2_family, DECODER},    {.family = &tied_olmo2_family, DECODER},
    {.family = &smollm3_family, DECODER},  {.family = &tied_smollm3_family, DECODER},
    {.family = &phi3_family, DECODER},     {.family = &tied_phi3_family, DECODER}};

struct pretrain_kind gpt_pretrain_kind(const struct model_family *family)
{
    return (struct pretrain_kind){.family = family, DECODER};
}

const struct pretrain_kind *gpt_pretrain_find(const struct model_family *family)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (others[i].family == family) {
            return &others[i];
        }
    }
    return family == &gpt2_family ? &gpt2_pretrain : family == &bloom_family ? &bloom_pretrain : NULL;
}

/* Tokens that the longest document predicts. */
static int64_t find_longest(const struct indexed *x)
{
    int64_t longest = 0, begin = 0;
    for (int64_t i = 1; i <= x->n_documents; i++) {
        int64_t end = indexed_offset(x, indexed_first_sequence(x, i));
        longest = int_larger(longest, end - begin - 1);
        begin = end;
    }
    return longest;
}

struct status gpt_pretrain_measure(struct gpt_samples *s, const char *prefix, const char *split,
                                   int64_t length)
{
    struct gpt_set g = {0};
    snprintf(g.prefix, sizeof g.prefix, "%s", prefix);
    TRY(token_store_open_any(&g.store, prefix));
    struct token_windows w = {.length = length, .of_answers = g.store.info.has_answers};
    struct status status = set_bounds(&g, PART_TRAIN, split);
    status = failed(status) ? status : set_range(&w, &g, PART_TRAIN, split, 0, true);
    *s = (struct gpt_samples){.n_train = token_windows_count(&w),
                              .n_longest =
                                  w.of_answers ? int_smaller(find_longest(&g.store.index), length) : length,
                              .of_answers = w.of_answers,
                              .n_examples = w.of_answers ? g.store.index.n_documents : 0};
    token_store_close(&g.store);
    return status;
}
