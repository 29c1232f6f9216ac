/* kiln bench: where the time of a training step goes, op by op, compared with the peaks of this machine in
 * the same run; or predicted for a GPU that is not here.  It uses models of the usual sizes and random
 * tokens, so it needs no file. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "watch/migration_log.h"
#include "data/batch_source.h"
#include "dev/precision.h"
#include "optim/optimizer.h"
#include "model/model_family.h"
#include "task/step_bench.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_args {
    const char *model, *task, *optimizer, *device, *predict, *migration_log;
    struct batch_flags batch;
    int64_t min_seq_length, steps;
    bool recompute;
    struct precision_flags precision;
    struct command_flags common;
};

/* The device that the models run on. */
struct bench_place {
    struct backend plain, watched; /* backends, the second with the migration log around it */
    struct precision precision;
    const struct machine *machine; /* machine that is not here: all is predicted; NULL: all is measured */
};

#define AT(field) offsetof(struct bench_args, field)

static const struct option options[] = {
    OPTION_CHOICE_ROW(
        "model", AT(model), "mini+base", "mini+base|tiny|mini|base|large|gpt2|gpt2-xl|gpt-13b",
        "measure a built-in size: tiny, mini, base or large of BERT, or mini and then base; gpt2 "
        "(124 M parameters) or gpt2-xl (1,558 M); gpt-13b, 8 of the 40 layers of "
        "run_bloom13b.sh's model, which one device holds"),
    OPTION_STRING_ROW("config_file", AT(common.config_file), NULL, "FILE",
                      "measure this model configuration instead (JSON, Hugging Face's keys; see configs/)"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "128", 8, 65536,
                   "number of tokens in a sequence"),
    OPTION_INT_ROW("min_seq_length", AT(min_seq_length), "0", 0, 65536,
                   "spread lengths evenly from N to --max_seq_length; 0: off, all have --max_seq_length"),
    OPTION_INT_ROW("train_batch_size", AT(batch.train_batch_size), "0", 0, 1e6,
                   "number of sequences per step; 0: off, as many as make 4096 tokens (1024 for hidden sizes "
                   "of 768 and more, 32768 on a GPU)"),
    OPTION_CHOICE_ROW("task", AT(task), "pretraining", "pretraining|squad",
                      "measure a step of pre-training, or of answering questions"),
    OPTION_FLAG_ROW("checkpoint_activations", AT(recompute),
                    "keep only the input of each layer and recompute the rest in backward"),
    OPTIMIZER_ROW(AT(optimizer)),
    OPTION_INT_ROW("steps", AT(steps), "3", 1, 1e6, "number of steps to measure; the fastest is shown"),
    OPTION_ROWS_OF(settings_precision, AT(precision)),
    DEVICE_ROW(AT(device)),
    OPTION_STRING_ROW("predict", AT(predict), NULL, "DEVICE",
                      "measure nothing: predict the same table for this device (h200, h100, a100, gaudi1) "
                      "from the FLOPs and bytes of each op and the rates of the device"),
    OPTION_STRING_ROW("migration_log", AT(migration_log), NULL, "FILE",
                      "write to this file which kernel computed each op, by dtype and shape"),
    DRY_RUN_ROW(AT(common.dry_run), "print the planned work and memory"),
    {0},
};

#define BERT_OF(layers, hidden, heads, feed_forward)                                                         \
    "{\"model_type\": \"bert\", \"num_hidden_layers\": " layers ", \"hidden_size\": " hidden                 \
    ", \"num_attention_heads\": " heads ", \"intermediate_size\": " feed_forward "}"

/* Configuration without dropout, as the models are compared. */
#define GPT_OF(layers, hidden, heads, positions, gelu)                                                       \
    "{\"model_type\": \"gpt2\", \"n_layer\": " layers ", \"n_embd\": " hidden ", \"n_head\": " heads         \
    ", \"n_positions\": " positions ", \"activation_function\": \"" gelu                                     \
    "\", \"attn_pdrop\": 0.0, \"embd_pdrop\": 0.0, \"resid_pdrop\": 0.0}"

/* Built-in sizes, each as its config.json.  Devlin et al. 2018 (arXiv:1810.04805) section 3; Turc et al. 2019
 * (arXiv:1908.08962) table 1; Radford et al. 2019 table 2; scripts/run_bloom13b.sh. */
static const struct size {
    const char *name, *config;
} sizes[] = {{"tiny", BERT_OF("2", "128", "2", "512")},
             {"mini", BERT_OF("4", "256", "4", "1024")},
             {"base", BERT_OF("12", "768", "12", "3072")},
             {"large", BERT_OF("24", "1024", "16", "4096")},
             {"gpt2", GPT_OF("12", "768", "12", "1024", "gelu_new")},
             {"gpt2-xl", GPT_OF("48", "1600", "25", "1024", "gelu_new")},
             {"gpt-13b", GPT_OF("8", "5120", "32", "2048", "gelu")}};

/* Whether a list of sizes, joined by +, has this one. */
static bool has_size(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, '+')) {
        at += *at == '+';
        if (strncmp(at, name, n) == 0 && (at[n] == '\0' || at[n] == '+')) {
            return true;
        }
    }
    return false;
}

/* The number of tokens in a step that keeps the device busy and still ends soon. */
static int64_t usual_tokens(const struct model *model, const struct device *device)
{
    return !device->is_host ? 32768 : model->hidden_size < 768 ? 4096 : 1024;
}

static struct status plan_bench(struct step_bench *s, const struct bench_args *a,
                                const struct bench_place *at, const char *name, const struct model *model)
{
    int64_t tokens = usual_tokens(model, at->plain.device);
    FAIL_IF(a->min_seq_length > a->batch.max_seq_length, STATUS_USAGE,
            "--min_seq_length %" PRId64 " is more than --max_seq_length %" PRId64, a->min_seq_length,
            a->batch.max_seq_length);
    FAIL_IF(a->batch.max_seq_length > model->max_length, STATUS_USAGE,
            "--max_seq_length %" PRId64 " is more than the %" PRId64 " positions of %s",
            a->batch.max_seq_length, model->max_length, name);
    *s = (struct step_bench){
        .config = {.net = {.model = model,
                           .device = at->watched.device,
                           .ops = at->watched.ops,
                           .precision = at->precision,
                           .learns = strcmp(a->task, "pretraining") == 0,
                           .recompute = a->recompute ? 1 : 0},
                   .optimizer = optimizer_defaults(optimizer_find(a->optimizer)),
                   .seed = 42},
        .plain = at->plain,
        .ceiling_size = ceiling_size_of(at->plain.device),
        .length = a->batch.max_seq_length,
        .min_length = a->min_seq_length,
        .n_sequences = a->batch.train_batch_size > 0      ? a->batch.train_batch_size
                       : tokens > a->batch.max_seq_length ? tokens / a->batch.max_seq_length
                                                          : 1,
    };
    return step_bench_plan(s);
}

static void append_latency(struct buf *b, const struct step_latency *l, int64_t n_sequences)
{
    if (l->n == 0) {
        return;
    }
    buf_printf(b,
               "warm, nothing timed inside: median %.3f ms, 99 %% of %" PRId64
               " within %.3f ms, %.1f sequences/s\n",
               1e3 * l->median_s, l->n, 1e3 * l->p99_s, (double)n_sequences / l->median_s);
    if (l->passes_s > 0) {
        buf_printf(b, "warm, forward and backward alone: median %.3f ms, %.1f sequences/s\n",
                   1e3 * l->passes_s, (double)n_sequences / l->passes_s);
    }
}

static struct status print_times(const struct step_times *t, const struct step_bench *s,
                                 struct precision precision)
{
    struct buf b = {0};
    double rate = s->useful_flops / t->seconds;
    buf_printf(&b, "ceilings in this run: products of %s %.1f GF/s, copies %.1f GB/s read and written\n\n",
               precision.allow_tf32 ? "tf32" : dtype_name(precision_factor(precision, s->config.net.device)),
               t->ceilings.products * 1e-9, t->ceilings.copy * 1e-9);
    op_report_append(&b, t->totals, t->seconds, &t->ceilings);
    buf_printf(&b,
               "step %.1f ms, %.0f tokens/s; %.1f GFLOP of it useful: %.1f GF/s, %.0f %% of the products\n",
               1e3 * t->seconds, (double)step_bench_tokens(s) / t->seconds, s->useful_flops * 1e-9,
               rate * 1e-9, 100 * rate / t->ceilings.products);
    append_latency(&b, &t->latency, s->n_sequences);
    buf_putc(&b, '\n');
    return standard_streams_put(&b);
}

static void append_prediction(struct buf *b, const char *what, double seconds, const struct step_bench *s)
{
    buf_printf(b,
               "predicted, not measured: %s %.2f ms, %.0f tokens/s, %.0f useful TFLOP/s, %.0f sequences/s\n",
               what, 1e3 * seconds, (double)step_bench_tokens(s) / seconds, s->useful_flops / seconds * 1e-12,
               (double)s->n_sequences / seconds);
}

static struct status predict(const struct step_bench *s, const struct machine *machine)
{
    struct step_forecast f;
    struct buf b = {0};
    TRY(step_forecast_run(&f, s, &machine->rates));
    op_report_append(&b, f.ops.totals, roofline_seconds(&f.ops), &f.ceilings);
    buf_printf(&b, "\nAt the rates above; a step reaches %.0f %% of them (docs/decisions/0046_plan.md):\n",
               100 * machine->rates.reached);
    if (s->config.net.learns) {
        append_prediction(&b, "forward and backward", f.passes_s, s);
    }
    append_prediction(&b, s->config.net.learns ? "step" : "answers", f.step_s, s);
    buf_putc(&b, '\n');
    return standard_streams_put(&b);
}

static struct status bench(const struct bench_args *a, const struct bench_place *at, const char *name,
                           const struct model *model)
{
    struct step_bench s;
    struct step_times t;
    TRY(plan_bench(&s, a, at, name, model));
    log_put_text(stdout, name);
    printf(": s%" PRId64 " B%" PRId64 " %s %s: %.2f M parameters, %.1f MiB, %.1f GFLOP a step\n", s.length,
           s.n_sequences, precision_name(at->precision), a->optimizer, (double)s.plan.net.n_params / 1e6,
           (double)s.plan.total_bytes / 0x1p20, s.useful_flops * 1e-9);
    TRY(standard_streams_flush());
    if (a->common.dry_run) {
        return status_ok();
    }
    if (at->machine != NULL) {
        return predict(&s, at->machine);
    }
    TRY(step_bench_run(&s, a->steps, &t));
    return print_times(&t, &s, at->precision);
}

static struct status bench_config(const struct bench_args *a, const struct bench_place *at, const char *name,
                                  const json_t *config)
{
    bool answers = strcmp(a->task, "squad") == 0;
    struct model *model;
    TRY(model_family_create(&model, config, name,
                            answers ? MODEL_TASK_QUESTION_ANSWERING : MODEL_TASK_PRETRAINING));
    struct status s = bench(a, at, name, model);
    free(model);
    return s;
}

static struct status bench_models(const struct bench_args *a, const struct bench_place *at)
{
    json_t *config;
    if (a->common.config_file != NULL) {
        TRY(json_read_object(&config, a->common.config_file));
        struct status s = bench_config(a, at, a->common.config_file, config);
        json_decref(config);
        return s;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (has_size(a->model, sizes[i].name)) {
            TRY(json_parse(&config, sizes[i].config, strlen(sizes[i].config), sizes[i].name));
            struct status s = bench_config(a, at, sizes[i].name, config);
            json_decref(config);
            TRY(s);
        }
    }
    return status_ok();
}

static void print_place(const struct backend *b)
{
    struct buf text = {0};
    backend_describe(&text, b);
    printf("kiln       %s\n%s", KILN_VERSION, buf_text(&text));
    buf_fini(&text);
}

static struct status predict_models(const struct bench_args *a, struct bench_place *at, struct device *device)
{
    TRY(status_context(machine_find(&at->machine, a->predict), "--predict"));
    *device = machine_device(at->machine);
    FAIL_IF(device->is_host, STATUS_USAGE,
            "--predict cpu: leave --predict out, and kiln measures this machine");
    at->plain = at->watched = (struct backend){device, &ops_plan};
    TRY(precision_find(&at->precision, &a->precision, device));
    printf("kiln       %s\nNothing here is measured: times are predicted for one %s by a %s.\n\n",
           KILN_VERSION, at->machine->title, at->machine->rates_source);
    return bench_models(a, at);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct bench_args *a = args;
    struct bench_place at = {0};
    struct migration_log log = {0};
    struct device predicted;
    if (a->predict != NULL) {
        return predict_models(a, &at, &predicted);
    }
    TRY(backend_find(&at.plain, a->device));
    TRY(precision_find(&at.precision, &a->precision, at.plain.device));
    print_place(&at.plain);
    at.watched = at.plain;
    TRY(migration_log_open(&log, a->common.dry_run ? NULL : a->migration_log, "bench", &at.watched));
    struct status s = bench_models(a, &at);
    migration_log_close(&log, s);
    return s;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure where the time of a training step goes, compared with this machine's peak",
    .details = "Needs no files.  Measures steps and ceilings in turn on the same device.  Shows the fastest "
               "step: each op with its rate, also in percent of the highest ceiling seen (of matrix products "
               "for GF/s, of copies for GB/s). An op whose data lie in the caches may exceed the ceiling of "
               "copies.  On a GPU, and with --task squad, a line gives the time of a step in steady state, "
               "without timing of ops.  --predict prints the same rows for a device that you do not have.",
    .options = options,
    .args_bytes = sizeof(struct bench_args),
    .run = run,
};
