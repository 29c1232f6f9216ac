/* Rates of parameters: what --freeze may say; what is frozen keeps its bits and its moments, and everything
 * else changes; a backward ends above frozen layers; steps of layers are their parts of the rate; and 1
 * everywhere gives the bits of no rates. */
#include "bert_fixture.h"

#include <inttypes.h>

enum { LONGEST = 14, STEPS = 3, N_LAYERS = 4 };

static struct trainer_config config_of(const struct batch_step *step, const struct ops *ops, enum dtype dtype,
                                       const struct optimizer_kind *kind, struct param_rates rates)
{
    struct trainer_config config = fixture_trainer(ops, dtype, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = N_LAYERS;
    fixture_bert_changed(bert);
    config.optimizer = optimizer_defaults(kind);
    config.rates = rates;
    return config;
}

static void train(struct trainer *t, const struct trainer_config *config, const struct batch_step *step)
{
    struct trainer_result r;
    EXPECT_OK(trainer_init(t, config));
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(t, step, i, i, 1e-2, &r));
    }
}

static bool is_zero(tensor t)
{
    bool zero = true;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        zero = zero && tensor_get(t, i) == 0;
    }
    return zero;
}

static bool is_same(const struct param *p, tensor a, tensor b)
{
    tensor x = param_view(p, a), y = param_view(p, b);
    return memcmp(x.data, y.data, tensor_bytes(x)) == 0;
}

/* `frozen`: beginnings of the names that must be, separated by spaces. */
static bool is_in(const char *name, const char *frozen)
{
    char words[256];
    snprintf(words, sizeof words, "%s", frozen);
    for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " ")) {
        if (strncmp(name, w, strlen(w)) == 0) {
            return true;
        }
    }
    return false;
}

static void frozen_ones_stay(const struct batch_step *step, const struct optimizer_kind *kind,
                             enum dtype dtype, int64_t recompute)
{
    static const struct {
        const char *freeze, *names;
    } cases[] = {
        {"embeddings,0-1", "bert.embeddings. bert.encoder.layer.0. bert.encoder.layer.1."},
        {"embeddings", "bert.embeddings."},
        {"3,bert.pooler", "bert.encoder.layer.3. bert.pooler."},
        {"bert.encoder.layer.2.attention.self.*.weight",
         "bert.encoder.layer.2.attention.self.query.weight bert.encoder.layer.2.attention.self.key.weight "
         "bert.encoder.layer.2.attention.self.value.weight"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct trainer t, fresh;
        struct trainer_config config =
            config_of(step, ops_cpu(), dtype, kind, (struct param_rates){cases[c].freeze, 0});
        config.net.recompute = recompute;
        EXPECT_OK(trainer_init(&fresh, &config));
        train(&t, &config, step);
        int n = 0;
        for (int i = 0; i < t.net.params.n; i++) {
            const struct param *p = &t.net.params.params[i];
            bool frozen = is_in(p->name, cases[c].names);
            n += frozen;
            EXPECT(is_same(p, t.net.master, fresh.net.master) == frozen, "%s, --freeze %s: %s %s", kind->name,
                   cases[c].freeze, p->name, frozen ? "changed" : "did not change");
            EXPECT(!frozen || is_zero(param_view(p, t.exp_avg)), "%s has a moment", p->name);
        }
        EXPECT(n > 0 && n < t.net.params.n, "%d frozen of %d", n, t.net.params.n);
        trainer_fini(&t);
        trainer_fini(&fresh);
    }
}

/* Neither gradient nor norm of what is below the lowest trained layer is computed: fewer operations are
 * planned. */
static void backward_ends_early(const struct batch_step *step)
{
    struct trainer_plan all, upper, head;
    struct trainer_config config =
        config_of(step, ops_cpu(), DTYPE_F32, &optimizer_adamw, (struct param_rates){0});
    EXPECT_OK(trainer_plan(&all, &config));
    config.rates.freeze = "embeddings,0-1";
    EXPECT_OK(trainer_plan(&upper, &config));
    config.rates.freeze = "embeddings,0-3";
    EXPECT_OK(trainer_plan(&head, &config));
    printf("planned FLOPs of a micro-batch: %.4g, half of the layers frozen %.4g, all frozen %.4g\n",
           all.micro_flops, upper.micro_flops, head.micro_flops);
    EXPECT(upper.micro_flops < 0.85 * all.micro_flops && head.micro_flops < 0.75 * all.micro_flops,
           "%g, %g, %g", all.micro_flops, upper.micro_flops, head.micro_flops);
    EXPECT(upper.total_bytes <= all.total_bytes, "%zu and %zu bytes", upper.total_bytes, all.total_bytes);
}

/* In fp64: the first step of a layer is that of a run without rates, times d^(L - l). */
static void layers_have_their_rates(const struct batch_step *step, const struct optimizer_kind *kind)
{
    const double d = 0.8;
    struct trainer plain, decayed;
    struct trainer_result r;
    struct trainer_config config = config_of(step, &ops_ref, DTYPE_F64, kind, (struct param_rates){0});
    struct trainer fresh;
    EXPECT_OK(trainer_init(&fresh, &config));
    EXPECT_OK(trainer_init(&plain, &config));
    config.rates.layer_decay = d;
    EXPECT_OK(trainer_init(&decayed, &config));
    EXPECT_OK(trainer_step(&plain, step, 1, 1, 1e-2, &r));
    EXPECT_OK(trainer_step(&decayed, step, 1, 1, 1e-2, &r));
    for (int i = 0; i < fresh.net.params.n; i++) {
        const struct param *p = &fresh.net.params.params[i];
        int64_t layer = strncmp(p->name, "bert.embeddings.", 16) == 0 ? -1 : N_LAYERS;
        sscanf(p->name, "bert.encoder.layer.%" SCNd64, &layer);
        double part = pow(d, (double)(N_LAYERS - layer));
        for (int64_t k = 0; k < param_count(p); k++) {
            double w = tensor_get(param_view(p, fresh.net.master), k);
            double want = part * (tensor_get(param_view(p, plain.net.master), k) - w);
            EXPECT_NEAR(tensor_get(param_view(p, decayed.net.master), k) - w, want, 1e-14);
        }
    }
    trainer_fini(&fresh);
    trainer_fini(&plain);
    trainer_fini(&decayed);
}

static void a_rate_of_one_is_none(const struct batch_step *step, const struct optimizer_kind *kind,
                                  enum dtype dtype)
{
    struct trainer a, b;
    struct trainer_config config = config_of(step, ops_cpu(), dtype, kind, (struct param_rates){0});
    train(&a, &config, step);
    config.rates.layer_decay = 1;
    train(&b, &config, step);
    EXPECT(memcmp(a.net.master.data, b.net.master.data, tensor_bytes(a.net.master)) == 0, "%s: other bits",
           kind->name);
    trainer_fini(&a);
    trainer_fini(&b);
}

/* Elements of frozen parameters are counted, and a backward ends at the lowest layer that is not frozen.
 * Behind the table is a parameter that is not of it. */
static void frozen_elements_are_counted(void)
{
    struct param params[] = {{.name = "embeddings.word", .n_dims = 2, .dims = {5, 3}, .layer = -1, .rate = 1},
                             {.name = "layer.0.weight", .n_dims = 2, .dims = {3, 7}, .layer = 0, .rate = 1},
                             {.name = "head.bias", .n_dims = 1, .dims = {2}, .layer = 1, .rate = 1},
                             {.name = "other", .n_dims = 1, .dims = {11}, .layer = -1, .rate = 1}};
    struct param_table table = {.params = params, .n = 3};
    EXPECT(param_rates_count_frozen(&table) == 0 && param_rates_lowest(&table) == -1, "nothing is frozen");
    EXPECT_OK(
        param_rates_apply(&table, 1, &(struct param_rates){.freeze = "embeddings", .layer_decay = 0.5}));
    EXPECT(params[1].rate == 0.5 && params[2].rate == 1 && params[3].rate == 1, "rates of other parameters");
    params[3].rate = 0;
    EXPECT(param_rates_count_frozen(&table) == 15, "%lld are frozen",
           (long long)param_rates_count_frozen(&table));
    params[3].rate = 1;
    EXPECT(param_rates_lowest(&table) == 0, "layer %lld is trained", (long long)param_rates_lowest(&table));
    EXPECT_ERROR(param_rates_apply(&table, 1, &(struct param_rates){.freeze = "other"}), STATUS_USAGE,
                 "matches no parameter");
    EXPECT_ERROR(param_rates_apply(&table, 1, &(struct param_rates){.freeze = "layer,head"}), STATUS_USAGE,
                 "leaves nothing to train");
}

static void wrong_words_are_refused(const struct batch_step *step)
{
    static const struct {
        const char *freeze, *message;
    } cases[] = {
        {"bert.encoder.leyer.0", "\"bert.encoder.leyer.0\" matches no parameter"},
        {"embeddings,no.such*", "\"no.such*\" matches no parameter"},
        {"bert.pool", "\"bert.pool\" matches no parameter"},
        {"4", "there are no layers 4; the model has 4, numbered 0 to 3"},
        {"2-4", "there are no layers 2-4"},
        {"2-1", "there are no layers 2-1"},
        {"99999999999999999999", "\"99999999999999999999\" matches no parameter"},
        {"0,,1", "a word that is empty"},
        {"0,", "a word that is empty"},
        {"", "a word that is empty"},
        {"*", "leaves nothing to train"},
        {"embeddings,0-3,bert,cls", "leaves nothing to train"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trainer_plan plan;
        struct trainer_config config =
            config_of(step, ops_cpu(), DTYPE_F32, &optimizer_adamw, (struct param_rates){cases[i].freeze, 0});
        EXPECT_ERROR(trainer_plan(&plan, &config), STATUS_USAGE, cases[i].message);
    }
}

int main(void)
{
    static const struct optimizer_kind *const kinds[] = {&optimizer_lamb, &optimizer_lans, &optimizer_adamw};
    struct batch_step step;
    fixture_step(&step, 2, 3, LONGEST);
    for (int i = 0; i < 3; i++) {
        frozen_ones_stay(&step, kinds[i], DTYPE_F32, i);
        frozen_ones_stay(&step, kinds[i], DTYPE_BF16, 0);
        layers_have_their_rates(&step, kinds[i]);
        a_rate_of_one_is_none(&step, kinds[i], DTYPE_F32);
        a_rate_of_one_is_none(&step, kinds[i], DTYPE_BF16);
    }
    backward_ends_early(&step);
    frozen_elements_are_counted();
    wrong_words_are_refused(&step);
    batch_step_fini(&step);
    return 0;
}
