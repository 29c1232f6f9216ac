#include "ops/cuda/choice/attention_choice.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *served_by;
} KERNELS[LAUNCH_ATTENTION_KERNELS] = {
    [LAUNCH_ATTENTION_PLAIN] = {"plain", "own kernel, cuda: plain attention"},
    [LAUNCH_ATTENTION_MMA] = {"mma.sync", "own kernel, cuda: attention by mma.sync"},
    [LAUNCH_ATTENTION_WGMMA] = {"wgmma", "own kernel, cuda: attention by wgmma"},
    [LAUNCH_ATTENTION_CLUSTER] = {"cluster", "own kernel, cuda: attention by wgmma in clusters"},
};

static const char *const TYPES[] = {[LAUNCH_F32] = "fp32", [LAUNCH_BF16] = "bf16", [LAUNCH_F16] = "fp16"};

static const char VARIABLE[] = "KILN_ATTENTION";

enum {
    N_TYPES = 3,
    NAMES_BYTES = 16 * LAUNCH_ATTENTION_KERNELS,
    LIST_BYTES = 8 * NAMES_BYTES,
    GROUPS_BYTES = 40,
    MOST_LINES = 16
};

const char *attention_kernel_name(enum launch_attention_kernel kernel)
{
    return KERNELS[kernel].name;
}

const char *attention_served_by(enum launch_attention_kernel kernel)
{
    return KERNELS[kernel].served_by;
}

/* Names with something between them. */
static void join_names(char names[NAMES_BYTES], const struct attention_candidates *a, const char *between)
{
    int used = 0;
    names[0] = '\0';
    for (int i = 0; i < a->n && used < NAMES_BYTES; i++) {
        used += snprintf(names + used, (size_t)(NAMES_BYTES - used), "%s%s", i > 0 ? between : "",
                         attention_kernel_name(a->kernels[i]));
    }
}

struct status attention_kernel_asked_for(int *kernel)
{
    const char *name = getenv(VARIABLE);
    struct attention_candidates all = {0};
    char names[NAMES_BYTES];
    *kernel = ATTENTION_ANY;
    if (name == NULL || name[0] == '\0') {
        return status_ok();
    }
    for (int i = 0; i < LAUNCH_ATTENTION_KERNELS; i++) {
        all.kernels[all.n++] = (enum launch_attention_kernel)i;
        *kernel = strcmp(name, KERNELS[i].name) == 0 ? i : *kernel;
    }
    join_names(names, &all, ", ");
    return *kernel != ATTENTION_ANY
               ? status_ok()
               : status_error(STATUS_USAGE, "%s=%.40s: no kernel of attention is called that; there are %s",
                              VARIABLE, name, names);
}

bool attention_is_aligned(const struct attention_call *c)
{
    enum { ALIGNMENT = 16 };
    const struct launch_attention_rows *r = &c->rows;
    const struct launch_rows all[] = {r->q, r->k, r->v, r->out, r->dout, r->dq, r->dk, r->dv};
    int64_t bytes = c->type == LAUNCH_F32 ? 4 : 2;
    bool aligned = true;
    for (int i = 0; i < 8; i++) {
        aligned &= (uintptr_t)all[i].data % ALIGNMENT == 0 && all[i].stride * bytes % ALIGNMENT == 0;
    }
    return aligned;
}

struct attention_candidates attention_candidates_of(struct launch_attention_form form, int asked_for)
{
    struct attention_candidates a = {1, {LAUNCH_ATTENTION_PLAIN}};
    if (asked_for != ATTENTION_ANY && cuda_attention_fits((enum launch_attention_kernel)asked_for, &form)) {
        a.kernels[0] = (enum launch_attention_kernel)asked_for;
        return a;
    }
    int n = 0;
    for (int i = LAUNCH_ATTENTION_PLAIN + 1; i < LAUNCH_ATTENTION_KERNELS; i++) {
        if (cuda_attention_fits((enum launch_attention_kernel)i, &form)) {
            a.kernels[n++] = (enum launch_attention_kernel)i;
        }
    }
    a.n = n > 0 ? n : 1;
    return a;
}

bool attention_is_candidate(const struct attention_candidates *a, int kernel)
{
    bool found = false;
    for (int i = 0; i < a->n; i++) {
        found |= (int)a->kernels[i] == kernel;
    }
    return found;
}

/* "MACHINE\tattention backward bf16, 16 heads of 64, 8192x8192 rows, 64 sequences up to 128x128, dropout,
 * aligned, of mma.sync wgmma"; "16 heads of 64 that share 4" if those have keys and values. */
void attention_key(char key[PRODUCT_KEY_BYTES], const char *machine, const struct attention_call *c,
                   const struct attention_candidates *a)
{
    const struct launch_attention *s = &c->sizes;
    char names[NAMES_BYTES], groups[GROUPS_BYTES] = "", window[GROUPS_BYTES] = "";
    join_names(names, a, " ");
    if (s->window > 0) {
        snprintf(window, sizeof window, ", window %d", s->window);
    }
    if (s->n_kv_heads != s->n_heads) {
        snprintf(groups, sizeof groups, " that share %lld", (long long)s->n_kv_heads);
    }
    snprintf(key, PRODUCT_KEY_BYTES,
             "%s\tattention %s %s, %lld heads of %lld%s, %lldx%lld rows, %lld sequences up to "
             "%lldx%lld%s%s%s%s%s%s%s, of %s",
             machine, c->backward ? "backward" : "forward", TYPES[c->type], (long long)s->n_heads,
             (long long)s->head_size, groups, (long long)s->n_rows_q, (long long)s->n_rows_kv,
             (long long)s->n_sequences, (long long)s->max_seqlen_q, (long long)s->max_seqlen_kv,
             s->causal ? ", causal" : "", window, s->slopes != NULL ? ", slopes" : "",
             s->dropout.threshold > 0 ? ", dropout" : "", s->bits != NULL ? ", bits" : "",
             c->rows.dbias != NULL ? ", sums" : "", attention_is_aligned(c) ? ", aligned" : "", names);
}

const char *attention_served_why(const struct attention_call *c, enum launch_attention_kernel kernel,
                                 int asked_for)
{
    if ((int)kernel == asked_for) {
        return "KILN_ATTENTION asks for it";
    }
    return kernel != LAUNCH_ATTENTION_PLAIN ? NULL
           : c->type == LAUNCH_F32          ? "fp32 has no kernel with matrix instructions"
           : attention_is_aligned(c)        ? "this head size has no kernel with matrix instructions"
                                            : "rows do not begin at 16 bytes";
}

int64_t attention_count_kept(const struct product_cache *cache, const char *machine)
{
    return product_cache_count(cache, machine, "attention ");
}

/* A text that is cut off at the end of its buffer. */
struct text {
    char *at;
    size_t n;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(t->at, t->n, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length < t->n ? (size_t)length : t->n > 0 ? t->n - 1 : 0;
    t->at += used;
    t->n -= used;
}

/* The shape of a row of attention on this machine, without the first word; NULL of another row. */
static const char *shape_of(const struct product_row *row, const char *machine)
{
    static const char first[] = "\tattention ";
    size_t length = strlen(machine);
    bool is_of = strncmp(row->key, machine, length) == 0 &&
                 strncmp(row->key + length, first, sizeof first - 1) == 0 &&
                 row->choice.form < LAUNCH_ATTENTION_KERNELS;
    return is_of ? row->key + length + sizeof first - 1 : NULL;
}

static void describe_winners(struct text *t, const struct product_cache *cache, const char *machine)
{
    int64_t won[LAUNCH_ATTENTION_KERNELS] = {0};
    for (int64_t i = 0; i < cache->rows.n; i++) {
        const struct product_row *row = &cache->rows.rows[i];
        if (shape_of(row, machine) != NULL) {
            won[row->choice.form]++;
        }
    }
    add(t, "attention: %lld shapes timed on this GPU", (long long)attention_count_kept(cache, machine));
    for (int i = 0; i < LAUNCH_ATTENTION_KERNELS; i++) {
        if (won[i] > 0) {
            add(t, ", %s won %lld", KERNELS[i].name, (long long)won[i]);
        }
    }
}

static void describe_rows(struct text *t, const struct product_cache *cache, const char *machine)
{
    int64_t n = 0;
    for (int64_t i = 0; i < cache->rows.n; i++) {
        const struct product_row *row = &cache->rows.rows[i];
        const char *shape = shape_of(row, machine);
        if (shape != NULL && n++ < MOST_LINES) {
            add(t, "\n  %s: %s, %.1f us", shape, KERNELS[row->choice.form].name, row->choice.micros);
        }
    }
    if (n > MOST_LINES) {
        add(t, "\n  and %lld more", (long long)(n - MOST_LINES));
    }
}

/* Lists the candidates for rows that begin at 16 bytes, forward and, where they differ, backward: there are
 * most for sequences of one tile to four. */
static void list_candidates(struct text *t, int64_t head_size, int asked_for)
{
    const int64_t longest = LAUNCH_ATTENTION_CLUSTER_ROWS;
    for (int type = 0; type < N_TYPES; type++) {
        struct attention_candidates a;
        char forward[NAMES_BYTES], backward[NAMES_BYTES];
        struct launch_attention_form form = {(enum launch_type)type, head_size, longest, .aligned = true};
        a = attention_candidates_of(form, asked_for);
        join_names(forward, &a, " or ");
        form.backward = true;
        a = attention_candidates_of(form, asked_for);
        join_names(backward, &a, " or ");
        add(t, "%s%s %s", type > 0 ? ", " : "", TYPES[type], forward);
        if (strcmp(forward, backward) != 0) {
            add(t, " (backward of %lld tokens %s)", (long long)longest, backward);
        }
    }
}

/* One line for neighbouring head sizes with the same candidates. */
static void describe_candidates(struct text *t, int asked_for)
{
    enum { SIZES = 5 };
    static const int sizes[SIZES] = {32, 64, 96, 128, 160};
    char lists[SIZES][LIST_BYTES];
    for (int i = 0; i < SIZES; i++) {
        struct text list = {lists[i], LIST_BYTES};
        list_candidates(&list, sizes[i], asked_for);
    }
    for (int i = 0; i < SIZES; i++) {
        bool begins = i == 0 || strcmp(lists[i - 1], lists[i]) != 0;
        bool ends = i == SIZES - 1 || strcmp(lists[i], lists[i + 1]) != 0;
        add(t, begins ? "\nattention of a new shape, heads of %d" : ", %d", sizes[i]);
        if (ends) {
            add(t, ": %s", lists[i]);
        }
    }
}

void attention_describe(char *text, size_t n, const struct product_cache *cache, const char *machine)
{
    struct text t = {text, n};
    int asked_for;
    struct status s = attention_kernel_asked_for(&asked_for);
    text[0] = '\0';
    describe_winners(&t, cache, machine);
    describe_rows(&t, cache, machine);
    describe_candidates(&t, asked_for);
    if (failed(s)) {
        add(&t, "\n%s", s.message);
    } else if (asked_for != ATTENTION_ANY) {
        add(&t, "\n%s asks for %s wherever it fits", VARIABLE, KERNELS[asked_for].name);
    }
}
