#include "task/gpt/gpt_pretrain.h"

#include "core/hash.h"
#include "core/log.h"
#include "data/gpt/index_files.h"
#include "data/gpt/token_windows.h"
#include "data/text_batch.h"
#include "model/gpt/gpt_family.h"
#include "task/pretrain_inputs.h"
#include "task/pretrain_settings.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which documents are trained on, held out and kept for a test, where one store has all: as the 13B recipe
 * splits them. */
#define SPLIT "949,50,1"

enum part { PART_TRAIN, PART_HELDOUT, PART_TEST, N_PARTS };

/* The samples of one PREFIX.bin and PREFIX.idx, or of a part of its documents. */
struct gpt_data {
    char prefix[PRETRAIN_PATH_BYTES];
    int64_t bounds[N_PARTS + 1]; /* of the sequences of the parts, where one store has all */
    struct token_store store;    /* its index alone, of a store that has no PREFIX.json */
    struct token_windows windows;
    struct sample_order order; /* with megatron_order, of the training samples */
    bool is_open;
};

/* `kiln prepare` says in PREFIX.json with which tokenizer a store was made; preprocess_data.py does not. */
static bool says_tokenizer(const struct gpt_data *g)
{
    return g->store.info.vocab_size > 0;
}

static struct status open_store(struct gpt_data *g, const struct tokenizer *t)
{
    TRY(token_store_open_any(&g->store, g->prefix));
    g->is_open = true;
    return says_tokenizer(g) && t->n > 0 ? token_store_check_vocab(&g->store, g->prefix, t->hash, t->n)
                                         : status_ok();
}

static void close_store(struct gpt_data *g)
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

/* The only store of a directory; false if there is none, or several. */
static bool find_only_store(char prefix[PRETRAIN_PATH_BYTES], const char *directory)
{
    char found[PRETRAIN_PATH_BYTES];
    int n = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot != NULL && strcmp(dot, ".idx") == 0 &&
            has_store(found, directory, e->d_name, (size_t)(dot - e->d_name))) {
            memcpy(prefix, found, sizeof found);
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n == 1;
}

/* train and heldout lie beside each other, or one store has both. */
static bool find_store(char prefix[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    const char *name = heldout ? "heldout" : "train";
    return has_store(prefix, directory, name, strlen(name)) || find_only_store(prefix, directory);
}

static bool has_prefix(char prefix[PRETRAIN_PATH_BYTES], const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char directory[PRETRAIN_PATH_BYTES] = ".";
    if (slash != NULL) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
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

/* A store without ranges has all its sequences for this part. */
static struct status set_bounds(struct gpt_data *g, enum part part, const char *split)
{
    int64_t n = g->store.index.n_sequences;
    if (split != NULL) {
        return sample_order_split(g->bounds, split, n);
    }
    for (int i = 0; i <= N_PARTS; i++) {
        g->bounds[i] = i > (int)part ? n : 0;
    }
    return status_ok();
}

/* The tokens of the sequences that are this part of the store, at least so many windows. */
static struct status set_range(struct gpt_data *g, enum part part, const char *split, int64_t least)
{
    int64_t first = g->bounds[part], end = g->bounds[part + 1];
    g->windows.first = indexed_offset(&g->store.index, first);
    g->windows.end = indexed_offset(&g->store.index, end);
    if (token_windows_count(&g->windows) < least) {
        return status_error(
            STATUS_DATA,
            "%s has %" PRId64 " %s tokens in %" PRId64 " documents%s%s: fewer than a batch of %" PRId64
            " sequences of %" PRId64 " takes; give more text, or shorter sequences",
            g->prefix, g->windows.end - g->windows.first, part_names[part], end - first,
            split != NULL ? " by the split " : "", split != NULL ? split : "", least, g->windows.length);
    }
    return status_ok();
}

/* Equal for equal samples: of the sizes, and the ends of the tokens. */
static uint64_t id_of(const struct gpt_data *g)
{
    enum { MOST = 1 << 20 };
    size_t n = g->store.index.bin.n < MOST ? g->store.index.bin.n : MOST;
    uint64_t parts[] = {(uint64_t)g->store.index.n_sequences,
                        (uint64_t)g->store.index.n_tokens,
                        (uint64_t)g->windows.first,
                        (uint64_t)g->windows.end,
                        hash_fnv1a(g->store.index.bin.data, n),
                        hash_fnv1a((const char *)g->store.index.bin.data + g->store.index.bin.n - n, n)};
    return hash_fnv1a(parts, sizeof parts);
}

/* How the documents of one store are split; NULL: it is all for this part. */
static const char *split_of(const struct pretrain_data *d, enum part part, const char *prefix,
                            const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    char train[PRETRAIN_PATH_BYTES];
    bool is_shared = o->eval_steps > 0 && o->eval_input_dir == NULL && own->split == NULL &&
                     find_store(train, d->place, part == PART_TRAIN) && strcmp(train, prefix) == 0;
    return own->split != NULL ? own->split : is_shared ? SPLIT : NULL;
}

static struct token_windows windows_of(const struct gpt_data *g, const struct pretrain_inputs *in,
                                       const struct pretrain_options *o)
{
    return (struct token_windows){.index = &g->store.index,
                                  .path = g->prefix,
                                  .length = o->max_seq_length,
                                  .n_words = in->tokenizer.n > 0 ? in->tokenizer.n : in->model->n_words,
                                  .batch_size = o->train_batch_size,
                                  .micro_size = o->train_batch_size / o->gradient_accumulation_steps,
                                  .growth = o->growth,
                                  .n_groups = pretrain_groups(o),
                                  .seed = (uint64_t)o->seed};
}

/* The order of Megatron-LM's index files: from them if they are there.  Else it is computed, and the first
 * rank writes them. */
static struct status find_order(struct gpt_data *g, enum part part, const struct sample_order_config *c,
                                const struct pretrain_options *o)
{
    static const char *const splits[N_PARTS] = {"train", "valid", "test"};
    const char *directory = ((const struct gpt_pretrain_options *)o->own)->data_cache_path;
    const char *slash = strrchr(g->prefix, '/');
    char prefix[2 * PRETRAIN_PATH_BYTES];
    if (directory == NULL) {
        return sample_order_build(&g->order, c);
    }
    snprintf(prefix, sizeof prefix, "%s/%s", directory, slash == NULL ? g->prefix : slash + 1);
    if (index_files_exist(prefix, splits[part], c)) {
        log_info("the order of the %s samples is that of %s_%s_indexmap_*", part_names[part], prefix,
                 splits[part]);
        return index_files_read(&g->order, prefix, splits[part], c);
    }
    TRY(sample_order_build(&g->order, c));
    bool writes = rank_options_world(&o->ranks).rank == 0 && !o->dry_run;
    return writes ? index_files_write(&g->order, prefix, splits[part], c) : status_ok();
}

static struct status order_samples(struct gpt_data *g, enum part part, const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    int64_t n = own->n_wanted[part] > 0 ? own->n_wanted[part] : o->max_steps * o->train_batch_size;
    TRY(find_order(g, part,
                   &(struct sample_order_config){.sizes = g->store.index.sizes,
                                                 .first = g->bounds[part],
                                                 .end = g->bounds[part + 1],
                                                 .n_wanted = n,
                                                 .seq_length = o->max_seq_length,
                                                 .seed = (uint32_t)o->seed},
                   o));
    g->windows.order = &g->order;
    return status_ok();
}

static void name_samples(struct pretrain_data *d, const struct gpt_data *g)
{
    snprintf(d->id, sizeof d->id, "tokens %016" PRIx64, id_of(g));
    if (g->windows.order != NULL) {
        size_t n = strlen(d->id);
        snprintf(d->id + n, sizeof d->id - n, " in Megatron-LM's order of %" PRId64 " samples",
                 g->order.n_samples);
    }
}

static struct status open(struct pretrain_data *d, const struct pretrain_inputs *in,
                          const struct pretrain_options *o)
{
    const struct gpt_pretrain_options *own = o->own;
    enum part part = part_of(d, in);
    struct gpt_data *g = d->self = calloc(1, sizeof *g);
    TRY(g == NULL ? status_error(STATUS_MEMORY, "out of memory for samples") : status_ok());
    TRY(find_store(g->prefix, d->place, part != PART_TRAIN) || has_prefix(g->prefix, d->place)
            ? status_ok()
            : status_error(STATUS_DATA, "%s has no store of tokens", d->place));
    TRY(open_store(g, &in->tokenizer));
    TRY(batch_check_cut(o->train_batch_size, o->gradient_accumulation_steps));
    g->windows = windows_of(g, in, o);
    const char *split = split_of(d, part, g->prefix, o);
    bool is_ordered = part == PART_TRAIN ? own->megatron_order : own->split != NULL;
    TRY(set_bounds(g, part, split));
    TRY(set_range(g, part, split, own->split != NULL && is_ordered ? 0 : g->windows.micro_size));
    TRY(is_ordered ? order_samples(g, part, o) : status_ok());
    d->store = says_tokenizer(g) && (own->split == NULL || part == PART_TRAIN) ? &g->store : NULL;
    memcpy(d->store_path, g->prefix, sizeof g->prefix);
    d->longest = o->max_seq_length;
    d->source = token_windows_source(&g->windows, o->gradient_accumulation_steps);
    d->steps_per_epoch = (double)token_windows_count(&g->windows) / (double)o->train_batch_size;
    name_samples(d, g);
    return status_ok();
}

static void close(struct pretrain_data *d)
{
    struct gpt_data *g = d->self;
    if (g != NULL) {
        sample_order_fini(&g->order);
        close_store(g);
    }
    free(g);
}

static void announce(const struct pretrain_data *train, const struct pretrain_options *o)
{
    const struct gpt_data *g = train->self;
    log_info("data: %s: %" PRId64 " tokens in %" PRId64 " documents, %" PRId64 " windows of %" PRId64
             " to train on",
             g->prefix, g->store.index.n_tokens, g->store.index.n_documents, token_windows_count(&g->windows),
             o->max_seq_length);
}

static bool recognises_prefix(char place[PRETRAIN_PATH_BYTES], const char *path, bool heldout)
{
    char prefix[PRETRAIN_PATH_BYTES];
    (void)heldout;
    snprintf(place, PRETRAIN_PATH_BYTES, "%s", path);
    return has_prefix(prefix, path);
}

/* Whether the split gave this part documents. */
static struct status find_part(bool *found, char place[PRETRAIN_PATH_BYTES],
                               const struct pretrain_data *train, enum part part)
{
    const struct gpt_data *g = train->self;
    *found = g->bounds[part + 1] > g->bounds[part];
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
                                                 .recognises = recognises_prefix,
                                                 .find_heldout = find_heldout_part,
                                                 .find_test = find_test_part,
                                                 .open = open,
                                                 .close = close,
                                                 .announce = announce};

static const struct pretrain_source token_store = {.name = "store of tokens",
                                                   .needs_vocabulary = false,
                                                   .recognises = recognises,
                                                   .find_heldout = find_heldout,
                                                   .open = open,
                                                   .close = close,
                                                   .announce = announce};

static const struct pretrain_source *const sources[] = {&token_store, NULL};

static enum model_task task(const struct pretrain_options *o)
{
    (void)o;
    return MODEL_TASK_CAUSAL_LM;
}

static struct status assume(struct batch_limits *limits, const struct pretrain_options *o)
{
    *limits = text_batch_limits(o->train_batch_size / o->gradient_accumulation_steps, o->max_seq_length,
                                o->max_seq_length);
    return status_ok();
}

static const struct pretrain_source *const prefixes[] = {&one_store, NULL};
static const struct pretrain_flag_names megatron_names = {"--data-path", "--save", "--load",
                                                          "--micro-batch-size"};

#define DECODER                                                                                              \
    .foreign_task = MODEL_TASK_CAUSAL_LM, .wants = "a store of tokens in Megatron-LM's format",              \
    .task = task, .assume = assume
#define IN_DIRECTORY .sources = sources, .lacks = "has no PREFIX.idx and PREFIX.bin, or several", DECODER
#define OF_MEGATRON                                                                                          \
    .sources = prefixes, .lacks = "is not the PREFIX of PREFIX.idx and PREFIX.bin", .data_suffix = ".idx",   \
    .flags = &megatron_names, DECODER

const struct pretrain_kind gpt2_pretrain = {.family = &gpt2_family, IN_DIRECTORY};
const struct pretrain_kind bloom_pretrain = {.family = &bloom_family, IN_DIRECTORY};
const struct pretrain_kind megatron_gpt2_pretrain = {.family = &gpt2_family, OF_MEGATRON};
const struct pretrain_kind megatron_bloom_pretrain = {.family = &bloom_family, OF_MEGATRON};
