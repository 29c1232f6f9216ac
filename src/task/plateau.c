#include "task/plateau.h"

#include "core/log.h"

/* Small models on small batches left it after 3,000 to 4,500 steps (docs/expected_losses.md); four times that
 * is long. */
static const double ABOVE = 1.1; /* factor of the loss of word frequencies */
enum { USUAL_FROM = 3000, USUAL_TO = 4500, LONG = 4 * USUAL_TO };

/* Steps whose losses are averaged, since those of single steps differ by the words in them; and steps that
 * models need to learn anything. */
enum { LOOK_STEPS = 20, LOOK_FROM = 100 };

static enum plateau_stage next_stage(enum plateau_stage stage, int64_t step, double loss, double floor)
{
    if (loss < 0.9 * floor) {
        return PLATEAU_BEHIND;
    }
    if (step >= LONG || stage == PLATEAU_LONG) {
        return PLATEAU_LONG;
    }
    return loss < ABOVE * floor || stage == PLATEAU_ON ? PLATEAU_ON : PLATEAU_UNKNOWN;
}

static void tell_on(const struct plateau *p, const char *what, double loss, double floor)
{
    log_info("held-out %s %.2f is about that of word frequencies alone (%.2f): the model knows which words "
             "are frequent, not yet what surrounds them. This is normal at first and ends suddenly, for "
             "small models after %d to %d steps; shorter sequences, more steps of smaller batches and a "
             "higher rate leave it sooner%s%s",
             what, loss, floor, USUAL_FROM, USUAL_TO,
             p->advice == NULL ? "" : ", and so does a new model with ", p->advice == NULL ? "" : p->advice);
}

void plateau_watch(struct plateau *p, int64_t step, const struct trainer_result *heldout,
                   const struct unigram *unigram)
{
    enum plateau_stage before = p->stage;
    struct trainer_sum_words words = trainer_sum_words(&heldout->sums[0]);
    const char *what = words.text;
    double loss = trainer_sum_mean(&heldout->sums[0]), floor = unigram->loss;
    p->stage = p->is_masked ? next_stage(before, step, loss, floor) : before;
    if (p->stage == before) {
        return;
    }
    switch (p->stage) {
    case PLATEAU_ON: tell_on(p, what, loss, floor); break;
    case PLATEAU_LONG:
        log_warning(
            "held-out %s %.2f is %s that of word frequencies alone (%.2f) after %lld steps, which is longer "
            "than usual: check --learning_rate (too low, or so high that grad_norm is always clipped), the "
            "batch (a very large one takes as many steps), and what `kiln prepare` said about the text",
            what, loss, loss > ABOVE * floor ? "above" : "still", floor, (long long)step);
        break;
    case PLATEAU_BEHIND:
        if (before != PLATEAU_UNKNOWN) {
            log_info("held-out %s %.2f: it has left the plateau of word frequencies (%.2f)", what, loss,
                     floor);
        }
        break;
    case PLATEAU_UNKNOWN: break;
    }
}

void plateau_look(struct plateau *p, int64_t step, bool due, const struct trainer_result *result,
                  const struct unigram *unigram)
{
    if (p->looked || result->skipped > 0 || !(unigram->loss > 0)) {
        return;
    }
    p->sum += trainer_sum_mean(&result->sums[0]);
    if (++p->n_steps < LOOK_STEPS) {
        return;
    }
    double loss = p->sum / (double)p->n_steps, floor = unigram->loss;
    p->sum = 0;
    p->n_steps = 0;
    p->looked = due && step >= LOOK_FROM;
    p->is_above = p->looked && loss > (p->is_masked ? ABOVE : 1) * floor;
    if (p->is_above) {
        log_warning("step %lld: %s %.2f of the last %d steps is above that of word frequencies alone (%.2f), "
                    "which a run usually has learnt after a tenth of its steps: check --learning_rate (too "
                    "low, or so high that grad_norm is always clipped) and --optimizer",
                    (long long)step, trainer_sum_words(&result->sums[0]).text, loss, LOOK_STEPS, floor);
    }
}
