/* Bits of dropout (ops/attention_bits.h), by each kernel of attention that the device has: the forward leaves
 * those of the addresses, and a backward that reads them gives dq, dk, dv and dbias of one that draws, to the
 * bit; it reads indeed. Training with them has the results of training without, and more
 * memory in its plan. */
#include "bert_fixture.h"
#include "checkop_backend.h"
#include "core/arena.h"
#include "gpu_tests.h"
#include "ops/attention_bits.h"

#include <stdlib.h>

enum { BYTES = 16 << 20, SCRATCH = 8 << 20, HEADS = 2, SEQUENCES = 5, LONGEST = 140, ROWS = LONGEST + 64 };

static const int32_t bounds[SEQUENCES + 1] = {0, LONGEST, LONGEST + 17, LONGEST + 18, LONGEST + 18, ROWS - 6};

static struct {
    struct checkop_backend b;
    struct exec x;
    struct arena arena;
    int32_t row_keys[ROWS][2];
    tensor q, k, v, out, lse, dout, dq, dk, dv, dbias;
    struct attention a;
} of;

/* A tensor with numbers between -1 and 1, or zeros, on the device. */
static tensor filled(tensor t, bool zero)
{
    static uint32_t seed = 1;
    tensor host = t;
    host.data = malloc(tensor_bytes(t));
    for (int64_t i = 0; i < tensor_count(t); i++) {
        seed = seed * 1664525U + 1013904223U;
        tensor_set(host, i, zero ? 0 : (double)(seed >> 8) / (1 << 23) - 1);
    }
    exec_copy_in(&of.x, t.data, host.data, tensor_bytes(t));
    free(host.data);
    return t;
}

static tensor heads(enum dtype dtype, int64_t n, int64_t head_size)
{
    return tensor_split_heads(filled(arena_carve_2d(&of.arena, dtype, ROWS, n * head_size), false), n);
}

/* The bytes of a tensor, which the caller frees. */
static void *copied(tensor t)
{
    void *host = malloc(tensor_bytes(t));
    exec_copy_out(&of.x, host, t.data, tensor_bytes(t));
    EXPECT_OK(of.x.status);
    return host;
}

static tensor bits_of(void *data)
{
    return tensor_2d(data, DTYPE_I32, attention_bits_rows(HEADS, LONGEST),
                     attention_bits_cols(ROWS, SEQUENCES));
}

static struct attention attention_of(tensor cu_seqlens, tensor row_keys, tensor bits)
{
    return (struct attention){.cu_seqlens_q = cu_seqlens,
                              .cu_seqlens_kv = cu_seqlens,
                              .max_seqlen_q = LONGEST,
                              .max_seqlen_kv = LONGEST,
                              .scale = 0.125,
                              .row_keys = row_keys,
                              .dropout = {.p = 0.1, .site = 3},
                              .bits = bits};
}

static void carve(enum dtype dtype, int64_t head_size, int64_t kv_heads)
{
    tensor cu_seqlens = arena_carve_1d(&of.arena, DTYPE_I32, SEQUENCES + 1);
    tensor row_keys = arena_carve_2d(&of.arena, DTYPE_I32, ROWS, 2);
    tensor bits = bits_of(NULL), *const of_heads[] = {&of.q, &of.out, &of.dq, &of.dout},
           *const of_keys[] = {&of.k, &of.v, &of.dk, &of.dv};
    for (int i = 0; i < 4; i++) {
        *of_heads[i] = heads(dtype, HEADS, head_size);
        *of_keys[i] = heads(dtype, kv_heads, head_size);
    }
    of.lse = arena_carve_2d(&of.arena, DTYPE_F32, ROWS, HEADS);
    of.dbias = arena_carve_1d(&of.arena, DTYPE_F32, (HEADS + 2 * kv_heads) * head_size);
    bits = arena_carve_2d(&of.arena, DTYPE_I32, bits.dims[0], bits.dims[1]);
    exec_copy_in(&of.x, cu_seqlens.data, bounds, sizeof bounds);
    exec_copy_in(&of.x, row_keys.data, of.row_keys, sizeof of.row_keys);
    of.a = attention_of(cu_seqlens, row_keys, bits);
}

/* What ref keeps; its heads have one column. */
static void expect_bits_of_ref(const char *kernel)
{
    static float zeros[ROWS * HEADS], out[ROWS * HEADS], lse[ROWS * HEADS];
    tensor head = tensor_3d(zeros, DTYPE_F32, ROWS, HEADS, 1), bits = bits_of(NULL);
    struct exec x = {.device = &device_cpu, .ops = &ops_ref, .layer = "bits", .layer_index = -1};
    void *got = copied(of.a.bits), *wanted = calloc(1, tensor_bytes(bits));
    struct attention here = attention_of(tensor_1d((void *)bounds, DTYPE_I32, SEQUENCES + 1),
                                         tensor_2d(of.row_keys, DTYPE_I32, ROWS, 2), bits_of(wanted));
    struct attention device = here;
    int64_t n_dropped = 0, n = 0;
    device.bits = bits_of(got);
    ops_ref.attention(&x, tensor_3d(out, DTYPE_F32, ROWS, HEADS, 1), tensor_2d(lse, DTYPE_F32, ROWS, HEADS),
                      head, head, head, here);
    EXPECT_OK(x.status);
    for (struct attention_element e = {0}; e.sequence < SEQUENCES; e.sequence++) {
        int64_t length = bounds[e.sequence + 1] - bounds[e.sequence];
        e.first = bounds[e.sequence];
        for (int64_t i = 0; i < HEADS * length * length; i++, n++) {
            e.head = i / length / length, e.query = i / length % length, e.key = i % length;
            bool kept = attention_bits_get(&here, e);
            n_dropped += !kept;
            EXPECT(attention_bits_get(&device, e) == kept,
                   "%s: head %lld, query %lld, key %lld of sequence %lld should be %s", kernel,
                   (long long)e.head, (long long)e.query, (long long)e.key, (long long)e.sequence,
                   kept ? "kept" : "dropped");
        }
    }
    EXPECT(n_dropped > n / 11 && n_dropped < n / 9, "%lld of %lld dropped", (long long)n_dropped,
           (long long)n);
    free(wanted);
    free(got);
}

enum { N_RESULTS = 4 };

/* The bytes of all gradients, which the caller frees. */
static void run_backward(void *results[N_RESULTS], tensor bits)
{
    const tensor gradients[N_RESULTS] = {of.dq, of.dk, of.dv, of.dbias};
    struct attention a = of.a;
    a.bits = bits;
    for (int i = 0; i < N_RESULTS; i++) {
        filled(gradients[i], true);
    }
    of.b.ops->attention_backward(&of.x, of.dq, of.dk, of.dv, of.dbias, of.dout, of.out, of.lse, of.q, of.k,
                                 of.v, a);
    for (int i = 0; i < N_RESULTS; i++) {
        results[i] = copied(gradients[i]);
    }
}

static void run_kernel(const char *kernel, enum dtype dtype, int64_t head_size)
{
    const tensor gradients[N_RESULTS] = {of.dq, of.dk, of.dv, of.dbias};
    void *drawn[N_RESULTS], *read[N_RESULTS], *inverted[N_RESULTS];
    of.b.ops->attention(&of.x, of.out, of.lse, of.q, of.k, of.v, of.a);
    expect_bits_of_ref(kernel);
    run_backward(drawn, NULL_TENSOR);
    run_backward(read, of.a.bits);
    uint32_t *bits = copied(of.a.bits);
    for (int64_t i = 0; i < tensor_count(of.a.bits); i++) {
        bits[i] = ~bits[i];
    }
    exec_copy_in(&of.x, of.a.bits.data, bits, tensor_bytes(of.a.bits));
    run_backward(inverted, of.a.bits);
    for (int i = 0; i < N_RESULTS; i++) {
        EXPECT(memcmp(drawn[i], read[i], tensor_bytes(gradients[i])) == 0,
               "%s, heads of %lld: gradient %d by bits is another", kernel, (long long)head_size, i);
        EXPECT(memcmp(drawn[i], inverted[i], tensor_bytes(gradients[i])) != 0,
               "%s, heads of %lld: gradient %d does not depend on the bits", kernel, (long long)head_size, i);
        free(drawn[i]);
        free(read[i]);
        free(inverted[i]);
    }
    free(bits);
    printf("%s, %s, heads of %lld: equal bits\n", kernel, dtype_name(dtype), (long long)head_size);
}

static void fill_row_keys(void)
{
    for (int32_t b = 0; b < SEQUENCES; b++) {
        for (int32_t row = bounds[b]; row < bounds[b + 1]; row++) {
            of.row_keys[row][0] = 11 * b + 3;
            of.row_keys[row][1] = row - bounds[b] + 1;
        }
    }
}

enum { LONG = 320, N_SEQUENCES = 1, STEPS = 2 };

/* The results of a few steps, and the bytes of one micro-batch's activations. */
static size_t train(struct trainer_result results[STEPS], const struct batch_step *step, bool keeps_bits,
                    int64_t recompute)
{
    struct trainer t;
    struct device device = *of.b.device;
    struct trainer_config config = fixture_trainer(of.b.ops, DTYPE_BF16, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.attention_probs_dropout_prob = 0.2;
    bert->config.hidden_size = 64;
    bert->config.max_position_embeddings = LONG;
    fixture_bert_changed(bert);
    device.keeps_dropout_bits = keeps_bits;
    config.net.device = &device;
    config.net.recompute = recompute;
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 0; i < STEPS; i++) {
        EXPECT_OK(trainer_step(&t, step, i + 1, i + 1, 1e-2, &results[i]));
    }
    size_t bytes = t.plan.net.activation_bytes;
    trainer_fini(&t);
    return bytes;
}

static void compare_training(int64_t recompute)
{
    struct batch_step step;
    struct trainer_result drawn[STEPS], read[STEPS];
    fixture_step(&step, 1, N_SEQUENCES, LONG);
    setenv("KILN_ATTENTION", "mma.sync", 1);
    size_t without = train(drawn, &step, false, recompute), with = train(read, &step, true, recompute);
    for (int i = 0; i < STEPS; i++) {
        double a = trainer_result_loss(&drawn[i]), b = trainer_result_loss(&read[i]);
        EXPECT(a == b && drawn[i].grad_norm == read[i].grad_norm,
               "step %d: loss %.17g and norm %.17g by bits, not %.17g and %.17g", i + 1, b, read[i].grad_norm,
               a, drawn[i].grad_norm);
    }
    int64_t layers = recompute == 1 ? 1 : 2, chunks = (LONG + 63) / 64;
    size_t bits = (size_t)(layers * 2 * chunks * LONG * N_SEQUENCES / 16 * 128);
    EXPECT(with > without + bits && with < without + 2 * bits, "%zu bytes, without bits %zu", with, without);
    printf("training, %s: equal losses, %zu bytes more\n", recompute > 0 ? "checkpointed" : "all kept",
           with - without);
    batch_step_fini(&step);
}

int test_cuda_bits(void)
{
    static const struct {
        const char *kernel;
        enum dtype dtype;
        int64_t head_size, kv_heads;
    } runs[] = {{"plain", DTYPE_F32, 24, HEADS},     {"mma.sync", DTYPE_BF16, 64, HEADS},
                {"mma.sync", DTYPE_F16, 160, HEADS}, {"wgmma", DTYPE_BF16, 64, HEADS},
                {"wgmma", DTYPE_F16, 128, HEADS},    {"plain", DTYPE_F32, 24, 1},
                {"mma.sync", DTYPE_F16, 64, 1},      {"wgmma", DTYPE_BF16, 64, 1}};
    void *memory, *scratch;
    of.b = checkop_find_backend("cuda");
    fill_row_keys();
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        setenv("KILN_ATTENTION", runs[i].kernel, 1);
        of.x = (struct exec){.device = of.b.device,
                             .ops = of.b.ops,
                             .layer = "bits",
                             .layer_index = -1,
                             .workspace_bytes = SCRATCH};
        EXPECT_OK(of.b.device->open(&of.x.context));
        EXPECT_OK(of.b.device->allocate(&memory, BYTES, "tensors"));
        EXPECT_OK(of.b.device->allocate(&scratch, SCRATCH, "scratch"));
        of.x.workspace = scratch;
        of.arena = arena_over(memory, BYTES);
        carve(runs[i].dtype, runs[i].head_size, runs[i].kv_heads);
        run_kernel(runs[i].kernel, runs[i].dtype, runs[i].head_size);
        of.b.device->release(memory, BYTES);
        of.b.device->release(scratch, SCRATCH);
        of.b.device->close(of.x.context);
    }
    compare_training(0);
    compare_training(1);
    return 0;
}
