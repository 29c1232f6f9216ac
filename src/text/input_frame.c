#include "text/input_frame.h"

#include <string.h>

struct input_frame input_frame_bert(int32_t begin, int32_t separator)
{
    struct input_specials first = {1, {begin}}, last = {1, {separator}};
    return (struct input_frame){
        .one = {.before = first, .after = last, .n_first = 2, .a_first = true},
        .pair = {.before = first, .between = last, .after = last, .n_first = 2, .a_first = true}};
}

struct input_frame input_frame_roberta(int32_t begin, int32_t separator)
{
    struct input_frame f = input_frame_bert(begin, separator);
    f.pair.between = (struct input_specials){2, {separator, separator}};
    f.pair.n_first = 4;
    f.pair.b_first = true;
    return f;
}

/* ---- reading ---- */

/* A form under way. */
struct reading {
    struct input_form form;
    const char *source, *key; /* the file; "single" or "pair" */
    int n_texts;              /* texts so far */
    bool is_second;           /* a token of segment 1 has come */
};

static struct status wrong(const struct reading *r, const char *what, const char *name)
{
    return status_error(STATUS_DATA, "%s: the post_processor's \"%s\" %s%.60s", r->source, r->key, what,
                        name);
}

/* Segment 0 comes first, as kiln's batches have it. */
static struct status read_type(struct reading *r, const json_t *piece, bool *is_first)
{
    int64_t type = 0;
    TRY(json_get_int(piece, r->source, "type_id", false, &type));
    FAIL_IF(
        type < 0 || type > 1 || (type == 0 && r->is_second), STATUS_DATA,
        "%s: the post_processor's \"%s\" has a type_id %lld%s; only segment 0, then segment 1, is supported",
        r->source, r->key, (long long)type, type == 0 ? " after a 1" : "");
    *is_first = type == 0;
    r->is_second = type == 1;
    return status_ok();
}

static struct status read_text(struct reading *r, const json_t *piece)
{
    static const char *const names[] = {"A", "B"};
    const char *name = "";
    bool is_first;
    TRY(json_get_string(piece, r->source, "id", true, &name));
    if (r->n_texts == 2 || strcmp(name, names[r->n_texts]) != 0) {
        return wrong(r, "must have A once, then for a pair B once, but has ", name);
    }
    TRY(read_type(r, piece, &is_first));
    *(r->n_texts++ == 0 ? &r->form.a_first : &r->form.b_first) = is_first;
    return status_ok();
}

static struct status read_special(struct reading *r, const json_t *piece, const json_t *tokens)
{
    struct input_specials *const places[] = {&r->form.before, &r->form.between, &r->form.after};
    struct input_specials *place = places[r->n_texts];
    const char *name = "";
    bool is_first;
    TRY(json_get_string(piece, r->source, "id", true, &name));
    TRY(read_type(r, piece, &is_first));
    const json_t *ids = json_object_get(json_object_get(tokens, name), "ids");
    if (!json_is_array(ids)) {
        return wrong(r, "has a token that \"special_tokens\" does not list: ", name);
    }
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX) {
            return wrong(r, "has a token with an invalid id: ", name);
        }
        if (place->n == INPUT_FRAME_MOST) {
            return wrong(r, "has more than 4 special tokens in one place, the last is ", name);
        }
        place->ids[place->n++] = (int32_t)json_integer_value(id);
        r->form.n_first += is_first;
    }
    return status_ok();
}

static struct status read_template(struct input_form *out, const json_t *processor, const char *source,
                                   const char *key, int n_texts)
{
    const json_t *pieces = json_object_get(processor, key),
                 *tokens = json_object_get(processor, "special_tokens");
    struct reading r = {.source = source, .key = key};
    if (!json_is_array(pieces)) {
        return wrong(&r, "must be a list", "");
    }
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        const json_t *text = json_object_get(piece, "Sequence"),
                     *special = json_object_get(piece, "SpecialToken");
        if (text == NULL && special == NULL) {
            return wrong(&r, "has a piece that is neither a Sequence nor a SpecialToken", "");
        }
        TRY(text != NULL ? read_text(&r, text) : read_special(&r, special, tokens));
    }
    if (r.n_texts != n_texts) {
        return wrong(&r, n_texts == 1 ? "must have the text A" : "must have the texts A and B", "");
    }
    if (n_texts == 1) { /* special tokens after the only text */
        r.form.after = r.form.between;
        r.form.between.n = 0;
    }
    *out = r.form;
    return status_ok();
}

/* A token as ["[SEP]", 102]. */
static struct status read_token(int32_t *id, const json_t *processor, const char *source, const char *key)
{
    const json_t *value = json_array_get(json_object_get(processor, key), 1);
    FAIL_IF(!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > INT32_MAX,
            STATUS_DATA, "%s: the post_processor's \"%s\" must be a token and its id", source, key);
    *id = (int32_t)json_integer_value(value);
    return status_ok();
}

/* ByteLevel moves offsets and adds nothing, so a frame of it alone is bare. */
struct input_frame input_frame_bare(void)
{
    return (struct input_frame){.one = {.a_first = true}, .pair = {.a_first = true, .b_first = true}};
}

/* Steps one after the other, of which one adds tokens at most. */
static struct status read_sequence(struct input_frame *f, const json_t *steps, const char *source)
{
    struct input_frame none = input_frame_bare(), step;
    FAIL_IF(!json_is_array(steps) || json_array_size(steps) == 0, STATUS_DATA,
            "%s: the post_processor's \"processors\" must be a list", source);
    *f = none;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        TRY(input_frame_parse(&step, json_array_get(steps, i), source));
        if (!step.given || input_frame_equal(&step, &none)) {
            continue;
        }
        FAIL_IF(!input_frame_equal(f, &none), STATUS_DATA,
                "%s: two steps of the post_processor add tokens; only one is supported", source);
        *f = step;
    }
    return status_ok();
}

struct status input_frame_parse(struct input_frame *f, const json_t *post_processor, const char *source)
{
    const char *type = "";
    int32_t begin, separator;
    *f = (struct input_frame){0};
    if (post_processor == NULL || json_is_null(post_processor)) {
        return status_ok();
    }
    TRY(json_get_string(post_processor, source, "type", true, &type));
    if (strcmp(type, "TemplateProcessing") == 0) {
        TRY(read_template(&f->one, post_processor, source, "single", 1));
        TRY(read_template(&f->pair, post_processor, source, "pair", 2));
    } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        TRY(read_token(&begin, post_processor, source, "cls"));
        TRY(read_token(&separator, post_processor, source, "sep"));
        *f = (type[0] == 'B' ? input_frame_bert : input_frame_roberta)(begin, separator);
    } else if (strcmp(type, "ByteLevel") == 0) {
        *f = input_frame_bare();
    } else if (strcmp(type, "Sequence") == 0) {
        TRY(read_sequence(f, json_object_get(post_processor, "processors"), source));
    } else {
        return status_error(STATUS_DATA,
                            "%s: its post_processor is a %.60s; only TemplateProcessing, BertProcessing, "
                            "RobertaProcessing, ByteLevel and a Sequence of them are supported",
                            source, type);
    }
    f->given = true;
    return status_ok();
}

/* The places of a form in the order of the text. */
static const struct input_specials *place_of(const struct input_form *f, int i)
{
    return i == 0 ? &f->before : i == 1 ? &f->between : &f->after;
}

static bool same_form(const struct input_form *a, const struct input_form *b)
{
    bool same = a->n_first == b->n_first && a->a_first == b->a_first && a->b_first == b->b_first;
    for (int i = 0; i < 3; i++) {
        const struct input_specials *x = place_of(a, i), *y = place_of(b, i);
        same = same && x->n == y->n && memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids) == 0;
    }
    return same;
}

bool input_frame_equal(const struct input_frame *a, const struct input_frame *b)
{
    return same_form(&a->one, &b->one) && same_form(&a->pair, &b->pair);
}

struct status input_frame_check(const struct input_frame *f, int32_t n, const char *source)
{
    for (int i = 0; f->given && i < 6; i++) {
        const struct input_specials *s = place_of(i < 3 ? &f->one : &f->pair, i % 3);
        for (int k = 0; k < s->n; k++) {
            FAIL_IF(s->ids[k] >= n, STATUS_DATA,
                    "%s: its post_processor adds a token with the id %d, but the vocabulary has %d pieces",
                    source, s->ids[k], n);
        }
    }
    return status_ok();
}

/* ---- writing ---- */

static json_t *piece_of(const char *kind, const char *id, bool is_first)
{
    return json_pack("{s:{s:s, s:i}}", kind, "id", id, "type_id", is_first ? 0 : 1);
}

/* The state of writing a template: the function that names the special tokens, and the template's list of
 * them. */
struct writing {
    const char *(*name)(const void *self, int32_t id, size_t *n);
    const void *self;
    json_t *tokens;
};

static void put_special(struct writing *w, json_t *pieces, int32_t id, bool is_first)
{
    size_t n;
    const char *piece = w->name(w->self, id, &n);
    json_t *name = json_stringn(piece, n);
    const char *text = json_string_value(name);
    if (text != NULL) {
        json_array_append_new(pieces, piece_of("SpecialToken", text, is_first));
        json_object_set_new(w->tokens, text,
                            json_pack("{s:s, s:[i], s:[s]}", "id", text, "ids", id, "tokens", text));
    }
    json_decref(name);
}

static json_t *form_to_json(struct writing *w, const struct input_form *f, int n_texts)
{
    json_t *pieces = json_array();
    int n_special = 0;
    for (int place = 0; place < 3; place++) {
        const struct input_specials *s = place_of(f, place);
        for (int k = 0; k < s->n; k++) {
            put_special(w, pieces, s->ids[k], n_special++ < f->n_first);
        }
        if (place < n_texts) {
            json_array_append_new(
                pieces, piece_of("Sequence", place == 0 ? "A" : "B", place == 0 ? f->a_first : f->b_first));
        }
    }
    return pieces;
}

json_t *input_frame_to_json(const struct input_frame *f,
                            const char *(*name)(const void *self, int32_t id, size_t *n), const void *self)
{
    struct writing w = {name, self, json_object()};
    json_t *one = form_to_json(&w, &f->one, 1), *pair = form_to_json(&w, &f->pair, 2);
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", one, "pair", pair,
                     "special_tokens", w.tokens);
}

/* ---- using ---- */

void input_form_join(struct input_form *f)
{
    f->a_first = f->b_first = true;
    f->n_first = (int)input_form_n_special(f);
}

int64_t input_form_n_special(const struct input_form *f)
{
    return f->before.n + f->between.n + f->after.n;
}

int64_t input_form_n_first(const struct input_form *f, int64_t n_a, int64_t n_b)
{
    return f->n_first + (f->a_first ? n_a : 0) + (f->b_first ? n_b : 0);
}

int64_t input_form_second_at(const struct input_form *f, int64_t n_a)
{
    return f->before.n + n_a + f->between.n;
}

static int32_t *write_specials(int32_t *ids, const struct input_specials *s)
{
    memcpy(ids, s->ids, (size_t)s->n * sizeof *ids);
    return ids + s->n;
}

void input_form_write(const struct input_form *f, int32_t *ids, int64_t n_a, int64_t n_b)
{
    ids = write_specials(ids, &f->before) + n_a;
    ids = write_specials(ids, &f->between) + n_b;
    write_specials(ids, &f->after);
}

struct status input_specials_append(struct id_list *out, const struct input_specials *s)
{
    bool room = true;
    for (int i = 0; i < s->n; i++) {
        room = room && id_list_append(out, s->ids[i]);
    }
    return room ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
}
