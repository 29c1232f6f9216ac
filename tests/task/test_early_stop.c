/* Early stopping on sequences of held-out losses: against tests/golden/make_early_stops.py, which runs the
 * classes of `transformers`, and what those leave open: losses that are not finite, and no early stopping at
 * all. */
#include "task/early_stop.h"

#include "core/json.h"
#include "test.h"

enum { STEPS = 10 }; /* between evaluations */

/* The evaluation behind which a run ends, or 0; the state is that of the end. */
static int run(struct early_stop_state *s, const struct early_stop_options *o, const double *losses, int n)
{
    *s = (struct early_stop_state){0};
    for (int i = 0; i < n; i++) {
        int64_t step = STEPS * (i + 1);
        bool best = early_stop_take(s, o, step, losses[i]);
        EXPECT(best == (s->best_step == step) && (!best || s->best_loss == losses[i]), "evaluation %d",
               i + 1);
        if (early_stop_is_over(s, o)) {
            return i + 1;
        }
    }
    return 0;
}

static void check_case(const json_t *c)
{
    enum { MOST = 32 };
    double losses[MOST];
    struct early_stop_state s;
    const json_t *list = json_object_get(c, "losses");
    int n = (int)json_array_size(list);
    EXPECT(n > 0 && n <= MOST, "%d losses", n);
    for (int i = 0; i < n; i++) {
        losses[i] = json_number_value(json_array_get(list, (size_t)i));
    }
    const struct early_stop_options o = {json_integer_value(json_object_get(c, "patience")),
                                         json_number_value(json_object_get(c, "delta"))};
    int ends = run(&s, &o, losses, n);
    EXPECT(ends == json_integer_value(json_object_get(c, "ends")), "it ends behind %d", ends);
    EXPECT(s.best_step == STEPS * json_integer_value(json_object_get(c, "best")), "step %lld is the best",
           (long long)s.best_step);
}

static void runs_end_where_those_of_transformers_do(void)
{
    json_error_t error;
    json_t *cases = json_load_file(KILN_SOURCE_DIR "/tests/golden/early_stops.json", 0, &error);
    EXPECT(json_array_size(cases) == 60, "%d cases: %s", (int)json_array_size(cases), error.text);
    int n_ended = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_case(json_array_get(cases, i));
        n_ended += json_integer_value(json_object_get(json_array_get(cases, i), "ends")) > 0;
    }
    EXPECT(n_ended > 20 && n_ended < 60, "%d of 60 end early", n_ended);
    json_decref(cases);
}

static void losses_that_are_not_finite_are_never_the_best(void)
{
    const struct early_stop_options two = {2, 0};
    struct early_stop_state s;
    EXPECT(run(&s, &two, (double[]){NAN, INFINITY, 1}, 3) == 2 && s.best_step == 0, "step %lld",
           (long long)s.best_step);
    EXPECT(run(&s, &two, (double[]){NAN, 1, NAN, 2}, 4) == 4 && s.best_step == 2 * STEPS, "step %lld",
           (long long)s.best_step);
}

static void without_patience_nothing_is_counted(void)
{
    const struct early_stop_options off = {0, 0};
    struct early_stop_state s;
    EXPECT(run(&s, &off, (double[]){1, 2, 3, 4, 5}, 5) == 0 && s.best_step == 0 && s.n_worse == 0,
           "it counts");
}

int main(void)
{
    runs_end_where_those_of_transformers_do();
    losses_that_are_not_finite_are_never_the_best();
    without_patience_nothing_is_counted();
    return 0;
}
