/* Decoders and BERT, which meshes of ranks train with dropout: the same bits whatever the stages, chunks,
 * replicas and shards, and within the rounding of fp32 whatever the slices, with and without sequence
 * parallel. */
#include "bert_fixture.h"
#include "gpt_fixture.h"
#include "rank_trainer.h"

#include "dist/comm_peers.h"
#include "nn/modernbert/modernbert_model.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 14, N_MICRO = 8, SEQUENCES = 2, LONGEST = 30, WORDS = 45, N_LAYERS = 4, N_BLOCKS = 2 };

static const double DEADLINE_S = 120;

enum trained { GPT2, BLOOM, PYTHIA, LLAMA, QWEN3, OLMO2, BERT, BERT_PRE_LN, MODERNBERT };

static const char *const names[] = {"gpt2",  "bloom", "pythia",      "llama",     "qwen3",
                                    "olmo2", "bert",  "pre-LN bert", "modernbert"};

struct mesh_case {
    struct mesh_shape shape;
    int n_chunks;
    int zero_stage;
    bool sequence_parallel;
    int64_t recompute; /* layers that are recomputed together; 0: none */
};

/* What a mesh has after its steps. */
struct outcome {
    double losses[STEPS], norms[STEPS];
    float *weights;          /* [elements of the whole table] */
    float *gradients;        /* the same, of the first step, where ranks have all of theirs */
    size_t activation_bytes; /* of the first rank */
};

struct run {
    enum trained network;
    const struct optimizer_kind *optimizer;
    double lr;
    struct precision precision;
    struct mesh_case of;
    struct batch_step batch;
    struct param_table params; /* of the whole model */
    struct outcome outcome;
};

static struct model *decoder(bool alibi)
{
    const struct decoder_config c = {.vocab_size = WORDS,
                                     .n_positions = 32,
                                     .hidden_size = 32,
                                     .n_layers = N_LAYERS,
                                     .n_heads = 4,
                                     .feed_forward_size = 64,
                                     .embedding_dropout = alibi ? 0 : 0.1,
                                     .hidden_dropout = 0.1,
                                     .attention_dropout = 0.1,
                                     .initializer_range = 0.1,
                                     .norm_eps = 1e-5,
                                     .activation = alibi ? LAYER_GELU_TANH : LAYER_GELU_EXACT,
                                     .positions = alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                     .embedding_norm = alibi};
    return fixture_decoder(&c);
}

/* Of parallel sublayers; layer 1 has no positions, as of SmolLM 3. */
static struct model *pythia(void)
{
    const struct decoder_config c = {.vocab_size = WORDS,
                                     .n_positions = 32,
                                     .hidden_size = 32,
                                     .n_layers = N_LAYERS,
                                     .n_heads = 4,
                                     .feed_forward_size = 64,
                                     .embedding_dropout = 0.1,
                                     .hidden_dropout = 0.1,
                                     .attention_dropout = 0.1,
                                     .initializer_range = 0.1,
                                     .norm_eps = 1e-5,
                                     .positions = LAYER_POSITIONS_ROTARY,
                                     .rotary = {.theta = 100, .size = 2},
                                     .unturned = {3, 1},
                                     .is_parallel = true,
                                     .own_decoder = true};
    return fixture_decoder(&c);
}

/* Of heads that share keys and values, with a decoder of its own. */
static struct model *llama(enum trained n)
{
    static const struct llama_kind kind = {.model_type = "llama",
                                           .class_name = "LlamaForCausalLM",
                                           .bare_class = "LlamaModel",
                                           .qkv_bias = true};
    const struct decoder_config c = {.vocab_size = WORDS,
                                     .n_positions = 32,
                                     .hidden_size = 32,
                                     .n_layers = N_LAYERS,
                                     .n_heads = 8,
                                     .n_kv_heads = 4,
                                     .feed_forward_size = 64,
                                     .hidden_dropout = 0.1,
                                     .attention_dropout = 0.1,
                                     .initializer_range = 0.1,
                                     .norm_eps = 1e-5,
                                     .activation = LAYER_SWIGLU,
                                     .norm = LAYER_NORM_RMS,
                                     .positions = LAYER_POSITIONS_ROTARY,
                                     .rotary = {.theta = 100, .size = 4},
                                     .qkv_bias = n == LLAMA,
                                     .qk_norm = n == QWEN3   ? LAYER_QK_NORM_HEADS
                                                : n == OLMO2 ? LAYER_QK_NORM_ALL
                                                             : LAYER_QK_NORM_NONE,
                                     .own_decoder = true,
                                     .llama = &kind};
    return fixture_decoder(&c);
}

static struct model *bert(bool pre_ln)
{
    struct bert_config c = fixture_config();
    c.num_attention_heads = 4;
    c.max_position_embeddings = 32;
    c.num_hidden_layers = N_LAYERS;
    c.hidden_size = 32;
    c.intermediate_size = 64;
    c.initializer_range = 0.1;
    c.layer_norm_large_model = pre_ln;
    struct model *m;
    EXPECT_OK(bert_model_create(&m, &c, MODEL_TASK_PRETRAINING));
    return m;
}

/* Layers 0 and 3 see all tokens, the others a window. */
static struct model *modernbert(void)
{
    const struct modernbert_config c = {.vocab_size = FIXTURE_VOCAB,
                                        .hidden_size = 32,
                                        .n_layers = N_LAYERS,
                                        .n_heads = 4,
                                        .feed_forward_size = 64,
                                        .n_positions = 32,
                                        .local_attention = 6,
                                        .global_every = 3,
                                        .global_theta = 1000,
                                        .local_theta = 100,
                                        .embedding_dropout = 0.1,
                                        .initializer_range = 0.1,
                                        .norm_eps = 1e-5};
    struct model *m;
    EXPECT_OK(modernbert_model_create(&m, &c, MODEL_TASK_MASKED_LM));
    return m;
}

static struct model *model_of(enum trained n)
{
    return n <= BLOOM        ? decoder(n == BLOOM)
           : n == PYTHIA     ? pythia()
           : n <= OLMO2      ? llama(n)
           : n == MODERNBERT ? modernbert()
                             : bert(n == BERT_PRE_LN);
}

static struct trainer_config config_of(const struct run *r, const struct model *model, const struct comm *c)
{
    struct trainer_config config = {.net = {.model = model,
                                            .device = &device_cpu,
                                            .ops = ops_cpu(),
                                            .precision = r->precision,
                                            .limits = text_batch_limits(SEQUENCES, LONGEST, LONGEST),
                                            .learns = true,
                                            .recompute = r->of.recompute},
                                    .optimizer = optimizer_defaults(r->optimizer),
                                    .seed = 5};
    config.ranks = (struct trainer_ranks){
        .shape = r->of.shape,
        .place = mesh_place_of(r->of.shape, c->rank),
        .cut = {.n_chunks = r->of.n_chunks, .sequence_parallel = r->of.sequence_parallel},
        .zero_stage = r->of.zero_stage,
        .reproducible = N_BLOCKS,
        .n_micro = N_MICRO / N_BLOCKS};
    return config;
}

/* Into the places of the whole tensors. */
static void keep(const struct run *r, float *all_of, const struct trainer *t, tensor flat)
{
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i], *all = param_table_find(&r->params, p->name);
        const float *own = (const float *)flat.data + p->offset;
        for (int64_t k = 0; k < param_count(p) && !p->is_copy; k++) {
            all_of[all->offset + param_full_index(p, k)] = own[k];
        }
    }
}

/* Of the first step, which is then taken. */
static void keep_gradients(const struct run *r, struct trainer *t, const struct batch_step *part)
{
    trainer_begin_step(t, 1, 1, r->lr);
    trainer_queue_gradients(t, part);
    EXPECT_OK(t->net.x.status);
    if (t->mesh.place.dp == 0) {
        keep(r, r->outcome.gradients, t, t->grad);
    }
}

static void train(const struct comm *c, void *context)
{
    struct run *r = context;
    struct trainer t;
    struct model *model = model_of(r->network);
    struct trainer_config config = config_of(r, model, c);
    int dp = r->of.shape.dp;
    struct batch_step mine = dp > 1 ? batch_step_part(&r->batch, config.ranks.place.dp, dp) : r->batch;
    open_trainer_of(&t, &config, c);
    if (c->rank == 0) {
        r->outcome.activation_bytes = t.plan.net.activation_bytes;
    }
    if (r->of.zero_stage == 0) {
        keep_gradients(r, &t, &mine);
    }
    for (int i = 0; i < STEPS; i++) {
        struct trainer_result result;
        EXPECT_OK(trainer_step(&t, &mine, i + 1, i + 1, r->lr, &result));
        if (c->rank == c->size - 1) {
            r->outcome.losses[i] = trainer_result_loss(&result);
            r->outcome.norms[i] = result.grad_norm;
        }
    }
    if (t.mesh.place.dp == 0) {
        keep(r, r->outcome.weights, &t, t.net.master);
    }
    trainer_fini(&t);
    free(model);
}

static void open_run(struct run *r, enum trained network, const struct optimizer_kind *optimizer, double lr)
{
    *r =
        (struct run){.network = network, .optimizer = optimizer, .lr = lr, .precision = {.dtype = DTYPE_F32}};
    struct model *m = model_of(network);
    EXPECT_OK(m->type->declare(m, &r->params));
    if (network <= OLMO2) {
        fixture_texts(&r->batch, N_MICRO, SEQUENCES, LONGEST, WORDS);
    } else {
        fixture_step(&r->batch, N_MICRO, SEQUENCES, LONGEST);
    }
    free(m);
}

static void close_run(struct run *r)
{
    param_table_fini(&r->params);
    batch_step_fini(&r->batch);
}

static struct outcome run_mesh(struct run *r, struct mesh_case of)
{
    r->of = of;
    r->outcome = (struct outcome){.weights = calloc((size_t)r->params.n_elements, sizeof(float)),
                                  .gradients = calloc((size_t)r->params.n_elements, sizeof(float))};
    EXPECT(r->outcome.weights != NULL && r->outcome.gradients != NULL, "out of memory");
    run_ranks(of.shape.tp * of.shape.pp * of.shape.dp, DEADLINE_S, train, r);
    return r->outcome;
}

static void free_outcome(struct outcome *o)
{
    free(o->weights);
    free(o->gradients);
}

static const char *name_of(const struct run *r)
{
    static char text[160];
    const struct mesh_case *k = &r->of;
    snprintf(text, sizeof text, "%s, %s, TP %d PP %d (%d chunks) DP %d ZeRO %d%s%s", names[r->network],
             r->optimizer->name, k->shape.tp, k->shape.pp, k->n_chunks, k->shape.dp, k->zero_stage,
             k->sequence_parallel ? " sequence parallel" : "", k->recompute > 0 ? " recomputing" : "");
    return text;
}

static void expect_same(const struct run *r, const struct outcome *got, const struct outcome *wanted)
{
    for (int i = 0; i < STEPS; i++) {
        EXPECT(got->losses[i] == wanted->losses[i] && got->norms[i] == wanted->norms[i],
               "%s, step %d: loss %.17g, not %.17g; norm %.17g, not %.17g", name_of(r), i + 1, got->losses[i],
               wanted->losses[i], got->norms[i], wanted->norms[i]);
    }
    EXPECT(memcmp(got->weights, wanted->weights, (size_t)r->params.n_elements * sizeof(float)) == 0,
           "%s: other weights", name_of(r));
}

/* The losses differ by the order of sums in fp32 alone. */
static void expect_near(const struct run *r, const struct outcome *got, const struct outcome *wanted)
{
    double worst = 0;
    for (int i = 0; i < STEPS; i++) {
        worst = fmax(worst, fabs(got->losses[i] / wanted->losses[i] - 1));
    }
    EXPECT(worst < 1e-6, "%s: a loss differs by %g of it", name_of(r), worst);
    EXPECT(wanted->losses[STEPS - 1] < 0.9 * wanted->losses[0], "%s: nothing is learned: %g, then %g",
           name_of(r), wanted->losses[0], wanted->losses[STEPS - 1]);
}

static void meshes_agree(enum trained network)
{
    static const struct mesh_case of_one_stage[] = {
        {{1, 1, 2}, 1, 0, false, 0}, {{1, 1, 2}, 1, 1, false, 0}, {{2, 1, 1}, 1, 0, false, 0},
        {{2, 1, 2}, 1, 0, false, 0}, {{2, 1, 2}, 1, 1, false, 0}, {{4, 1, 1}, 1, 0, false, 0},
        {{4, 1, 2}, 1, 1, false, 0},
    };
    static const struct mesh_case of_stages[] = {
        {{1, 2, 1}, 1, 0, false, 0}, {{1, 2, 1}, 2, 0, false, 0}, {{1, 4, 1}, 1, 0, false, 0},
        {{1, 2, 2}, 1, 0, false, 0}, {{1, 2, 2}, 2, 1, false, 0}, {{1, 4, 2}, 1, 1, false, 0},
        {{2, 2, 1}, 1, 0, false, 0}, {{2, 2, 2}, 2, 1, false, 0}, {{2, 4, 1}, 1, 0, false, 0},
        {{4, 2, 1}, 2, 0, false, 0},
    };
    struct run r;
    int n_meshes = 1;
    struct outcome first[2][5] = {0}; /* by whether there are stages, and slices */
    open_run(&r, network, &optimizer_adamw, 1e-3);
    struct outcome alone = run_mesh(&r, (struct mesh_case){{1, 1, 1}, 1, 0, false, 0});
    for (size_t i = 0;
         i < sizeof of_one_stage / sizeof of_one_stage[0] + sizeof of_stages / sizeof of_stages[0]; i++) {
        size_t n = sizeof of_one_stage / sizeof of_one_stage[0];
        struct mesh_case k = i < n ? of_one_stage[i] : of_stages[i - n];
        if (k.shape.tp > 1 && network == OLMO2) {
            continue; /* it has no slices */
        }
        n_meshes++;
        struct outcome got = run_mesh(&r, k);
        struct outcome *same = &first[i >= n][k.shape.tp];
        expect_near(&r, &got, &alone);
        if (i < n && k.shape.tp == 1) {
            expect_same(&r, &got, &alone);
        }
        if (same->weights == NULL) {
            *same = got;
        } else {
            expect_same(&r, &got, same);
            free_outcome(&got);
        }
    }
    for (int i = 0; i < 10; i++) {
        free_outcome(&first[i / 5][i % 5]);
    }
    free_outcome(&alone);
    close_run(&r);
    printf("%s: the same training on %d meshes, loss %.4f, then %.4f\n", names[network], n_meshes,
           alone.losses[0], alone.losses[STEPS - 1]);
}

/* The largest difference of a parameter's gradients, of its largest gradient.  What is below `noise` is the
 * rounding of sums that are 0, as those of keys' biases are. */
static double difference(const struct param *p, const float *got, const float *wanted, double noise)
{
    double largest = noise, worst = 0;
    for (int64_t i = p->offset; i < p->offset + param_count(p); i++) {
        largest = fmax(largest, fabs((double)wanted[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)wanted[i]));
    }
    return worst / largest;
}

static bool is_gated(enum trained n)
{
    return (n >= LLAMA && n <= OLMO2) || n == MODERNBERT;
}

static void expect_near_gradients(const struct run *r, const struct outcome *got,
                                  const struct outcome *wanted)
{
    double largest = 0;
    for (int64_t i = 0; i < r->params.n_elements; i++) {
        largest = fmax(largest, fabs((double)wanted->gradients[i]));
    }
    for (const struct param *p = r->params.params; p < r->params.params + r->params.n; p++) {
        double d = difference(p, got->gradients, wanted->gradients, 1e-2 * largest);
        EXPECT(d < (is_gated(r->network) ? 2e-6 : 1e-6), "%s: a gradient of %s differs by %g of the largest",
               name_of(r), p->name, d);
    }
}

/* Sequence parallel computes what the same mesh computes without it, and one rank, in less memory: the
 * forward has the same bits, since a sum in parts is that sum (dev/peers.h). */
static struct outcome run_divided(struct run *r, struct mesh_case of, const struct outcome *alone)
{
    struct mesh_case plain = of;
    plain.sequence_parallel = false;
    struct outcome without = run_mesh(r, plain), got = run_mesh(r, of);
    EXPECT(got.losses[0] == without.losses[0], "%s: a first loss of %.17g, not %.17g", name_of(r),
           got.losses[0], without.losses[0]);
    expect_near(r, &got, &without);
    expect_near(r, &got, alone);
    expect_near_gradients(r, &got, alone);
    EXPECT(got.activation_bytes < without.activation_bytes, "%s: %zu bytes of activations, %zu without",
           name_of(r), got.activation_bytes, without.activation_bytes);
    free_outcome(&without);
    return got;
}

/* In bf16 a forward has the same bits, too, whatever the residual stream is. */
static void forward_is_the_same(enum trained network, struct precision precision)
{
    const struct mesh_case divided = {{2, 1, 1}, 1, 0, true, 0}, plain = {{2, 1, 1}, 1, 0, false, 0};
    struct run r;
    open_run(&r, network, &optimizer_adamw, 1e-3);
    r.precision = precision;
    struct outcome without = run_mesh(&r, plain), got = run_mesh(&r, divided);
    EXPECT(got.losses[0] == without.losses[0], "%s, %s: a first loss of %.17g, not %.17g", name_of(&r),
           precision_name(precision), got.losses[0], without.losses[0]);
    for (int i = 1; i < STEPS; i++) {
        double d = fabs(got.losses[i] / without.losses[i] - 1);
        EXPECT(d < 2e-3, "%s, %s: the loss of step %d differs by %g of it", name_of(&r),
               precision_name(precision), i + 1, d);
    }
    free_outcome(&without);
    free_outcome(&got);
    close_run(&r);
}

/* The first mesh of a list is compared with others, and has the bits of the rest. */
static void rows_are_divided(enum trained network)
{
    enum { N_LISTS = 4, LONGEST_LIST = 3 };
    static const struct mesh_case lists[N_LISTS][LONGEST_LIST] = {
        {{{2, 1, 1}, 1, 0, true, 0}, {{2, 1, 1}, 1, 0, true, 2}, {{2, 1, 2}, 1, 1, true, 0}},
        {{{4, 1, 1}, 1, 0, true, 0}, {{4, 1, 2}, 1, 1, true, 2}},
        {{{2, 2, 1}, 1, 0, true, 0}, {{2, 2, 2}, 2, 1, true, 0}, {{2, 2, 2}, 1, 0, true, 1}},
        {{{4, 2, 1}, 2, 0, true, 0}},
    };
    struct run r;
    open_run(&r, network, &optimizer_adamw, 1e-3);
    struct outcome alone = run_mesh(&r, (struct mesh_case){.shape = {1, 1, 1}, .n_chunks = 1});
    for (int i = 0; i < N_LISTS; i++) {
        struct outcome first = run_divided(&r, lists[i][0], &alone);
        for (int k = 1; k < LONGEST_LIST && lists[i][k].shape.tp > 0; k++) {
            struct outcome got = run_mesh(&r, lists[i][k]);
            expect_same(&r, &got, &first);
            free_outcome(&got);
        }
        free_outcome(&first);
    }
    free_outcome(&alone);
    close_run(&r);
    printf("%s: the same training with sequence parallel on 9 meshes\n", names[network]);
}

/* An optimizer whose steps follow from norms of whole parameters, or from whole matrices: those of all slices
 * and shards. */
static void steps_are_of_all_slices(enum trained network, const struct optimizer_kind *optimizer, double lr)
{
    static const struct mesh_case meshes[] = {{{2, 1, 1}, 1, 0, false, 0},
                                              {{4, 1, 1}, 1, 0, false, 0},
                                              {{2, 1, 2}, 1, 0, false, 0},
                                              {{2, 1, 2}, 1, 1, false, 0},
                                              {{2, 2, 1}, 1, 0, false, 0}};
    int n = (int)(sizeof meshes / sizeof meshes[0]) - (network == BERT_PRE_LN); /* which has no stages */
    struct run r;
    open_run(&r, network, optimizer, lr);
    struct outcome alone = run_mesh(&r, (struct mesh_case){{1, 1, 1}, 1, 0, false, 0}), first = {0};
    for (int i = 0; i < n; i++) {
        struct outcome got = run_mesh(&r, meshes[i]);
        expect_near(&r, &got, &alone);
        if (i == 0) {
            first = got;
            continue;
        }
        if (meshes[i].shape.tp == meshes[0].shape.tp && meshes[i].shape.pp == 1) {
            expect_same(&r, &got, &first);
        }
        free_outcome(&got);
    }
    free_outcome(&first);
    free_outcome(&alone);
    close_run(&r);
    printf("%s with %s: the same training on %d meshes, loss %.4f, then %.4f\n", names[network],
           optimizer->name, n, alone.losses[0], alone.losses[STEPS - 1]);
}

int main(void)
{
    for (int network = GPT2; network <= BERT; network++) {
        meshes_agree((enum trained)network);
    }
    meshes_agree(MODERNBERT);
    rows_are_divided(GPT2);
    rows_are_divided(BLOOM);
    rows_are_divided(PYTHIA);
    rows_are_divided(LLAMA);
    rows_are_divided(QWEN3);
    for (int i = 0; i < 4; i++) {
        forward_is_the_same(i % 2 == 0 ? GPT2 : BLOOM,
                            (struct precision){.dtype = DTYPE_BF16, .fp32_residual = i / 2 > 0});
    }
    steps_are_of_all_slices(BLOOM, &optimizer_lamb, 1e-2);
    steps_are_of_all_slices(BERT, &optimizer_lamb, 1e-2);
    steps_are_of_all_slices(BERT, &optimizer_lans, 1e-2);
    steps_are_of_all_slices(BERT_PRE_LN, &optimizer_nvlamb_exp, 1e-2);
    steps_are_of_all_slices(GPT2, &optimizer_muon, 4e-3);
    steps_are_of_all_slices(LLAMA, &optimizer_muon, 4e-3);
    steps_are_of_all_slices(BLOOM, &optimizer_muon, 4e-3);
    steps_are_of_all_slices(BERT_PRE_LN, &optimizer_muon, 4e-3);
    return 0;
}
