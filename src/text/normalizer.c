#include "text/normalizer.h"

#include "text/regex_syntax.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void normalizer_fini(struct normalizer *z)
{
    for (int i = 0; i < z->n; i++) {
        free(z->steps[i].wanted);
        free(z->steps[i].content);
        split_regex_destroy(z->steps[i].regex);
        charsmap_fini(&z->steps[i].charsmap);
    }
    *z = (struct normalizer){0};
}

struct status normalizer_scratch_init(struct normalizer_scratch *s, const struct normalizer *z)
{
    *s = (struct normalizer_scratch){0};
    return z->has_regex ? split_regex_scratch_create(&s->regex) : status_ok();
}

void normalizer_scratch_fini(struct normalizer_scratch *s)
{
    normal_text_fini(&s->texts[0]);
    normal_text_fini(&s->texts[1]);
    unicode_form_room_fini(&s->room);
    split_regex_scratch_destroy(s->regex);
    *s = (struct normalizer_scratch){0};
}

/* ---- steps ---- */

static void end_as(struct normal_text *out, const struct normal_text *from)
{
    normal_text_end(out, normal_text_origin(from, from->n));
}

static void repair(struct normal_text *out, const struct normal_text *from)
{
    for (size_t at = 0; at < from->n;) {
        uint32_t c;
        size_t n = utf8_find_invalid(from->bytes + at, from->n - at);
        normal_text_copy(out, from, at, n);
        at += n;
        if (at < from->n) {
            normal_text_put(out, "\xEF\xBF\xBD", 3, normal_text_origin(from, at));
            at += (size_t)utf8_decode(&c, from->bytes + at, from->n - at);
        }
    }
    end_as(out, from);
}

static void prepend(struct normal_text *out, const struct normal_text *from,
                    const struct normalizer_step *step)
{
    if (from->n > 0) {
        normal_text_put(out, step->content, step->n_content, normal_text_origin(from, 0));
    }
    normal_text_copy(out, from, 0, from->n);
    end_as(out, from);
}

static void replace(struct normal_text *out, const struct normal_text *from,
                    const struct normalizer_step *step)
{
    size_t at = 0;
    while (at < from->n) {
        const char *found = normal_text_find(from->bytes + at, from->n - at, step->wanted, step->n_wanted);
        size_t n = found == NULL ? from->n - at : (size_t)(found - from->bytes) - at;
        normal_text_copy(out, from, at, n);
        at += n;
        if (found != NULL) {
            normal_text_put(out, step->content, step->n_content, normal_text_origin(from, at));
            at += step->n_wanted;
        }
    }
    end_as(out, from);
}

static struct status replace_matches(struct normal_text *out, const struct normal_text *from,
                                     const struct normalizer_step *step, struct split_regex_scratch *regex)
{
    size_t at = 0;
    while (at < from->n) {
        struct split_match m;
        TRY(split_regex_find(regex, &m, step->regex, from->bytes, from->n, at));
        if (!m.found || m.end == m.begin) { /* an expression that matches nothing replaces nothing */
            break;
        }
        normal_text_copy(out, from, at, m.begin - at);
        normal_text_put(out, step->content, step->n_content, normal_text_origin(from, m.begin));
        at = m.end;
    }
    normal_text_copy(out, from, at, from->n - at);
    end_as(out, from);
    return status_ok();
}

static void strip(struct normal_text *out, const struct normal_text *from, const struct normalizer_step *step)
{
    size_t begin = 0, end = from->n;
    uint32_t c;
    while (step->left && begin < end) {
        size_t n = (size_t)utf8_decode(&c, from->bytes + begin, end - begin);
        if (!unicode_is_white(c)) {
            break;
        }
        begin += n;
    }
    while (step->right && end > begin) {
        size_t at = end - 1;
        while (at > begin && ((unsigned char)from->bytes[at] & 0xC0) == 0x80) {
            at--;
        }
        utf8_decode(&c, from->bytes + at, end - at);
        if (!unicode_is_white(c)) {
            break;
        }
        end = at;
    }
    normal_text_copy(out, from, begin, end - begin);
    end_as(out, from);
}

/* ---- SentencePiece's table ---- */

/* The end of the characters of ASCII from `at` on that the table keeps and no mark follows. */
static size_t end_of_kept(const struct charsmap *c, const struct normal_text *t, size_t at)
{
    size_t end = at;
    while (end < t->n && (unsigned char)t->bytes[end] < 0x80 && c->keeps[(unsigned char)t->bytes[end]]) {
        end++;
    }
    bool may_join = end < t->n && ((unsigned char)t->bytes[end] >= 0x80 || t->bytes[end] == '\n');
    return end > at && may_join ? end - 1 : end;
}

/* The end of the extended grapheme cluster (UAX #29) that begins at `at`. */
static size_t end_of_cluster(const struct normal_text *t, size_t at)
{
    uint32_t before, after;
    utf8proc_int32_t state = 0;
    size_t end = at + (size_t)utf8_decode(&before, t->bytes + at, t->n - at);
    while (end < t->n) {
        size_t n = (size_t)utf8_decode(&after, t->bytes + end, t->n - end);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after, &state)) {
            break;
        }
        end += n;
        before = after;
    }
    return end;
}

static void put_match(struct normal_text *out, const struct normal_text *from, size_t at,
                      const struct charsmap_match *m)
{
    normal_text_put(out, m->text, m->n_text, normal_text_origin(from, at));
}

/* As `tokenizers` does: a short cluster is replaced by what its shortest beginning in the table is replaced
 * by, and its rest is lost; else its characters are replaced alone. */
static void put_cluster(struct normal_text *out, const struct charsmap *c, const struct normal_text *from,
                        size_t at, size_t end)
{
    enum { SHORT_BYTES = 6 };
    struct charsmap_match m = {.n = 0};
    if (end - at < SHORT_BYTES) {
        m = charsmap_find(c, from->bytes + at, end - at, false);
    }
    if (m.n > 0) {
        put_match(out, from, at, &m);
        return;
    }
    for (size_t next; at < end; at = next) {
        uint32_t point;
        next = at + (size_t)utf8_decode(&point, from->bytes + at, end - at);
        m = charsmap_find(c, from->bytes + at, next - at, false);
        if (m.n > 0) {
            put_match(out, from, at, &m);
        } else {
            normal_text_copy(out, from, at, next - at);
        }
    }
}

static void map_characters(struct normal_text *out, const struct charsmap *c, const struct normal_text *from)
{
    for (size_t at = 0, end; at < from->n; at = end) {
        end = end_of_kept(c, from, at);
        if (end > at) {
            normal_text_copy(out, from, at, end - at);
        } else {
            end = end_of_cluster(from, at);
            put_cluster(out, c, from, at, end);
        }
    }
    end_as(out, from);
}

static struct status apply_step(const struct normalizer_step *step, struct normalizer_scratch *s,
                                struct normal_text *out, const struct normal_text *from)
{
    switch (step->kind) {
    case NORMALIZER_FORM: unicode_form_apply(out, &s->room, step->form, from); break;
    case NORMALIZER_PREPEND: prepend(out, from, step); break;
    case NORMALIZER_REPLACE: replace(out, from, step); break;
    case NORMALIZER_REGEX: return replace_matches(out, from, step, s->regex);
    case NORMALIZER_CHARSMAP: map_characters(out, &step->charsmap, from); break;
    case NORMALIZER_STRIP: strip(out, from, step); break;
    }
    return status_ok();
}

/* The text to write to: that of the two which does not have the current one. */
static struct normal_text *other(struct normalizer_scratch *s, const struct normal_text *t)
{
    return t->bytes != NULL && t->bytes == s->texts[0].bytes ? &s->texts[1] : &s->texts[0];
}

struct status normalizer_apply(const struct normalizer *z, struct normalizer_scratch *s,
                               struct normal_text *t, bool prepends, bool keeps_origins)
{
    if (utf8_find_invalid(t->bytes, t->n) < t->n) {
        struct normal_text *out = other(s, t);
        normal_text_clear(out, keeps_origins);
        repair(out, t);
        TRY(normal_text_status(out));
        *t = *out;
    }
    for (int i = 0; i < z->n; i++) {
        const struct normalizer_step *step = &z->steps[i];
        bool is_done = (step->kind == NORMALIZER_PREPEND && !prepends) ||
                       (step->kind == NORMALIZER_FORM && unicode_form_is_plain(step->form, t->bytes, t->n));
        if (is_done) {
            continue;
        }
        struct normal_text *out = other(s, t);
        normal_text_clear(out, keeps_origins);
        TRY(apply_step(step, s, out, t));
        TRY(normal_text_status(out));
        *t = *out;
    }
    return status_ok();
}

/* ---- tokenizer.json ---- */

static bool is_type(const json_t *part, const char *wanted)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type != NULL && strcmp(type, wanted) == 0;
}

static struct status copy_text(char **to, size_t *n, const char *text, size_t n_text)
{
    *to = malloc(n_text + 1);
    FAIL_IF(*to == NULL, STATUS_MEMORY, "out of memory for a normalizer");
    memcpy(*to, text, n_text);
    (*to)[n_text] = '\0';
    *n = n_text;
    return status_ok();
}

/* The next step, which fini frees from now on. */
static struct status next_step(struct normalizer_step **step, struct normalizer *z, enum normalizer_kind kind,
                               const char *source)
{
    FAIL_IF(z->n == NORMALIZER_MOST, STATUS_DATA, "%s: the normalizer has more than %d steps", source,
            NORMALIZER_MOST);
    *step = &z->steps[z->n++];
    **step = (struct normalizer_step){.kind = kind};
    z->has_regex = z->has_regex || kind == NORMALIZER_REGEX;
    return status_ok();
}

struct status normalizer_add_replacement(struct normalizer *z, const char *wanted, const char *content)
{
    struct normalizer_step *step = NULL;
    TRY(next_step(&step, z, wanted == NULL ? NORMALIZER_PREPEND : NORMALIZER_REPLACE, "tokenizer"));
    TRY(copy_text(&step->content, &step->n_content, content, strlen(content)));
    return wanted == NULL ? status_ok() : copy_text(&step->wanted, &step->n_wanted, wanted, strlen(wanted));
}

static struct status read_replace(struct normalizer *z, const json_t *part, const char *source)
{
    const json_t *pattern = json_object_get(part, "pattern"), *text = json_object_get(pattern, "String"),
                 *regex = json_object_get(pattern, "Regex"), *content = json_object_get(part, "content");
    struct normalizer_step *step = NULL;
    FAIL_IF(
        (!json_is_string(text) && !json_is_string(regex)) || !json_is_string(content) ||
            (json_is_string(text) && json_string_length(text) == 0),
        STATUS_DATA,
        "%s: the normalizer has a Replace without a \"Regex\" or a \"String\" in its \"pattern\", or without "
        "\"content\"",
        source);
    TRY(next_step(&step, z, json_is_string(text) ? NORMALIZER_REPLACE : NORMALIZER_REGEX, source));
    TRY(copy_text(&step->content, &step->n_content, json_string_value(content), json_string_length(content)));
    return json_is_string(text)
               ? copy_text(&step->wanted, &step->n_wanted, json_string_value(text), json_string_length(text))
               : split_regex_create(&step->regex, json_string_value(regex), json_string_length(regex),
                                    source);
}

static struct status read_prepend(struct normalizer *z, const json_t *part, const char *source)
{
    const json_t *text = json_object_get(part, "prepend");
    struct normalizer_step *step = NULL;
    FAIL_IF(!json_is_string(text), STATUS_DATA, "%s: the normalizer has a Prepend without \"prepend\"",
            source);
    TRY(next_step(&step, z, NORMALIZER_PREPEND, source));
    return copy_text(&step->content, &step->n_content, json_string_value(text), json_string_length(text));
}

static struct status read_charsmap(struct normalizer *z, const json_t *part, const char *source)
{
    const json_t *table = json_object_get(part, "precompiled_charsmap");
    struct normalizer_step *step = NULL;
    if (json_is_null(table)) {
        return status_ok();
    }
    FAIL_IF(!json_is_string(table), STATUS_DATA,
            "%s: the normalizer is Precompiled without a \"precompiled_charsmap\"", source);
    TRY(next_step(&step, z, NORMALIZER_CHARSMAP, source));
    return charsmap_init_base64(&step->charsmap, json_string_value(table), json_string_length(table), source);
}

static struct status read_strip(struct normalizer *z, const json_t *part, const char *source)
{
    struct normalizer_step *step = NULL;
    TRY(next_step(&step, z, NORMALIZER_STRIP, source));
    step->left = step->right = true;
    TRY(json_get_bool(part, source, "strip_left", false, &step->left));
    return json_get_bool(part, source, "strip_right", false, &step->right);
}

static struct status read_form(struct normalizer *z, const json_t *part, const char *source)
{
    struct normalizer_step *step = NULL;
    TRY(next_step(&step, z, NORMALIZER_FORM, source));
    step->form = is_type(part, "NFC") ? UNICODE_NFC : UNICODE_NFD;
    return status_ok();
}

static struct status read_step(struct normalizer *z, const json_t *part, const char *source)
{
    static const struct {
        const char *type;
        struct status (*read)(struct normalizer *z, const json_t *part, const char *source);
    } known[] = {{"Replace", read_replace}, {"Prepend", read_prepend}, {"Precompiled", read_charsmap},
                 {"Strip", read_strip},     {"NFC", read_form},        {"NFD", read_form}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (is_type(part, known[i].type)) {
            return known[i].read(z, part, source);
        }
    }
    const char *type = json_string_value(json_object_get(part, "type"));
    return status_error(
        STATUS_DATA,
        "%s: its normalizer has the step %.60s; kiln knows Replace, Prepend, Precompiled, Strip, "
        "NFC and NFD",
        source, type == NULL ? "of no type" : type);
}

struct status normalizer_read(struct normalizer *z, const json_t *normalizer, const char *source)
{
    const json_t *steps = json_object_get(normalizer, "normalizers");
    bool is_list = is_type(normalizer, "Sequence");
    size_t n = normalizer == NULL || json_is_null(normalizer) ? 0 : is_list ? json_array_size(steps) : 1;
    struct status s = status_ok();
    *z = (struct normalizer){0};
    for (size_t i = 0; i < n && !failed(s); i++) {
        s = read_step(z, is_list ? json_array_get(steps, i) : normalizer, source);
    }
    if (failed(s)) {
        normalizer_fini(z);
    }
    return s;
}
