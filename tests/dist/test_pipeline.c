/* The list of 1F1B, with one chunk of layers a stage and with several: every micro-batch goes through every
 * chunk once forward and once, later, backward, in order; no more are in flight than announced; the stages
 * run to the end, with the bubble of the paper; and with one chunk the list is the one that is written down
 * in it.
 * */
#include "dist/pipeline.h"

#include "test.h"

enum { MOST_STAGES = 9, MOST_MICRO = 20, MOST_CHUNKS = 4 };

/* What a stage's chunk has done. */
struct done {
    int64_t forwards, backwards, most, in_slot[MOST_MICRO];
};

static void run(struct done *d, const struct pipeline_action *a, int64_t limit)
{
    if (a->work == PIPELINE_FORWARD) {
        EXPECT(a->micro == d->forwards, "forward %lld for %lld", (long long)a->micro, (long long)d->forwards);
        EXPECT(d->forwards - d->backwards < limit, "slot of %lld", (long long)a->micro);
        d->in_slot[a->micro % limit] = a->micro;
        d->forwards++;
    } else {
        EXPECT(a->micro == d->backwards && d->backwards < d->forwards, "backward %lld", (long long)a->micro);
        EXPECT(d->in_slot[a->micro % limit] == a->micro, "another is in the slot of %lld",
               (long long)a->micro);
        d->backwards++;
    }
    d->most = d->forwards - d->backwards > d->most ? d->forwards - d->backwards : d->most;
}

static void each_micro_batch_goes_both_ways(const struct pipeline_shape *p, int stage)
{
    struct done done[MOST_CHUNKS] = {{0}};
    int64_t limits[MOST_CHUNKS];
    EXPECT(pipeline_n_actions(p) == 2 * p->n_micro * p->n_chunks, "%lld actions",
           (long long)pipeline_n_actions(p));
    for (int c = 0; c < p->n_chunks; c++) {
        limits[c] = pipeline_in_flight(p, stage, c);
        EXPECT(limits[c] >= 1 && limits[c] <= p->n_micro, "%lld in flight", (long long)limits[c]);
    }
    for (int64_t i = 0; i < pipeline_n_actions(p); i++) {
        struct pipeline_action a = pipeline_action(p, stage, i);
        EXPECT(a.chunk >= 0 && a.chunk < p->n_chunks, "chunk %d", a.chunk);
        run(&done[a.chunk], &a, limits[a.chunk]);
    }
    for (int c = 0; c < p->n_chunks; c++) {
        const struct done *d = &done[c];
        EXPECT(d->forwards == p->n_micro && d->backwards == p->n_micro && d->most == limits[c],
               "chunk %d: %lld forward, %lld backward, %lld in flight, announced %lld", c,
               (long long)d->forwards, (long long)d->backwards, (long long)d->most, (long long)limits[c]);
    }
}

/* Narayanan et al. 2021, sections 2.2 and 2.3: the first stage has as many micro-batches in flight as there
 * are stages, and with v chunks at most 1 + (p - 1) / (p v) times as much. */
static void memory_is_that_of_the_paper(const struct pipeline_shape *p)
{
    int64_t now = 0, most = 0, stages = p->n_stages;
    for (int64_t i = 0; i < pipeline_n_actions(p); i++) {
        now += pipeline_action(p, 0, i).work == PIPELINE_FORWARD ? 1 : -1;
        most = now > most ? now : most;
    }
    int64_t limit = p->n_chunks == 1 ? stages : stages * p->n_chunks + stages - 1; /* chunks */
    EXPECT(most <= limit, "%d stages of %d chunks and %lld micro-batches: %lld in flight", p->n_stages,
           p->n_chunks, (long long)p->n_micro, (long long)most);
    for (int s = 0; s < p->n_stages && p->n_chunks == 1; s++) {
        EXPECT(pipeline_in_flight(p, s, 0) <= p->n_stages - s, "stage %d", s);
    }
}

/* (p - 1) / m, divided by the chunks (section 2.3), whatever a backward takes. */
static void the_bubble_is_that_of_the_paper(const struct pipeline_shape *p)
{
    static const double backwards[] = {1, 2, 3};
    double wanted = (double)(p->n_stages - 1) / (double)p->n_micro / p->n_chunks;
    for (int i = 0; i < 3; i++) {
        double bubble;
        EXPECT_OK(pipeline_bubble(p, 1, backwards[i], &bubble));
        EXPECT(fabs(bubble - wanted) <= 0.05 * wanted + 1e-9,
               "%d stages of %d chunks and %lld micro-batches: a bubble of %g, not %g", p->n_stages,
               p->n_chunks, (long long)p->n_micro, bubble, wanted);
    }
}

/* One micro-batch goes up and down alone; of many, the last and slowest stage never waits, and the others'
 * work is only seen before its first turn and after its last. */
static void each_stage_has_its_times(void)
{
    const double forward[] = {1, 2, 3}, backward[] = {2, 4, 5}, message[] = {0.5, 0.25, 8}, none[3] = {0};
    double seconds;
    EXPECT_OK(pipeline_seconds(&(struct pipeline_shape){3, 1, 1},
                               &(struct pipeline_times){forward, backward, message}, &seconds));
    EXPECT(fabs(seconds - (6 + 11 + 2 * 0.75)) < 1e-12, "one micro-batch takes %g", seconds);
    EXPECT_OK(pipeline_seconds(&(struct pipeline_shape){3, 1, 20},
                               &(struct pipeline_times){forward, backward, none}, &seconds));
    EXPECT(fabs(seconds - (20 * 8 + 3 + 6)) < 1e-12, "20 micro-batches take %g", seconds);
}

static void layers_are_dealt_out(int64_t n_layers, int n_parts)
{
    int64_t next = -1;
    for (int part = 0; part < n_parts; part++) {
        struct param_range r = pipeline_layers(n_layers, part, n_parts, PIPELINE_BY_LAYERS);
        int64_t n = r.end - r.first - (part == 0) - (part == n_parts - 1);
        EXPECT(r.first == next, "part %d begins at layer %lld", part, (long long)r.first);
        EXPECT(n >= n_layers / n_parts && n <= n_layers / n_parts + 1, "%lld layers in part %d", (long long)n,
               part);
        next = r.end;
    }
    EXPECT(next == n_layers + 1, "the heads are in the last part");
}

/* BLOOM-176B: 70 layers and the two embeddings over 12 stages, 6 each. */
static void embeddings_count_as_layers(void)
{
    for (int part = 0; part < 12; part++) {
        struct param_range r = pipeline_layers(70, part, 12, PIPELINE_BY_LAYERS_AND_EMBEDDINGS);
        EXPECT(r.first == 6 * part - 1 && r.end == 6 * part + 5, "part %d is layers %lld to %lld", part,
               (long long)r.first, (long long)r.end);
    }
}

static void expect_print(struct pipeline_shape p, const char *wanted)
{
    char text[1024] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    EXPECT(f != NULL, "no file");
    pipeline_print(f, &p);
    fclose(f);
    EXPECT(strcmp(text, wanted) == 0, "%s", text);
}

/* Figures 4 of the paper: 1F1B, and interleaved; here with fewer stages. */
static void the_lists_are_those_of_the_paper(void)
{
    expect_print((struct pipeline_shape){4, 1, 8},
                 "stage 0: F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7\n"
                 "stage 1: F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7\n"
                 "stage 2: F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7\n"
                 "stage 3: F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7\n");
    expect_print(
        (struct pipeline_shape){2, 2, 4},
        "stage 0: F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0\n"
        "stage 1: F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0\n");
    EXPECT_ERROR(
        pipeline_check(&(struct pipeline_shape){4, 2, 6}), STATUS_USAGE,
        "a pipeline of 4 stages with 2 chunks each runs 4 micro-batches at a time, but a step has 6");
    EXPECT_OK(pipeline_check(&(struct pipeline_shape){4, 1, 6}));
}

int main(void)
{
    each_stage_has_its_times();
    embeddings_count_as_layers();
    for (int n_stages = 1; n_stages <= MOST_STAGES; n_stages++) {
        for (int64_t n_micro = 1; n_micro <= MOST_MICRO; n_micro++) {
            for (int n_chunks = 1; n_chunks <= MOST_CHUNKS; n_chunks++) {
                struct pipeline_shape p = {n_stages, n_chunks, n_micro};
                if (failed(pipeline_check(&p))) {
                    continue;
                }
                for (int s = 0; s < n_stages; s++) {
                    each_micro_batch_goes_both_ways(&p, s);
                }
                memory_is_that_of_the_paper(&p);
                the_bubble_is_that_of_the_paper(&p);
            }
        }
        for (int64_t n_layers = n_stages; n_layers < 30; n_layers++) {
            layers_are_dealt_out(n_layers, n_stages);
        }
    }
    the_lists_are_those_of_the_paper();
    return 0;
}
