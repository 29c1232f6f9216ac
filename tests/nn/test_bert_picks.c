/* A last layer that computes only the rows its heads read has the loss and the gradients of one that computes
 * all: the same sequences as one micro-batch, which has more picks than tokens, and as two, which have
 * fewer.  On the reference ops in fp64, with dropout. */
#include "bert_fixture.h"

#include "nn/bert/bert_model.h"

enum { SEQUENCES = 16, LENGTH = 4 };

/* Sequences without a gap, of which every token is to be predicted. */
static void make_step(struct batch_step *step, int64_t n_micro)
{
    struct batch_limits limits = text_batch_limits(SEQUENCES / n_micro, LENGTH, LENGTH);
    struct rng_stream r = rng_stream(rng_key(3, 3));
    EXPECT_OK(batch_step_init(step, n_micro, &text_batch_layout, limits));
    for (int i = 0; i < SEQUENCES; i++) {
        struct batch *b = &step->micro[i * n_micro / SEQUENCES];
        int32_t *ids = text_batch_add(b, LENGTH, 2, i % 2, i);
        for (int k = 0; k < LENGTH; k++) {
            ids[k] = (int32_t)rng_below(&r, FIXTURE_VOCAB);
            text_batch_masked_positions(b)[k] = k;
            text_batch_masked_labels(b)[k] = (int32_t)rng_below(&r, FIXTURE_VOCAB);
        }
        text_batch_take_masked(b, LENGTH);
    }
    for (int64_t i = 0; i < n_micro; i++) {
        batch_finish(&step->micro[i], 0);
    }
    batch_step_count(step);
}

static void start(struct trainer *t, const struct batch_step *step, enum model_task task, bool pre_ln,
                  struct trainer_result *r)
{
    struct trainer_config config = fixture_trainer(&ops_ref, DTYPE_F64, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.layer_norm_large_model = pre_ln;
    *bert = bert_model(&bert->config, task);
    fixture_bert_changed(bert);
    EXPECT_OK(trainer_init(t, &config));
    EXPECT_OK(trainer_gradients(t, step, 1, r));
}

static bool picks_rows(const struct trainer *t)
{
    return ((const struct bert_acts *)t->net.stage.slot->acts)->stack.picks.n_lists > 0;
}

static void check(enum model_task task, bool pre_ln)
{
    struct batch_step whole, halves;
    struct trainer all, picked;
    struct trainer_result of_all, of_picked;
    make_step(&whole, 1);
    make_step(&halves, 2);
    start(&all, &whole, task, pre_ln, &of_all);
    start(&picked, &halves, task, pre_ln, &of_picked);
    bool fits = task == MODEL_TASK_MASKED_LM; /* 64 picks of 64 tokens; with [CLS] 80 */
    EXPECT(picks_rows(&all) == fits && picks_rows(&picked), "picks: %d, %d", picks_rows(&all),
           picks_rows(&picked));
    EXPECT_NEAR(trainer_result_loss(&of_all), trainer_result_loss(&of_picked), 1e-12);
    for (int64_t i = 0; i < tensor_count(all.grad); i++) {
        EXPECT_NEAR(tensor_get(all.grad, i), tensor_get(picked.grad, i), 1e-12);
    }
    trainer_fini(&all);
    trainer_fini(&picked);
    batch_step_fini(&whole);
    batch_step_fini(&halves);
}

int main(void)
{
    check(MODEL_TASK_PRETRAINING, false);
    check(MODEL_TASK_PRETRAINING, true);
    check(MODEL_TASK_MASKED_LM, false);
    return 0;
}
