/* Training in fp16: a scale of the loss that is too high overflows and is halved, without a trace in the
 * weights, until the model learns; a run that is resumed has the scale that it had; a number that no scale
 * can save is named. */
#include "bert_fixture.h"
#include "checkop_backend.h"
#include "gpu_tests.h"
#include "result_mean.h"
#include "task/run_state.h"
#include "trainer_copy.h"

enum { LONGEST = 14, SEQUENCES = 4, LEARNT = 6, MORE = 2, MOST_SKIPPED = 16 };

static struct trainer_config config_of(struct checkop_backend backend, const struct batch_step *step)
{
    struct trainer_config config = fixture_trainer(backend.ops, DTYPE_F16, step->micro[0].limits);
    config.net.device = backend.device;
    config.optimizer = optimizer_defaults(&optimizer_adamw);
    config.scale_rule.first = 1 << 24;
    return config;
}

static void expect_same(struct trainer *a, tensor of_a, struct trainer *b, tensor of_b, const char *what)
{
    void *x = copy_of(a, of_a), *y = copy_of(b, of_b);
    EXPECT(memcmp(x, y, tensor_bytes(of_a)) == 0, "other %s", what);
    free(y);
    free(x);
}

static void put_copy(struct trainer *to, tensor t, struct trainer *from, tensor source)
{
    void *copy = copy_of(from, source);
    exec_copy_in(&to->net.x, t.data, copy, tensor_bytes(t));
    free(copy);
}

static void one_step(struct trainer *t, const struct batch_step *step, struct run_state *state,
                     struct trainer_result *r)
{
    state->step++;
    state->global_step++;
    EXPECT_OK(trainer_step(t, step, state->global_step, state->step - state->n_skipped, 1e-2, r));
    run_state_keep_scale(state, &t->loss_scale, r);
}

/* Steps until one is not skipped: nothing moves before. */
static void overflow(struct trainer *t, const struct batch_step *step, struct run_state *state)
{
    struct trainer_result r = {.skipped = 1};
    void *before = copy_of(t, t->net.master);
    while (r.skipped != 0 && state->step < MOST_SKIPPED) {
        void *now = copy_of(t, t->net.master);
        EXPECT(memcmp(now, before, tensor_bytes(t->net.master)) == 0, "a skipped step changed the weights");
        free(now);
        double scale = t->loss_scale.value;
        one_step(t, step, state, &r);
        EXPECT(r.loss_scale == scale && (r.skipped == 0 || t->loss_scale.value == scale / 2),
               "scale %g, then %g", scale, t->loss_scale.value);
    }
    free(before);
    EXPECT(r.skipped == 0 && state->n_skipped > 0 && state->step == state->n_skipped + 1,
           "%lld steps, %lld of them skipped", (long long)state->step, (long long)state->n_skipped);
}

/* A second trainer with what a checkpoint keeps of the first. */
static void resume(struct trainer *to, struct run_state *state, struct trainer *from,
                   const struct run_state *saved)
{
    json_t *json = run_state_to_json(saved);
    char *text = json_dumps(json, 0);
    json_t *read = json_loads(text, 0, NULL);
    EXPECT_OK(run_state_parse(state, state, read, "a checkpoint"));
    run_state_resume_scale(state, &to->loss_scale);
    put_copy(to, to->net.master, from, from->net.master);
    put_copy(to, to->exp_avg, from, from->exp_avg);
    put_copy(to, to->exp_avg_sq, from, from->exp_avg_sq);
    network_weights_changed(&to->net);
    EXPECT(to->loss_scale.value == from->loss_scale.value &&
               to->loss_scale.n_good == from->loss_scale.n_good && state->n_skipped == saved->n_skipped,
           "scale %g after %lld steps, %lld skipped", to->loss_scale.value, (long long)to->loss_scale.n_good,
           (long long)state->n_skipped);
    state->dtype = saved->dtype; /* strings are borrowed from `read` */
    state->optimizer = saved->optimizer;
    json_decref(read);
    free(text);
    json_decref(json);
}

static void training_survives_overflows(struct checkop_backend backend, const struct batch_step *step)
{
    struct trainer t, resumed;
    struct trainer_result first, last, again;
    struct run_state state = {.phase = 1, .dtype = "fp16", .optimizer = "adamw"}, other;
    struct trainer_config config = config_of(backend, step);
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(trainer_evaluate(&t, step, &first));
    overflow(&t, step, &state);
    for (int i = 0; i < LEARNT; i++) {
        one_step(&t, step, &state, &last);
    }
    EXPECT_OK(trainer_init(&resumed, &config));
    resume(&resumed, &other, &t, &state);
    for (int i = 0; i < MORE; i++) {
        one_step(&t, step, &state, &last);
        one_step(&resumed, step, &other, &again);
        EXPECT(memcmp(&last, &again, sizeof last) == 0, "loss %g, resumed %g", result_mean(&last, "mlm_loss"),
               result_mean(&again, "mlm_loss"));
    }
    expect_same(&t, t.net.master, &resumed, resumed.net.master, "weights");
    expect_same(&t, t.exp_avg_sq, &resumed, resumed.exp_avg_sq, "moments");
    printf("%lld steps skipped, MLM loss %.3f to %.3f at a scale of %g, gradient norm %.3f\n",
           (long long)state.n_skipped, result_mean(&first, "mlm_loss"), result_mean(&last, "mlm_loss"),
           last.loss_scale, last.grad_norm);
    EXPECT(result_mean(&last, "mlm_loss") < 0.9 * result_mean(&first, "mlm_loss"),
           "nothing was learnt: %g to %g", result_mean(&first, "mlm_loss"), result_mean(&last, "mlm_loss"));
    trainer_fini(&resumed);
    trainer_fini(&t);
}

static void what_cannot_be_saved_is_named(struct checkop_backend backend, const struct batch_step *step)
{
    struct trainer t;
    struct trainer_result r;
    struct trainer_config config = config_of(backend, step);
    config.scale_rule.first = 2;
    EXPECT_OK(trainer_init(&t, &config));
    struct host_view v;
    EXPECT_OK(host_view_open(&v, &t.net.x, t.net.master));
    tensor_set(param_view(param_table_find(&t.net.params, "bert.embeddings.LayerNorm.bias"), v.host), 5, NAN);
    host_view_commit(&v, &t.net.x, t.net.master);
    host_view_close(&v);
    network_weights_changed(&t.net);
    EXPECT_OK(trainer_step(&t, step, 1, 1, 1e-3, &r));
    EXPECT(r.skipped == 1 && t.loss_scale.value == LOSS_SCALE_LEAST, "at %g", t.loss_scale.value);
    EXPECT_ERROR(trainer_step(&t, step, 2, 1, 1e-3, &r), STATUS_NUMERIC,
                 "weight bert.embeddings.LayerNorm.bias (element 5)");
    trainer_fini(&t);
}

int test_cuda_loss_scale(void)
{
    struct checkop_backend backend = checkop_find_backend("cuda");
    struct batch_step step;
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    training_survives_overflows(backend, &step);
    what_cannot_be_saved_is_named(backend, &step);
    batch_step_fini(&step);
    return 0;
}
