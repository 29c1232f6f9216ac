/* Tests of report/deepspeed_log: the event file is DeepSpeed's scalars of each step, by samples, to the byte,
 * and the scale of the loss where there is one; skipped steps are counted; lines name the optimizer and the
 * schedule as the script does; without DeepSpeed nothing is printed or written. */
#include "captured_output.h"

#include "report/deepspeed_log.h"

#include <glob.h>

static const char DIRECTORY[] = "test_deepspeed_log.dir/tensorboard/job";
static const char OUTPUT[] = "test_deepspeed_log.out";

enum { BATCH = 12288, EVERY = 2 };

static struct deepspeed_log_options options_of(const struct optimizer_kind *kind, enum schedule_kind schedule,
                                               bool writes, bool has_loss_scale)
{
    struct deepspeed_log_options o = {
        .settings = {.on = true, .zero_stage = 1, .steps_per_print = EVERY},
        .device = "cuda",
        .backend = "self",
        .checkpoints = "run",
        .optimizer = optimizer_defaults(kind),
        .schedule = {.kind = schedule, .warmup = 0.05, .constant = 0.25, .degree = 1, .n_steps = 155000},
        .batch_size = BATCH,
        .n_micro = 96,
        .n_ranks = 1,
        .has_loss_scale = has_loss_scale,
    };
    snprintf(o.settings.tensorboard, sizeof o.settings.tensorboard, "%s", writes ? DIRECTORY : "");
    return o;
}

static struct logged_step step_of(int64_t step, bool skipped)
{
    return (struct logged_step){.step = step,
                                .wall_s = 1700000000.0 + (double)step,
                                .loss = 11.5 - (double)step,
                                .lr = 1e-3 * (double)step,
                                .loss_scale = 1024,
                                .skipped = skipped};
}

/* Steps 1 to 4, of which the third is skipped. */
static void log_steps(struct deepspeed_log *l)
{
    for (int64_t step = 1; step <= 4; step++) {
        struct logged_step s = step_of(step, step == 3);
        deepspeed_log_step(l, &s);
    }
    deepspeed_log_saved(l, 4);
}

static void remove_event_files(void)
{
    glob_t files;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", DIRECTORY);
    if (glob(pattern, 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++) {
            unlink(files.gl_pathv[i]);
        }
        globfree(&files);
    }
}

/* Behind the records of version and start, whose sizes are known, the file has these bytes. */
static void check_events(const char *path, bool has_loss_scale)
{
    struct buf wanted = {0}, version = {0};
    struct file_map m;
    tfevents_append_version(&version, 0);
    tfevents_append_start(&version, 1, 0);
    for (int64_t step = 1; step <= 4; step++) {
        struct logged_step s = step_of(step, false);
        const struct tfevents_scalar scalars[] = {{"Train/Samples/train_loss", s.loss},
                                                  {"Train/Samples/lr", s.lr},
                                                  {"Train/Samples/loss_scale", s.loss_scale}};
        if (step != 3) {
            tfevents_append_scalars(&wanted, step * BATCH, s.wall_s, scalars, has_loss_scale ? 3 : 2);
        }
    }
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == version.n + wanted.n, "%zu bytes, not %zu", m.n, version.n + wanted.n);
    EXPECT(memcmp(m.data + version.n, wanted.data, wanted.n) == 0, "other events than DeepSpeed's");
    file_map_close(&m);
    buf_fini(&wanted);
    buf_fini(&version);
}

static void event_files_are_deepspeeds(bool has_loss_scale)
{
    struct deepspeed_log l;
    char path[1024];
    struct deepspeed_log_options o =
        options_of(&optimizer_lans, SCHEDULE_POLY_CONSTANT, true, has_loss_scale);
    remove_event_files();
    deepspeed_log_open(&l, &o, false, 0);
    snprintf(path, sizeof path, "%s", l.events.log.path);
    log_steps(&l);
    deepspeed_log_close(&l);
    check_events(path, has_loss_scale);
}

/* What a run prints, in `text`. */
static void print_run(struct buf *text, const struct deepspeed_log_options *o, bool prints)
{
    struct deepspeed_log l;
    struct captured_output c = captured_output_begin(OUTPUT);
    deepspeed_log_open(&l, o, prints, 0);
    log_steps(&l);
    deepspeed_log_close(&l);
    captured_output_end(&c, text);
}

static void expect_lines(const struct deepspeed_log_options *o, const char *const *lines, size_t n)
{
    struct buf text = {0};
    print_run(&text, o, true);
    captured_output_expect(&text, lines, n);
    buf_fini(&text);
}

static void lines_are_the_scripts(void)
{
    static const char *const of_lans[] = {
        "Distributed training with backend=self, device=cuda, local_rank=0\n",
        "[INFO] [kiln:init_distributed] Initializing one rank with backend self\n",
        "Using LANS\n",
        "Using PolyWarmUpScheduler with args={'warmup': 0.05, 'total_steps': 155000.0, 'degree': 1.0, "
        "'constant': 0.25}\n",
        "[INFO] [kiln:log_dist] [Rank 0] step=2, skipped=0, lr=[0.002, 0.002], mom=[(0.9, 0.999), (0.9, "
        "0.999)]\n",
        "epoch=0/micro_step=192/global_step=2, RunningAvgSamplesPerSec=",
        "[Rank 0] step=4, skipped=1, lr=[0.004, 0.004], mom=[(0.9, 0.999), (0.9, 0.999)]\n",
        "[INFO] [kiln:_save_zero_checkpoint] zero checkpoint saved run/ckpt_4/optimizer.safetensors\n",
        "[INFO] [kiln:commit] Checkpoint 4 is ready now!\n",
    };
    static const char *const of_nvlamb_exp[] = {
        "Using NVLamb Experimental with use_ds_lamb_bias_correction=False\n",
        "LR Scheduler is expected to be configured in deepspeed configuration file\n",
    };
    static const char *const of_lamb[] = {"Using NVLamb\n"}, *const of_fused[] = {
                                                                 "Using DeepSpeed FusedLamb\n"};
    static const char *const of_emulated = "Initializing 12 emulated ranks with backend mpi\n";
    static const char *const of_linear = "Using the linear schedule of --lr_schedule\n";
    static const char *const of_ranks[] = {
        "Initializing 12 ranks with backend mpi\n",
        "[Rank 0] step=4, skipped=4, ", /* three of them before the run went on */
        "zero checkpoint saved run/ckpt_4/optimizer-00001-of-00012.safetensors\n",
    };
    struct deepspeed_log_options o = options_of(&optimizer_lans, SCHEDULE_POLY_CONSTANT, false, false);
    expect_lines(&o, of_lans, sizeof of_lans / sizeof of_lans[0]);
    o.n_ranks = 12;
    o.backend = "mpi";
    o.n_skipped = 3;
    expect_lines(&o, of_ranks, sizeof of_ranks / sizeof of_ranks[0]);
    o.emulates = true;
    expect_lines(&o, &of_emulated, 1);
    o = options_of(&optimizer_lamb, SCHEDULE_LINEAR, false, false);
    expect_lines(&o, &of_linear, 1);
    o = options_of(&optimizer_nvlamb_exp, SCHEDULE_WARMUP, false, false);
    expect_lines(&o, of_nvlamb_exp, 2);
    o = options_of(&optimizer_lamb, SCHEDULE_CONSTANT, false, false);
    expect_lines(&o, of_lamb, 1);
    o = options_of(&optimizer_ds_fused_lamb, SCHEDULE_CONSTANT, false, false);
    expect_lines(&o, of_fused, 1);
}

/* Without ZeRO there is no line of its checkpoint; without a dllogger file none at all. */
static void what_is_not_there_is_not_told(void)
{
    struct buf text = {0};
    struct deepspeed_log_options o = options_of(&optimizer_lans, SCHEDULE_POLY_CONSTANT, false, false);
    o.settings.zero_stage = 0;
    print_run(&text, &o, true);
    EXPECT(strstr(buf_text(&text), "zero") == NULL, "ZeRO in %s", buf_text(&text));
    buf_clear(&text);
    print_run(&text, &o, false);
    EXPECT(text.n == 0, "printed: %s", buf_text(&text));
    buf_fini(&text);
    struct deepspeed_log none = {0};
    log_steps(&none);
    deepspeed_log_close(&none);
}

/* Of two seconds, one of which was an evaluation, the steps took one. */
static void evaluations_count_in_no_rate(void)
{
    static const int64_t SECOND = 1000000000;
    struct deepspeed_log_options o = options_of(&optimizer_lans, SCHEDULE_POLY_CONSTANT, false, false);
    struct deepspeed_log l;
    deepspeed_log_open(&l, &o, false, 0);
    int64_t began = l.start_ns, window = l.window_ns;
    deepspeed_log_leave_out(&l, SECOND);
    EXPECT(l.start_ns == began + SECOND && l.window_ns == window + SECOND, "it counts");
    deepspeed_log_close(&l);
}

int main(void)
{
    evaluations_count_in_no_rate();
    event_files_are_deepspeeds(false);
    event_files_are_deepspeeds(true);
    lines_are_the_scripts();
    what_is_not_there_is_not_told();
    unlink(OUTPUT);
    return 0;
}
