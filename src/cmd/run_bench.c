/* kiln bench: where the time of a training step goes, op by op, beside what this machine reaches in the same
 * run.  Models of the usual sizes and made-up tokens, so that it needs no file. */
#include "cmd/ceilings.h"
#include "cmd/commands.h"
#include "core/clock.h"
#include "core/rng.h"
#include "train/op_report.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct bench_args {
    const char *model, *config_file, *optimizer;
    int64_t max_seq_length, train_batch_size, steps;
    bool autocast, dry_run;
};

#define AT(field) offsetof(struct bench_args, field)

static const struct option options[] = {
    OPTION_CHOICE_ROW("model", AT(model), "mini+base", "mini+base|tiny|mini|base|large",
                      "a built-in size: tiny, mini, base, large, or mini and then base"),
    OPTION_STRING_ROW("config_file", AT(config_file), NULL, "FILE",
                      "a model configuration instead (JSON, Hugging Face's keys; see configs/)"),
    OPTION_INT_ROW("max_seq_length", AT(max_seq_length), "128", 8, 65536, "tokens of every sequence"),
    OPTION_INT_ROW("train_batch_size", AT(train_batch_size), "0", 0, 1e6,
                   "sequences of a step; 0: 4096 tokens, 1024 for hidden sizes of 768 and more"),
    OPTION_CHOICE_ROW("optimizer", AT(optimizer), "adamw", "lamb|adamw", "lamb or adamw"),
    OPTION_INT_ROW("steps", AT(steps), "3", 1, 1e6, "steps to measure, of which the fastest is shown"),
    OPTION_FLAG_ROW("autocast", AT(autocast), "compute in bf16; without it everything is fp32"),
    OPTION_FLAG_ROW("dry_run", AT(dry_run), "say what would be computed and in how much memory"),
    {0},
};

/* Devlin et al. 2018 (arXiv:1810.04805) section 3; Turc et al. 2019 (arXiv:1908.08962) table 1. */
static const struct size {
    const char *name;
    int64_t layers, hidden;
} sizes[] = {{"tiny", 2, 128}, {"mini", 4, 256}, {"base", 12, 768}, {"large", 24, 1024}};

/* A model to measure, and what is known of it beforehand. */
struct subject {
    const char *name;
    struct trainer_config config;
    struct trainer_plan plan;
    int64_t n_sequences, length, n_masked; /* masked positions of a sequence */
    double useful_flops;                   /* products of one step over its real tokens and labels */
};

static struct bert_config config_of_size(const struct size *s)
{
    return (struct bert_config){
        .vocab_size = 30522,
        .hidden_size = s->hidden,
        .num_hidden_layers = s->layers,
        .num_attention_heads = s->hidden / 64,
        .intermediate_size = 4 * s->hidden,
        .max_position_embeddings = 512,
        .type_vocab_size = 2,
        .hidden_dropout_prob = 0.1,
        .attention_probs_dropout_prob = 0.1,
        .initializer_range = 0.02,
        .layer_norm_eps = 1e-12,
    };
}

static struct status config_of_file(struct bert_config *config, const char *path)
{
    json_t *object;
    TRY(json_read_object(&object, path));
    struct status s = bert_config_parse(config, object, path);
    json_decref(object);
    if (!failed(s) && config->vocab_size == 0) {
        config->vocab_size = 30522;
    }
    return s;
}

/* Counts the work twice: with the rounding of batches for memory, without it for what is useful. */
static struct status plan_subject(struct subject *s, const struct bench_args *a,
                                  const struct bert_config *model)
{
    int64_t tokens = model->hidden_size < 768 ? 4096 : 1024;
    if (a->max_seq_length > model->max_position_embeddings) {
        return status_error(STATUS_USAGE,
                            "--max_seq_length %" PRId64 " is more than the %" PRId64 " positions of %s",
                            a->max_seq_length, model->max_position_embeddings, s->name);
    }
    s->length = a->max_seq_length;
    s->n_masked = lround(0.15 * (double)s->length);
    s->n_sequences = a->train_batch_size > 0 ? a->train_batch_size
                     : tokens > s->length    ? tokens / s->length
                                             : 1;
    s->config = (struct trainer_config){
        .model = *model,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .dtype = a->autocast ? DTYPE_BF16 : DTYPE_F32,
        .optimizer = optimizer_defaults(strcmp(a->optimizer, "lamb") == 0 ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW),
        .limits = bert_batch_limits(s->n_sequences, s->length, s->n_masked),
        .training = true,
        .seed = 42,
    };
    struct trainer_config exact = s->config;
    exact.limits = (struct bert_batch_limits){s->n_sequences * s->length, s->n_sequences,
                                              s->n_sequences * s->n_masked, s->length};
    TRY(trainer_plan(&s->plan, &exact));
    s->useful_flops = s->plan.micro_flops;
    return trainer_plan(&s->plan, &s->config);
}

/* One micro-batch of full sequences of random words. */
static struct status make_step(struct bert_step *step, const struct subject *s)
{
    TRY(bert_step_init(step, 1, s->config.limits));
    struct bert_batch *b = step->micro;
    struct rng_stream r = rng_stream(rng_key(s->config.seed, 1));
    uint32_t n_words = (uint32_t)s->config.model.vocab_size;
    for (int64_t i = 0; i < s->n_sequences; i++) {
        int32_t *ids = bert_batch_add(b, s->length, s->length / 2, (int32_t)(i % 2), (int32_t)i);
        for (int64_t k = 0; k < s->length; k++) {
            ids[k] = (int32_t)rng_below(&r, n_words);
        }
        for (int64_t k = 0; k < s->n_masked; k++) {
            bert_batch_masked_positions(b)[k] = (int32_t)(1 + k * (s->length - 1) / s->n_masked);
            bert_batch_masked_labels(b)[k] = (int32_t)rng_below(&r, n_words);
        }
        bert_batch_take_masked(b, s->n_masked);
    }
    bert_batch_finish(b, 0);
    bert_step_count(step);
    return status_ok();
}

/* The fastest step, and the ceilings as high as they were seen between the steps. */
struct outcome {
    double seconds;
    struct op_total totals[OP_WATCH_N_OPS];
    struct op_ceilings ceilings;
};

static struct status raise_ceilings(struct op_ceilings *c, enum dtype dtype)
{
    double products, copy;
    TRY(ceiling_products(dtype, &products));
    TRY(ceiling_copy(&copy));
    c->products = products > c->products ? products : c->products;
    c->copy = copy > c->copy ? copy : c->copy;
    return status_ok();
}

static struct status run_steps(struct outcome *out, struct trainer *t, struct op_timer *timer,
                               const struct bert_step *step, int64_t n_steps)
{
    *out = (struct outcome){.seconds = INFINITY};
    for (int64_t i = 0; i <= n_steps; i++) { /* the first warms up */
        struct trainer_result unused;
        TRY(raise_ceilings(&out->ceilings, t->config.dtype));
        op_timer_clear(timer);
        op_timer_attach(timer);
        int64_t start = clock_ns();
        struct status s = trainer_step(t, step, i + 1, i + 1, 1e-4, false, &unused);
        double seconds = clock_since_s(start);
        op_timer_detach(timer);
        TRY(s);
        if (i > 0 && seconds < out->seconds) {
            out->seconds = seconds;
            memcpy(out->totals, timer->totals, sizeof out->totals);
        }
    }
    return raise_ceilings(&out->ceilings, t->config.dtype);
}

static struct status measure(struct outcome *out, const struct subject *s, int64_t n_steps)
{
    struct trainer t;
    struct bert_step step = {0};
    struct op_timer timer = {0};
    TRY(trainer_init(&t, &s->config));
    struct status status = op_timer_init(&timer, &t.x, 0);
    if (!failed(status)) {
        status = make_step(&step, s);
    }
    if (!failed(status)) {
        status = run_steps(out, &t, &timer, &step, n_steps);
    }
    bert_step_fini(&step);
    op_timer_fini(&timer);
    trainer_fini(&t);
    return status;
}

static struct status print_outcome(const struct outcome *o, const struct subject *s)
{
    struct buf b = {0};
    double rate = s->useful_flops / o->seconds;
    buf_printf(&b, "ceilings in this run: products of %s %.1f GF/s, copies %.1f GB/s read and written\n\n",
               dtype_name(s->config.dtype), o->ceilings.products * 1e-9, o->ceilings.copy * 1e-9);
    op_report_append(&b, o->totals, o->seconds, &o->ceilings);
    buf_printf(&b,
               "step %.1f ms, %.0f tokens/s; %.1f GFLOP of it useful: %.1f GF/s, %.0f %% of the products\n\n",
               1e3 * o->seconds, (double)(s->n_sequences * s->length) / o->seconds, s->useful_flops * 1e-9,
               rate * 1e-9, 100 * rate / o->ceilings.products);
    struct status status = buf_status(&b);
    fputs(buf_text(&b), stdout);
    fflush(stdout);
    buf_fini(&b);
    return status;
}

static struct status bench(const struct bench_args *a, const char *name, const struct bert_config *model)
{
    struct subject s = {.name = name};
    struct outcome o;
    TRY(plan_subject(&s, a, model));
    printf("%s: s%" PRId64 " B%" PRId64 " %s %s: %.2f M parameters, %.1f MiB, %.1f GFLOP a step\n", name,
           s.length, s.n_sequences, dtype_name(s.config.dtype), a->optimizer, (double)s.plan.n_params / 1e6,
           (double)s.plan.total_bytes / 0x1p20, s.useful_flops * 1e-9);
    fflush(stdout);
    if (a->dry_run) {
        return status_ok();
    }
    TRY(measure(&o, &s, a->steps));
    return print_outcome(&o, &s);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct bench_args *a = args;
    printf("kiln %s, %d threads, kernels for %s\n", KILN_VERSION, omp_get_max_threads(), ops_cpu_isa());
    if (a->config_file != NULL) {
        struct bert_config config;
        TRY(config_of_file(&config, a->config_file));
        return bench(a, a->config_file, &config);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strstr(a->model, sizes[i].name) != NULL) {
            struct bert_config config = config_of_size(&sizes[i]);
            TRY(bench(a, sizes[i].name, &config));
        }
    }
    return status_ok();
}

const struct command command_bench = {
    .name = "bench",
    .summary = "where the time of a training step goes, beside what this machine reaches",
    .details =
        "Needs no files.  Steps and ceilings are measured in turn; the fastest step is shown, each op with "
        "its rate and the percentage of the highest ceiling seen: matrix products for GF/s, copying for "
        "GB/s, which ops whose data are in the caches go beyond.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct bench_args),
    .run = run,
};
