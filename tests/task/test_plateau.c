/* The plateau of word frequencies is told once when it is reached, once when it lasts, once when it is
 * left. */
#include "task/plateau.h"

#include "test.h"

static enum plateau_stage watch(struct plateau *p, int64_t step, double loss)
{
    const struct unigram unigram = {.loss = 6};
    const struct model_sum mlm = {.name = "mlm_loss", .is_loss = true};
    const struct trainer_result heldout = {.n_sums = 1, .sums = {{&mlm, 2 * loss, 2}}};
    plateau_watch(p, step, &heldout, &unigram);
    return p->stage;
}

int main(void)
{
    struct plateau usual = {PLATEAU_UNKNOWN, NULL};
    EXPECT(watch(&usual, 100, 9) == PLATEAU_UNKNOWN, "a first loss is above the plateau");
    EXPECT(watch(&usual, 500, 6.1) == PLATEAU_ON, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 1000, 5.6) == PLATEAU_ON, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 4000, 5.3) == PLATEAU_BEHIND, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 9000, 3.1) == PLATEAU_BEHIND, "stage %d", (int)usual.stage);

    struct plateau stuck = {PLATEAU_UNKNOWN, NULL};
    EXPECT(watch(&stuck, 1000, 6.0) == PLATEAU_ON, "stage %d", (int)stuck.stage);
    EXPECT(watch(&stuck, 18000, 6.0) == PLATEAU_LONG, "stage %d", (int)stuck.stage);
    EXPECT(watch(&stuck, 19000, 6.0) == PLATEAU_LONG, "stage %d", (int)stuck.stage);

    struct plateau diverged = {PLATEAU_UNKNOWN, NULL};
    EXPECT(watch(&diverged, 20000, 11) == PLATEAU_LONG, "stage %d", (int)diverged.stage);
    return 0;
}
