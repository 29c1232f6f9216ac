/* Spikes in sequences of losses and norms with known deviations, ranges of steps that are left out, the state
 * through JSON text, damaged states, and weights of ranks that differ by one bit. */
#include "data/text_batch.h"
#include "nn/decoder/decoder_config.h"
#include "ops/ops.h"
#include "task/health.h"

#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct health_options options = {
    .spike_z = 3, .spike_window = 4, .spike_skip = 2, .spike_rollbacks = 2};

/* log(loss) and the norm are 1, 3, 1, 3: a mean of 2, a deviation of 1. */
static void fill(struct health_state *s)
{
    *s = (struct health_state){0};
    for (int i = 0; i < 4; i++) {
        double value = i % 2 == 0 ? 1 : 3;
        EXPECT(!health_is_spike(&options, health_score(s, &options, 1e30, 1e30)), "a spike among %d", i);
        health_add(s, &options, exp(value), value);
    }
}

static void test_scores(void)
{
    struct health_state s;
    fill(&s);
    struct health_score score = health_score(&s, &options, exp(4.0), 1.0);
    EXPECT(fabs(score.log_loss - 2) < 1e-5 && fabs(score.grad_norm + 1) < 1e-5, "%g and %g", score.log_loss,
           score.grad_norm);
    EXPECT(!health_is_spike(&options, health_score(&s, &options, exp(4.9), 4.9)), "2.9 deviations");
    EXPECT(health_is_spike(&options, health_score(&s, &options, exp(5.1), 2)), "the loss, 3.1 deviations");
    EXPECT(health_is_spike(&options, health_score(&s, &options, exp(2), 5.1)), "the norm, 3.1 deviations");
    EXPECT(!health_is_spike(&options, health_score(&s, &options, exp(-9), 0)), "a fall");
    struct health_options off = options;
    off.spike_z = 0;
    EXPECT(!health_is_spike(&off, health_score(&s, &off, 1e30, 1e30)), "nobody asked");

    /* the oldest leave: 3, 1, 3, 9 */
    health_add(&s, &options, exp(9), 9);
    EXPECT(s.n == 4 && s.grad_norm[0] == 3 && s.grad_norm[3] == 9, "%lld values, from %g to %g",
           (long long)s.n, (double)s.grad_norm[0], (double)s.grad_norm[3]);
    for (int i = 0; i < 4; i++) {
        health_add(&s, &options, 2, 2);
    }
    EXPECT(!health_is_spike(&options, health_score(&s, &options, 2.1, 2.1)), "a window without deviation");
}

static void test_left_out(void)
{
    struct health_state s = {0};
    EXPECT(health_leave_out(&s, &options, 2) && health_leave_out(&s, &options, 10), "two are allowed");
    EXPECT(!health_leave_out(&s, &options, 20) && s.n_left_out == 2, "a third");
    for (int64_t step = 1; step < 25; step++) {
        bool wanted = step <= 2 || (step >= 8 && step <= 10);
        EXPECT(health_leaves_out(&s, step) == wanted, "step %lld", (long long)step);
    }
}

static struct status parse_text(struct health_state *s, const char *text, int64_t step)
{
    json_t *root;
    TRY(json_parse(&root, text, strlen(text), "state"));
    struct status status = health_parse(s, root, step, "state");
    json_decref(root);
    return status;
}

static void test_json(void)
{
    struct health_state s, back;
    fill(&s);
    health_add(&s, &options, 1.0 / 3, 1.0 / 7);
    EXPECT(health_leave_out(&s, &options, 10), "left out");
    json_t *object = health_to_json(&s);
    char *text = json_to_text(object);
    EXPECT_OK(parse_text(&back, text, 12));
    EXPECT(memcmp(&s.n, &back.n, sizeof s.n) == 0 && s.n_left_out == back.n_left_out, "counts");
    for (int i = 0; i < 4; i++) {
        EXPECT(s.log_loss[i] == back.log_loss[i], "other losses in %s", text);
        EXPECT(s.grad_norm[i] == back.grad_norm[i], "other norms in %s", text);
    }
    EXPECT(back.left_out[0].first == 8 && back.left_out[0].last == 10, "another range in %s", text);
    free(text);
    json_decref(object);
    EXPECT_OK(health_parse(&back, NULL, 0, "state"));
    EXPECT(back.n == 0 && back.n_left_out == 0 && health_to_json(&back) == NULL, "health of nothing");

    static const char *const damaged[] = {
        "{}",
        "{\"log_loss\": [1], \"grad_norm\": [], \"left_out\": []}",
        "{\"log_loss\": [1,1,1,1], \"grad_norm\": [1,1,1,1], \"left_out\": []}",
        "{\"log_loss\": [\"x\"], \"grad_norm\": [1], \"left_out\": []}",
        "{\"log_loss\": [1e300], \"grad_norm\": [1], \"left_out\": []}",
        "{\"log_loss\": [], \"grad_norm\": [], \"left_out\": [[3, 2]]}",
        "{\"log_loss\": [], \"grad_norm\": [], \"left_out\": [[0, 2]]}",
        "{\"log_loss\": [], \"grad_norm\": [], \"left_out\": [1]}",
        "{\"log_loss\": [], \"grad_norm\": [], \"left_out\": {}}",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        EXPECT(parse_text(&back, damaged[i], 3).code == STATUS_DATA, "taken: %s", damaged[i]);
    }
}

enum { N_WEIGHTS = 1100003 }; /* several pieces, the last not whole */

/* The ranks whose weights have one bit flipped, each at another place. */
struct flips {
    int n, ranks[RANKS_MOST];
    int64_t from_end; /* of the first flip, in bytes; later ones are each a byte before */
    const char *told; /* a part of the error; NULL: there is none */
};

static void compare_weights(const struct comm *c, void *context)
{
    const struct flips *flips = context;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    tensor weights = tensor_1d(calloc(N_WEIGHTS, sizeof(float)), DTYPE_F32, N_WEIGHTS);
    for (int64_t i = 0; i < N_WEIGHTS; i++) {
        tensor_set(weights, i, 1.0 / (double)(i + 1));
    }
    for (int i = 0; i < flips->n; i++) {
        if (flips->ranks[i] == c->rank) {
            ((unsigned char *)weights.data)[weights.dims[0] * 4 - 1 - flips->from_end - i] ^= 1;
        }
    }
    struct status s = health_check_replicas(c, &x, weights, 7, false);
    struct status at_start = health_check_replicas(c, &x, weights, 0, true);
    EXPECT(flips->told == NULL
               ? !failed(at_start)
               : at_start.code == STATUS_DATA && strstr(at_start.message, "would start from differ") != NULL,
           "rank %d at the start: %s", c->rank, at_start.message);
    if (flips->told == NULL) {
        EXPECT_OK(s);
    } else {
        EXPECT(s.code == STATUS_IO && strstr(s.message, flips->told) != NULL, "rank %d: %s", c->rank,
               s.message);
    }
    free(weights.data);
}

static void test_replicas(void)
{
    static const struct {
        int size;
        struct flips flips;
    } cases[] = {
        {1, {.told = NULL}},
        {2, {.told = NULL}},
        {4, {.told = NULL}},
        {3, {1, {1}, 0, "after step 7 the weights of rank 1 differ from those of the other ranks"}},
        {5, {2, {4, 0}, 0, "of rank 0, rank 4 differ from those of the other ranks"}},
        {2, {1, {1}, 0, "of rank 0, rank 1 differ from one another"}},
        {3, {1, {2}, N_WEIGHTS * 4 - 1, "of rank 2 differ"}}, /* in the first byte */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct flips flips = cases[i].flips;
        run_ranks(cases[i].size, 30, compare_weights, &flips);
    }
}

/* ---- what no slice cuts ---- */

/* A bit of a parameter that rank 1 has otherwise. */
struct uncut_case {
    enum dtype dtype;
    const char *param;
    bool told;
};

static void flip_bit(struct network *n, const char *name)
{
    const struct param *p = param_table_find(&n->params, name);
    bool in_vectors = !network_has_master(n) && vector_places_has(&n->places, p);
    tensor flat = in_vectors ? n->vectors : network_has_master(n) ? n->master : n->working;
    int64_t at = in_vectors ? n->places.table.params[p - n->params.params].offset : p->offset;
    *((unsigned char *)flat.data + (size_t)at * dtype_bytes(flat.dtype)) ^= 1;
}

static void compare_uncut(const struct comm *c, void *context)
{
    static const struct decoder_config gpt2 = {.vocab_size = 45,
                                               .hidden_size = 16,
                                               .n_layers = 2,
                                               .n_heads = 2,
                                               .feed_forward_size = 32,
                                               .n_positions = 8,
                                               .initializer_range = 0.2,
                                               .norm_eps = 1e-5};
    const struct uncut_case *of = context;
    struct model *m;
    struct network n;
    EXPECT_OK(gpt2_model_create(&m, &gpt2, MODEL_TASK_CAUSAL_LM));
    struct peers peers = {.rank = c->rank, .size = c->size};
    struct network_config config = {.model = m,
                                    .device = &device_cpu,
                                    .ops = ops_cpu(),
                                    .precision = {.dtype = of->dtype},
                                    .limits = text_batch_limits(1, 8, 8),
                                    .whole_logits = true,
                                    .part = {.slice = c->rank, .n_slices = c->size},
                                    .peers = &peers};
    EXPECT_OK(network_init(&n, &config));
    EXPECT_OK(health_check_uncut(c, &n, 0, true));
    if (c->rank == 1) {
        flip_bit(&n, of->param);
    }
    struct status s = health_check_uncut(c, &n, 3, false);
    if (of->told) {
        EXPECT_ERROR(s, STATUS_IO, "after step 3 the weights of rank 0, rank 1 differ from one another");
    } else {
        EXPECT_OK(s);
    }
    network_fini(&n);
    free(m);
}

static void test_uncut(void)
{
    static struct uncut_case cases[] = {
        {DTYPE_F32, "transformer.ln_f.weight", true},    {DTYPE_F32, "transformer.wpe.weight", true},
        {DTYPE_F32, "transformer.wte.weight", false}, /* each has words of its own */
        {DTYPE_BF16, "transformer.h.1.ln_1.bias", true}, {DTYPE_BF16, "transformer.wpe.weight", true},
        {DTYPE_BF16, "transformer.wte.weight", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_ranks(2, 30, compare_uncut, &cases[i]);
    }
}

int main(void)
{
    test_scores();
    test_left_out();
    test_json();
    test_replicas();
    test_uncut();
    return 0;
}
