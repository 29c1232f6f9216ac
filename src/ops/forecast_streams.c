#include "ops/forecast_streams.h"

#include <math.h>

void forecast_streams_init(struct forecast_streams *s, const struct gpu_chip *chip)
{
    *s = (struct forecast_streams){.all = chip->multiprocessors, .edge_s = chip->edge_s};
}

static bool has_ended(const struct forecast_launch *l)
{
    return l->left.idle_s <= 0 && l->left.all_s <= 0 && l->left.last_s <= 0;
}

/* The remaining time of a launch's current phase, and the multiprocessors that it wants in it. */
static double *phase_of(struct forecast_launch *l, double all, double *wanted)
{
    struct gpu_phases *p = &l->left;
    *wanted = p->idle_s > 0 ? 0 : p->all_s > 0 ? all : p->last;
    return p->idle_s > 0 ? &p->idle_s : p->all_s > 0 ? &p->all_s : &p->last_s;
}

/* The fraction of its full speed at which a launch runs that wants this many multiprocessors. */
static double speed(double wanted, double left)
{
    return wanted > 0 ? fmin(wanted, left) / wanted : 1;
}

static void pass(double *phase, double seconds, bool to_its_end)
{
    *phase = to_its_end ? 0 : *phase - seconds;
}

static void note_ready(const struct forecast_streams *s, struct forecast_launch *l)
{
    l->ready_s = l->left.idle_s > 0 ? INFINITY : fmin(l->ready_s, s->now_s);
}

/* Advances to the end of a phase of either launch. */
static void advance_both(struct forecast_streams *s, struct forecast_launch *main_launch,
                         struct forecast_launch *beside)
{
    note_ready(s, main_launch);
    note_ready(s, beside);
    bool main_first = main_launch->ready_s <= beside->ready_s;
    double main_wants, beside_wants;
    double *main_phase = phase_of(main_launch, s->all, &main_wants);
    double *beside_phase = phase_of(beside, s->all, &beside_wants);
    double main_speed = speed(main_wants, main_first ? s->all : s->all - beside_wants);
    double beside_speed = speed(beside_wants, main_first ? s->all - main_wants : s->all);
    double main_end = *main_phase / main_speed, beside_end = *beside_phase / beside_speed;
    double seconds = fmin(main_end, beside_end);
    s->now_s += seconds;
    pass(main_phase, seconds * main_speed, main_end <= beside_end);
    pass(beside_phase, seconds * beside_speed, beside_end <= main_end);
}

static struct forecast_launch *oldest(struct forecast_streams *s)
{
    return &s->beside[s->n_ended % FORECAST_BESIDE_LAUNCHES];
}

/* Runs a launch alone. */
static void run_alone(struct forecast_streams *s, struct forecast_launch *l)
{
    s->now_s += l->left.idle_s + l->left.all_s + l->left.last_s;
    l->left = (struct gpu_phases){0};
}

/* Runs a launch to its end, while launches of the stream beside run too. */
static void run_main(struct forecast_streams *s, struct forecast_launch *l)
{
    while (s->n_ended < s->n_given && !has_ended(l)) {
        struct forecast_launch *beside = oldest(s);
        advance_both(s, l, beside);
        s->n_ended += has_ended(beside);
    }
    run_alone(s, l);
}

void forecast_streams_fork(struct forecast_streams *s)
{
    s->n_pieces++;
    s->forks = true;
}

void forecast_streams_launch(struct forecast_streams *s, struct gpu_phases phases, bool beside)
{
    bool *waits = beside ? &s->forks : &s->joins;
    struct forecast_launch l = {.left = phases, .ready_s = INFINITY, .piece = s->n_pieces};
    l.left.idle_s += *waits ? s->edge_s : 0;
    *waits = false;
    if (!beside) {
        run_main(s, &l);
        return;
    }
    CHECK(s->n_given - s->n_ended < FORECAST_BESIDE_LAUNCHES, "%d launches beside", FORECAST_BESIDE_LAUNCHES);
    s->beside[s->n_given++ % FORECAST_BESIDE_LAUNCHES] = l;
}

/* Ends the pieces up to this one. */
static void end_pieces(struct forecast_streams *s, int64_t piece)
{
    while (s->n_ended < s->n_given && oldest(s)->piece <= piece) {
        run_alone(s, oldest(s));
        s->n_ended++;
    }
}

void forecast_streams_join(struct forecast_streams *s, int n_left)
{
    int64_t piece = s->n_pieces - n_left;
    if (piece > s->n_joined) { /* else it has been waited for already */
        s->n_joined = piece;
        s->joins = true;
        end_pieces(s, piece);
    }
}

double forecast_streams_seconds(const struct forecast_streams *s)
{
    struct forecast_streams rest = *s;
    end_pieces(&rest, rest.n_pieces);
    return rest.now_s;
}
