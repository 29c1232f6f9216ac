#include "data/squad_features.h"

#include "core/integers.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SEQ_LENGTH = 1 << 20 };

struct builder {
    struct squad_features *f;
    const struct squad_examples *e;
    struct squad_feature_options options;
    struct tokenizer_scratch *scratch;
    struct buf words;      /* int32_t: token_words */
    struct buf features;   /* struct squad_feature */
    struct id_list answer; /* reused */
    int64_t *word_starts;  /* [n_words + n_contexts] first token of each word, and the end of each context */
    bool warned;
};

static int64_t length(const void *self, int64_t i)
{
    const struct squad_features *f = self;
    return encoded_texts_length(&f->texts, i);
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct squad_features *f = self;
    encoded_texts_append(&f->texts, i, key, out);
    text_batch_set_span(out, f->features[i].start, f->features[i].end);
}

struct example_source squad_features_source(const struct squad_features *f)
{
    return (struct example_source){.name = "features",
                                   .self = f,
                                   .n = f->n,
                                   .max_length = f->texts.max_length,
                                   .length = length,
                                   .add = add};
}

static struct token_range window_of(const struct squad_features *f, int64_t i)
{
    return encoded_texts_get(&f->texts, i)->b;
}

int32_t squad_feature_word(const struct squad_features *f, int64_t i, int64_t position)
{
    struct token_range window = window_of(f, i);
    int64_t at = position - encoded_texts_second_at(&f->texts, i);
    return at >= 0 && at < window.n ? f->token_words[window.first + at] : -1;
}

bool squad_feature_is_max_context(const struct squad_features *f, int64_t i, int64_t position)
{
    int64_t token = window_of(f, i).first + position - encoded_texts_second_at(&f->texts, i);
    int32_t x = f->features[i].example;
    int64_t best = -1;
    double best_score = 0;
    for (int64_t k = f->first_features[x]; k < f->first_features[x + 1]; k++) {
        struct token_range w = window_of(f, k);
        int64_t left = token - w.first, right = w.n - 1 - left;
        if (left < 0 || right < 0) {
            continue;
        }
        /* in double, as in the reference: ties depend on its rounding */
        double score = (double)(left < right ? left : right) + 0.01 * (double)w.n;
        if (best < 0 || score > best_score) {
            best = k;
            best_score = score;
        }
    }
    return best == i;
}

/* Pieces of a kind that decodes bytes have the space before a word in them, so the word has it too. */
static struct status tokenize_context(struct builder *b, int64_t index)
{
    const struct squad_context *c = &b->e->contexts[index];
    const char *text = squad_context_text(b->e, c);
    bool has_space = b->scratch->tokenizer->kind->decodes_bytes;
    int64_t *starts = b->word_starts + c->first_word + index;
    for (int32_t w = 0; w < c->n_words; w++) {
        const struct squad_word *word = &b->e->words[c->first_word + w];
        struct token_range tokens;
        int32_t start = !has_space ? word->start : w > 0 ? word[-1].end : 0;
        TRY(encoded_texts_tokenize(&b->f->texts, &tokens, b->scratch,
                                   (struct text_bytes){text + start, (size_t)(word->end - start)}));
        starts[w] = tokens.first;
        for (int64_t i = 0; i < tokens.n; i++) {
            buf_append(&b->words, &w, sizeof w);
        }
    }
    starts[c->n_words] = (int64_t)b->f->texts.ids.n;
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
        if (memcmp(b->f->texts.ids.ids + at, b->answer.ids, (size_t)n * sizeof *b->answer.ids) == 0) {
            *first = at;
            *last = at + n - 1;
            break;
        }
    }
    return status_ok();
}

/* The tokens [*first, *last] of the context that answer a question; -1, -1 if there are none. */
static struct status find_answer(struct builder *b, int64_t *first, int64_t *last,
                                 const struct squad_example *x)
{
    *first = -1;
    *last = -1;
    if (!b->options.training || x->is_impossible) {
        return status_ok();
    }
    const int64_t *starts = b->word_starts + b->e->contexts[x->context].first_word + x->context;
    *first = starts[x->start_word];
    *last = starts[x->end_word + 1] - 1;
    return refine_answer(b, first, last, &b->e->answers[x->first_answer]);
}

/* Appends a window, with the place of the answer's tokens [first, last] if it has them. */
static struct status add_window(struct builder *b, int64_t example, struct token_range question,
                                struct token_range window, int64_t first, int64_t last)
{
    struct squad_feature f = {.example = (int32_t)example};
    int64_t shift = input_form_second_at(&b->f->texts.frame.pair, question.n) - window.first;
    if (first >= window.first && last < window.first + window.n && first >= 0) {
        f.start = (int32_t)(first + shift);
        f.end = (int32_t)(last + shift);
    }
    buf_append(&b->features, &f, sizeof f);
    TRY(buf_status(&b->features));
    return encoded_texts_add_tokens(&b->f->texts, question, &window);
}

static struct status add_windows(struct builder *b, int64_t index, struct token_range question)
{
    const struct squad_example *x = &b->e->examples[index];
    int64_t room = b->options.max_length - question.n - input_form_n_special(&b->f->texts.frame.pair);
    FAIL_IF(room < 1, STATUS_DATA,
            "the question %.100s has %lld pieces, which leaves no room for its context in "
            "max_seq_length %lld; lower max_query_length (%lld)",
            squad_example_id(b->e, index), (long long)question.n, (long long)b->options.max_length,
            (long long)b->options.max_query_length);
    if (room < b->options.doc_stride && !b->warned) {
        log_warning("doc_stride %lld is longer than a window of %lld tokens (question %.100s): its windows "
                    "do not overlap",
                    (long long)b->options.doc_stride, (long long)room, squad_example_id(b->e, index));
        b->warned = true;
    }
    int64_t first, last;
    TRY(find_answer(b, &first, &last, x));
    const struct squad_context *c = &b->e->contexts[x->context];
    const int64_t *starts = b->word_starts + c->first_word + x->context;
    int64_t step = int_smaller(b->options.doc_stride, room), n = starts[c->n_words] - starts[0];
    for (struct token_range w = {0}; encoded_texts_next_window(&w, n, room, step);) {
        TRY(add_window(b, index, question, (struct token_range){starts[0] + w.first, w.n}, first, last));
    }
    return status_ok();
}

static struct status build(struct builder *b)
{
    struct squad_features *f = b->f;
    for (int64_t i = 0; i < b->e->n_contexts; i++) {
        TRY(tokenize_context(b, i));
    }
    for (int64_t i = 0; i < f->n_examples; i++) {
        const struct squad_example *x = &b->e->examples[i];
        struct token_range question;
        f->first_features[i] = f->texts.n;
        TRY(encoded_texts_tokenize(
            &f->texts, &question, b->scratch,
            (struct text_bytes){squad_example_question(b->e, i), (size_t)x->question_bytes}));
        question.n = int_smaller(question.n, b->options.max_query_length);
        f->texts.ids.n = (size_t)(question.first + question.n);
        TRY(add_windows(b, i, question));
    }
    f->n = f->first_features[f->n_examples] = f->texts.n;
    return status_ok();
}

static struct status check_options(const struct squad_feature_options *o, int64_t n_special)
{
    FAIL_IF(o->max_length < n_special + 2 || o->max_length > MAX_SEQ_LENGTH, STATUS_USAGE,
            "max_seq_length is %lld; it must be from %lld to %d", (long long)o->max_length,
            (long long)n_special + 2, MAX_SEQ_LENGTH);
    FAIL_IF(o->doc_stride < 1 || o->max_query_length < 1, STATUS_USAGE,
            "doc_stride is %lld and max_query_length %lld; both must be at least 1", (long long)o->doc_stride,
            (long long)o->max_query_length);
    return status_ok();
}

struct status squad_features_encode(struct squad_features *f, const struct squad_examples *e,
                                    struct tokenizer_scratch *scratch, struct squad_feature_options o)
{
    struct builder b = {.f = f, .e = e, .scratch = scratch, .options = o};
    *f = (struct squad_features){.n_examples = e->n};
    TRY(encoded_texts_init(&f->texts, scratch->tokenizer, o.max_length, "a question with its context"));
    TRY(check_options(&o, input_form_n_special(&f->texts.frame.pair)));
    f->first_features = calloc((size_t)e->n + 1, sizeof *f->first_features);
    b.word_starts = calloc((size_t)(e->n_words + e->n_contexts) + 1, sizeof *b.word_starts);
    struct status s = f->first_features != NULL && b.word_starts != NULL
                          ? build(&b)
                          : status_error(STATUS_MEMORY, "out of memory for the features of questions");
    f->features = (struct squad_feature *)(void *)b.features.data;
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
    free(f->token_words);
    encoded_texts_fini(&f->texts);
    *f = (struct squad_features){0};
}
