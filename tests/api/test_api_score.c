/* kiln_score beside serve/perplexity; candidates beside what kiln_generate chooses; texts that begin with the
 * model's own token; and what cannot be scored. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "serve/perplexity.h"

enum { PATH = 256, N = 3, K = 4 };

static const char *const texts[N] = {"and the", "the end and the", "the"};
static char directory[64];

static struct kiln_session *open_session(const char *name)
{
    char path[PATH];
    struct kiln_model *m;
    struct kiln_session *s;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open(&m, path));
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_GENERATE));
    kiln_model_close(m);
    return s;
}

/* The nats of a text by the losses that `kiln eval` sums. */
static double nats_of(const char *name, const struct kiln_text_score *t)
{
    char path[PATH];
    struct session s;
    struct perplexity p;
    struct session_options o = session_defaults();
    o.batching = BATCHING_LOSSES;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
    EXPECT_OK(perplexity_init(&p, &s, s.max_length, s.max_length));
    EXPECT_OK(perplexity_add_ids(&p, &s, t->ids, (int64_t)t->n, 1));
    session_close(&s);
    return p.nats;
}

static void expect_candidates(const struct kiln_text_score *t, size_t n_places)
{
    for (size_t i = 0; i < n_places; i++) {
        const struct kiln_candidate *c = &t->candidates[i * K];
        for (int k = 1; k < K; k++) {
            EXPECT(c[k].log_probability <= c[k - 1].log_probability && c[k].id >= 0 &&
                       c[0].log_probability < 0,
                   "candidate %d of place %zu", k, i);
        }
        if (i + 1 < t->n) {
            double own = t->log_probabilities[i];
            EXPECT(own <= c[0].log_probability && (own < c[0].log_probability || t->ids[i + 1] == c[0].id),
                   "place %zu: %g is above the most probable, %g", i, own, c[0].log_probability);
        }
    }
}

/* The token that greedy generation chooses is the first candidate after the text. */
static void expect_next(struct kiln_session *s, const struct kiln_text *text,
                        const struct kiln_candidate *next)
{
    struct kiln_continuations c;
    struct kiln_generate_options o = kiln_generate_defaults();
    o.max_new_tokens = 2;
    o.temperature = 0;
    o.n_candidates = K;
    EXPECT_KILN_OK(kiln_generate(s, &c, text, 1, &o));
    const struct kiln_continuation *t = &c.texts[0];
    EXPECT(t->ids[0] == next[0].id && t->log_probabilities[0] == next[0].log_probability,
           "%d (%g) was chosen, not %d (%g)", t->ids[0], t->log_probabilities[0], next[0].id,
           next[0].log_probability);
    for (int k = 0; k < K; k++) {
        EXPECT(t->candidates[k].id == next[k].id &&
                   t->candidates[k].log_probability == next[k].log_probability,
               "another candidate %d", k);
    }
    kiln_continuations_free(&c);
    o.n_candidates = 0;
    EXPECT_KILN_OK(kiln_generate(s, &c, text, 1, &o));
    EXPECT(c.texts[0].candidates == NULL && c.texts[0].log_probabilities == NULL, "nobody has asked");
    kiln_continuations_free(&c);
}

static void test_scores(const char *name)
{
    struct kiln_session *s = open_session(name);
    struct kiln_text in[N];
    struct kiln_scores plain, with;
    struct kiln_score_options o = kiln_score_defaults();
    for (int i = 0; i < N; i++) {
        in[i] = (struct kiln_text){texts[i], strlen(texts[i])};
    }
    EXPECT_KILN_OK(kiln_score(s, &plain, in, N, NULL));
    o.next = true;
    o.n_candidates = K;
    EXPECT_KILN_OK(kiln_score(s, &with, in, N, &o));
    for (int i = 0; i < N; i++) {
        const struct kiln_text_score *t = &plain.texts[i], *u = &with.texts[i];
        double sum = 0, wanted = t->n < 2 ? 0 : -nats_of(name, t);
        for (size_t k = 0; k + 1 < t->n; k++) {
            sum += t->log_probabilities[k];
            EXPECT(t->log_probabilities[k] == u->log_probabilities[k], "%s: the next token changes others",
                   name);
        }
        EXPECT(sum == t->log_probability && t->candidates == NULL && u->log_probability == sum, "a sum");
        EXPECT(fabs(sum - wanted) < 1e-4, "%s, text %d: %g nats, not %g", name, i, sum, wanted);
        expect_candidates(u, u->n);
        expect_next(s, &in[i], &u->candidates[(u->n - 1) * K]);
    }
    kiln_scores_free(&with);
    kiln_scores_free(&plain);
    kiln_scores_free(&plain);
    kiln_session_close(s);
}

static void test_begin(void)
{
    struct kiln_session *s = open_session("gpt2");
    struct kiln_text text = {"the", 3}, nothing = {NULL, 0};
    struct kiln_scores without, with;
    struct kiln_score_options o = kiln_score_defaults();
    EXPECT_KILN_OK(kiln_score(s, &without, &text, 1, NULL));
    o.begin = true;
    EXPECT_KILN_OK(kiln_score(s, &with, &text, 1, &o));
    EXPECT(with.texts[0].n == without.texts[0].n + 1 && with.texts[0].ids[1] == without.texts[0].ids[0],
           "%zu tokens", with.texts[0].n);
    kiln_scores_free(&with);
    kiln_scores_free(&without);
    EXPECT_KILN_OK(kiln_score(s, &with, &nothing, 1, &o)); /* its only token has none before it */
    EXPECT(with.texts[0].n == 1 && with.texts[0].log_probability == 0, "%zu tokens", with.texts[0].n);
    kiln_scores_free(&with);
    EXPECT_KILN_OK(kiln_score(s, &with, NULL, 0, &o));
    kiln_scores_free(&with);
    kiln_session_close(s);
}

static void test_wrong(void)
{
    struct kiln_session *s = open_session("gpt2");
    struct kiln_scores found;
    struct kiln_text nothing = {NULL, 0}, in = {"the", 3},
                     much = {"the end and the end and the end and the end", 43};
    struct kiln_score_options o = kiln_score_defaults();
    EXPECT_KILN_ERROR(kiln_score(s, &found, &nothing, 1, NULL), KILN_DATA, "text 0 has 0 tokens");
    EXPECT_KILN_ERROR(kiln_score(s, &found, &much, 1, NULL), KILN_DATA, "reads 1 to 24");
    EXPECT(found.texts == NULL && found.n == 0, "a result of a failure");
    o.n_candidates = 21;
    EXPECT_KILN_ERROR(kiln_score(s, &found, &in, 1, &o), KILN_USAGE, "n_candidates is 21");
    kiln_session_close(s);
}

int main(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    test_scores("gpt2");
    test_scores("bloom");
    test_begin();
    test_wrong();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
