/* kiln plan: what a training step takes on devices that need not be here, alone or together: memory, work,
 * traffic and a predicted time, with what others have published. */
#include "cmd/commands.h"
#include "cmd/plan.h"
#include "cmd/megatron_args.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "ops/backend.h"
#include "model/model_family.h"
#include "optim/optimizer.h"
#include "task/pretrain_kind.h"
#include "watch/ceilings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan_args {
    const char *optimizer, *device, *mesh, *partition;
    int64_t chunks, search, world, zero, max_predictions_per_seq;
    struct batch_flags batch;
    int64_t micro_batch_size, global_batch_size, interval;
    double memory_gb, products_tflops, copy_gb_s, link_gb_s;
    struct precision_flags precision;
    double train_tokens, cost_per_hour;
    bool sequence_parallel, recompute, skip_checkpoint, schedule, json;
    struct command_flags common;
};

#define AT(field) offsetof(struct plan_args, field)

static const struct option options[] = {
    OPTION_STRING_ROW(
        "config", AT(common.config_file), NULL, "FILE",
        "model configuration (JSON, Hugging Face's keys), or the name of one in configs/, such as 7b"),
    OPTION_STRING_ROW("config_file", AT(common.config_file), NULL, "FILE", "the same"),
    OPTION_INT_ROW("world", AT(world), "1", 1, RANK_PLAN_MOST_WORLD, "number of devices that train together"),
    OPTION_STRING_ROW("mesh", AT(mesh), NULL, "TPxPPxDP",
                      "plan on a mesh of so many tensor-parallel slices, pipeline stages and "
                      "replicas, such as 4x2x1, instead of --world: bytes and traffic of each stage, and the "
                      "predicted time of "
                      "a step"),
    OPTION_INT_ROW("chunks", AT(chunks), "1", 1, PARAM_MOST_RANGES,
                   "with --mesh, number of ranges of layers that a stage has (interleaved schedule)"),
    OPTION_STRING_ROW("pp-partition-method", AT(partition), NULL, "NAME",
                      "with --mesh or --search, how layers are dealt to stages, as in kiln pretrain-gpt: "
                      "'type:transformer|embedding' counts the embeddings as a layer each"),
    OPTION_FLAG_ROW("sequence-parallel", AT(sequence_parallel),
                    "with --mesh or --search, of a decoder: slices also divide the rows of LayerNorms, "
                    "dropouts and residuals"),
    OPTION_FLAG_ROW(
        "schedule", AT(schedule),
        "with --mesh, print what each stage does in a step, and nothing else: F3 is the forward of "
        "micro-batch 3, B3.1 the backward of its chunk 1"),
    OPTION_INT_ROW("search", AT(search), "0", 0, RANK_PLAN_MOST_WORLD,
                   "plan on all meshes of N devices, with 1 and 2 chunks, micro-batches of 1 to 32 "
                   "sequences, ZeRO from --zero on and checkpointed activations where others do not fit, "
                   "and list the ten that are predicted to be fastest; 0: off"),
    OPTION_INT_ROW("zero", AT(zero), "0", 0, 99,
                   "shard training state over devices, by ZeRO's stage. 0: off; 1: moments and fp32 weights; "
                   "2: gradients too"),
    OPTION_STRING_ROW(
        "device", AT(device), "h200", "NAME",
        "plan for this device: h200, h100, a100, gaudi1, or cpu (this machine, whose rates are measured)"),
    OPTION_GROUP_ROW("a step"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "0", 0, 65536,
                   "number of tokens in a sequence; 0: of a decoder all of its positions, else 128"),
    OPTION_INT_ROW("max_predictions_per_seq", AT(max_predictions_per_seq), "20", 1, 65536,
                   "number of masked positions in a sequence"),
    OPTION_INT_ROW("micro_batch_size", AT(micro_batch_size), "16", 1, 1e6,
                   "number of sequences that a device computes at once"),
    OPTION_INT_ROW("train_batch_size", AT(batch.train_batch_size), "0", 0, 1e9,
                   "number of sequences per device in a step; 0: off, one micro-batch"),
    OPTION_INT_ROW("global_batch_size", AT(global_batch_size), "0", 0, 1e9,
                   "number of sequences of all devices in a step, instead of --train_batch_size; 0: off"),
    OPTION_CHOICE_ROW("optimizer", AT(optimizer), "lamb", OPTIMIZER_ALL_NAMES,
                      "update weights with this optimizer"),
    OPTION_ROWS_OF(settings_precision, AT(precision)),
    OPTION_FLAG_ROW("checkpoint_activations", AT(recompute),
                    "keep the activations of few layers and recompute the others in backward"),
    RECOMPUTATION_INTERVAL_ROW(AT(interval)),
    OPTION_FLAG_ROW("skip_checkpoint", AT(skip_checkpoint), "save no checkpoints"),
    OPTION_GROUP_ROW("a run"),
    OPTION_REAL_ROW("train_tokens", AT(train_tokens), "0", 0, 1e15,
                    "print time, device hours, energy and cost of a run over so many tokens, such as 300e9; "
                    "0: off"),
    OPTION_REAL_ROW("cost_per_hour", AT(cost_per_hour), "0", 0, 1e9,
                    "cost of an hour of one device, in any currency; 0: off"),
    OPTION_GROUP_ROW("the device, instead of what kiln knows about it; 0: off"),
    OPTION_REAL_ROW("memory_gb", AT(memory_gb), "0", 0, 1e9, "memory in GB of 1e9 bytes"),
    OPTION_REAL_ROW("products_tflops", AT(products_tflops), "0", 0, 1e9,
                    "rate of matrix products in TFLOP/s; not for h200 and h100, whose kernels are known"),
    OPTION_REAL_ROW("copy_gb_s", AT(copy_gb_s), "0", 0, 1e9,
                    "rate of memory in GB/s, bytes read plus bytes written; needs --products_tflops"),
    OPTION_REAL_ROW("link_gb_s", AT(link_gb_s), "0", 0, 1e9,
                    "rate of the links in GB/s each way, in a node and between nodes"),
    OPTION_GROUP_ROW("output"),
    OPTION_FLAG_ROW("json", AT(json), "print one JSON object: bytes, FLOPs and seconds"),
    DRY_RUN_ROW(AT(common.dry_run), "predict no times, and measure nothing"),
    {0},
};

static struct status check_mesh(const struct plan_args *a)
{
    FAIL_IF((a->mesh != NULL) + (a->world > 1) + (a->search > 0) > 1, STATUS_USAGE,
            "--world, --mesh and --search each say the number of devices: give one of them");
    FAIL_IF(a->mesh == NULL && a->chunks > 1, STATUS_USAGE,
            "--chunks divides the stages of a mesh: give --mesh TPxPPxDP");
    FAIL_IF(a->mesh == NULL && a->search == 0 && a->partition != NULL, STATUS_USAGE,
            "--pp-partition-method deals layers to the stages of a mesh: give --mesh TPxPPxDP");
    FAIL_IF(a->mesh == NULL && a->search == 0 && a->sequence_parallel, STATUS_USAGE,
            "--sequence-parallel divides rows among the slices of a mesh: give --mesh TPxPPxDP");
    FAIL_IF(
        a->schedule && (a->mesh == NULL || a->json), STATUS_USAGE,
        "--schedule prints the turns of a mesh's stages as text: give --mesh TPxPPxDP, and leave out --json");
    FAIL_IF(a->search > 0 && (a->global_batch_size == 0 || a->common.dry_run), STATUS_USAGE,
            "--search compares predicted times of one batch on all meshes: %s",
            a->global_batch_size == 0 ? "give --global_batch_size" : "leave out --dry-run");
    return status_ok();
}

static struct status check(const struct plan_args *a)
{
    FAIL_IF(a->cost_per_hour > 0 && a->train_tokens == 0, STATUS_USAGE,
            "--cost_per_hour is the price of a run: give --train_tokens too");
    FAIL_IF(a->zero == ZERO_STAGES, STATUS_UNAVAILABLE,
            "--zero 3 is not supported: kiln keeps all weights on each device; stage 2 shards all else");
    FAIL_IF(a->zero > ZERO_STAGES, STATUS_USAGE, "--zero is %lld, but must be 0, 1 or 2", (long long)a->zero);
    FAIL_IF(a->batch.train_batch_size > 0 && a->global_batch_size > 0, STATUS_USAGE,
            "--train_batch_size counts the sequences of one device, --global_batch_size of all devices: give "
            "one of them");
    FAIL_IF((a->products_tflops > 0) != (a->copy_gb_s > 0), STATUS_USAGE,
            "--products_tflops and --copy_gb_s need each other: give both");
    TRY(check_mesh(a));
    FAIL_IF(a->batch.max_seq_length < 5, STATUS_USAGE, "--max_seq_length %lld is below 5",
            (long long)a->batch.max_seq_length);
    FAIL_IF(a->max_predictions_per_seq > a->batch.max_seq_length, STATUS_USAGE,
            "--max_predictions_per_seq %lld is more than --max_seq_length %lld",
            (long long)a->max_predictions_per_seq, (long long)a->batch.max_seq_length);
    return status_ok();
}

/* Micro-batches of each of `world` devices; 0: the batch cannot be divided so. */
static int64_t micro_batches(const struct plan_args *a, int64_t world)
{
    int64_t whole = a->global_batch_size > 0 ? world * a->micro_batch_size : a->micro_batch_size;
    int64_t batch = a->global_batch_size > 0        ? a->global_batch_size
                    : a->batch.train_batch_size > 0 ? a->batch.train_batch_size
                                                    : whole;
    return batch % whole == 0 ? batch / whole : 0;
}

static struct status refuse_batch(const struct plan_args *a, int64_t world)
{
    return status_error(
        STATUS_USAGE, "%s %lld cannot be divided into micro-batches of %lld on %lld devices",
        a->global_batch_size > 0 ? "--global_batch_size" : "--train_batch_size",
        (long long)(a->global_batch_size > 0 ? a->global_batch_size : a->batch.train_batch_size),
        (long long)a->micro_batch_size, (long long)world);
}

/* The caller destroys *model, which is NULL if there is none.  The length is the model's own, unless it was
 * given: a decoder is trained on all of its positions, and predicts all tokens but the first. */
static struct status create_model(struct model **model, struct plan_args *a)
{
    json_t *root;
    *model = NULL;
    FAIL_IF(a->common.config_file == NULL, STATUS_USAGE,
            "--config is missing: a model's configuration, or the name of one in configs/");
    TRY(json_read_object(&root, a->common.config_file));
    struct status s = model_family_create(model, root, a->common.config_file, MODEL_TASK_PRETRAINING);
    json_decref(root);
    TRY(s);
    bool is_decoder = (*model)->task == MODEL_TASK_CAUSAL_LM;
    if (a->batch.max_seq_length == 0) {
        a->batch.max_seq_length = is_decoder ? (*model)->max_length : 128;
    }
    a->max_predictions_per_seq = is_decoder ? a->batch.max_seq_length - 1 : a->max_predictions_per_seq;
    return a->batch.max_seq_length <= (*model)->max_length
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--max_seq_length %lld is more than the %lld positions of "
                              "%s",
                              (long long)a->batch.max_seq_length, (long long)(*model)->max_length,
                              a->common.config_file);
}

/* Rates that were given, that the row has, or, of the cpu, that are measured now. */
static struct status find_rates(struct world_setup *s, const struct plan_args *a)
{
    struct machine_rates *r = &s->rates;
    struct backend here;
    *r = s->machine->rates;
    if (a->products_tflops > 0) {
        r->half = r->tf32 = r->fp32 = r->fp8 = 1e12 * a->products_tflops;
        r->copy = 1e9 * a->copy_gb_s;
        return status_ok();
    }
    if (!s->bench.config.net.device->is_host || a->common.dry_run) {
        return status_ok();
    }
    TRY(backend_find(&here, s->machine->name));
    struct ceiling_size size = ceiling_size_of(here.device);
    TRY(ceiling_products(&here, size, s->bench.config.net.precision, &r->half));
    r->tf32 = r->fp32 = r->fp8 = r->half;
    return ceiling_copy(&here, size, &r->copy);
}

/* `device` is filled; it and the model must live as long as the set-up. */
static struct status set_up(struct world_setup *s, struct device *device, const struct model *model,
                            const struct plan_args *a)
{
    struct step_bench *b = &s->bench;
    const char *optimizer;
    TRY(status_context(machine_find(&s->machine, a->device), "--device"));
    TRY(optimizer_find_by_any_name(&optimizer, a->optimizer, "--optimizer"));
    *device = machine_device(s->machine);
    s->config = a->common.config_file;
    s->links = world_links(s->machine, 1e9 * a->link_gb_s);
    *b = (struct step_bench){
        .config = {.net = {.model = model,
                           .device = device,
                           .ops = &ops_plan,
                           .learns = true,
                           .recompute =
                               a->recompute ? pretrain_recomputed_layers(a->interval, model->n_layers) : 0},
                   .optimizer = optimizer_defaults(optimizer_find(optimizer)),
                   .saving = !a->skip_checkpoint,
                   .seed = 42},
        .length = a->batch.max_seq_length,
        .n_sequences = a->micro_batch_size,
        .n_masked = a->max_predictions_per_seq,
    };
    TRY(precision_find(&b->config.net.precision, &a->precision, device));
    TRY(find_rates(s, a));
    return step_bench_plan(b);
}

static struct status plan_stages(struct world_plan plans[ZERO_STAGES], const struct plan_args *a,
                                 const struct world_setup *s, int64_t world, bool *has_times)
{
    int64_t n_micro = micro_batches(a, world);
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        TRY(world_plan_bytes(&plans[stage], s, world, stage, n_micro > 0 ? n_micro : 1));
    }
    *has_times = n_micro > 0 && !a->common.dry_run;
    return *has_times ? world_plan_times(&plans[a->zero], s) : status_ok();
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* One device, the documents' numbers of devices, and the one that was asked for. */
static struct status plan_rows(struct plan_report *r, const struct plan_args *a)
{
    int64_t worlds[PLAN_MOST_WORLDS] = {1, 8, 16, 32, 64, 128, a->world};
    enum { N_WORLDS = 7 };
    qsort(worlds, N_WORLDS, sizeof worlds[0], ascending);
    for (int i = 0; i < N_WORLDS; i++) {
        if (i == 0 || worlds[i] != worlds[i - 1]) {
            struct plan_row *row = &r->rows[r->n_rows++];
            TRY(plan_stages(row->stages, a, r->setup, worlds[i], &row->has_times));
        }
    }
    return status_ok();
}

/* NULL: out of memory. */
static struct status print_json(json_t *object)
{
    struct buf text = {0};
    char *lines = object != NULL ? json_to_text(object) : NULL;
    buf_puts(&text, lines != NULL ? lines : "");
    text.failed = text.failed || lines == NULL;
    free(lines);
    json_decref(object);
    return standard_streams_put(&text);
}

/* The budget of a run with this step. */
static struct plan_budget budget_of(const struct plan_args *a, const struct world_setup *setup,
                                    int64_t devices, int64_t sequences, double step_s)
{
    return (struct plan_budget){.setup = setup,
                                .devices = devices,
                                .sequences = sequences,
                                .step_s = step_s,
                                .tokens = a->train_tokens,
                                .cost_per_hour = a->cost_per_hour};
}

static struct plan_budget budget_of_mesh(const struct plan_args *a, const struct plan_mesh *p)
{
    struct mesh_shape s = p->config.ranks.shape;
    return budget_of(a, p->setup, (int64_t)s.tp * s.pp * s.dp, plan_mesh_batch(p),
                     p->has_times ? p->times.step_s : 0);
}

/* Prints a report and its budget, as text or JSON. */
static struct status print_with_budget(struct buf *text, json_t *object, const struct plan_budget *budget,
                                       bool as_json)
{
    if (!as_json) {
        TRY(plan_budget_append(text, budget));
        return standard_streams_put(text);
    }
    struct status s = plan_budget_add_json(object, budget);
    if (failed(s)) {
        json_decref(object);
        return s;
    }
    return print_json(object);
}

static struct status print_report(const struct plan_report *r, const struct plan_args *a)
{
    const struct world_plan *p = &r->stages[r->stage];
    struct plan_budget budget =
        budget_of(a, r->setup, p->world, p->world * p->n_micro * r->setup->bench.n_sequences,
                  r->has_times ? p->step_s.slow : 0);
    struct buf text = {0};
    if (!a->json) {
        plan_report_append(&text, r);
    }
    return print_with_budget(&text, a->json ? plan_report_json(r) : NULL, &budget, a->json);
}

/* Appends flags with which the plan would fit: "with --world 8 --zero 1"; false: none. */
static struct status put_smallest(struct buf *text, bool *found, const struct plan_report *r,
                                  int64_t recompute)
{
    struct trainer_config c = r->setup->bench.config;
    int64_t world;
    int stage;
    c.net.recompute = recompute;
    c.ranks.n_micro = r->stages[r->stage].n_micro;
    TRY(rank_plan_smallest(&c, r->memory_bytes, &world, &stage));
    *found = world > 0;
    if (*found) {
        buf_printf(text, "%s--world %lld --zero %d", recompute > 0 ? "--checkpoint_activations " : "",
                   (long long)world, stage);
    }
    return status_ok();
}

/* "it fits with --world 8 --zero 1, or with --checkpoint_activations --world 1 --zero 0" */
static struct status put_advice(struct buf *text, const struct plan_report *r)
{
    const struct step_bench *b = &r->setup->bench;
    int64_t layers = b->config.net.model->n_layers;
    struct buf plain = {0}, recomputed = {0};
    bool fits_plain = false, fits_recomputed = false;
    struct status s = put_smallest(&plain, &fits_plain, r, b->config.net.recompute);
    if (!failed(s) && b->config.net.recompute == 0) {
        s = put_smallest(&recomputed, &fits_recomputed, r, pretrain_recomputed_layers(0, layers));
    }
    if (fits_plain || fits_recomputed) {
        buf_printf(text, "it fits with %s%s%s", buf_text(&plain),
                   fits_plain && fits_recomputed ? ", or with " : "", buf_text(&recomputed));
    } else {
        buf_printf(text, "it does not fit even on %d devices with --zero 2%s", RANK_PLAN_MOST_WORLD,
                   b->config.net.recompute == 0 ? " --checkpoint_activations" : "");
    }
    buf_fini(&plain);
    buf_fini(&recomputed);
    return s;
}

static struct status check_fit(const struct plan_report *r)
{
    double needed = (double)rank_plan_needed(&r->stages[r->stage].rank, r->setup->bench.config.net.device);
    struct buf advice = {0};
    if (needed <= r->memory_bytes) {
        return status_ok();
    }
    struct status s = put_advice(&advice, r);
    if (!failed(s)) {
        s = status_error(
            STATUS_MEMORY,
            "%.2f GiB are needed of each %s, which has %.2f; %s; smaller micro-batches need less",
            needed / 0x1p30, r->setup->machine->name, r->memory_bytes / 0x1p30, buf_text(&advice));
    }
    buf_fini(&advice);
    return s;
}

static double memory_of(const struct plan_args *a, const struct world_setup *s)
{
    return a->memory_gb > 0               ? 1e9 * a->memory_gb
           : s->machine->memory_bytes > 0 ? s->machine->memory_bytes
                                          : (double)s->bench.config.net.device->free_bytes();
}

static struct status mesh_of(struct plan_mesh *p, const struct plan_args *a, const struct world_setup *setup)
{
    *p = (struct plan_mesh){.setup = setup,
                            .memory_bytes = memory_of(a, setup),
                            .config = setup->bench.config,
                            .has_times = !a->common.dry_run};
    p->config.ranks =
        (struct trainer_ranks){.cut = {.n_chunks = (int)a->chunks, .sequence_parallel = a->sequence_parallel},
                               .zero_stage = (int)a->zero};
    return megatron_partition_find(&p->config.ranks.cut.partition, a->partition);
}

static struct status print_schedule(const struct trainer_ranks *r)
{
    struct pipeline_shape p = {r->shape.pp, trainer_ranks_chunks(r), r->n_micro};
    TRY(pipeline_check(&p));
    pipeline_print(stdout, &p);
    return standard_streams_flush();
}

static struct status print_mesh(struct plan_mesh *p, const struct plan_args *a)
{
    struct buf text = {0};
    TRY(status_context(plan_mesh_count(p, true), "--mesh"));
    struct plan_budget budget = budget_of_mesh(a, p);
    struct status s = a->json ? status_ok() : plan_mesh_append(&text, p);
    if (failed(s)) {
        buf_fini(&text);
        return s;
    }
    return print_with_budget(&text, a->json ? plan_mesh_json(p) : NULL, &budget, a->json);
}

static struct status plan_on_mesh(const struct plan_args *a, const struct world_setup *setup)
{
    struct plan_mesh p;
    TRY(mesh_of(&p, a, setup));
    TRY(plan_mesh_read(&p.config.ranks.shape, a->mesh));
    p.config.ranks.n_micro = micro_batches(a, p.config.ranks.shape.dp);
    if (p.config.ranks.n_micro == 0) {
        return refuse_batch(a, p.config.ranks.shape.dp);
    }
    if (a->schedule) {
        return print_schedule(&p.config.ranks);
    }
    struct status s = print_mesh(&p, a);
    s = failed(s) ? s : plan_mesh_check(&p);
    plan_mesh_fini(&p);
    return s;
}

/* The budget is that of the fastest mesh. */
static struct status print_search(struct plan_search *search, const struct plan_args *a)
{
    struct buf text = {0};
    TRY(plan_search_run(search));
    struct plan_budget budget = search->n_found > 0
                                    ? budget_of_mesh(a, &search->found[0])
                                    : budget_of(a, search->any.setup, a->search, search->batch, 0);
    if (!a->json) {
        plan_search_append(&text, search);
    }
    return print_with_budget(&text, a->json ? plan_search_json(search) : NULL, &budget, a->json);
}

static struct status search_meshes(const struct plan_args *a, const struct world_setup *setup)
{
    struct plan_search search = {.world = a->search,
                                 .batch = a->global_batch_size,
                                 .recomputed_layers = pretrain_recomputed_layers(
                                     a->interval, setup->bench.config.net.model->n_layers)};
    TRY(mesh_of(&search.any, a, setup));
    struct status s = print_search(&search, a);
    s = failed(s) ? s : plan_search_check(&search);
    plan_search_fini(&search);
    return s;
}

static struct status plan(const struct plan_args *a, const struct model *model)
{
    struct world_setup setup = {0};
    struct device device;
    TRY(set_up(&setup, &device, model, a));
    if (a->mesh != NULL) {
        return plan_on_mesh(a, &setup);
    }
    if (a->search > 0) {
        return search_meshes(a, &setup);
    }
    struct plan_report r = {.setup = &setup, .memory_bytes = memory_of(a, &setup), .stage = (int)a->zero};
    TRY(plan_stages(r.stages, a, &setup, a->world, &r.has_times));
    TRY(plan_rows(&r, a));
    TRY(print_report(&r, a));
    return check_fit(&r);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct plan_args a = *(const struct plan_args *)args;
    struct model *model;
    (void)n_positional, (void)positional;
    struct status s = create_model(&model, &a);
    s = failed(s) ? s : check(&a);
    if (!failed(s) && a.mesh == NULL && a.search == 0 && micro_batches(&a, a.world) == 0) {
        s = refuse_batch(&a, a.world);
    }
    s = failed(s) ? s : plan(&a, model);
    free(model);
    return s;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "estimate memory, traffic and time of a model on machines you do not have",
    .details = "Needs no data and runs nothing.  Bytes come from the plan that `kiln pretrain` allocates; "
               "ZeRO's stages leave out what other devices hold.  A roofline predicts the time of a step: "
               "each op takes as long as its FLOPs or its bytes at the device's rates.  Then follows a table "
               "for 1 to 128 devices, with published figures of the same model.  With --mesh or --search the "
               "model is cut over slices, stages and replicas.  Ends with exit code 71 if the model does not "
               "fit, and says with what it would.",
    .options = options,
    .args_bytes = sizeof(struct plan_args),
    .run = run,
};
