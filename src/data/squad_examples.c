#include "data/squad_examples.h"

#include "core/json.h"
#include "core/log.h"
#include "corpus/text_file.h"
#include "data/squad_text.h"
#include "text/utf8.h"
#include "text/word_counts.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_BYTES = 256, CHARS_PER_MARK = 256 };
static const size_t MAX_FILE_BYTES = (size_t)1 << 30; /* so that every offset in a context fits 31 bits */

/* State while a file is read; the arrays move to squad_examples at the end. */
struct reader {
    struct squad_examples *e;
    struct squad_read_options options;
    const char *source;
    char place[PLACE_BYTES]; /* source and element, for messages */
    struct buf contexts, words, answers, examples;
    struct buf marks;       /* uint32_t: byte of every CHARS_PER_MARK-th character of the last context */
    struct buf found, want; /* scratch of answer_is_found */
    struct word_counts ids;
};

size_t squad_space_bytes(const char *text, size_t n)
{
    if (n > 0 && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n')) {
        return 1;
    }
    return n >= 3 && memcmp(text, "\xE2\x80\xAF", 3) == 0 ? 3 : 0; /* U+202F, narrow no-break space */
}

const char *squad_example_id(const struct squad_examples *e, int64_t i)
{
    return e->text.data + e->examples[i].id;
}

const char *squad_example_question(const struct squad_examples *e, int64_t i)
{
    return e->text.data + e->examples[i].question;
}

const char *squad_answer_text(const struct squad_examples *e, int64_t answer)
{
    return e->text.data + e->answers[answer].text;
}

const struct squad_context *squad_example_context(const struct squad_examples *e, int64_t i)
{
    return &e->contexts[e->examples[i].context];
}

const char *squad_context_text(const struct squad_examples *e, const struct squad_context *c)
{
    return e->text.data + c->text;
}

static size_t put_text(struct squad_examples *e, const char *text, size_t n)
{
    size_t at = e->text.n;
    buf_append(&e->text, text, n);
    buf_putc(&e->text, '\0');
    return at;
}

static struct squad_context *last_context(const struct reader *r)
{
    return (struct squad_context *)(void *)(r->contexts.data + r->contexts.n) - 1;
}

/* Splits a context into words and records the byte positions of its characters. */
static struct status add_context(struct reader *r, const char *text, size_t n)
{
    struct squad_context c = {.text = put_text(r->e, text, n), .n_bytes = (int32_t)n};
    c.first_word = (int64_t)(r->words.n / sizeof(struct squad_word));
    buf_clear(&r->marks);
    struct squad_word word = {-1, -1};
    int64_t n_chars = 0;
    for (size_t at = 0; at < n;) {
        if (n_chars++ % CHARS_PER_MARK == 0) {
            buf_append(&r->marks, &(uint32_t){(uint32_t)at}, sizeof(uint32_t));
        }
        uint32_t code_point;
        size_t n_space = squad_space_bytes(text + at, n - at);
        if (n_space > 0 && word.start >= 0) {
            word.end = (int32_t)at;
            buf_append(&r->words, &word, sizeof word);
            word.start = -1;
        } else if (n_space == 0 && word.start < 0) {
            word.start = (int32_t)at;
        }
        at += n_space > 0 ? n_space : (size_t)utf8_decode(&code_point, text + at, n - at);
    }
    if (word.start >= 0) {
        word.end = (int32_t)n;
        buf_append(&r->words, &word, sizeof word);
    }
    c.n_words = (int32_t)((int64_t)(r->words.n / sizeof word) - c.first_word);
    FAIL_IF(c.n_words == 0 && !r->words.failed, STATUS_DATA, "%s: \"context\" has no words", r->place);
    buf_append(&r->contexts, &c, sizeof c);
    TRY(buf_status(&r->e->text));
    TRY(buf_status(&r->marks));
    TRY(buf_status(&r->words));
    return buf_status(&r->contexts);
}

/* Byte of a character of the last context; -1 if it has fewer. */
static int32_t byte_of_char(const struct reader *r, int64_t index)
{
    const struct squad_context *c = last_context(r);
    const char *text = squad_context_text(r->e, c);
    if (index < 0 || (uint64_t)index / CHARS_PER_MARK >= r->marks.n / sizeof(uint32_t)) {
        return -1;
    }
    uint32_t at;
    memcpy(&at, r->marks.data + (size_t)(index / CHARS_PER_MARK) * sizeof at, sizeof at);
    for (int64_t i = index % CHARS_PER_MARK; i > 0 && at < (uint32_t)c->n_bytes; i--) {
        uint32_t code_point;
        at += (uint32_t)utf8_decode(&code_point, text + at, (size_t)c->n_bytes - at);
    }
    return at < (uint32_t)c->n_bytes ? (int32_t)at : -1;
}

/* The word of the last context that contains or precedes a byte; 0 before the first word. */
static int32_t word_at(const struct reader *r, int32_t byte)
{
    const struct squad_context *c = last_context(r);
    const struct squad_word *words = (const struct squad_word *)(const void *)r->words.data + c->first_word;
    int32_t low = 0, high = c->n_words;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (words[middle].start <= byte) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Whether the answer, its white space normalised, is in the words where the file says it is. */
static struct status answer_is_found(struct reader *r, bool *is_found, const struct squad_example *x,
                                     const char *answer, size_t n)
{
    const struct squad_context *c = last_context(r);
    const struct squad_word *words = (const struct squad_word *)(const void *)r->words.data + c->first_word;
    buf_clear(&r->found);
    buf_clear(&r->want);
    for (int32_t w = x->start_word; w <= x->end_word; w++) {
        if (w > x->start_word) {
            buf_putc(&r->found, ' ');
        }
        buf_append(&r->found, squad_context_text(r->e, c) + words[w].start,
                   (size_t)(words[w].end - words[w].start));
    }
    squad_text_join_words(&r->want, answer, n);
    TRY(buf_status(&r->found));
    TRY(buf_status(&r->want));
    *is_found = r->want.n > 0 && strstr(buf_text(&r->found), r->want.data) != NULL;
    return status_ok();
}

/* Finds the words of the first answer; if they do not contain it, the caller leaves the question out. */
static struct status align(struct reader *r, struct squad_example *x, bool *is_found, int64_t answer_start,
                           const struct squad_answer *a)
{
    const char *text = r->e->text.data + a->text;
    int64_t n_chars = squad_text_count_chars(text, (size_t)a->n_bytes);
    int64_t last_char = n_chars > 0 && answer_start <= INT32_MAX ? answer_start + n_chars - 1 : -1;
    int32_t last = byte_of_char(r, last_char);
    *is_found = a->start >= 0 && last >= 0;
    if (!*is_found) {
        return status_ok();
    }
    x->start_word = word_at(r, a->start);
    x->end_word = word_at(r, last);
    return answer_is_found(r, is_found, x, text, (size_t)a->n_bytes);
}

/* Reads answers; *first_start gets the answer_start of the first. */
static struct status add_answers(struct reader *r, struct squad_example *x, const json_t *answers,
                                 int64_t *first_start)
{
    size_t i;
    const json_t *item;
    json_array_foreach(answers, i, item)
    {
        char place[PLACE_BYTES + 32];
        snprintf(place, sizeof place, "%s.answers[%zu]", r->place, i);
        const char *text = NULL;
        int64_t start = -1;
        FAIL_IF(!json_is_object(item), STATUS_DATA, "%s must be an object {...}", place);
        TRY(json_get_string(item, place, "text", true, &text));
        TRY(json_get_int(item, place, "answer_start", r->options.training, &start));
        *first_start = i == 0 ? start : *first_start;
        size_t n = strlen(text);
        struct squad_answer a = {put_text(r->e, text, n), (int32_t)n, byte_of_char(r, start)};
        buf_append(&r->answers, &a, sizeof a);
    }
    x->n_answers = (int32_t)json_array_size(answers);
    TRY(buf_status(&r->e->text));
    return buf_status(&r->answers);
}

/* Refuses an id that occurred before.  Integers are accepted too: some data sets have them. */
static struct status add_id(struct reader *r, struct squad_example *x, const json_t *qa)
{
    const json_t *found = json_object_get(qa, "id");
    char digits[24];
    const char *id = digits;
    if (json_is_integer(found)) {
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(found));
    } else {
        TRY(json_get_string(qa, r->place, "id", true, &id));
    }
    size_t n = strlen(id), n_before = r->ids.n, index;
    FAIL_IF(!word_counts_add(&r->ids, &index, id, n, 1), STATUS_MEMORY,
            "%s: out of memory for the ids of the questions", r->place);
    FAIL_IF(index < n_before, STATUS_DATA, "%s: the \"id\" %.100s occurs twice", r->place, id);
    x->id = put_text(r->e, id, n);
    x->id_bytes = (int32_t)n;
    return status_ok();
}

/* The list under a key; *list is NULL if the key is absent and optional. */
static struct status get_list(const json_t *object, const char *place, const char *key, bool required,
                              const json_t **list)
{
    FAIL_IF(!json_is_object(object), STATUS_DATA, "%s must be an object {...}", place);
    *list = json_object_get(object, key);
    FAIL_IF(*list == NULL && required, STATUS_DATA, "%s: the key \"%s\" is missing", place, key);
    FAIL_IF(*list != NULL && !json_is_array(*list), STATUS_DATA, "%s: \"%s\" must be a list [...]", place,
            key);
    return status_ok();
}

/* For training: finds the answer, or says that the question must be left out. */
static struct status check_for_training(struct reader *r, struct squad_example *x, bool *keep, int64_t start)
{
    FAIL_IF(x->is_impossible && !r->options.version_2, STATUS_DATA,
            "%s has no answer: training on such questions needs --version_2_with_negative", r->place);
    if (x->is_impossible) {
        return status_ok();
    }
    const struct squad_answer *a =
        (const struct squad_answer *)(const void *)r->answers.data + x->first_answer;
    TRY(align(r, x, keep, start, a));
    if (!*keep) {
        r->e->n_misaligned++;
    } else if (x->n_answers > 1) {
        r->e->n_more_answers++;
    }
    return status_ok();
}

static struct status add_question(struct reader *r, const json_t *qa)
{
    struct squad_example x = {.start_word = -1, .end_word = -1};
    const json_t *answers;
    const char *question = NULL;
    int64_t start = -1;
    TRY(get_list(qa, r->place, "answers", r->options.training && !r->options.version_2, &answers));
    TRY(json_get_string(qa, r->place, "question", true, &question));
    TRY(add_id(r, &x, qa));
    x.question_bytes = (int32_t)strlen(question);
    x.question = put_text(r->e, question, (size_t)x.question_bytes);
    x.context = (int32_t)(r->contexts.n / sizeof(struct squad_context)) - 1;
    x.first_answer = (int64_t)(r->answers.n / sizeof(struct squad_answer));
    TRY(add_answers(r, &x, answers, &start));
    x.is_impossible = answers != NULL && x.n_answers == 0;
    TRY(json_get_bool(qa, r->place, "is_impossible", false, &x.is_impossible));
    r->e->has_impossible |= x.is_impossible || json_object_get(qa, "is_impossible") != NULL;
    FAIL_IF(r->options.training && x.n_answers == 0 && !x.is_impossible, STATUS_DATA,
            "%s has no answer, and its \"is_impossible\" is not true", r->place);
    bool keep = true;
    if (r->options.training) {
        TRY(check_for_training(r, &x, &keep, start));
    }
    if (keep) {
        buf_append(&r->examples, &x, sizeof x);
    } else if (r->e->n_misaligned == 1) {
        log_warning("%s is left out: its answer is not at the \"answer_start\" in the context", r->place);
    }
    TRY(buf_status(&r->e->text));
    return buf_status(&r->examples);
}

static struct status add_paragraph(struct reader *r, const json_t *paragraph, size_t entry, size_t index)
{
    snprintf(r->place, sizeof r->place, "%s: data[%zu].paragraphs[%zu]", r->source, entry, index);
    const char *context = NULL;
    const json_t *questions, *qa;
    TRY(get_list(paragraph, r->place, "qas", true, &questions));
    TRY(json_get_string(paragraph, r->place, "context", true, &context));
    TRY(add_context(r, context, strlen(context)));
    size_t i;
    json_array_foreach(questions, i, qa)
    {
        snprintf(r->place, sizeof r->place, "%s: data[%zu].paragraphs[%zu].qas[%zu]", r->source, entry, index,
                 i);
        TRY(add_question(r, qa));
    }
    return status_ok();
}

static struct status add_file(struct reader *r, const json_t *root)
{
    const json_t *data, *entry, *paragraphs, *paragraph;
    size_t i, j;
    TRY(get_list(root, r->source, "data", true, &data));
    const char *version = json_string_value(json_object_get(root, "version"));
    version = version == NULL ? "" : version;
    r->e->has_impossible = strncmp(version, "v2", 2) == 0 || strncmp(version, "2", 1) == 0;
    json_array_foreach(data, i, entry)
    {
        snprintf(r->place, sizeof r->place, "%s: data[%zu]", r->source, i);
        TRY(get_list(entry, r->place, "paragraphs", true, &paragraphs));
        json_array_foreach(paragraphs, j, paragraph)
        {
            TRY(add_paragraph(r, paragraph, i, j));
        }
    }
    FAIL_IF(r->ids.n == 0, STATUS_DATA, "%s has no questions", r->source);
    FAIL_IF(r->examples.n == 0, STATUS_DATA,
            "%s: no answer is at its \"answer_start\", so nothing is left to train on", r->source);
    return status_ok();
}

/* Hands the arrays over, or frees everything. */
static struct status finish(struct reader *r, struct status s)
{
    struct squad_examples *e = r->e;
    e->contexts = (struct squad_context *)(void *)r->contexts.data;
    e->n_contexts = (int64_t)(r->contexts.n / sizeof *e->contexts);
    e->words = (struct squad_word *)(void *)r->words.data;
    e->n_words = (int64_t)(r->words.n / sizeof *e->words);
    e->answers = (struct squad_answer *)(void *)r->answers.data;
    e->n_answers = (int64_t)(r->answers.n / sizeof *e->answers);
    e->examples = (struct squad_example *)(void *)r->examples.data;
    e->n = (int64_t)(r->examples.n / sizeof *e->examples);
    buf_fini(&r->marks);
    buf_fini(&r->found);
    buf_fini(&r->want);
    word_counts_fini(&r->ids);
    if (failed(s)) {
        squad_examples_fini(e);
    }
    return s;
}

struct status squad_examples_parse(struct squad_examples *e, const char *json, size_t n, const char *source,
                                   struct squad_read_options o)
{
    *e = (struct squad_examples){0};
    FAIL_IF(n > MAX_FILE_BYTES, STATUS_DATA, "%s has %zu MiB, more than the limit of %zu", source, n >> 20,
            MAX_FILE_BYTES >> 20);
    struct reader r = {.e = e, .options = o, .source = source};
    json_t *root;
    TRY(json_parse_text(&root, json == NULL ? "" : json, n, source));
    struct status s = finish(&r, add_file(&r, root));
    json_decref(root);
    if (!failed(s) && e->n_misaligned > 1) {
        log_warning("%s: %lld questions are left out, since their answers are not at the \"answer_start\" in "
                    "the context; %lld remain",
                    source, (long long)e->n_misaligned, (long long)e->n);
    }
    if (!failed(s) && e->n_more_answers > 0) {
        log_info("%s: %lld questions have several answers; training takes the first", source,
                 (long long)e->n_more_answers);
    }
    return s;
}

struct status squad_examples_open(struct squad_examples *e, const char *path, struct squad_read_options o)
{
    *e = (struct squad_examples){0};
    struct text_file f;
    TRY(text_file_open(&f, path, o.encoding));
    struct status s = squad_examples_parse(e, f.text, f.n, path, o);
    text_file_close(&f);
    return s;
}

struct status squad_examples_ask(struct squad_examples *e, const char *context, size_t n,
                                 const char *const *questions, int64_t n_questions)
{
    *e = (struct squad_examples){0};
    FAIL_IF(n > MAX_FILE_BYTES, STATUS_DATA, "the context has %zu MiB, more than the limit of %zu", n >> 20,
            MAX_FILE_BYTES >> 20);
    struct reader r = {.e = e, .source = "the text", .place = "the text"};
    struct status s = add_context(&r, context, n);
    for (int64_t i = 0; i < n_questions && !failed(s); i++) {
        char id[24];
        int n_id = snprintf(id, sizeof id, "%lld", (long long)i);
        struct squad_example x = {.start_word = -1, .end_word = -1, .id_bytes = n_id};
        x.question_bytes = (int32_t)strlen(questions[i]);
        x.id = put_text(e, id, (size_t)n_id);
        x.question = put_text(e, questions[i], (size_t)x.question_bytes);
        buf_append(&r.examples, &x, sizeof x);
        s = failed(buf_status(&e->text)) ? buf_status(&e->text) : buf_status(&r.examples);
    }
    return finish(&r, s);
}

void squad_examples_fini(struct squad_examples *e)
{
    buf_fini(&e->text);
    free(e->contexts);
    free(e->words);
    free(e->answers);
    free(e->examples);
    *e = (struct squad_examples){0};
}
