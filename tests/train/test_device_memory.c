/* A device whose memory the host cannot read trains, evaluates, saves and resumes to the bits of the cpu:
 * whatever touches weights, moments, logits and metrics goes through copies. */
#define _GNU_SOURCE
#include "bert_fixture.h"
#include "fenced_device.h"
#include "result_mean.h"

#include "core/clock.h"
#include "dev/host_view.h"
#include "model/background_save.h"
#include "train/trainer_state.h"

#include <stdlib.h>

enum { LONGEST = 14, STEPS = 3 };

static struct trainer_config config_of(const struct batch_step *step, bool is_fenced, enum dtype dtype)
{
    struct trainer_config config = fixture_trainer(ops_cpu(), dtype, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = 0.1;
    fixture_bert_changed(bert);
    config.saving = true;
    if (is_fenced) {
        config.net.device = &device_fenced;
        config.net.ops = &ops_fenced;
    }
    return config;
}

static bool same_result(const struct trainer_result *a, const struct trainer_result *b)
{
    bool same = a->n_sums == b->n_sums && memcmp(&a->grad_norm, &b->grad_norm, sizeof a->grad_norm) == 0;
    for (int i = 0; i < a->n_sums && same; i++) {
        same = memcmp(&a->sums[i].sum, &b->sums[i].sum, sizeof a->sums[i].sum) == 0 &&
               a->sums[i].count == b->sums[i].count;
    }
    return same;
}

static void train(struct trainer *t, const struct batch_step *step, struct trainer_result *r)
{
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(t, step, i, i, 1e-3, r));
    }
    EXPECT_OK(trainer_evaluate(t, step, r));
}

/* A step sends each micro-batch with one copy that nobody waits for, waits once, at its end, and allocates
 * nothing; an evaluation likewise. */
static void expect_no_stalls(const struct batch_step *step)
{
    struct trainer t;
    struct trainer_result r;
    struct trainer_config config = config_of(step, true, DTYPE_F32);
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 1; i <= 2 * STEPS; i++) {
        int64_t n_sent = fenced.n_sent, n_waits = fenced.n_waits, n_allocations = fenced.n_allocations;
        if (i <= STEPS) {
            t.config.mean_of_micro_batches = i == 2;
            EXPECT_OK(trainer_step(&t, step, i, i, 1e-3, &r));
        } else {
            EXPECT_OK(trainer_evaluate(&t, step, &r));
        }
        EXPECT(fenced.n_sent - n_sent == step->n_micro && fenced.n_waits - n_waits == 1 &&
                   fenced.n_allocations == n_allocations,
               "%lld copies of %lld micro-batches, %lld waits, %lld allocations",
               (long long)(fenced.n_sent - n_sent), (long long)step->n_micro,
               (long long)(fenced.n_waits - n_waits), (long long)(fenced.n_allocations - n_allocations));
    }
    trainer_fini(&t);
}

static void expect_same_bits(struct trainer *fenced_trainer, const struct trainer *plain)
{
    struct host_view master;
    EXPECT_OK(host_view_open(&master, &fenced_trainer->net.x, fenced_trainer->net.master));
    EXPECT(master.host.data != fenced_trainer->net.master.data, "no copy was made");
    EXPECT(memcmp(master.host.data, plain->net.master.data, tensor_bytes(plain->net.master)) == 0,
           "other weights");
    host_view_close(&master);
}

/* Saves `from` and reads it back into a new trainer on the fenced device. */
static void save_and_resume(struct trainer *from, struct trainer *to, const struct trainer_config *config)
{
    char directory[] = "/tmp/kiln_device_XXXXXX", path[64], command[64];
    static const struct tokenizer_file vocabulary = {"vocab.txt", "a\n", 2};
    struct background_save b;
    struct background_save_result result;
    struct checkpoint c;
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    EXPECT_OK(background_save_init(&b, from->plan.saving_bytes));
    EXPECT_OK(background_save_begin(&b, directory, &from->net.x,
                                    &(struct checkpoint_contents){.params = &from->net.params,
                                                                  .master = from->net.master,
                                                                  .exp_avg = from->exp_avg,
                                                                  .exp_avg_sq = from->exp_avg_sq,
                                                                  .config = json_object(),
                                                                  .tokenizer = json_object(),
                                                                  .state = json_object(),
                                                                  .vocabulary = &vocabulary,
                                                                  .n_vocabulary = 1,
                                                                  .step = STEPS},
                                    0, clock_ns(), 0));
    EXPECT(background_save_take(&b, true, &result), "nothing in flight");
    EXPECT_OK(result.status);
    background_save_fini(&b);
    snprintf(path, sizeof path, "%s/ckpt_%d", directory, STEPS);
    EXPECT_OK(checkpoint_open(&c, path));
    EXPECT_OK(trainer_init(to, config));
    struct training_state state = training_state_of(&c);
    EXPECT_OK(trainer_state_resume(to, &state));
    checkpoint_close(&c);
    snprintf(command, sizeof command, "rm -r %s", directory);
    EXPECT(system(command) == 0, "%s", command);
}

int main(void)
{
    struct batch_step step;
    fixture_step(&step, 2, 8, LONGEST);
    for (int i = 0; i < 2; i++) {
        enum dtype dtype = i == 0 ? DTYPE_F32 : DTYPE_BF16;
        struct trainer plain, behind, resumed;
        struct trainer_result expected, r;
        struct trainer_config config = config_of(&step, false, dtype), other = config_of(&step, true, dtype);
        EXPECT_OK(trainer_init(&plain, &config));
        EXPECT_OK(trainer_init(&behind, &other));
        train(&plain, &step, &expected);
        train(&behind, &step, &r);
        EXPECT(same_result(&r, &expected), "loss %g, not %g", result_mean(&r, "mlm_loss"),
               result_mean(&expected, "mlm_loss"));
        expect_same_bits(&behind, &plain);
        save_and_resume(&behind, &resumed, &other);
        expect_same_bits(&resumed, &plain);
        train(&plain, &step, &expected);
        train(&resumed, &step, &r);
        EXPECT(same_result(&r, &expected), "after resuming: loss %g, not %g", result_mean(&r, "mlm_loss"),
               result_mean(&expected, "mlm_loss"));
        trainer_fini(&resumed);
        trainer_fini(&behind);
        trainer_fini(&plain);
    }
    expect_no_stalls(&step);
    printf("%lld copies\n", (long long)fenced.n_copies);
    batch_step_fini(&step);
    return 0;
}
