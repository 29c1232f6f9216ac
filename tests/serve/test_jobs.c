/* Two jobs, of one kind or of two, that threads make with scratches of their own share one packer, and have
 * the results that each has alone; where one is cancelled, the other has its own. */
#define _GNU_SOURCE
#include "serve/classify_texts.h"
#include "serve/last_words.h"
#include "serve/perplexity.h"
#include "serve/tag_words.h"
#include "session_case.h"

#include <math.h>
#include <pthread.h>

enum { FILL, CLASSIFY, EMBED, TAG, ASK, LIKELIHOOD, LAST_WORDS, PERPLEXITY };

/* A job of one of two texts, and the numbers of its result. */
struct work {
    const struct kind *kind;
    const struct session *session;
    int text;
    union {
        struct request request; /* each job begins with it */
        struct fill_job fill;
        struct classify_job classify;
        struct embed_job embed;
        struct tag_job tag;
        struct ask_job ask;
        struct likelihood likelihood;
        struct last_words last_words;
        struct perplexity_job perplexity;
    } job;
    struct embed_plan plan;
    float vectors[SESSION_CASE_NUMBERS];
    struct perplexity sums;
    struct id_list ids;
    double numbers[SESSION_CASE_NUMBERS];
    int n;
};

struct kind {
    const char *model;
    enum model_task task;
    enum batching batching; /* of the session */
    struct status (*make)(struct work *w, struct tokenizer_scratch *scratch);
    void (*read)(struct work *w);
    void (*fini)(struct work *w);
};

/* ---- fill ---- */

static struct status make_fill(struct work *w, struct tokenizer_scratch *scratch)
{
    static const char *const texts[2] = {session_case_masked, "a big [MASK] ran"};
    return fill_job_make(&w->job.fill, w->session, scratch, texts[w->text], strlen(texts[w->text]),
                         SESSION_CASE_TOP_K);
}

static void read_fill(struct work *w)
{
    struct fill_result r;
    fill_job_read(&w->job.fill, &r);
    for (int64_t i = 0; i < r.n_masks * r.top_k; i++) {
        w->numbers[w->n++] = r.candidates[i].id;
        w->numbers[w->n++] = r.candidates[i].probability;
    }
    fill_result_fini(&r);
}

static void fini_fill(struct work *w)
{
    fill_job_fini(&w->job.fill);
}

/* ---- classify ---- */

static struct status make_classify(struct work *w, struct tokenizer_scratch *scratch)
{
    return classify_job_make(&w->job.classify, w->session, scratch, session_case_texts + 2 * w->text, NULL, 2,
                             TEXT_CUT_END);
}

static void read_classify(struct work *w)
{
    struct classify_result r;
    EXPECT_OK(classify_job_read(&w->job.classify, &r));
    for (int64_t i = 0; i < r.n * r.n_labels; i++) {
        w->numbers[w->n++] = (double)r.readings[i].label;
        w->numbers[w->n++] = r.readings[i].score;
    }
    classify_result_fini(&r);
}

static void fini_classify(struct work *w)
{
    classify_job_fini(&w->job.classify);
}

/* ---- embed ---- */

static struct status make_embed(struct work *w, struct tokenizer_scratch *scratch)
{
    EXPECT_OK(embed_plan_make(&w->plan, w->session, &(struct embed_options){.prompt = "a man "}));
    return embed_job_make(&w->job.embed, w->session, scratch, w->vectors, session_case_texts + 2 * w->text, 2,
                          &w->plan);
}

static void read_embed(struct work *w)
{
    for (w->n = 0; w->n < 2 * w->plan.width; w->n++) {
        w->numbers[w->n] = w->vectors[w->n];
    }
}

static void fini_embed(struct work *w)
{
    embed_job_fini(&w->job.embed);
}

/* ---- tag ---- */

static struct status make_tag(struct work *w, struct tokenizer_scratch *scratch)
{
    static const struct text_bytes words[2][4] = {{{"a", 1}, {"mad", 3}, {"dog", 3}},
                                                  {{"big", 3}, {"black", 5}, {"cage", 4}, {"ice", 3}}};
    struct tag_sentence sentences[2] = {{words[w->text], 3}, {words[w->text] + 1, (size_t)(2 + w->text)}};
    return tag_job_make(&w->job.tag, w->session, scratch, sentences, 2);
}

static void read_tag(struct work *w)
{
    struct tag_result r;
    EXPECT_OK(tag_job_read(&w->job.tag, &r));
    for (int64_t i = 0; i < r.n; i++) {
        w->numbers[w->n++] = (double)r.words[i].label;
        w->numbers[w->n++] = r.words[i].score;
    }
    for (int64_t i = 0; i < r.n_entities; i++) {
        w->numbers[w->n++] = (double)r.entities[i].begin;
        w->numbers[w->n++] = (double)r.entities[i].end;
    }
    tag_result_fini(&r);
}

static void fini_tag(struct work *w)
{
    tag_job_fini(&w->job.tag);
}

/* ---- ask ---- */

static struct status make_ask(struct work *w, struct tokenizer_scratch *scratch)
{
    static const char *const questions[2] = {session_case_question, "who ran off"};
    struct ask_options o = ask_defaults();
    o.top_k = SESSION_CASE_TOP_K;
    return ask_job_make(&w->job.ask, w->session, scratch, questions[w->text], session_case_context,
                        sizeof session_case_context - 1, &o);
}

static void read_ask(struct work *w)
{
    struct ask_result r;
    EXPECT_OK(ask_job_read(&w->job.ask, &r));
    for (int64_t i = 0; i < r.n; i++) {
        w->numbers[w->n++] = r.answers[i].probability;
        w->numbers[w->n++] = r.answers[i].start;
        w->numbers[w->n++] = r.answers[i].end;
    }
    ask_result_fini(&r);
}

static void fini_ask(struct work *w)
{
    ask_job_fini(&w->job.ask);
}

/* ---- likelihood ---- */

static struct status make_likelihood(struct work *w, struct tokenizer_scratch *scratch)
{
    TRY(likelihood_init(&w->job.likelihood, w->session, LIKELIHOOD_WITHIN_WORD));
    for (int i = 0; i <= 2 * w->text; i += 2) {
        const struct text_bytes *t = &session_case_texts[i];
        TRY(likelihood_add(&w->job.likelihood, scratch, t->bytes, t->n));
    }
    return likelihood_make(&w->job.likelihood);
}

static void read_likelihood(struct work *w)
{
    for (; w->n < w->job.likelihood.n; w->n++) {
        w->numbers[w->n] = likelihood_get(&w->job.likelihood, w->n);
    }
}

static void fini_likelihood(struct work *w)
{
    likelihood_fini(&w->job.likelihood);
}

/* ---- last words ---- */

static struct status make_last_words(struct work *w, struct tokenizer_scratch *scratch)
{
    w->job.last_words = (struct last_words){.session = w->session};
    for (int i = 0; i <= 2 * w->text; i += 2) {
        const struct text_bytes *t = &session_case_texts[i];
        TRY(last_words_add(&w->job.last_words, scratch, t->bytes, t->n));
    }
    return last_words_make(&w->job.last_words);
}

static void read_last_words(struct work *w)
{
    for (; w->n < w->job.last_words.n; w->n++) {
        w->numbers[w->n] = ((const struct last_word *)(void *)w->job.last_words.words.data)[w->n].nats;
    }
}

static void fini_last_words(struct work *w)
{
    last_words_fini(&w->job.last_words);
}

/* ---- perplexity ---- */

static struct status make_perplexity(struct work *w, struct tokenizer_scratch *scratch)
{
    const char *text = session_case_context + 10 * w->text;
    TRY(perplexity_init(&w->sums, w->session, 12, 5));
    TRY(tokenizer_encode_document(scratch, &w->ids, text, strlen(text)));
    return perplexity_job_make(&w->job.perplexity, &w->sums, w->ids.ids, (int64_t)w->ids.n,
                               (int64_t)strlen(text));
}

static void read_perplexity(struct work *w)
{
    w->numbers[w->n++] = perplexity_nats(&w->sums);
    w->numbers[w->n++] = perplexity_bits(&w->sums);
}

static void fini_perplexity(struct work *w)
{
    id_list_fini(&w->ids);
}

static const struct kind kinds[] = {
    [FILL] = {"masked_lm", MODEL_TASK_MASKED_LM, BATCHING_FEW_ASKED, make_fill, read_fill, fini_fill},
    [CLASSIFY] = {"single", MODEL_TASK_SEQUENCE_CLASSIFICATION, BATCHING_FEW_ASKED, make_classify,
                  read_classify, fini_classify},
    [EMBED] = {"encoder", MODEL_TASK_ENCODER, BATCHING_FEW_ASKED, make_embed, read_embed, fini_embed},
    [TAG] = {"tokens", MODEL_TASK_TOKEN_CLASSIFICATION, BATCHING_FEW_ASKED, make_tag, read_tag, fini_tag},
    [ASK] = {"question_answering", MODEL_TASK_QUESTION_ANSWERING, BATCHING_FEW_ASKED, make_ask, read_ask,
             fini_ask},
    [LIKELIHOOD] = {"masked_lm", MODEL_TASK_MASKED_LM, BATCHING_FEW_ASKED, make_likelihood, read_likelihood,
                    fini_likelihood},
    [LAST_WORDS] = {"gpt2", MODEL_TASK_CAUSAL_LM, BATCHING_FEW_ASKED, make_last_words, read_last_words,
                    fini_last_words},
    [PERPLEXITY] = {"gpt2", MODEL_TASK_CAUSAL_LM, BATCHING_LOSSES, make_perplexity, read_perplexity,
                    fini_perplexity},
};

/* Two of one network. */
static const int pairs[][2] = {
    {FILL, FILL},
    {CLASSIFY, CLASSIFY},
    {EMBED, EMBED},
    {TAG, TAG},
    {ASK, ASK},
    {LIKELIHOOD, LIKELIHOOD},
    {FILL, LIKELIHOOD},
    {LIKELIHOOD, FILL},
    {LAST_WORDS, LAST_WORDS},
    {PERPLEXITY, PERPLEXITY},
};

/* ---- all ---- */

static void *make(void *self)
{
    struct work *w = self;
    struct tokenizer_scratch scratch;
    EXPECT_OK(tokenizer_scratch_init(&scratch, w->session->tokenizer));
    EXPECT_OK(w->kind->make(w, &scratch));
    tokenizer_scratch_fini(&scratch);
    return NULL;
}

/* Both at once, each in a thread of its own. */
static void make_two(struct work w[2], const int pair[2], const struct session *s)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        w[i] = (struct work){.kind = &kinds[pair[i]], .session = s, .text = i};
        EXPECT(pthread_create(&threads[i], NULL, make, &w[i]) == 0, "no thread");
    }
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0, "no end of a thread");
    }
}

static void expect_result(struct work *w, const struct work *wanted)
{
    EXPECT_OK(w->job.request.status);
    w->kind->read(w);
    EXPECT(w->n == wanted->n, "%d numbers, and %d alone", w->n, wanted->n);
    for (int i = 0; i < w->n; i++) {
        EXPECT_NEAR(w->numbers[i], wanted->numbers[i], 1e-5 * fmax(1, fabs(wanted->numbers[i])));
    }
}

static void fini_two(struct work w[2])
{
    for (int i = 0; i < 2; i++) {
        w[i].kind->fini(&w[i]);
    }
}

/* Both together; with cancel_at >= 0 the first is cancelled after so many steps. */
static void run(struct session *s, const int pair[2], const struct work alone[2], int cancel_at)
{
    struct work w[2];
    bool more = true;
    make_two(w, pair, s);
    for (int i = 0; i < 2; i++) {
        packer_add(&s->packer, &w[i].job.request);
    }
    for (int step = 0; more; step++) {
        w[0].job.request.cancelled |= step == cancel_at;
        EXPECT_OK(packer_step(&s->packer, &more));
    }
    EXPECT(w[0].job.request.ended && w[1].job.request.ended, "a job that has not ended");
    if (cancel_at < 0) {
        expect_result(&w[0], &alone[0]);
    } else {
        EXPECT_ERROR(w[0].job.request.status, STATUS_PREEMPTED, "cancelled");
    }
    expect_result(&w[1], &alone[1]);
    fini_two(w);
}

static void check(const int pair[2], const char *directory)
{
    const struct kind *kind = &kinds[pair[0]];
    struct session_options options = session_defaults();
    struct session s;
    struct work alone[2];
    char path[SESSION_CASE_PATH];
    options.batching = kind->batching;
    snprintf(path, sizeof path, "%s/%s", directory, kind->model);
    EXPECT_OK(session_open(&s, path, kind->task, &options));
    make_two(alone, pair, &s);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(packer_answer(&s.packer, &alone[i].job.request));
        alone[i].kind->read(&alone[i]);
        EXPECT(alone[i].n > 0, "no result");
    }
    for (int cancel_at = -1; cancel_at < 2; cancel_at++) {
        run(&s, pair, alone, cancel_at);
    }
    fini_two(alone);
    session_close(&s);
}

int main(void)
{
    char directory[64];
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_classifiers(directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        check(pairs[i], directory);
    }
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
