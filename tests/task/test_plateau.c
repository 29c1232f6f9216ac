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

/* Whether 300 steps of training with this loss are warned of, of which a tenth of the run is `due`. */
static bool look(bool is_masked, double loss, int64_t due)
{
    const struct unigram unigram = {.loss = 6};
    const struct model_sum words = {.name = "lm_loss", .is_loss = true};
    const struct trainer_result result = {.n_sums = 1, .sums = {{&words, 2 * loss, 2}}};
    struct plateau p = {.is_masked = is_masked};
    for (int64_t step = 1; step <= 300; step++) {
        plateau_look(&p, step, step >= due, &result, &unigram);
    }
    return p.is_above;
}

int main(void)
{
    struct plateau usual = {.is_masked = true};
    EXPECT(watch(&usual, 100, 9) == PLATEAU_UNKNOWN, "a first loss is above the plateau");
    EXPECT(watch(&usual, 500, 6.1) == PLATEAU_ON, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 1000, 5.6) == PLATEAU_ON, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 4000, 5.3) == PLATEAU_BEHIND, "stage %d", (int)usual.stage);
    EXPECT(watch(&usual, 9000, 3.1) == PLATEAU_BEHIND, "stage %d", (int)usual.stage);

    struct plateau stuck = {.is_masked = true};
    EXPECT(watch(&stuck, 1000, 6.0) == PLATEAU_ON, "stage %d", (int)stuck.stage);
    EXPECT(watch(&stuck, 18000, 6.0) == PLATEAU_LONG, "stage %d", (int)stuck.stage);
    EXPECT(watch(&stuck, 19000, 6.0) == PLATEAU_LONG, "stage %d", (int)stuck.stage);

    struct plateau diverged = {.is_masked = true};
    EXPECT(watch(&diverged, 20000, 11) == PLATEAU_LONG, "stage %d", (int)diverged.stage);

    struct plateau of_decoder = {PLATEAU_UNKNOWN};
    EXPECT(watch(&of_decoder, 4000, 6.0) == PLATEAU_UNKNOWN, "a decoder has no plateau");
    EXPECT(look(false, 6.2, 0) && !look(false, 5.9, 0), "a decoder above word frequencies is told of");
    EXPECT(look(true, 6.7, 0) && !look(true, 6.2, 0),
           "a model of masked words on the plateau is not above it");
    EXPECT(!look(false, 9, 400), "nothing is said before a tenth of the run");
    return 0;
}
