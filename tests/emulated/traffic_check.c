/* What predictions count (ops/cuda/forecast/cuda_traffic.h) against the kernels themselves: in training steps and answers on the
 * emulated device, every op launches what the model says, in that order, and each launch touches the bytes that it
 * says, where it touches them 16 at a time. */
#define _GNU_SOURCE
#include "bert_fixture.h"
#include "emulated_counts.h"
#include "plain_products.h"

#include "ops/cuda/table/cuda_ops.h"
#include "ops/cuda/forecast/cuda_traffic.h"
#include "ops/cuda/choice/product_forms.h"
#include "ops/op_slots.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 32 };

/* Launches that were counted are within so much of what the model has, if that is more than small vectors are. */
static const double TOLERANCE = 0.12, SMALL = 16 << 10;

static struct {
    struct cuda_traffic traffic;
    struct cuda_launch expected[MOST];
    int n_expected;
    int64_t n_compared; /* launches whose bytes were */
    int64_t n_casts;
} check;

static void expect_launch(void *self, const struct cuda_launch *l)
{
    (void)self;
    EXPECT(check.n_expected < MOST, "more than %d launches", MOST);
    check.expected[check.n_expected++] = *l;
}

static double by_bytes(void *self, const struct cuda_launch *l)
{
    (void)self;
    return l->bytes;
}

/* Where the launch names a variable. */
static bool is_name(const char *counted, const char *expected)
{
    static const struct {
        const char *variable, *part;
    } variables[] = {{"kernel", "attention_"}, {"brief", "_short_"},      {"whole", "_whole_"},
                     {"by_key", "_keys_"},     {"by_query", "_queries_"}, {"cluster", "_cluster_"}};
    bool same = strcmp(counted, expected) == 0;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        same |= strcmp(counted, variables[i].variable) == 0 && strstr(expected, variables[i].part) != NULL;
    }
    return same;
}

/* Kernels that touch all that counts in pieces of 16 bytes, once read and once written. */
static bool is_in_pieces(const char *kernel)
{
    static const char *const kernels[] = {"column_partials_kernel",
                                          "norm_kernel",
                                          "norm_backward_kernel",
                                          "elements_kernel",
                                          "bias_gelu_kernel",
                                          "broadcast_kernel",
                                          "gather_kernel",
                                          "cross_entropy_kernel",
                                          "maxima_kernel",
                                          "squares_kernel",
                                          "lamb_direction_kernel",
                                          "lamb_step_kernel",
                                          "lans_direction_kernel",
                                          "lans_step_kernel",
                                          "adamw_kernel",
                                          "attention_mma_kernel",
                                          "attention_wgmma_kernel",
                                          "attention_wgmma_short_kernel",
                                          "attention_wgmma_whole_kernel",
                                          "attention_wgmma_cluster_kernel",
                                          "short_product_kernel",
                                          "attention_split_kernel",
                                          "memset"};
    bool found = false;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        found |= strcmp(kernel, kernels[i]) == 0;
    }
    return found;
}

/* What a launch should touch in pieces.  Sums of columns are written a number at a time, and read by the launch behind. */
static double bytes_in_pieces(int i)
{
    bool sums = strcmp(check.expected[i].kernel, "column_partials_kernel") == 0;
    return check.expected[i].bytes - (sums ? check.expected[i + 1].bytes : 0);
}

static void compare(const char *op)
{
    struct emulated_count counted[MOST];
    int n = emulated_counts_end(counted, MOST);
    EXPECT(n == check.n_expected, "%s launches %d kernels, the model says %d", op, n, check.n_expected);
    for (int i = 0; i < n; i++) {
        const struct cuda_launch *e = &check.expected[i];
        check.n_casts += strcmp(counted[i].kernel, "cast_kernel") == 0;
        EXPECT(is_name(counted[i].kernel, e->kernel), "%s launches %s, the model says %s", op,
               counted[i].kernel, e->kernel);
        EXPECT(counted[i].early == e->early, "%s: %s begins %s, the model says otherwise", op, e->kernel,
               counted[i].early ? "early" : "late");
        double bytes = bytes_in_pieces(i);
        if (is_in_pieces(e->kernel) && bytes > SMALL) {
            EXPECT(fabs(counted[i].bytes - bytes) < TOLERANCE * bytes,
                   "%s: %s touches %.0f bytes, the model says %.0f", op, e->kernel, counted[i].bytes, bytes);
            check.n_compared++;
        }
    }
}

#define BOTH(slot, parameters, arguments, ...)                                                               \
    static void both_##slot(struct exec *x, OP_UNPACK parameters)                                            \
    {                                                                                                        \
        struct exec counting = {.ops = &check.traffic.table, .allow_tf32 = x->allow_tf32};                   \
        emulated_counts_begin();                                                                             \
        ops_cuda.slot(x, OP_UNPACK arguments);                                                               \
        check.n_expected = 0;                                                                                \
        check.traffic.table.slot(&counting, OP_UNPACK arguments);                                            \
        compare(#slot);                                                                                      \
    }

OP_SLOTS(BOTH)

static const struct ops both = {.name = "both",
#define ENTRY(slot, ...) .slot = both_##slot,
                                OP_SLOTS(ENTRY)};

struct run {
    const char *attention; /* KILN_ATTENTION */
    enum launch_attention_kernel kernel;
    enum dtype dtype;
    bool fp8;
    const struct optimizer_kind *optimizer;
    enum bert_task task;
    enum product_form form;
    int64_t length;
    bool pre_ln;
};

static struct trainer_config config_of(const struct run *r, struct batch_limits limits)
{
    struct trainer_config c = fixture_trainer(&both, r->dtype, limits);
    c.device = &device_emulated;
    c.precision.fp8 = r->fp8;
    struct bert_model *bert = fixture_bert(&c);
    bert->task = r->task;
    c.optimizer = optimizer_defaults(r->optimizer);
    c.training = r->task == BERT_TASK_PRETRAINING;
    bert->config.hidden_size = 64;
    bert->config.num_attention_heads = 1;
    bert->config.intermediate_size = 128;
    bert->config.num_hidden_layers = 1;
    bert->config.max_position_embeddings = 512;
    bert->config.vocab_size = 300;
    bert->config.layer_norm_large_model = r->pre_ln;
    fixture_bert_changed(bert);
    return c;
}

static void check_run(const struct run *r)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result result;
    setenv("KILN_ATTENTION", r->attention, 1);
    emulated_form = (int)r->form;
    cuda_traffic_init(&check.traffic);
    check.traffic.launched = expect_launch;
    check.traffic.seconds = by_bytes;
    check.traffic.form = (int)r->form;
    check.traffic.attention = (int)r->kernel;
    EXPECT_OK(batch_step_init(&step, 1, &bert_batch_layout, bert_batch_limits(2, r->length, r->length)));
    for (int32_t i = 0; i < 2; i++) { /* full, so that attention computes whole tiles */
        int32_t *ids = bert_batch_add(step.micro, r->length, r->length / 2, i, i);
        for (int64_t k = 0; k < r->length; k++) {
            ids[k] = (int32_t)(k * 7 % 300);
            bert_batch_masked_positions(step.micro)[k] = (int32_t)k;
            bert_batch_masked_labels(step.micro)[k] = (int32_t)(k * 5 % 300);
        }
        bert_batch_take_masked(step.micro, r->length / 2);
    }
    batch_finish(step.micro, 0);
    batch_step_count(&step);
    struct trainer_config c = config_of(r, step.micro->limits);
    EXPECT_OK(trainer_init(&t, &c));
    check.n_casts = 0;
    if (c.training) {
        EXPECT_OK(trainer_step(&t, &step, 1, 1, 1e-3, false, &result));
    } else {
        stage_infer(&t.net.stage, step.micro);
        EXPECT_OK(t.net.x.status);
        EXPECT(check.n_casts == 0, "an answer casts %lld biases", (long long)check.n_casts);
    }
    trainer_fini(&t);
    batch_step_fini(&step);
}

int main(void)
{
    static const struct run runs[] = {
        {"plain", LAUNCH_ATTENTION_PLAIN, DTYPE_F32, false, &optimizer_adamw, BERT_TASK_PRETRAINING,
         PRODUCT_ALONE, 64, false},
        {"mma.sync", LAUNCH_ATTENTION_MMA, DTYPE_BF16, false, &optimizer_lamb, BERT_TASK_PRETRAINING,
         PRODUCT_EPILOGUE, 128, false},
        {"wgmma", LAUNCH_ATTENTION_WGMMA, DTYPE_BF16, false, &optimizer_lans, BERT_TASK_PRETRAINING,
         PRODUCT_BROADCAST, 128, false},
        {"wgmma", LAUNCH_ATTENTION_WGMMA, DTYPE_BF16, true, &optimizer_lamb, BERT_TASK_PRETRAINING,
         PRODUCT_EPILOGUE, 192, false},
        {"mma.sync", LAUNCH_ATTENTION_MMA, DTYPE_BF16, false, &optimizer_adamw, BERT_TASK_PRETRAINING,
         PRODUCT_ALONE, 192, false},
        {"cluster", LAUNCH_ATTENTION_CLUSTER, DTYPE_BF16, false, &optimizer_lamb, BERT_TASK_PRETRAINING,
         PRODUCT_EPILOGUE, 320, false},
        {"wgmma", LAUNCH_ATTENTION_WGMMA, DTYPE_BF16, false, &optimizer_lamb, BERT_TASK_QUESTION_ANSWERING,
         PRODUCT_EPILOGUE, 192, false},
        {"wgmma", LAUNCH_ATTENTION_WGMMA, DTYPE_BF16, false, &optimizer_lamb, BERT_TASK_QUESTION_ANSWERING,
         PRODUCT_SHORT, 192, false},
        {"mma.sync", LAUNCH_ATTENTION_MMA, DTYPE_BF16, false, &optimizer_lamb, BERT_TASK_PRETRAINING,
         PRODUCT_SHORT, 128, false},
        {"wgmma", LAUNCH_ATTENTION_WGMMA, DTYPE_BF16, true, &optimizer_lamb, BERT_TASK_PRETRAINING,
         PRODUCT_EPILOGUE, 192, true},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        check.n_compared = 0;
        check_run(&runs[i]);
        EXPECT(check.n_compared >= (runs[i].task == BERT_TASK_PRETRAINING ? 12 : 4),
               "only %lld launches compared", (long long)check.n_compared);
        printf("%s %s s%lld: launches as the model has them, bytes of %lld of them\n", runs[i].attention,
               runs[i].fp8 ? "fp8" : dtype_name(runs[i].dtype), (long long)runs[i].length,
               (long long)check.n_compared);
    }
    return 0;
}
