/* Tests of report/megatron_log: lines have the fields, widths and numbers of the replaced script's, and
 * the learning rate of the step that follows; operations are counted as it counts them; event files have
 * its tags on their three axes; arguments are listed as Python does. */
#include "captured_output.h"

#include "report/megatron_log.h"

#include <math.h>

static const char DIRECTORY[] = "test_megatron_log.dir";

static struct megatron_log_options recipe(const json_t *flags)
{
    return (struct megatron_log_options){
        .settings = {.on = true, .events_every = 1, .learning_rate = true, .loss_scale = true},
        .checkpoints = "out",
        .flags = flags,
        .schedule = {.kind = SCHEDULE_ANNEAL,
                     .decay = SCHEDULE_DECAY_COSINE,
                     .max = 1e-4,
                     .min = 1e-5,
                     .warmup_samples = 216320,
                     .decay_samples = 126953125,
                     .growth = {16, 16, 5000000, 1024}},
        .n_steps = 311541,
        .log_every = 2,
        .seq_length = 2048,
        .n_layers = 40,
        .hidden_size = 5120,
        .vocab_rows = 50688,
        .n_params = 12855592960,
        .n_ranks = 1,
    };
}

static struct logged_step step_of(int64_t step, bool skipped)
{
    return (struct logged_step){.step = step,
                                .wall_s = 1700000000.0 + (double)step,
                                .loss = 11.0 - (double)step,
                                .grad_norm = 1.25,
                                .loss_scale = 1024,
                                .skipped = skipped};
}

static void print_run(struct buf *text, const struct megatron_log_options *o, char *events, size_t n)
{
    struct megatron_log l;
    struct captured_output c = captured_output_begin("test_megatron_log.out");
    megatron_log_open(&l, o, 0);
    if (events != NULL) {
        snprintf(events, n, "%s", l.events.log.path);
    }
    for (int64_t step = 1; step <= 4; step++) {
        struct logged_step s = step_of(step, step == 3);
        megatron_log_step(&l, &s);
    }
    megatron_log_validation(&l, 4, 1700000004, "iteration 4", 3, true, 0);
    megatron_log_saving(&l, 4);
    megatron_log_saved(&l, 4, 2);
    megatron_log_close(&l);
    captured_output_end(&c, text);
}

static void lines_are_the_scripts(void)
{
    static const char *const lines[] = {
        "------------------------ arguments ------------------------\n",
        "  adam_eps ........................................ 1e-08\n",
        "  bias_gelu_fusion ................................ False\n",
        "  data_path ....................................... ['a', 'b']\n",
        "  load ............................................ None\n",
        "  no_load_rng ..................................... True\n",
        "-------------------- end of arguments ---------------------\n",
        " iteration        2/  311541 | consumed samples:           32 | consumed tokens:        65536 | "
        "elapsed time "
        "per iteration (ms): ",
        " | learning rate: 1.479E-08 | global batch size:    16 | lm loss: 9.500000E+00 | loss scale: 0.0 | "
        "grad norm: "
        "1.250 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | "
        "samples per second: ",
        " | TFLOPs: ",
        " |\ntime (ms) | batch-generator: 0.00\n",
        " iteration        4/  311541 | consumed samples:           64 | consumed tokens:       131072 | ",
        " | lm loss: 7.000000E+00 | ",
        "number of skipped iterations:   1 | ",
        "\n---------------------------------------------------------------------------------------------\n",
        " validation loss at iteration 4 | lm loss value: 3.000000E+00 | lm loss PPL: 2.008554E+01 | \n",
        "---------------------------------------------------------------------------------------------\n",
        "saving checkpoint at iteration       4 to out\n",
        "  successfully saved checkpoint at iteration       4 to out\n",
        "Checkpoint Save GB: 179.978, GB/Sec: 89.99, Latency(second): 2.0\n",
    };
    struct buf text = {0};
    json_t *flags = json_pack("{s:f, s:b, s:[s, s], s:n, s:b}", "adam_eps", 1e-8, "no_bias_gelu_fusion", 1,
                              "data_path", "a", "b", "load", "no_load_rng", 1);
    struct megatron_log_options o = recipe(flags);
    print_run(&text, &o, NULL, 0);
    captured_output_expect(&text, lines, sizeof lines / sizeof lines[0]);
    buf_clear(&text);
    o.settings.on = false;
    print_run(&text, &o, NULL, 0);
    EXPECT(text.n == 0, "printed: %s", buf_text(&text));
    buf_fini(&text);
    json_decref(flags);
}

static void operations_are_counted_as_the_script_does(void)
{
    struct megatron_log_options o = recipe(NULL);
    double of_token = megatron_log_tflops(&o, 1, 1) / 2048 * 1e12;
    EXPECT(fabs(of_token / 8.17e10 - 1) < 1e-3, "%g operations a token", of_token);
    o.recomputes = true;
    o.n_ranks = 8;
    EXPECT_NEAR(megatron_log_tflops(&o, 1024, 4) / (of_token * 2048e-12), 1024 / 4.0 / 8 * 4 / 3, 1e-9);
}

/* How often the text stands in n bytes. */
static int count(const unsigned char *data, size_t n, const char *text)
{
    int found = 0;
    for (size_t i = 0; i + strlen(text) <= n; i++) {
        found += memcmp(data + i, text, strlen(text)) == 0;
    }
    return found;
}

static void event_files_have_the_scripts_tags(void)
{
    static const struct {
        const char *tag;
        int n; /* a tag is the beginning of those with its name on other axes */
    } tags[] = {
        {"learning-rate/learning-rate", 12},
        {"learning-rate/learning-rate vs samples", 4},
        {"learning-rate/learning-rate vs tokens", 4},
        {"batch-size/batch-size", 8},
        {"batch-size/batch-size vs tokens", 0},
        {"lm-loss-training/lm loss", 9}, /* of three steps that were not skipped */
        {"loss-scale/loss-scale", 12},
        {"grad-norm/grad-norm", 12},
        {"num-zeros/num-zeros", 12},
        {"iteration-time/iteration-time", 6},
        {"batch-generator-time", 2},
        {"steps-vs-samples/y=steps,x=samples", 4},
        {"steps-vs-samples/y=samples,x=steps", 4},
        {"steps-vs-tokens/y=steps,x=tokens", 4},
        {"steps-vs-tokens/y=tokens,x=steps", 4},
        {"lm-loss-validation/lm loss validation", 6},
        {"lm-loss-validation/lm loss validation ppl", 3},
        {"seq_length/text_summary", 1},
    };
    struct buf text = {0};
    struct file_map m;
    char path[1024];
    json_t *flags = json_pack("{s:i}", "seq_length", 2048);
    struct megatron_log_options o = recipe(flags);
    o.settings.tensorboard = DIRECTORY;
    o.settings.batch_size = o.settings.perplexity = o.settings.timers = true;
    print_run(&text, &o, path, sizeof path);
    EXPECT_OK(file_map_open(&m, path));
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        int n = count(m.data, m.n, tags[i].tag);
        EXPECT(n == tags[i].n, "%s is there %d times, not %d", tags[i].tag, n, tags[i].n);
    }
    file_map_close(&m);
    unlink(path);
    buf_fini(&text);
    json_decref(flags);
}

int main(void)
{
    lines_are_the_scripts();
    operations_are_counted_as_the_script_does();
    event_files_have_the_scripts_tags();
    return 0;
}
