/* The same sequences in three forms - ragged, packed and padded - give the same loss and the same gradients
 * within 1e-6 in fp32: as natural micro-batches, as records packed three to a row, and as rows padded to a
 * fixed length whose padding stays in the stream as sequences of their own. */
#include "bert_fixture.h"
#include "result_mean.h"

enum { N = 12, LONGEST = 14 };

/* Every sequence followed by the padding that a padded row would have. */
static void make_padded(struct batch_step *step)
{
    EXPECT_OK(batch_step_init(step, 1, &text_batch_layout, text_batch_limits(2 * N, LONGEST, LONGEST)));
    struct batch *b = &step->micro[0];
    for (int32_t i = 0; i < N; i++) {
        int64_t before = b->n_real_tokens;
        fixture_add_sequence(b, i, LONGEST);
        int64_t padding = LONGEST - (b->n_real_tokens - before);
        if (padding > 0) {
            memset(text_batch_add(b, padding, padding, -1, N + i), 0, (size_t)padding * sizeof(int32_t));
        }
    }
    batch_finish(b, 0);
    batch_step_count(step);
}

/* The sequences in another order and other micro-batches, each with its own key. */
static void make_packed(struct batch_step *step)
{
    EXPECT_OK(batch_step_init(step, 4, &text_batch_layout, text_batch_limits(3, LONGEST, LONGEST)));
    for (int32_t i = 0; i < N; i++) {
        fixture_add_sequence(&step->micro[i % 4], (i * 5) % N, LONGEST);
    }
    for (int i = 0; i < 4; i++) {
        batch_finish(&step->micro[i], 0);
    }
    batch_step_count(step);
}

static void gradients_of(struct trainer *t, const struct batch_step *step, struct trainer_result *r)
{
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    EXPECT_OK(trainer_init(t, &config));
    EXPECT_OK(trainer_gradients(t, step, 1, r));
}

static void compare(const char *form, const struct batch_step *ragged, const struct batch_step *other)
{
    struct trainer a, b;
    struct trainer_result ra, rb;
    gradients_of(&a, ragged, &ra);
    gradients_of(&b, other, &rb);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < a.net.params.n_elements; i++) {
        largest = fmax(largest, fabs(tensor_get(a.grad, i)));
        worst = fmax(worst, fabs(tensor_get(a.grad, i) - tensor_get(b.grad, i)));
    }
    printf("%s: MLM loss differs by %.2g, NSP loss by %.2g, gradients by %.2g of %.3g\n", form,
           fabs(result_mean(&ra, "mlm_loss") - result_mean(&rb, "mlm_loss")),
           fabs(result_mean(&ra, "nsp_loss") - result_mean(&rb, "nsp_loss")), worst, largest);
    EXPECT_NEAR(result_mean(&rb, "mlm_loss"), result_mean(&ra, "mlm_loss"),
                1e-6 * result_mean(&ra, "mlm_loss"));
    EXPECT_NEAR(result_mean(&rb, "mlm_accuracy"), result_mean(&ra, "mlm_accuracy"), 1e-12);
    EXPECT(worst <= 1e-6 * largest, "%s: gradients differ by %g", form, worst);
    trainer_fini(&a);
    trainer_fini(&b);
}

int main(void)
{
    struct batch_step ragged, packed, padded;
    fixture_step(&ragged, 1, N, LONGEST);
    make_packed(&packed);
    make_padded(&padded);
    /* padding rows have no NSP label; they must not count */
    EXPECT(memcmp(padded.n_labels, ragged.n_labels, sizeof padded.n_labels) == 0,
           "the forms hold the same labels");
    compare("packed", &ragged, &packed);
    compare("padded", &ragged, &padded);
    batch_step_fini(&ragged);
    batch_step_fini(&packed);
    batch_step_fini(&padded);
    return 0;
}
