#include "data/tag_examples.h"

#include "data/label_match.h"

#include <string.h>

struct tag_word *tag_examples_word(const struct tag_examples *e, int64_t i)
{
    return (struct tag_word *)(void *)e->words.data + i;
}

int64_t tag_examples_first(const struct tag_examples *e, int64_t i)
{
    return i < e->n ? ((const int64_t *)(const void *)e->sentences.data)[i] : e->n_words;
}

static struct status status_of(const struct tag_examples *e)
{
    TRY(buf_status(&e->text));
    TRY(buf_status(&e->words));
    return buf_status(&e->sentences);
}

static size_t put_text(struct tag_examples *e, const char *text, size_t n)
{
    size_t start = e->text.n;
    buf_append(&e->text, text, n);
    buf_putc(&e->text, '\0');
    return start;
}

struct status tag_examples_add_sentence(struct tag_examples *e)
{
    if (e->n == 0 || tag_examples_first(e, e->n - 1) < e->n_words) { /* else the last sentence is still
                                                                      * empty */
        buf_append(&e->sentences, &e->n_words, sizeof e->n_words);
        e->n += !e->sentences.failed;
    }
    return status_of(e);
}

void tag_examples_init(struct tag_examples *e, const char *name)
{
    *e = (struct tag_examples){.path = name, .texts = {.of_tokens = true}};
}

struct status tag_examples_add_word(struct tag_examples *e, const char *word, size_t n, const char *label,
                                    size_t n_label, int64_t line)
{
    struct tag_word w = {
        .text = put_text(e, word, n), .n = n, .has_label = label != NULL && n_label > 0, .line = line};
    w.label = w.has_label ? put_text(e, label, n_label) : 0;
    buf_append(&e->words, &w, sizeof w);
    e->n_words++;
    return status_of(e);
}

static struct status wrong(const struct tag_examples *e, int64_t line, const char *what, const char *name)
{
    return status_error(STATUS_DATA, "%s line %lld: %s%.80s", e->path, (long long)line, what, name);
}

void tag_examples_fini(struct tag_examples *e)
{
    labelled_texts_fini(&e->texts);
    buf_fini(&e->columns);
    buf_fini(&e->text);
    buf_fini(&e->words);
    buf_fini(&e->sentences);
    *e = (struct tag_examples){0};
}

/* ---- labels and tokens ---- */

struct status tag_examples_names(const struct tag_examples *e, struct label_names *names)
{
    for (int64_t i = 0; i < e->n_words; i++) {
        const struct tag_word *w = tag_examples_word(e, i);
        if (!w->has_label) {
            return wrong(e, w->line, "there is no label after the word ", e->text.data + w->text);
        }
        const char *label = e->text.data + w->label;
        TRY(label_names_add(names, label, strlen(label)));
        if (names->n > 1 << 20) { /* most of them are repeated */
            TRY(label_names_sort(names));
        }
    }
    return label_names_sort(names);
}

struct encoding {
    const struct label_match *match; /* NULL: without labels */
    struct tokenizer_scratch *scratch;
    struct input_form form;
    struct id_list word, ids, labels; /* of a text: labels of all pieces */
    int64_t max_length;
};

static bool put(struct encoding *x, int32_t id, int32_t label)
{
    return id_list_append(&x->ids, id) && id_list_append(&x->labels, label);
}

static bool put_specials(struct encoding *x, const struct input_specials *s)
{
    bool room = true;
    for (int i = 0; i < s->n; i++) {
        room = room && put(x, s->ids[i], -1);
    }
    return room;
}

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of sentences");
}

static struct status end_text(struct tag_examples *e, struct encoding *x)
{
    int64_t n = (int64_t)x->ids.n - x->form.before.n;
    if (!put_specials(x, &x->form.after)) {
        return out_of_memory();
    }
    TRY(labelled_texts_add(&e->texts, x->ids.ids, (int64_t)x->ids.n, input_form_n_first(&x->form, n, 0),
                           x->labels.ids));
    x->ids.n = x->labels.n = 0;
    return status_ok();
}

static struct status find_label(const struct tag_examples *e, const struct encoding *x,
                                const struct tag_word *w, int32_t *label)
{
    const char *name = e->text.data + w->label;
    *label = x->match == NULL ? -1 : (int32_t)label_match_find(x->match, name, strlen(name));
    return x->match == NULL || *label >= 0 ? status_ok()
                                           : label_match_refuse(x->match, e->path, w->line, name);
}

/* Appends a word to the current text, or ends that text first if the word does not fit. */
static struct status encode_word(struct tag_examples *e, struct encoding *x, struct tag_word *w, bool *cut)
{
    int64_t room = x->max_length - input_form_n_special(&x->form);
    int32_t label;
    x->word.n = 0;
    TRY(find_label(e, x, w, &label));
    TRY(tokenizer_encode_ids(x->scratch, &x->word, e->text.data + w->text, w->n));
    if (x->word.n == 0 && !id_list_append(&x->word, x->scratch->tokenizer->special[SPECIAL_UNKNOWN])) {
        return out_of_memory();
    }
    int64_t n = (int64_t)x->word.n < room ? (int64_t)x->word.n : room;
    if (x->ids.n > 0 && (int64_t)x->ids.n + n + x->form.after.n > x->max_length) {
        *cut = true;
        TRY(end_text(e, x));
    }
    bool has_room = x->ids.n > 0 || put_specials(x, &x->form.before);
    w->model_label = label;
    w->example = e->texts.n;
    w->piece = (int64_t)x->ids.n;
    for (int64_t i = 0; i < n; i++) {
        has_room = has_room && put(x, x->word.ids[i], i == 0 ? label : -1);
    }
    return has_room ? status_ok() : out_of_memory();
}

static struct status encode_all(struct tag_examples *e, struct encoding *x)
{
    for (int64_t s = 0; s < e->n; s++) {
        bool cut = false;
        for (int64_t i = tag_examples_first(e, s); i < tag_examples_first(e, s + 1); i++) {
            TRY(encode_word(e, x, tag_examples_word(e, i), &cut));
        }
        TRY(end_text(e, x));
        e->n_cut += cut;
    }
    return status_ok();
}

static struct status encode(struct tag_examples *e, struct tokenizer_scratch *scratch, int64_t max_seq_length,
                            const struct label_match *match)
{
    struct encoding x = {.match = match, .scratch = scratch, .max_length = max_seq_length};
    struct input_frame frame;
    TRY(tokenizer_frame(&frame, scratch->tokenizer, "a sentence to label"));
    x.form = frame.one;
    if (max_seq_length < input_form_n_special(&x.form) + 1) {
        return status_error(STATUS_USAGE, "%lld tokens leave no room for a word beside the special tokens",
                            (long long)max_seq_length);
    }
    TRY(tokenizer_require(scratch->tokenizer, 1U << SPECIAL_UNKNOWN, "a sentence to label"));
    struct status s = encode_all(e, &x);
    id_list_fini(&x.word);
    id_list_fini(&x.ids);
    id_list_fini(&x.labels);
    return s;
}

struct status tag_examples_encode(struct tag_examples *e, struct tokenizer_scratch *scratch,
                                  int64_t max_seq_length, const struct model_labels *model, bool with_labels)
{
    struct label_names names = {0};
    struct label_match match = {0};
    if (!with_labels) {
        return encode(e, scratch, max_seq_length, NULL);
    }
    struct status s = tag_examples_names(e, &names);
    if (!failed(s)) {
        label_match_init(&match, model->names, &names, e->path);
        s = encode(e, scratch, max_seq_length, &match);
    }
    label_match_fini(&match);
    label_names_fini(&names);
    return s;
}
