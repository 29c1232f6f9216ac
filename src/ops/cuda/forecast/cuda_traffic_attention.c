/* cuda_traffic_attention: the launches of attention and its gradient (cuda_traffic.h), for each of their
 * kernels. */
#include "ops/cuda/forecast/cuda_traffic_parts.h"

#include "ops/workspace.h"

/* A kernel of attention: instructions of all threads together for a score, those that dropout adds, and those
 * that it adds instead with stored bits (ops/attention_bits.h): a forward draws and writes them, a gradient
 * reads them.  Scores that are computed twice count twice. */
struct attention_kernel {
    struct kernel kernel;
    double a_score, of_dropout, of_bits;
};

/* By enum launch_attention_kernel: forward; backward of sequences that one block holds; backward by keys and
 * by queries; backward in one pass.  Those of wgmma by keys, by queries and in clusters: 7,900, 5,330 and 9,110 a thread that
 * draws for 128 rows and eight times 64 others, 5,980, 3,490 and 7,200 that reads, less 45 or, in clusters, 55 for the copies of
 * each 64 (docs/numbers.md). */
static const struct attention_kernel FORWARDS[LAUNCH_ATTENTION_KERNELS] = {
    {{"attention_kernel", .3, .5}, 300, 10, 70}, /* drawn again for each word */
    {{"attention_mma_kernel", .57, .53}, 13, 6.2, 6.2},
    {{"attention_wgmma_kernel", .57, .53},
     8.6,
     6.9,
     6.9}, /* 990 a thread for 128 x 128 scores, written too */
};
/* What a thread of the last one runs once for a block of 128 queries. */
static const double FORWARD_ONCE = 450;

/* LAUNCH_ATTENTION_WGMMA for sequences that one block holds: the rows of the next piece are copied while a
 * block computes one (docs/decisions/0028_wgmma.md).  A thread runs 1,350 for 128 x 128 scores,
 * everything included. */
static const struct attention_kernel SHORT = {{"attention_wgmma_short_kernel", .86, .53}, 14.1, 7, 7};
/* LAUNCH_ATTENTION_WGMMA if it splits keys among warpgroups: a thread runs 560, copies and the sums of all
 * warpgroups included, and 424 for each 128 keys, which are 64 scores of its own. */
static const struct kernel SPLIT = {"attention_split_kernel", .57, .53};
static const double SPLIT_THREAD = 560, SPLIT_SCORE = 424. / 64;
/* 2,470 a thread that reads bits and 2,910 that draws, everything included.  The rows of the next piece are
 * copied during a quarter of that time, and a block waits 1 us of 12 for the rest: .50 instead of .53. */
static const struct attention_kernel WHOLES[LAUNCH_ATTENTION_KERNELS] = {
    [LAUNCH_ATTENTION_WGMMA] = {{"attention_wgmma_whole_kernel", .86, .50}, 37.7, 7.8, .9},
};
static const struct attention_kernel BY_KEYS[LAUNCH_ATTENTION_KERNELS] = {
    {{"key_gradient_kernel", .3, .5}, 600, 10, 10},
    {{"attention_mma_keys_kernel", .57, .53}, 31.5, 8.7, .9},
    {{"attention_wgmma_keys_kernel", .57, .53}, 21.6, 7.8, .4},
};
static const struct attention_kernel IN_CLUSTERS = {
    {"attention_wgmma_cluster_kernel", .57, .53}, 25.6, 8.1, .8};
static const struct attention_kernel BY_QUERIES[LAUNCH_ATTENTION_KERNELS] = {
    {{"query_gradient_kernel", .3, .5}, 400, 10, 10},
    {{"attention_mma_queries_kernel", .57, .53}, 20.8, 7.4, .1},
    {{"attention_wgmma_queries_kernel", .57, .53}, 12.1, 7.4, .1},
};

static enum launch_attention_kernel attention_kernel_of(const struct exec *x, tensor q)
{
    int64_t d = q.dims[2];
    int asked_for = traffic_of(x)->attention;
    if (asked_for != CUDA_TRAFFIC_ANY &&
        asked_for != LAUNCH_ATTENTION_CLUSTER) { /* which only gradients have */
        return (enum launch_attention_kernel)asked_for;
    }
    bool plain = q.dtype == DTYPE_F32 || (d != 32 && d != 64 && d != 96 && d != 128 && d != 160);
    return plain                 ? LAUNCH_ATTENTION_PLAIN
           : d == 64 || d == 128 ? LAUNCH_ATTENTION_WGMMA
                                 : LAUNCH_ATTENTION_MMA;
}

/* Scores of all heads. */
static double scores_of(const struct attention *a, tensor q)
{
    double pairs = a->n_pairs > 0 ? a->n_pairs : (double)q.dims[0] * (double)a->max_seqlen_kv;
    return pairs * (double)q.dims[1] * (a->causal ? 0.5 : 1.0);
}

/* Bytes of the bits that a kernel writes or reads: one bit for each existing score. */
static double bits_moved(const struct attention *a, tensor q)
{
    return a->dropout.p > 0 && !tensor_is_null(a->bits) ? scores_of(a, q) / 8 : 0;
}

static struct cuda_launch attention_launch(struct attention_kernel k, const struct attention *a, tensor q,
                                           double bytes, int64_t longest, int64_t tile)
{
    bool drops = a->dropout.p > 0, has_bits = drops && !tensor_is_null(a->bits);
    struct cuda_launch l = memory_launch(k.kernel, bytes);
    double d = (double)q.dims[2];
    double instructions = k.a_score + (has_bits ? k.of_bits : drops ? k.of_dropout : 0);
    int64_t sequences = tensor_count(a->cu_seqlens_q) - 1;
    int64_t filled = (q.dims[0] + tile - 1) / tile; /* sequences that only fill up the batch have no block */
    int64_t blocks = sequences * ((longest + tile - 1) / tile);
    l.instructions = scores_of(a, q) * instructions * (d > 64 ? 0.6 + 0.4 * d / 64 : 1);
    l.issue_share = k.kernel.issue_share;
    l.blocks = workspace_at_most(blocks, filled) * q.dims[1];
    return l;
}

enum { ATTENTION_TILE = 128, ATTENTION_THREADS = 256 };

/* Keys are split among four warpgroups of a block of 64 queries.  A block reads everything before it
 * computes. */
static void attend_split(const struct exec *x, const struct attention *a, tensor q, double bytes)
{
    enum { TILE = 64, THREADS = 512 };
    int64_t sequences = tensor_count(a->cu_seqlens_q) - 1, tiles = (a->max_seqlen_q + TILE - 1) / TILE;
    int64_t blocks = workspace_at_most(sequences * tiles, (q.dims[0] + TILE - 1) / TILE) * q.dims[1];
    struct cuda_launch l = memory_launch(SPLIT, bytes);
    l.instructions = scores_of(a, q) * SPLIT_SCORE + (double)(blocks * THREADS) * SPLIT_THREAD;
    l.issue_share = SPLIT.issue_share;
    l.blocks = 2 * blocks; /* other blocks are two warpgroups */
    l.early = true;
    l.waits = 1;
    tell(x, &l);
}

static bool splits_keys(const struct attention *a, tensor q)
{
    const struct launch_attention l = {.n_rows_q = q.dims[0],
                                       .n_sequences = tensor_count(a->cu_seqlens_q) - 1,
                                       .n_heads = q.dims[1],
                                       .head_size = q.dims[2],
                                       .max_seqlen_q = a->max_seqlen_q,
                                       .max_seqlen_kv = a->max_seqlen_kv,
                                       .dropout = {.threshold = a->dropout.p > 0}};
    return cuda_attention_splits_keys(&l);
}

void cuda_traffic_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                            struct attention a)
{
    if (tensor_count(a.cu_seqlens_q) <= 1) {
        cuda_traffic_clear_rows(x, out); /* all rows are after the last sequence */
        return;
    }
    enum launch_attention_kernel kernel = attention_kernel_of(x, q);
    double bytes =
        bytes_of(out) + bytes_of(lse) + bytes_of(q) + bytes_of(k) + bytes_of(v) + bits_moved(&a, q);
    if (kernel == LAUNCH_ATTENTION_WGMMA && splits_keys(&a, q)) {
        attend_split(x, &a, q, bytes);
        return;
    }
    bool is_short = kernel == LAUNCH_ATTENTION_WGMMA && a.max_seqlen_q <= ATTENTION_TILE &&
                    a.max_seqlen_kv <= ATTENTION_TILE;
    struct cuda_launch l =
        attention_launch(is_short ? SHORT : FORWARDS[kernel], &a, q, bytes, a.max_seqlen_q, ATTENTION_TILE);
    if (is_short) {
        l.first_bytes = (bytes_of(q) + bytes_of(k) + bytes_of(v)) / (double)l.blocks;
    } else if (kernel == LAUNCH_ATTENTION_WGMMA) {
        l.instructions += (double)(l.blocks * ATTENTION_THREADS) * FORWARD_ONCE;
    }
    tell(x, &l);
}

/* A call of attention_backward: bytes, bits of dropout and sums of columns of tiles among them. */
struct gradient_call {
    struct attention a;
    tensor q;
    double read, written, bits, of_dq, sums;
    int64_t longest;
};

static bool sums_in_tiles(enum launch_attention_kernel kernel)
{
    return kernel == LAUNCH_ATTENTION_WGMMA || kernel == LAUNCH_ATTENTION_CLUSTER;
}

/* Sums of columns of gradients: of each tile, by kernels that have them, then over tiles; else over the
 * matrices. */
static void sum_gradients(const struct exec *x, enum launch_attention_kernel kernel, double of_tiles,
                          tensor dq, tensor dk, tensor dv)
{
    if (sums_in_tiles(kernel)) {
        cuda_traffic_add_runs(x, of_tiles);
        return;
    }
    int64_t cols = dq.dims[1] * dq.dims[2];
    cuda_traffic_sum_columns(x, bytes_of(dq), dq.dims[0], cols);
    cuda_traffic_sum_columns(x, bytes_of(dk), dk.dims[0], cols);
    cuda_traffic_sum_columns(x, bytes_of(dv), dv.dims[0], cols);
}

/* Fills in the launches of a kernel in order; returns their number. */
static int launches_of_gradient(struct cuda_launch launches[MOST_LAUNCHES], const struct gradient_call *g,
                                enum launch_attention_kernel kernel)
{
    bool plain = kernel == LAUNCH_ATTENTION_PLAIN, wgmma = kernel == LAUNCH_ATTENTION_WGMMA;
    int64_t own = wgmma || (!plain && g->q.dims[2] <= 64) ? ATTENTION_TILE : 64;
    bool whole = !plain && g->longest <= own;
    struct attention none = g->a;
    int n = 0;
    none.n_pairs = 1;
    if (kernel == LAUNCH_ATTENTION_CLUSTER) {
        launches[n++] = attention_launch(IN_CLUSTERS, &g->a, g->q, g->read + g->written + g->bits + g->sums,
                                         g->a.max_seqlen_kv, ATTENTION_TILE);
        return n;
    }
    if (wgmma) { /* launched for any length: blocks of longer sequences exit at once */
        launches[n++] = attention_launch(WHOLES[kernel], whole ? &g->a : &none, g->q,
                                         whole ? g->read + g->written + g->bits + g->sums : 0, own, own);
        launches[n - 1].first_bytes = whole ? g->read / (double)launches[n - 1].blocks : 0;
    }
    struct cuda_launch by_queries = attention_launch(BY_QUERIES[kernel], &g->a, g->q,
                                                     g->read + g->bits + g->of_dq, g->a.max_seqlen_q, own);
    if (plain) {
        launches[n++] = by_queries;
    }
    if (!wgmma || !whole) {
        struct attention_kernel by_keys = BY_KEYS[kernel];
        by_keys.a_score *= whole ? 1.3 : 1; /* dq comes from the same scores */
        launches[n++] =
            attention_launch(by_keys, &g->a, g->q, g->read + g->written + g->bits + (wgmma ? g->sums : 0),
                             g->a.max_seqlen_kv, own);
    }
    if (!plain && !whole) {
        launches[n++] = by_queries;
    }
    return n;
}

/* Whether a device might choose clusters: if wgmma is possible, or they were asked for. */
static bool may_take_clusters(const struct exec *x, const struct gradient_call *g)
{
    int asked_for = traffic_of(x)->attention;
    return (asked_for == CUDA_TRAFFIC_ANY || asked_for == LAUNCH_ATTENTION_CLUSTER) &&
           attention_kernel_of(x, g->q) == LAUNCH_ATTENTION_WGMMA && g->longest > LAUNCH_ATTENTION_TILE &&
           g->longest <= LAUNCH_ATTENTION_CLUSTER_ROWS;
}

/* Reports the launches of the kernel with the least time, and returns that kernel. */
static enum launch_attention_kernel tell_gradient(const struct exec *x, const struct gradient_call *g)
{
    enum launch_attention_kernel kernel = attention_kernel_of(x, g->q);
    struct cuda_launch launches[MOST_LAUNCHES], in_clusters[MOST_LAUNCHES];
    int n = launches_of_gradient(launches, g, kernel);
    if (may_take_clusters(x, g)) {
        int n_clusters = launches_of_gradient(in_clusters, g, LAUNCH_ATTENTION_CLUSTER);
        if (traffic_of(x)->attention == LAUNCH_ATTENTION_CLUSTER ||
            seconds_of(x, in_clusters, n_clusters) < seconds_of(x, launches, n)) {
            kernel = LAUNCH_ATTENTION_CLUSTER;
            n = n_clusters;
            memcpy(launches, in_clusters, sizeof launches);
        }
    }
    for (int i = 0; i < n; i++) {
        tell(x, &launches[i]);
    }
    return kernel;
}

void cuda_traffic_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias,
                                     tensor dout, tensor out, tensor lse, tensor q, tensor k, tensor v,
                                     struct attention a)
{
    int64_t sequences = tensor_count(a.cu_seqlens_q) - 1;
    if (sequences == 0) {
        cuda_traffic_clear_rows(x, dq);
        cuda_traffic_clear_rows(x, dk);
        cuda_traffic_clear_rows(x, dv);
        return;
    }
    int64_t tiles = sequences * workspace_attention_tiles(a.max_seqlen_q, a.max_seqlen_kv);
    struct gradient_call g = {.a = a,
                              .q = q,
                              .read = bytes_of(dout) + bytes_of(out) + bytes_of(lse) + bytes_of(q) +
                                      bytes_of(k) + bytes_of(v),
                              .written = bytes_of(dq) + bytes_of(dk) + bytes_of(dv),
                              .bits = bits_moved(&a, q),
                              .of_dq = bytes_of(dq),
                              .sums = tensor_is_null(dbias) ? 0 : (double)tiles * bytes_of(dbias),
                              .longest = a.max_seqlen_q > a.max_seqlen_kv ? a.max_seqlen_q : a.max_seqlen_kv};
    enum launch_attention_kernel kernel = tell_gradient(x, &g);
    if (!tensor_is_null(dbias)) {
        sum_gradients(x, kernel, g.sums, dq, dk, dv);
    }
}
