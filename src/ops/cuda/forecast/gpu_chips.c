#include "ops/cuda/forecast/gpu_chips.h"

#include "core/fp8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One H200, cuBLASLt 13.1, the best of the heuristic's eight candidates, random data, bias epilogue in QKV and FF1
 * (docs/numbers.md).  At hidden sizes of 1,600 and 2,560 only the sum over a layer's products was recorded:
 * each product has its mean. */
#define MEAN(fp8, t, h, f, rate)                                                                             \
    {CUDA_FORWARD, fp8, t, 3 * (h), h, rate}, {CUDA_FORWARD, fp8, t, h, h, rate},                            \
        {CUDA_FORWARD, fp8, t, f, h, rate}, {CUDA_FORWARD, fp8, t, h, f, rate},                              \
        {CUDA_INPUT_GRADIENT, fp8, t, f, h, rate}, {CUDA_INPUT_GRADIENT, fp8, t, h, f, rate},                \
        {CUDA_INPUT_GRADIENT, fp8, t, h, h, rate}, {CUDA_INPUT_GRADIENT, fp8, t, h, 3 * (h), rate},          \
        {CUDA_WEIGHT_GRADIENT, fp8, f, h, t, rate}, {CUDA_WEIGHT_GRADIENT, fp8, h, f, t, rate},              \
        {CUDA_WEIGHT_GRADIENT, fp8, h, h, t, rate},                                                          \
    {                                                                                                        \
        CUDA_WEIGHT_GRADIENT, fp8, 3 * (h), h, t, rate                                                       \
    }

static const struct gpu_product h200_products[] = {
    {CUDA_FORWARD, false, 32768, 3072, 1024, 731},
    {CUDA_FORWARD, true, 32768, 3072, 1024, 966},
    {CUDA_FORWARD, false, 32768, 1024, 1024, 713},
    {CUDA_FORWARD, true, 32768, 1024, 1024, 1036},
    {CUDA_FORWARD, false, 32768, 4096, 1024, 637},
    {CUDA_FORWARD, true, 32768, 4096, 1024, 1080},
    {CUDA_FORWARD, false, 32768, 1024, 4096, 682},
    {CUDA_FORWARD, true, 32768, 1024, 4096, 1359},
    {CUDA_INPUT_GRADIENT, false, 32768, 4096, 1024, 744},
    {CUDA_INPUT_GRADIENT, true, 32768, 4096, 1024, 1038},
    {CUDA_INPUT_GRADIENT, false, 32768, 1024, 4096, 681},
    {CUDA_INPUT_GRADIENT, true, 32768, 1024, 4096, 1334},
    {CUDA_INPUT_GRADIENT, false, 32768, 1024, 1024, 698},
    {CUDA_INPUT_GRADIENT, true, 32768, 1024, 1024, 893},
    {CUDA_INPUT_GRADIENT, false, 32768, 1024, 3072, 732},
    {CUDA_INPUT_GRADIENT, true, 32768, 1024, 3072, 1250},
    {CUDA_WEIGHT_GRADIENT, false, 4096, 1024, 32768, 807},
    {CUDA_WEIGHT_GRADIENT, true, 4096, 1024, 32768, 1289},
    {CUDA_WEIGHT_GRADIENT, false, 1024, 4096, 32768, 698},
    {CUDA_WEIGHT_GRADIENT, true, 1024, 4096, 32768, 1406},
    {CUDA_WEIGHT_GRADIENT, false, 1024, 1024, 32768, 662},
    {CUDA_WEIGHT_GRADIENT, true, 1024, 1024, 32768, 1120},
    {CUDA_WEIGHT_GRADIENT, false, 3072, 1024, 32768, 768},
    {CUDA_WEIGHT_GRADIENT, true, 3072, 1024, 32768, 1332},
    {CUDA_FORWARD, false, 8192, 4096, 1024, 729},
    {CUDA_FORWARD, false, 8192, 1024, 4096, 703},
    {CUDA_FORWARD, false, 8192, 3072, 1024, 597},
    {CUDA_FORWARD, false, 8192, 1024, 1024, 521},
    {CUDA_INPUT_GRADIENT, false, 8192, 4096, 1024, 751},
    {CUDA_INPUT_GRADIENT, false, 8192, 1024, 4096, 713},
    {CUDA_INPUT_GRADIENT, false, 8192, 1024, 1024, 579},
    {CUDA_INPUT_GRADIENT, false, 8192, 1024, 3072, 713},
    {CUDA_WEIGHT_GRADIENT, false, 4096, 1024, 8192, 720},
    {CUDA_WEIGHT_GRADIENT, false, 1024, 4096, 8192, 713},
    {CUDA_WEIGHT_GRADIENT, false, 1024, 1024, 8192, 585},
    {CUDA_WEIGHT_GRADIENT, false, 3072, 1024, 8192, 693},
    {CUDA_FORWARD, false, 1280, 30528, 1024, 633},
    MEAN(false, 24576, 1600, 6400, 689),
    MEAN(true, 24576, 1600, 6400, 1171),
    MEAN(false, 8192, 2560, 10240, 692),
    {CUDA_FORWARD, false, 8192, 20480, 5120, 705},
};

/* On the H200 copies and products were measured; gaps, waits, the clock under load and the cache, 32 bytes a cycle and
 * multiprocessor, are assumed.  The H100 (SXM) has the same multiprocessors, clock and power: all of its row is the
 * H200's except copies, which are less by 3.35 to 4.8 TB/s, as the datasheets have the two memories. */
#define HOPPER(name_, title_, rates_, copy_)                                                                 \
    {                                                                                                        \
        .name = name_, .title = title_, .rates = rates_, .computes_in_fp8 = true, .multiprocessors = 132,    \
        .clock_hz = 1.755e9, .copy = copy_, .cached = 7.4e12, .hot = 0.948, .fp32_tflops = 50,               \
        .tf32_tflops = 380, .gap_s = 1.0e-6, .early_gap_s = 0.5e-6, .least_s = 1.5e-6, .wait_s = 0.6e-6,     \
        .edge_s = 1.0e-6, .step_s = 50e-6, .products = h200_products,                                        \
        .n_products = sizeof h200_products / sizeof h200_products[0],                                        \
    }

static const struct gpu_chip chips[] = {
    HOPPER("h200", "NVIDIA H200", "rates that were measured there", 4.29e12),
    HOPPER("h100", "NVIDIA H100",
           "an H200's rates, with copies slower by 3.35 to 4.8 TB/s as the datasheets say",
           4.29e12 * 3.35 / 4.8),
};

enum { N_CHIPS = sizeof chips / sizeof chips[0] };

const struct gpu_chip *gpu_chip_at(int i)
{
    return i < N_CHIPS ? &chips[i] : NULL;
}

struct status gpu_chip_find(const struct gpu_chip **chip, const char *name)
{
    char names[100] = "";
    for (int i = 0; i < N_CHIPS; i++) {
        size_t used = strlen(names);
        if (strcmp(chips[i].name, name) == 0) {
            *chip = &chips[i];
            return status_ok();
        }
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", chips[i].name);
    }
    return status_error(STATUS_USAGE, "no rates are known for a GPU \"%.40s\", only for %s", name, names);
}

static double ratio(int64_t a, int64_t b)
{
    return fabs(log2((double)a / (double)b));
}

/* The tabulated product of this side and these factors with the nearest shape. */
static const struct gpu_product *nearest_product(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    double nearest = INFINITY;
    const struct gpu_product *found = NULL;
    for (int i = 0; i < chip->n_products; i++) {
        const struct gpu_product *p = &chip->products[i];
        double distance = ratio(p->m, l->m) + ratio(p->n, l->n) + ratio(p->k, l->k);
        if (p->side == l->side && p->fp8 == dtype_is_fp8(l->factor) && distance < nearest) {
            nearest = distance;
            found = p;
        }
    }
    CHECK(found != NULL, "%s has no product of %s", chip->name, dtype_name(l->factor));
    return found;
}

/* The library's tiles of a result, and the share of its best rate that a multiprocessor reaches with each:
 * small tiles read more of the factors for each number of the result. */
static const struct tile {
    int64_t m, n;
    double share;
} tiles[] = {{128, 256, 1.0}, {128, 128, .85}, {64, 128, .65}, {64, 64, .45}};

/* A product split into tiles; each multiprocessor runs one at a time. */
struct tiling {
    double n_tiles, seconds;
    double adding; /* the part of `seconds` for the sums of parts */
};

enum { PARTS = 4, TILINGS = sizeof tiles / sizeof tiles[0] * PARTS }; /* sums over k in 1, 2, 4 or 8 parts */

static struct tiling tiling_at(int i, const struct gpu_chip *chip, int64_t m, int64_t n, int64_t k,
                               double rate)
{
    const struct tile *t = &tiles[i / PARTS];
    int parts = 1 << i % PARTS;
    double one = rate / chip->multiprocessors * t->share;
    double n_tiles = ceil((double)m / (double)t->m) * ceil((double)n / (double)t->n) * parts;
    double flops = 2.0 * (double)(t->m * t->n) * (double)k / parts;
    double adding = parts > 1 ? 8.0 * parts * (double)(m * n) / chip->copy + chip->least_s : 0;
    return (struct tiling){n_tiles, ceil(n_tiles / chip->multiprocessors) * flops / one + adding, adding};
}

/* The tiling of the least time. */
static struct tiling best_tiling(const struct gpu_chip *chip, int64_t m, int64_t n, int64_t k, double rate)
{
    struct tiling best = {.seconds = INFINITY};
    for (int i = 0; i < TILINGS; i++) {
        struct tiling t = tiling_at(i, chip, m, n, k, rate);
        best = t.seconds < best.seconds ? t : best;
    }
    return best;
}

/* The share of multiprocessors and time that is idle in the last wave. */
static double idle_share(const struct gpu_chip *chip, struct tiling t)
{
    double places = ceil(t.n_tiles / chip->multiprocessors) * chip->multiprocessors;
    return 1 - t.n_tiles / places;
}

/* The library's choice of tiles is unknown: assumed are, among those hardly slower than the best, the ones
 * that leave the fewest multiprocessors to others. */
static struct tiling fullest_tiling(const struct gpu_chip *chip, int64_t m, int64_t n, int64_t k, double rate)
{
    static const double hardly = 1.1;
    struct tiling best = best_tiling(chip, m, n, k, rate), fullest = best;
    for (int i = 0; i < TILINGS; i++) {
        struct tiling t = tiling_at(i, chip, m, n, k, rate);
        bool fuller = idle_share(chip, t) < idle_share(chip, fullest);
        fullest = t.seconds < hardly * best.seconds && fuller ? t : fullest;
    }
    return fullest;
}

/* The share of a rate that is reached if the last wave is not full, or there are too few tiles for all
 * multiprocessors. */
static double share_of_tiles(const struct gpu_chip *chip, int64_t m, int64_t n, int64_t k, double rate)
{
    return 2.0 * (double)m * (double)n * (double)k / rate / best_tiling(chip, m, n, k, rate).seconds;
}

/* The rate of all multiprocessors if every wave is full, FLOP/s; *p: the tabulated product that it comes
 * from, or NULL. */
static double full_rate(const struct gpu_chip *chip, const struct cuda_launch *l,
                        const struct gpu_product **p)
{
    *p = l->factor == DTYPE_F32 ? NULL : nearest_product(chip, l);
    return 1e12 * (*p != NULL ? (*p)->tflops : l->tf32 ? chip->tf32_tflops : chip->fp32_tflops);
}

double gpu_chip_product_rate(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    const struct gpu_product *p;
    double rate = full_rate(chip, l, &p), share = share_of_tiles(chip, l->m, l->n, l->k, rate);
    return rate * (p == NULL ? share : fmin(1, share / share_of_tiles(chip, p->m, p->n, p->k, rate)));
}

enum { BLOCKS_AT_ONCE = 2 }; /* of those that `cuda_launch.blocks` counts */

/* The tiles of kiln's own product kernel, and the share of the library's best rate that a multiprocessor
 * reaches with each: no more than the library with this tile, and no more than shared memory allows (64 x
 * 192: 512 cycles for 384 of products). */
static const struct tile own_tiles[] = {{64, 64, .45}, {64, 128, .65}, {64, 192, .73}, {128, 128, .8}};

/* The share of the library's rate with the same tile: one barrier a step that the library's loops do not
 * have, and 94 to 131 instructions a warp and step, for which shared memory leaves 256 to 640 cycles, and
 * this share 380 and more (docs/numbers.md).  Instructions per element of the result, for bias and
 * rounding. */
static const double OWN_SHARE = .95, OWN_RESULT = 4.9;

/* How the blocks of an own product are distributed over a chip.  A cluster runs within a part of it, of 16 or
 * 18 multiprocessors. */
struct own_blocks {
    double n, waves;
    double k; /* of a block */
};

static struct own_blocks blocks_of_own(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    enum { PART = 16 };
    double n = ceil((double)l->m / (double)l->tile_rows) * ceil((double)l->n / (double)l->tile_cols) *
               (double)l->parts;
    int places = l->parts > 1 ? chip->multiprocessors / PART * PART : chip->multiprocessors;
    return (struct own_blocks){n, ceil(n / places), (double)l->k / (double)l->parts};
}

/* Its products at the library's rate. */
static double own_seconds_by_rate(const struct gpu_chip *chip, const struct cuda_launch *l,
                                  struct own_blocks b)
{
    const struct gpu_product *p;
    double rate = full_rate(chip, l, &p), share = 0;
    CHECK(p != NULL, "an own product has factors of 16 bits");
    rate /= share_of_tiles(chip, p->m, p->n, p->k, rate);
    for (size_t i = 0; i < sizeof own_tiles / sizeof own_tiles[0]; i++) {
        const struct tile *t = &own_tiles[i];
        share = t->m == l->tile_rows && t->n == l->tile_cols ? t->share * OWN_SHARE : share;
    }
    CHECK(share > 0, "no share is known for tiles of %lld x %lld", (long long)l->tile_rows,
          (long long)l->tile_cols);
    return b.waves * 2 * (double)(l->tile_rows * l->tile_cols) * b.k / (rate / chip->multiprocessors * share);
}

/* Its products by counts, without the work after them: it waits for the first bytes; a step of 64 of k costs
 * shared memory, with 128 bytes a cycle, one write and for each 64 rows one read; and all steps are read from
 * the cache. */
static double own_seconds_by_count(const struct gpu_chip *chip, const struct cuda_launch *l,
                                   struct own_blocks b)
{
    enum { STEP = 64 };
    double m = (double)l->tile_rows, n = (double)l->tile_cols, cycles = 2 * m + n + m * n / 64;
    double shared = b.waves * b.k / STEP * cycles / chip->clock_hz;
    return chip->wait_s + fmax(shared, 2 * b.n * (m + n) * b.k / chip->cached);
}

/* Seconds of an own product: the longer of both, where the count needs the work on each result added and the
 * library's rate includes it except for GELU; then the blocks of a cluster send each other their sums, at the
 * rate of the cache, and wait for them. */
static double own_product_seconds(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    enum { LANES = 128 };
    struct own_blocks b = blocks_of_own(chip, l);
    double elements = b.waves * (double)(l->tile_rows * l->tile_cols) / (double)l->parts;
    double one = elements / (LANES * chip->clock_hz * l->issue_share);
    double gelu = l->instructions / ((double)l->m * (double)l->n) * one;
    double sent = 4 * elements * (double)(l->parts - 1) * chip->multiprocessors;
    double parts = l->parts > 1 ? sent / chip->cached + b.waves * chip->wait_s : 0;
    return fmax(own_seconds_by_rate(chip, l, b), own_seconds_by_count(chip, l, b) + OWN_RESULT * one) + gelu +
           parts;
}

/* The time of the instructions, after the first bytes that they wait for: too few blocks for all
 * multiprocessors leave some idle. */
static double issue_seconds(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    enum { LANES = 128 };
    double rate = chip->multiprocessors * LANES * chip->clock_hz * l->issue_share;
    double slots = (double)chip->multiprocessors * BLOCKS_AT_ONCE, blocks = (double)l->blocks;
    double busy = blocks <= 0 ? 1 : blocks < slots ? blocks / slots : 1;
    return l->instructions / (rate * busy) + l->first_bytes * fmin(blocks, slots) / chip->copy;
}

/* Moves the last wave of `seconds` from p->all_s to p->last_s: of n blocks, `at_once` run at a time. */
static void part_last_wave(struct gpu_phases *p, double seconds, double n, double at_once, double all)
{
    double waves = ceil(n / at_once);
    p->last_s = seconds / waves;
    p->last = fmin(all, n - (waves - 1) * at_once); /* blocks go to the emptiest multiprocessors */
    p->all_s -= p->last_s;
}

struct gpu_phases gpu_chip_phases(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    double all = chip->multiprocessors, moved = l->bytes / (chip->copy * l->copy_share);
    bool own = l->tile_rows > 0;
    double issued = l->instructions > 0 && !own ? issue_seconds(chip, l) : 0;
    double multiplied = own            ? own_product_seconds(chip, l)
                        : l->flops > 0 ? l->flops / gpu_chip_product_rate(chip, l)
                                       : 0;
    struct gpu_phases p = {.all_s = fmax(moved, fmax(issued, multiplied)), .last = all};
    p.idle_s = fmax(0, chip->least_s - p.all_s) + l->waits * chip->wait_s +
               (l->early ? chip->early_gap_s : chip->gap_s);
    if (multiplied > fmax(moved, issued) && own) {
        part_last_wave(&p, p.all_s, blocks_of_own(chip, l).n, all, all);
    } else if (multiplied > fmax(moved, issued)) {
        const struct gpu_product *tabulated;
        double rate = full_rate(chip, l, &tabulated);
        struct tiling t = fullest_tiling(chip, l->m, l->n, l->k, rate);
        part_last_wave(&p, p.all_s * (1 - t.adding / t.seconds), t.n_tiles, all, all);
    } else if (issued > moved && l->blocks > 0) {
        part_last_wave(&p, p.all_s, (double)l->blocks, all * BLOCKS_AT_ONCE, all);
    }
    return p;
}

double gpu_chip_seconds(const struct gpu_chip *chip, const struct cuda_launch *l)
{
    struct gpu_phases p = gpu_chip_phases(chip, l);
    return p.idle_s + p.all_s + p.last_s;
}
