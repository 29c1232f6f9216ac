#include "data/squad_features.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SEQ_LENGTH = 1 << 20 };

struct builder {
    struct squad_features *f;
    const struct squad_examples *e;
    struct squad_feature_options options;
    struct tokenizer_scratch *scratch;
    struct id_list ids; /* questions, then reused for answers */
    struct id_list answer;
    struct id_list context_ids;
    struct buf words;     /* int32_t: token_words */
    struct buf features;  /* struct squad_feature */
    int64_t *word_starts; /* [n_words + n_contexts] first token of each word, and the end of each context */
    bool warned;
};

static int64_t question_length(const struct squad_features *f, int64_t i)
{
    int32_t x = f->features[i].example;
    return f->question_starts[x + 1] - f->question_starts[x];
}

int64_t squad_feature_first_length(const struct squad_features *f, int64_t i)
{
    return input_form_n_first(&f->form, question_length(f, i), f->features[i].window_length);
}

int64_t squad_feature_window_at(const struct squad_features *f, int64_t i)
{
    return input_form_second_at(&f->form, question_length(f, i));
}

int64_t squad_feature_length(const struct squad_features *f, int64_t i)
{
    return squad_feature_window_at(f, i) + f->features[i].window_length + f->form.after.n;
}

/* The first token of a feature's window. */
static int64_t window_token(const struct squad_features *f, int64_t i)
{
    const struct squad_feature *w = &f->features[i];
    return f->context_starts[f->example_contexts[w->example]] + w->window_start;
}

void squad_feature_fill(const struct squad_features *f, int64_t i, int32_t *ids)
{
    const struct squad_feature *w = &f->features[i];
    int64_t n_question = question_length(f, i);
    input_form_write(&f->form, ids, n_question, w->window_length);
    if (n_question > 0) { /* without any question_ids is NULL */
        memcpy(ids + f->form.before.n, f->question_ids + f->question_starts[w->example],
               (size_t)n_question * sizeof *ids);
    }
    memcpy(ids + squad_feature_window_at(f, i), f->context_ids + window_token(f, i),
           (size_t)w->window_length * sizeof *ids);
}

int32_t squad_feature_word(const struct squad_features *f, int64_t i, int64_t position)
{
    int64_t at = position - squad_feature_window_at(f, i);
    bool inside = at >= 0 && at < f->features[i].window_length;
    return inside ? f->token_words[window_token(f, i) + at] : -1;
}

bool squad_feature_is_max_context(const struct squad_features *f, int64_t i, int64_t position)
{
    int64_t token = f->features[i].window_start + position - squad_feature_window_at(f, i);
    int32_t x = f->features[i].example;
    int64_t best = -1;
    double best_score = 0;
    for (int64_t k = f->first_features[x]; k < f->first_features[x + 1]; k++) {
        const struct squad_feature *w = &f->features[k];
        int64_t left = token - w->window_start, right = w->window_length - 1 - left;
        if (left < 0 || right < 0) {
            continue;
        }
        /* in double, as in the reference: ties depend on its rounding */
        double score = (double)(left < right ? left : right) + 0.01 * w->window_length;
        if (best < 0 || score > best_score) {
            best = k;
            best_score = score;
        }
    }
    return best == i;
}

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the features of questions");
}

static struct status tokenize_context(struct builder *b, int64_t index)
{
    const struct squad_context *c = &b->e->contexts[index];
    const char *text = squad_context_text(b->e, c);
    int64_t *starts = b->word_starts + c->first_word + index;
    b->f->context_starts[index] = (int64_t)b->context_ids.n;
    for (int32_t w = 0; w < c->n_words; w++) {
        const struct squad_word *word = &b->e->words[c->first_word + w];
        size_t n_before = b->context_ids.n;
        starts[w] = (int64_t)n_before;
        TRY(tokenizer_encode_ids(b->scratch, &b->context_ids, text + word->start,
                                 (size_t)(word->end - word->start)));
        for (size_t i = n_before; i < b->context_ids.n; i++) {
            buf_append(&b->words, &w, sizeof w);
        }
    }
    starts[c->n_words] = (int64_t)b->context_ids.n;
    return buf_status(&b->words);
}

/* Narrows tokens [*first, *last] of the context to exactly the answer's, if there are such: the words may
 * have pieces around the answer, like the year in "(1895-1943)." */
static struct status refine_answer(struct builder *b, int64_t *first, int64_t *last,
                                   const struct squad_answer *a)
{
    b->answer.n = 0;
    TRY(tokenizer_encode_ids(b->scratch, &b->answer, b->e->text.data + a->text, (size_t)a->n_bytes));
    int64_t n = (int64_t)b->answer.n;
    for (int64_t at = *first; n > 0 && at + n <= *last + 1; at++) {
        if (memcmp(b->context_ids.ids + at, b->answer.ids, (size_t)n * sizeof *b->answer.ids) == 0) {
            *first = at;
            *last = at + n - 1;
            break;
        }
    }
    return status_ok();
}

/* The tokens [*first, *last] of the context that answer a question, counted from the context's first token;
 * -1, -1 if there are none. */
static struct status find_answer(struct builder *b, int64_t *first, int64_t *last,
                                 const struct squad_example *x)
{
    *first = -1;
    *last = -1;
    if (!b->options.training || x->is_impossible) {
        return status_ok();
    }
    const struct squad_context *c = &b->e->contexts[x->context];
    const int64_t *starts = b->word_starts + c->first_word + x->context;
    *first = starts[x->start_word];
    *last = starts[x->end_word + 1] - 1;
    TRY(refine_answer(b, first, last, &b->e->answers[x->first_answer]));
    *first -= starts[0];
    *last -= starts[0];
    return status_ok();
}

static void add_window(struct builder *b, struct squad_feature w, int64_t first, int64_t last,
                       int64_t n_before)
{
    if (first >= w.window_start && last < w.window_start + w.window_length && first >= 0) {
        w.start = (int32_t)(first - w.window_start + n_before);
        w.end = (int32_t)(last - w.window_start + n_before);
    }
    int64_t length = n_before + w.window_length + b->f->form.after.n;
    b->f->max_length = length > b->f->max_length ? length : b->f->max_length;
    buf_append(&b->features, &w, sizeof w);
}

static struct status add_windows(struct builder *b, int64_t index)
{
    const struct squad_example *x = &b->e->examples[index];
    int64_t n_question = b->f->question_starts[index + 1] - b->f->question_starts[index];
    int64_t room = b->options.max_seq_length - n_question - input_form_n_special(&b->f->form);
    if (room < 1) {
        return status_error(STATUS_DATA,
                            "the question %.100s has %lld pieces, which leaves no room for its context in "
                            "max_seq_length %lld; lower max_query_length (%lld)",
                            squad_example_id(b->e, index), (long long)n_question,
                            (long long)b->options.max_seq_length, (long long)b->options.max_query_length);
    }
    if (room < b->options.doc_stride && !b->warned) {
        log_warning("doc_stride %lld is longer than a window of %lld tokens (question %.100s): its windows "
                    "do not overlap",
                    (long long)b->options.doc_stride, (long long)room, squad_example_id(b->e, index));
        b->warned = true;
    }
    int64_t first, last;
    TRY(find_answer(b, &first, &last, x));
    int64_t n = b->f->context_starts[x->context + 1] - b->f->context_starts[x->context];
    int64_t step = b->options.doc_stride < room ? b->options.doc_stride : room;
    for (int64_t at = 0; at < n; at += step) {
        int64_t length = n - at < room ? n - at : room;
        struct squad_feature w = {(int32_t)index, (int32_t)at, (int32_t)length, 0, 0};
        add_window(b, w, first, last, input_form_second_at(&b->f->form, n_question));
        if (at + length == n) {
            break;
        }
    }
    return buf_status(&b->features);
}

static struct status build(struct builder *b)
{
    struct squad_features *f = b->f;
    for (int64_t i = 0; i < f->n_contexts; i++) {
        TRY(tokenize_context(b, i));
    }
    f->context_starts[f->n_contexts] = (int64_t)b->context_ids.n;
    for (int64_t i = 0; i < f->n_examples; i++) {
        const struct squad_example *x = &b->e->examples[i];
        size_t n_before = b->ids.n, n_max = (size_t)b->options.max_query_length;
        f->question_starts[i] = (int64_t)n_before;
        f->first_features[i] = (int64_t)(b->features.n / sizeof(struct squad_feature));
        f->example_contexts[i] = x->context;
        TRY(tokenizer_encode_ids(b->scratch, &b->ids, squad_example_question(b->e, i),
                                 (size_t)x->question_bytes));
        b->ids.n = b->ids.n - n_before > n_max ? n_before + n_max : b->ids.n;
        f->question_starts[i + 1] = (int64_t)b->ids.n;
        TRY(add_windows(b, i));
    }
    f->n = (int64_t)(b->features.n / sizeof *f->features);
    f->first_features[f->n_examples] = f->n;
    return status_ok();
}

static struct status check_options(const struct squad_feature_options *o, int64_t n_special)
{
    if (o->max_seq_length < n_special + 2 || o->max_seq_length > MAX_SEQ_LENGTH) {
        return status_error(STATUS_USAGE, "max_seq_length is %lld; it must be from %lld to %d",
                            (long long)o->max_seq_length, (long long)n_special + 2, MAX_SEQ_LENGTH);
    }
    if (o->doc_stride < 1 || o->max_query_length < 1) {
        return status_error(STATUS_USAGE,
                            "doc_stride is %lld and max_query_length %lld; both must be at least 1",
                            (long long)o->doc_stride, (long long)o->max_query_length);
    }
    return status_ok();
}

struct status squad_features_encode(struct squad_features *f, const struct squad_examples *e,
                                    struct tokenizer_scratch *scratch, struct squad_feature_options o)
{
    struct input_frame frame;
    *f = (struct squad_features){.n_examples = e->n, .n_contexts = e->n_contexts};
    TRY(tokenizer_frame(&frame, scratch->tokenizer, "a question with its context"));
    f->form = frame.pair;
    TRY(check_options(&o, input_form_n_special(&f->form)));
    struct builder b = {.f = f, .e = e, .scratch = scratch, .options = o};
    f->first_features = calloc((size_t)e->n + 1, sizeof *f->first_features);
    f->question_starts = calloc((size_t)e->n + 1, sizeof *f->question_starts);
    f->example_contexts = calloc((size_t)e->n + 1, sizeof *f->example_contexts);
    f->context_starts = calloc((size_t)e->n_contexts + 1, sizeof *f->context_starts);
    b.word_starts = calloc((size_t)(e->n_words + e->n_contexts) + 1, sizeof *b.word_starts);
    bool room = f->first_features != NULL && f->question_starts != NULL && f->example_contexts != NULL &&
                f->context_starts != NULL && b.word_starts != NULL;
    struct status s = room ? build(&b) : out_of_memory();
    f->features = (struct squad_feature *)(void *)b.features.data;
    f->question_ids = b.ids.ids;
    f->context_ids = b.context_ids.ids;
    f->token_words = (int32_t *)(void *)b.words.data;
    id_list_fini(&b.answer);
    free(b.word_starts);
    if (failed(s)) {
        squad_features_fini(f);
    }
    return s;
}

struct status squad_features_build(struct squad_features *f, const struct squad_examples *e,
                                   const struct tokenizer *tokenizer, struct squad_feature_options o)
{
    struct tokenizer_scratch scratch;
    *f = (struct squad_features){0};
    struct status s = tokenizer_scratch_init(&scratch, tokenizer);
    s = failed(s) ? s : squad_features_encode(f, e, &scratch, o);
    tokenizer_scratch_fini(&scratch);
    return s;
}

void squad_features_fini(struct squad_features *f)
{
    free(f->features);
    free(f->first_features);
    free(f->question_starts);
    free(f->question_ids);
    free(f->example_contexts);
    free(f->context_starts);
    free(f->context_ids);
    free(f->token_words);
    *f = (struct squad_features){0};
}
