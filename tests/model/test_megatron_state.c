/* Runs that Megatron-DeepSpeed began (tests/golden/make_megatron_runs.py): weights and both moments of a
 * grid of ranks, of a universal checkpoint and of twelve ranks of data parallelism are those of the
 * directories that `transformers` wrote of them, for whole models, for shards of the flat buffer and for
 * every slice of tensor parallelism; so are the steps. */
#include "decoder_case.h"
#include "read_checkpoint.h"

#include "core/log.h"
#include "model/training_state.h"
#include "nn/decoder/decoder_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whole weights and moments, in memory. */
static struct decoder wanted[3];

static struct training_state_place place_of(const char *name, bool universal)
{
    return (struct training_state_place){.directory = path_of(name),
                                         .step = -1,
                                         .others = true,
                                         .universal = universal,
                                         .given = {.family = wanted[0].m.family,
                                                   .config = wanted[0].m.config,
                                                   .n_words = wanted[0].m.tokenizer.n},
                                         .task = wanted[0].m.task};
}

/* Of a universal checkpoint, rows that are no words repeat the last. */
static bool repeats;

/* What is here of a parameter, in `flat` from element `begin` on, is that of the whole in `d`. */
static void expect_values(const struct decoder *d, const struct param *p, tensor flat, int64_t begin,
                          const char *what)
{
    const struct param *whole = param_table_find(&d->params, p->name);
    EXPECT(whole != NULL, "%s", p->name);
    const float *from = param_view(whole, d->contents.master).data;
    for (int64_t i = 0; i < param_count(p); i++) {
        int64_t at = param_full_index(p, i), place = p->offset + i - begin;
        if (repeats && p->split == PARAM_BY_WORD && at / whole->dims[1] >= d->m.tokenizer.n) {
            at = (whole->dims[0] - 1) * whole->dims[1] + at % whole->dims[1];
        }
        if (place >= 0 && place < tensor_count(flat)) {
            float value = ((const float *)flat.data)[place];
            EXPECT(value == from[at], "%s of %s, element %lld: %g, not %g", what, p->name, (long long)i,
                   (double)value, (double)from[at]);
        }
    }
}

static tensor flat_of(int64_t n)
{
    float *data = malloc((size_t)n * sizeof *data);
    EXPECT(data != NULL, "no memory");
    memset(data, 0xff, (size_t)n * sizeof *data);
    return tensor_1d(data, DTYPE_F32, n);
}

static void expect_moments(const struct training_state *s, const struct param_table *params, int64_t begin,
                           int64_t end)
{
    tensor m = flat_of(end - begin), v = flat_of(end - begin);
    EXPECT_OK(read_both(s, params, begin, m, v));
    for (int i = 0; i < params->n; i++) {
        expect_values(&wanted[1], &params->params[i], m, begin, "exp_avg");
        expect_values(&wanted[2], &params->params[i], v, begin, "exp_avg_sq");
    }
    free(m.data);
    free(v.data);
}

static void expect_part(const struct training_state *s, struct param_part part)
{
    struct param_table params = {.part = part};
    EXPECT_OK(model_dir_declare(&wanted[0].m, &params, wanted[0].m.task));
    tensor weights = flat_of(params.n_elements);
    struct weight_sink sink = weight_sink_of(&weights);
    EXPECT_OK(training_state_read_weights(s, &params, &sink));
    for (int i = 0; i < params.n; i++) {
        expect_values(&wanted[0], &params.params[i], weights, 0, "weight");
    }
    int64_t n = params.n_elements;
    expect_moments(s, &params, 0, n);
    for (int64_t k = 0; k < 3; k++) { /* as ranks of data parallelism share them */
        expect_moments(s, &params, k * n / 3, (k + 1) * n / 3);
    }
    free(weights.data);
    param_table_fini(&params);
}

static int64_t position(const struct training_state *s, const char *key)
{
    return json_integer_value(json_object_get(s->position, key));
}

static void expect_run(const char *name, bool universal)
{
    struct training_state s;
    struct training_state_place place = place_of(name, universal);
    repeats = universal;
    EXPECT_OK(training_state_open(&s, &place));
    EXPECT(s.kind != NULL, "there is no run in %s", name);
    EXPECT(position(&s, "step") == 7 && position(&s, "global_step") == 7 && position(&s, "phase") == 1 &&
               position(&s, "n_skipped") == 1 && position(&s, "consumed_samples") == 28,
           "the position of %s", name);
    expect_part(&s, (struct param_part){0});
    for (int slice = 0; slice < 2; slice++) {
        expect_part(&s, (struct param_part){.slice = slice, .n_slices = 2});
    }
    training_state_close(&s);
}

static void expect_refused(const char *name, bool universal, const char *message)
{
    struct training_state s;
    struct training_state_place place = place_of(name, universal);
    struct status got = training_state_open(&s, &place);
    EXPECT(failed(got) && strstr(got.message, message) != NULL, "%s: %s, not %s", name, got.message, message);
    training_state_close(&s);
}

static void remove_file(const char *name)
{
    EXPECT(unlink(path_of(name)) == 0, "%s", name);
}

static void test_damage(void)
{
    static const char shard[] = "grid/global_step7/bf16_zero_pp_rank_1_mp_rank_02_optim_states.pt";
    static const char other[] = "grid/global_step7/bf16_zero_pp_rank_0_mp_rank_02_optim_states.pt";
    static const char tenth[] = "shards/global_step7/bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt";
    static const char universal[] = "universal/global_step7_universal/";
    char path[PATH];
    remove_file(shard);
    expect_refused("grid", false, "no bf16_zero_pp_rank_1_mp_rank_02_optim_states.pt");
    unpack("grid");
    EXPECT(rename(path_of(shard), path_of("kept")) == 0 && rename(path_of(other), path_of(shard)) == 0 &&
               rename(path_of("kept"), path_of(other)) == 0,
           "no exchange");
    expect_refused("grid", false, "rounded to bf16, differ from layer_0");
    unpack("grid");
    remove_file("grid/global_step7/mp_rank_03_model_states.pt");
    expect_refused("grid", false, "has 3 files mp_rank_KK_model_states.pt");
    unpack("grid");
    remove_file(tenth);
    expect_refused("shards", false, "no bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt");
    unpack("shards");
    snprintf(path, sizeof path, "%szero/4.attention.dense.bias/exp_avg_sq.pt", universal);
    remove_file(path);
    expect_refused("universal", true, "zero/4.attention.dense.bias/exp_avg_sq.pt is missing");
    unpack("universal");
    snprintf(path, sizeof path, "%smp_rank_00_model_states.pt", universal);
    remove_file(path);
    expect_refused("universal", true, "has no mp_rank_00_model_states.pt that says its iteration");
    unpack("universal");
    remove_file("universal/latest_universal");
    expect_refused("universal", true, "is no universal checkpoint");
    unpack("universal");
    struct decoder_config *config = wanted[0].m.config;
    config->n_heads = 2;
    expect_refused("universal", true, "was trained with num_attention_heads 4, but this run has 2");
    expect_refused("grid", false, "was trained with num_attention_heads 4, but this run has 2");
    config->n_heads = 4;
}

int main(void)
{
    static const char *const models[] = {"gpt2", "gpt2_m", "gpt2_v"}, *const runs[] = {"grid", "universal",
                                                                                       "shards"};
    log_set_level(LOG_QUIET);
    cases_open(KILN_SOURCE_DIR "/tests/golden/megatron_runs.safetensors");
    for (int i = 0; i < 3; i++) {
        unpack(models[i]);
        unpack(runs[i]);
        decoder_open(&wanted[i], path_of(models[i]), false);
    }
    expect_run("grid", false);
    expect_run("universal", true);
    expect_run("shards", false);
    test_damage();
    for (int i = 0; i < 3; i++) {
        decoder_close(&wanted[i]);
    }
    cases_close();
    return 0;
}
