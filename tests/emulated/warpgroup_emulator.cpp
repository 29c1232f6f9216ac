/* The part of warpgroup_emulator.hpp that fibers share. */
#include "ops/cuda/kernels/warpgroup_code.cuh"

#include <vector>

enum { MOST_THREADS = 1024, GROUP = 128, PIECE = 16, MOST_BLOCKS = 8, MOST_PIECES = (227 << 10) / PIECE };

/* NaNs of sums under way, which no arithmetic makes. */
static const uint32_t UNDER_WAY = 0x7fc5a5a5;

enum instruction { FENCE, PRODUCT, COMMIT, WAIT };

/* What a thread brings to an instruction of its warpgroup. */
struct operand {
    instruction which;
    unsigned turn;
    emulated_product product;
    factor left;
    int pending;
};

static operand operands[2][MOST_THREADS];

/* A product that was issued: `rows` are this thread's two rows of a left factor in registers. */
struct issued {
    emulated_product product;
    float *sums;
    float rows[2][SIDE];
    int group;
};

struct sums_under_way {
    float *at;
    std::vector<float> real;
};

static struct {
    unsigned turn;
    int groups; /* committed */
    std::vector<issued> products;
    std::vector<sums_under_way> sums;
    std::vector<const float *> fenced; /* sums that products may use */
} threads[MOST_THREADS];

/* Time passes with every write and fence.  A write is there for products once its thread has fenced it and
 * the block has met after that. */
static uint64_t now, fenced_at[MOST_THREADS], there_at[MOST_THREADS];
static struct {
    uint64_t at; /* 0: never */
    unsigned writer;
} written[MOST_BLOCKS][MOST_PIECES];

void emulated_new_blocks(unsigned n)
{
    size_t pieces = emulated_shared_bytes() / PIECE;
    for (size_t i = 0; i < n * pieces; i++) {
        written[i / pieces][i % pieces].at = 0;
    }
}

void emulated_met(unsigned first, unsigned end)
{
    memcpy(there_at + first, fenced_at + first, (end - first) * sizeof there_at[0]);
}

void emulated_wrote(const void *p)
{
    size_t offset = (size_t)((const char *)p - (const char *)emulated_shared());
    if (offset >= emulated_shared_bytes()) {
        emulated_refuse("a write outside of the shared memory that was asked for");
    }
    written[emulated_block()][offset / PIECE].at = ++now;
    written[emulated_block()][offset / PIECE].writer = emulated_index();
}

/* A window for each block of the cluster. */
enum { WINDOW = 1 << 20 };

void stmatrix_x4_trans(void *row, factor f)
{
    const emulated_operand *lanes = emulated_stored(row, f);
    unsigned own = emulated_index() % 32, m = own / 8, r = own % 8;
    uint16_t elements[8];
    for (int k = 0; k < 8; k++) { /* element r of row k of matrix m becomes element k of row r */
        elements[k] = (uint16_t)(lanes[4 * k + r / 2].stored.word[m] >> (r % 2 * 16));
    }
    memcpy(row, elements, sizeof elements);
    emulated_wrote(row);
}

void cluster_arrive(void)
{
    emulated_arrive();
}

void cluster_wait(void)
{
    emulated_wait_for_cluster();
}

uint32_t address_in_cluster(const void *shared, uint32_t block)
{
    return block * WINDOW + shared_address(shared);
}

void put_in_cluster(uint32_t address, uint4 v)
{
    uint32_t offset = address % WINDOW - EMULATED_SHARED_START;
    if (offset % sizeof v != 0) {
        emulated_refuse("not 16 aligned bytes of another block's shared memory");
    }
    memcpy(emulated_place_of(address / WINDOW, offset), &v, sizeof v);
}

void fence_for_products(void)
{
    fenced_at[emulated_index()] = ++now;
}

uint32_t shared_address(const void *shared)
{
    return EMULATED_SHARED_START + (uint32_t)((const char *)shared - (const char *)emulated_shared());
}

/* Those of all threads of the warpgroup, until this thread's next but one instruction. */
static const operand *meet(operand own)
{
    unsigned i = emulated_index(), first = i / GROUP * GROUP;
    operand *now = operands[threads[i].turn % 2];
    own.turn = ++threads[i].turn;
    if (threadIdx.x / GROUP * GROUP + GROUP > blockDim.x) {
        emulated_refuse("an instruction of a warpgroup of fewer than 128 threads");
    }
    now[i] = own;
    emulated_barrier(EMULATED_WARPGROUP);
    const operand &next = now[first + (i + 1) % GROUP]; /* all are alike if neighbours are */
    const emulated_product &a = next.product, &b = own.product;
    if (next.which != own.which || next.turn != own.turn || next.pending != own.pending ||
        a.squares != b.squares || a.left_over_rows != b.left_over_rows ||
        a.right_over_rows != b.right_over_rows || a.add != b.add || a.left != b.left || a.right != b.right ||
        a.value != b.value) {
        emulated_refuse("threads of a warpgroup meet different instructions");
    }
    return now + first;
}

/* A thread that ends in the middle of what its warpgroup does together leaves the others behind. */
void emulated_end_products(void)
{
    if (!threads[emulated_index()].products.empty()) {
        emulated_refuse("a thread ends before its products");
    }
    threads[emulated_index()].turn = 0;
    threads[emulated_index()].fenced.clear();
}

void emulated_begin_products(float *sums)
{
    meet(operand{FENCE});
    threads[emulated_index()].fenced.push_back(sums);
}

void commit_products(void)
{
    meet(operand{COMMIT});
    threads[emulated_index()].groups++;
}

/* Bits of a descriptor: matrix-descriptor-encode(x) = (x & 0x3ffff) >> 4. */
static uint32_t decode(uint64_t descriptor, int bit)
{
    return (uint32_t)(descriptor >> bit & 0x3fff) << 4;
}

static void check_descriptor(uint64_t descriptor, bool over_rows)
{
    const uint64_t known = 0x3fff | (uint64_t)0x3fff << 16 | (uint64_t)0x3fff << 32 | (uint64_t)3 << 62;
    if (descriptor >> 62 != 1 || (descriptor & ~known) != 0) {
        emulated_refuse("a descriptor of other than 128-byte swizzle that begins with its pattern");
    }
    uint32_t in_pattern = decode(descriptor, 0) % 1024;
    if (over_rows ? in_pattern != 0 : in_pattern + SIDE * sizeof(uint16_t) > 128) {
        emulated_refuse("a descriptor of a tile that is not aligned to 1,024 bytes");
    }
}

/* Element k of row, or column, mn of a factor: the canonical layouts of 128-byte swizzle with 16-byte units
 * of T = 8 elements, ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)) over rows and ((8,m),(T,2k)):((8T,SBO),(1,T)) over
 * columns; Swizzle<3,4,3> then exchanges bits 4 to 6 of the address for their XOR with bits 7 to 9. */
static uint16_t element(uint64_t descriptor, bool over_rows, int mn, int k)
{
    uint32_t address = decode(descriptor, 0), leading = decode(descriptor, 16),
             stride = decode(descriptor, 32);
    address += over_rows ? mn % 64 * 2 + mn / 64 * leading + k % 8 * 128 + k / 8 * stride
                         : mn % 8 * 128 + mn / 8 * stride + k * 2;
    address ^= (address >> 7 & 7) << 4;
    size_t offset = address - EMULATED_SHARED_START;
    if (address < EMULATED_SHARED_START || offset + sizeof(uint16_t) > emulated_shared_bytes()) {
        emulated_refuse("a product reads outside of the shared memory that was asked for");
    }
    auto &piece = written[emulated_block()][offset / PIECE];
    if (piece.at == 0 || piece.at >= there_at[piece.writer]) {
        emulated_refuse("a product reads what was written without a fence and a barrier behind it");
    }
    uint16_t bits;
    memcpy(&bits, (const char *)emulated_shared() + offset, sizeof bits);
    return bits;
}

static sums_under_way *find_sums(const float *at)
{
    for (sums_under_way &s : threads[emulated_index()].sums) {
        if (s.at == at) {
            return &s;
        }
    }
    return NULL;
}

/* From the first product on, sums are not the thread's. */
static void take_sums(float *at, int n)
{
    for (const float *fenced : threads[emulated_index()].fenced) {
        if (fenced == at) {
            threads[emulated_index()].sums.push_back(sums_under_way{at, std::vector<float>(at, at + n)});
            for (int i = 0; i < n; i++) {
                at[i] = __uint_as_float(UNDER_WAY);
            }
            return;
        }
    }
    emulated_refuse("a product without a fence between it and what used its sums before");
}

static void give_sums(const sums_under_way &s)
{
    for (size_t i = 0; i < s.real.size(); i++) {
        if (__float_as_uint(s.at[i]) != UNDER_WAY) {
            emulated_refuse("sums were written while a product was under way");
        }
        s.at[i] = s.real[i];
    }
}

/* A word of a left factor has elements 2 t and 2 t + 1 of row g, the second eight rows further down; the
 * other two words are those of eight columns further on. */
void emulated_issue_product(const emulated_product &product, float *sums, factor left)
{
    unsigned i = emulated_index();
    operand own = {PRODUCT};
    own.product = product;
    own.left = left;
    const operand *group = meet(own);
    issued p = {product, sums, {}, threads[i].groups};
    for (int t = 0; t < QUAD; t++) {
        for (int w = 0; w < 4; w++) {
            uint32_t word = group[i % GROUP / QUAD * QUAD + t].left.word[w];
            p.rows[w % 2][2 * t + w / 2 * 8] = product.value((uint16_t)word);
            p.rows[w % 2][2 * t + w / 2 * 8 + 1] = product.value((uint16_t)(word >> 16));
        }
    }
    if (product.left_over_rows >= 0) {
        check_descriptor(product.left, product.left_over_rows);
    }
    check_descriptor(product.right, product.right_over_rows);
    if (find_sums(sums) == NULL) {
        take_sums(sums, product.squares * 8);
    }
    threads[i].products.push_back(p);
}

/* Sum i of a thread is in row 16 w + g, for i & 2 eight further down, and in column 2 t + (i & 1) + 8 (i /
 * 4). */
static void multiply(const issued &p, float *sums)
{
    unsigned i = emulated_index() % GROUP;
    int first_row = (int)(i / 32 * 16 + i % 32 / 4), t = (int)i % 4;
    for (int half = 0; half < 2; half++) {
        float left[SIDE];
        for (int k = 0; k < SIDE; k++) {
            left[k] = p.product.left_over_rows < 0
                          ? p.rows[half][k]
                          : p.product.value(
                                element(p.product.left, p.product.left_over_rows, first_row + 8 * half, k));
        }
        for (int n = 0; n < p.product.squares * 4; n++) {
            int column = n / 2 * 8 + 2 * t + n % 2;
            float *sum = &sums[n / 2 * 4 + 2 * half + n % 2];
            *sum = p.product.add ? *sum : 0;
            for (int k = 0; k < SIDE; k++) {
                *sum +=
                    left[k] * p.product.value(element(p.product.right, p.product.right_over_rows, column, k));
            }
        }
    }
}

void emulated_wait_for_products(int pending, const float *waited)
{
    operand own = {WAIT};
    own.pending = pending;
    meet(own);
    auto &thread = threads[emulated_index()];
    std::vector<issued> left;
    for (const issued &p : thread.products) {
        if (p.group >= thread.groups - pending) {
            left.push_back(p);
        } else {
            multiply(p, find_sums(p.sums)->real.data());
        }
    }
    thread.products = left;
    std::vector<sums_under_way> still;
    for (const sums_under_way &s : thread.sums) {
        bool used = false;
        for (const issued &p : left) {
            used |= p.sums == s.at;
        }
        if (used) {
            still.push_back(s);
        } else {
            give_sums(s);
            for (const float *&f : thread.fenced) {
                f = f == s.at ? NULL : f;
            }
        }
        if (used && s.at == waited) {
            emulated_refuse("a thread waits for fewer groups than the sums that it wants need");
        }
    }
    thread.sums = still;
    if (still.empty()) {
        thread.fenced.clear();
    }
}
