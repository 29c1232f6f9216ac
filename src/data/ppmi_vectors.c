#include "data/ppmi_vectors.h"

#include "core/parallel.h"
#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Distances, each on two sides; and rounds of the iteration.  With 256 columns and 10 million words the fifth
 * round rotates the middle one of the subspace's directions by 6 degrees, the weakest by 13. */
enum { N_DISTANCES = 2, N_SIDES = 2 * N_DISTANCES, N_ROUNDS = 5 };

enum { NO_TOKEN = -1 };

#define LEAST_SQUARE 1e-10 /* squared part of a direction outside those before it; less is rounding of fp32 */

/* The neighbours of each token on one side, as often as they stand there. */
struct neighbours {
    int64_t *first; /* [n_words + 1] */
    int32_t *tokens;
};

/* A square matrix [n_words, n_words] by rows, of the elements above 0. */
struct sparse {
    int64_t *first; /* [n_words + 1] */
    int32_t *columns;
    float *values;
};

struct ppmi {
    int64_t n_words, n_columns;
    int32_t *text; /* [n_text] the sentences that are counted, N_DISTANCES times NO_TOKEN after each */
    int64_t n_text;
    struct neighbours around[N_SIDES]; /* side 2k: k + 1 tokens ahead; side 2k + 1: as far back */
    struct sparse sides[N_SIDES];      /* matrices P_1, P_1^T, P_2, P_2^T */
    float *q, *w_w_q, *w_q;            /* [n_words, n_columns]: Q, W W^T Q, and P^T Q of one side */
    double *factor, *spread;           /* [n_columns, n_columns]: L, L C */
    double *cosines;                   /* [4 n_columns] cos(i pi / (2 n_columns)) */
};

static void *room(int64_t n, size_t element_bytes, struct status *s)
{
    void *p = calloc((size_t)(n > 0 ? n : 1), element_bytes);
    if (p == NULL && !failed(*s)) {
        *s = status_error(STATUS_MEMORY, "out of memory for word vectors: %lld elements of %zu bytes",
                          (long long)n, element_bytes);
    }
    return p;
}

/* ---- neighbours ---- */

static struct status check_tokens(const int32_t *ids, int64_t n, int64_t first, int64_t n_words)
{
    for (int64_t i = 0; i < n; i++) {
        FAIL_IF(ids[i] < 0 || ids[i] >= n_words, STATUS_DATA,
                "token %lld of the store has id %d, but the vocabulary has %lld words",
                (long long)(first + i), (int)ids[i], (long long)n_words);
    }
    return status_ok();
}

static struct status read_sentence(struct ppmi *p, const struct indexed *store, int64_t sentence)
{
    int64_t begin = indexed_offset(store, sentence), n = indexed_offset(store, sentence + 1) - begin;
    int32_t *ids = p->text + p->n_text;
    indexed_copy(store, ids, begin, n);
    for (int k = 0; k < N_DISTANCES; k++) {
        ids[n + k] = NO_TOKEN;
    }
    p->n_text += n + N_DISTANCES;
    return check_tokens(ids, n, begin, p->n_words);
}

/* Elements of the text of a document. */
static int64_t text_of(const struct indexed *store, int64_t document)
{
    int64_t first = indexed_first_sequence(store, document),
            end = indexed_first_sequence(store, document + 1);
    return indexed_offset(store, end) - indexed_offset(store, first) + N_DISTANCES * (end - first);
}

static struct status read_text(struct ppmi *p, const struct indexed *store)
{
    struct status s = status_ok();
    int64_t every = (store->n_tokens + PPMI_MOST_TOKENS - 1) / PPMI_MOST_TOKENS, most = 0;
    for (int64_t d = 0; d < store->n_documents; d += every) {
        most += text_of(store, d);
    }
    p->text = room(most, sizeof *p->text, &s);
    for (int64_t d = 0; d < store->n_documents; d += every) {
        int64_t end = indexed_first_sequence(store, d + 1);
        for (int64_t i = indexed_first_sequence(store, d); i < end && !failed(s); i++) {
            s = read_sentence(p, store, i);
        }
    }
    return s;
}

/* The neighbour of the token at place i of the text; NO_TOKEN at both ends of a sentence. */
static int32_t neighbour(const struct ppmi *p, int side, int64_t i)
{
    int64_t at = side % 2 == 0 ? i + side / 2 + 1 : i - side / 2 - 1;
    return p->text[i] == NO_TOKEN || at < 0 || at >= p->n_text ? NO_TOKEN : p->text[at];
}

/* Sorts by counting: `first` is moved up by one word while it counts, and again while rows are filled. */
static struct status find_neighbours(struct ppmi *p, int side)
{
    struct status s = status_ok();
    int64_t *first = room(p->n_words + 1, sizeof *first, &s);
    for (int64_t i = 0; i < p->n_text && first != NULL; i++) {
        if (neighbour(p, side, i) != NO_TOKEN) {
            first[p->text[i] + 1]++;
        }
    }
    for (int64_t a = 0; a < p->n_words && first != NULL; a++) {
        first[a + 1] += first[a];
    }
    int32_t *tokens = room(first == NULL ? 0 : first[p->n_words], sizeof *tokens, &s);
    p->around[side] = (struct neighbours){first, tokens};
    TRY(s);
    for (int64_t i = 0; i < p->n_text; i++) {
        int32_t b = neighbour(p, side, i);
        if (b != NO_TOKEN) {
            tokens[first[p->text[i]]++] = b;
        }
    }
    memmove(first + 1, first, (size_t)p->n_words * sizeof *first);
    first[0] = 0;
    return s;
}

/* ---- P of a side ---- */

/* Appends row a.  `counts` is 0 for all words, before and after. */
static void add_row(const struct ppmi *p, struct sparse *m, int side, int64_t a, int32_t *counts)
{
    const struct neighbours *around = &p->around[side], *mirrored = &p->around[side ^ 1];
    int64_t begin = around->first[a], end = around->first[a + 1], n = m->first[a];
    double all = (double)around->first[p->n_words];
    for (int64_t i = begin; i < end; i++) {
        counts[around->tokens[i]]++;
    }
    for (int64_t i = begin; i < end; i++) {
        int32_t b = around->tokens[i];
        double of_a = (double)(end - begin), of_b = (double)(mirrored->first[b + 1] - mirrored->first[b]);
        double information = counts[b] == 0 ? 0 : log(counts[b] * all / (of_a * of_b));
        counts[b] = 0;
        if (information > 0) {
            m->columns[n] = b;
            m->values[n++] = (float)information;
        }
    }
    m->first[a + 1] = n;
}

static struct status weigh_side(struct ppmi *p, int side)
{
    struct status s = status_ok();
    struct sparse *m = &p->sides[side];
    int64_t most = p->around[side].first[p->n_words];
    int32_t *counts = room(p->n_words, sizeof *counts, &s);
    *m = (struct sparse){room(p->n_words + 1, sizeof *m->first, &s), room(most, sizeof *m->columns, &s),
                         room(most, sizeof *m->values, &s)};
    for (int64_t a = 0; a < p->n_words && !failed(s); a++) {
        add_row(p, m, side, a, counts);
    }
    free(counts);
    return s;
}

static void free_neighbours(struct neighbours *n)
{
    free(n->first);
    free(n->tokens);
    *n = (struct neighbours){0};
}

static struct status weigh_distance(struct ppmi *p, int side)
{
    TRY(find_neighbours(p, side));
    TRY(find_neighbours(p, side + 1));
    TRY(weigh_side(p, side));
    TRY(weigh_side(p, side + 1));
    free_neighbours(&p->around[side]);
    free_neighbours(&p->around[side + 1]);
    return status_ok();
}

/* ---- Q: columns that become orthonormal and span those of W W^T Q; Q L with L L^T = Q^T W W^T Q: the
 * vectors ---- */

struct product {
    struct ppmi *p;
    const struct sparse *m;
    float *out;
    const float *in;
};

/* out += m in, of every n_parts-th row: frequent words come first, and have the long ones. */
static void add_product(void *context, int part, int n_parts)
{
    const struct product *of = context;
    int64_t n = of->p->n_columns;
    for (int64_t a = part; a < of->p->n_words; a += n_parts) {
        float *restrict out = of->out + a * n;
        for (int64_t i = of->m->first[a]; i < of->m->first[a + 1]; i++) {
            const float *restrict in = of->in + of->m->columns[i] * n;
            float value = of->m->values[i];
            for (int64_t c = 0; c < n; c++) {
                out[c] += value * in[c];
            }
        }
    }
}

static void multiply(struct ppmi *p)
{
    size_t bytes = (size_t)(p->n_words * p->n_columns) * sizeof *p->q;
    memset(p->w_w_q, 0, bytes);
    for (int side = 0; side < N_SIDES; side++) {
        memset(p->w_q, 0, bytes);
        parallel_run(add_product, &(struct product){p, &p->sides[side ^ 1], p->w_q, p->q});
        parallel_run(add_product, &(struct product){p, &p->sides[side], p->w_w_q, p->w_q});
    }
}

struct squares {
    struct ppmi *p;
    const float *left; /* [n_words, n_columns] */
};

/* Rows of the lower half of left^T W W^T Q. */
static void add_squares(void *context, int part, int n_parts)
{
    const struct squares *of = context;
    const struct ppmi *p = of->p;
    int64_t n = p->n_columns;
    for (int64_t a = 0; a < p->n_words; a++) {
        const float *restrict x = p->w_w_q + a * n, *restrict left = of->left + a * n;
        for (int64_t i = part; i < n; i += n_parts) {
            double *restrict row = p->factor + i * n, of_row = left[i];
            for (int64_t j = 0; j <= i; j++) {
                row[j] += of_row * x[j];
            }
        }
    }
}

/* Factorizes m in its own memory: the lower half becomes L, with L L^T the former m.  Where a text has fewer
 * directions than columns, the others are 0. */
static void factorize(double *m, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double square = m[i * n + i];
        for (int64_t j = 0; j <= i; j++) {
            double rest = m[i * n + j], pivot = m[j * n + j];
            for (int64_t k = 0; k < j; k++) {
                rest -= m[i * n + k] * m[j * n + k];
            }
            if (i == j) {
                m[i * n + i] = rest > LEAST_SQUARE * square ? sqrt(rest) : 0;
            } else {
                m[i * n + j] = pivot > 0 ? rest / pivot : 0;
            }
        }
    }
}

/* The factor L of left^T W W^T Q = L L^T. */
static void find_factor(struct ppmi *p, const float *left)
{
    memset(p->factor, 0, (size_t)(p->n_columns * p->n_columns) * sizeof *p->factor);
    parallel_run(add_squares, &(struct squares){p, left});
    factorize(p->factor, p->n_columns);
}

/* Q of a row, from L Q^T = (W W^T Q)^T. */
static void solve_rows(void *context, int part, int n_parts)
{
    struct ppmi *p = context;
    int64_t n = p->n_columns;
    for (int64_t a = part; a < p->n_words; a += n_parts) {
        const float *x = p->w_w_q + a * n;
        float *q = p->q + a * n;
        for (int64_t i = 0; i < n; i++) {
            double rest = x[i];
            for (int64_t k = 0; k < i; k++) {
                rest -= p->factor[i * n + k] * q[k];
            }
            double pivot = p->factor[i * n + i];
            q[i] = (float)(pivot > 0 ? rest / pivot : 0);
        }
    }
}

static struct status find_subspace(struct ppmi *p, uint64_t seed)
{
    struct status s = status_ok();
    int64_t n = p->n_words * p->n_columns;
    p->q = room(n, sizeof *p->q, &s);
    p->w_w_q = room(n, sizeof *p->w_w_q, &s);
    p->w_q = room(n, sizeof *p->w_q, &s);
    p->factor = room(p->n_columns * p->n_columns, sizeof *p->factor, &s);
    p->spread = room(p->n_columns * p->n_columns, sizeof *p->spread, &s);
    p->cosines = room(4 * p->n_columns, sizeof *p->cosines, &s);
    for (int64_t i = 0; i < 4 * p->n_columns && !failed(s); i++) {
        p->cosines[i] = cos((double)i * acos(-1) / (double)(2 * p->n_columns));
    }
    for (int64_t i = 0; i < n && !failed(s); i++) {
        p->q[i] = (float)rng_normal(seed, (uint64_t)i);
    }
    for (int i = 0; i < N_ROUNDS && !failed(s); i++) {
        multiply(p);
        find_factor(p, p->w_w_q);
        parallel_run(solve_rows, p);
    }
    return s;
}

/* L C, with C orthogonal, that of a discrete cosine transform.  Columns of Q are nearly the singular vectors,
 * the leading ones first, so the first columns of Q L have most of the vectors' squares; in Q L C all columns
 * have about the same share, as optimizers that scale each element by itself need it. */
static void spread_columns(void *context, int part, int n_parts)
{
    const struct ppmi *p = context;
    int64_t n = p->n_columns;
    for (int64_t i = part; i < n; i += n_parts) {
        const double *restrict from = p->factor + i * n;
        double *restrict to = p->spread + i * n;
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k <= i; k++) {
                sum += from[k] * p->cosines[(2 * k + 1) * j % (4 * n)] * (j == 0 ? sqrt(0.5) : 1);
            }
            to[j] = sum * sqrt(2.0 / (double)n);
        }
    }
}

struct rows {
    const struct ppmi *p;
    float *vectors;
};

/* Rows of Q L C, of length 1; 0 stays 0. */
static void set_vectors(void *context, int part, int n_parts)
{
    const struct rows *of = context;
    int64_t n = of->p->n_columns;
    for (int64_t a = part; a < of->p->n_words; a += n_parts) {
        float *restrict v = of->vectors + a * n;
        double squares = 0;
        memset(v, 0, (size_t)n * sizeof *v);
        for (int64_t i = 0; i < n; i++) {
            const double *restrict l = of->p->spread + i * n;
            double q = of->p->q[a * n + i];
            for (int64_t j = 0; j < n; j++) {
                v[j] += (float)(q * l[j]);
            }
        }
        for (int64_t j = 0; j < n; j++) {
            squares += (double)v[j] * v[j];
        }
        for (int64_t j = 0; j < n && squares > 0; j++) {
            v[j] = (float)(v[j] / sqrt(squares));
        }
    }
}

static void free_all(struct ppmi *p)
{
    for (int side = 0; side < N_SIDES; side++) {
        free_neighbours(&p->around[side]);
        free(p->sides[side].first);
        free(p->sides[side].columns);
        free(p->sides[side].values);
    }
    free(p->text);
    free(p->q);
    free(p->w_w_q);
    free(p->w_q);
    free(p->factor);
    free(p->spread);
    free(p->cosines);
}

struct status ppmi_vectors(float *vectors, const struct indexed *store, int64_t n_words, int64_t n_columns,
                           uint64_t seed)
{
    struct ppmi p = {.n_words = n_words, .n_columns = n_columns};
    struct status s = read_text(&p, store);
    for (int side = 0; side < N_SIDES && !failed(s); side += 2) {
        s = weigh_distance(&p, side);
    }
    free(p.text);
    p.text = NULL;
    s = failed(s) ? s : find_subspace(&p, seed);
    if (!failed(s)) {
        multiply(&p);
        find_factor(&p, p.q);
        parallel_run(spread_columns, &p);
        parallel_run(set_vectors, &(struct rows){&p, vectors});
    }
    free_all(&p);
    return s;
}
