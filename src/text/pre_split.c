#include "text/pre_split.h"

#include "text/bpe_split.h"
#include "text/regex_syntax.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>

void pre_split_fini(struct pre_split *p)
{
    for (int i = 0; i < p->n; i++) {
        split_regex_destroy(p->steps[i].regex);
    }
    *p = (struct pre_split){0};
}

/* ---- cutting ---- */

/* A text being cut. */
struct cutter {
    const struct pre_split *steps;
    struct split_regex_scratch *regex;
    const struct pre_split_sink *sink;
    const char *text;
};

/* A part of the text that a step has found, and whether it is a match. */
struct span {
    size_t begin, end;
    bool is_match;
};

/* A step's spans: the one before the current one waits, since some behaviors join the two. */
struct level {
    int depth; /* index of the step */
    struct span waiting;
};

static struct status cut(struct cutter *c, int depth, size_t begin, size_t end);

static struct status flush(struct cutter *c, const struct level *l)
{
    const struct pre_split_step *step = &c->steps->steps[l->depth];
    bool vanishes = step->behavior == PRE_SPLIT_REMOVED && l->waiting.is_match;
    return vanishes || l->waiting.begin == l->waiting.end
               ? status_ok()
               : cut(c, l->depth + 1, l->waiting.begin, l->waiting.end);
}

/* A match that joins its neighbour keeps its nature for the next span, as in `tokenizers`. */
static struct status put_span(struct cutter *c, struct level *l, struct span s)
{
    const struct pre_split_step *step = &c->steps->steps[l->depth];
    struct span *before = &l->waiting;
    s.is_match = s.is_match != step->invert;
    bool any = before->end > before->begin;
    bool joins = any && ((step->behavior == PRE_SPLIT_CONTIGUOUS && s.is_match == before->is_match) ||
                         (step->behavior == PRE_SPLIT_TO_PREVIOUS && s.is_match && !before->is_match) ||
                         (step->behavior == PRE_SPLIT_TO_NEXT && !s.is_match && before->is_match));
    if (joins) {
        *before = (struct span){before->begin, s.end, s.is_match};
        return status_ok();
    }
    TRY(flush(c, l));
    *before = s;
    return status_ok();
}

/* The next numeral, or run of them, of text[0..n) from `at` on. */
static struct split_match find_number(const char *text, size_t n, size_t at, bool one)
{
    struct split_match m = {.found = false};
    for (size_t length; at < n; at += length) {
        uint32_t c;
        length = (size_t)utf8_decode(&c, text + at, n - at);
        if (unicode_is_number(c)) {
            m.begin = m.found ? m.begin : at;
            m.end = at + length;
            m.found = true;
        }
        if (m.found && (one || m.end == at)) {
            break;
        }
    }
    return m;
}

static struct status find_match(struct cutter *c, struct split_match *m, const struct pre_split_step *step,
                                const char *text, size_t n, size_t at)
{
    switch (step->kind) {
    case PRE_SPLIT_REGEX: return split_regex_find(c->regex, m, step->regex, text, n, at);
    case PRE_SPLIT_DIGIT: *m = find_number(text, n, at, true); break;
    case PRE_SPLIT_NUMBER: *m = find_number(text, n, at, false); break;
    case PRE_SPLIT_GPT2: *m = (struct split_match){true, at, bpe_split_end(BPE_GPT2, text, n, at)}; break;
    case PRE_SPLIT_BLOOM: *m = (struct split_match){true, at, bpe_split_end(BPE_BLOOM, text, n, at)}; break;
    }
    return status_ok();
}

static size_t character_bytes(const char *text, size_t n, size_t at)
{
    uint32_t c;
    return at < n ? (size_t)utf8_decode(&c, text + at, n - at) : 1;
}

/* Cuts text[begin..end) by the step at `depth` and those after it.  An empty match ends the span before
 * it. */
static struct status cut(struct cutter *c, int depth, size_t begin, size_t end)
{
    if (depth == c->steps->n) {
        return c->sink->take(c->sink->self, c->text, begin, end);
    }
    struct level l = {.depth = depth, .waiting = {begin, begin, false}};
    const struct pre_split_step *step = &c->steps->steps[depth];
    const char *text = c->text + begin;
    size_t n = end - begin, done = 0;
    for (size_t at = 0; at < n;) {
        struct split_match m;
        TRY(find_match(c, &m, step, text, n, at));
        if (!m.found) {
            break;
        }
        if (m.begin > done) {
            TRY(put_span(c, &l, (struct span){begin + done, begin + m.begin, false}));
        }
        if (m.end > m.begin) {
            TRY(put_span(c, &l, (struct span){begin + m.begin, begin + m.end, true}));
        }
        done = m.end;
        at = m.end > m.begin ? m.end : m.end + character_bytes(text, n, m.end);
    }
    if (done < n) {
        TRY(put_span(c, &l, (struct span){begin + done, end, false}));
    }
    return flush(c, &l);
}

/* The bytes of text[0..n) that are no UTF-8, from the beginning on. */
static size_t count_invalid(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && utf8_find_invalid(text + at, n - at) == 0) {
        at++;
    }
    return at;
}

struct status pre_split_each(const struct pre_split *p, struct split_regex_scratch *regex, const char *text,
                             size_t n, const struct pre_split_sink *sink)
{
    struct cutter c = {p, regex, sink, text};
    if (!p->has_regex) {
        return n > 0 ? cut(&c, 0, 0, n) : status_ok();
    }
    for (size_t at = 0, end; at < n; at = end) {
        end = at + utf8_find_invalid(text + at, n - at);
        if (end > at) {
            TRY(cut(&c, 0, at, end));
        }
        size_t n_invalid = count_invalid(text + end, n - end);
        if (n_invalid > 0) {
            TRY(sink->take(sink->self, text, end, end + n_invalid));
        }
        end += n_invalid;
    }
    return status_ok();
}

/* ---- tokenizer.json ---- */

static bool is_type(const json_t *part, const char *wanted)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type != NULL && strcmp(type, wanted) == 0;
}

static struct status add_step(struct pre_split *p, struct pre_split_step step, const char *source)
{
    FAIL_IF(p->n == PRE_SPLIT_MOST, STATUS_DATA, "%s: the pre_tokenizer has more than %d steps", source,
            PRE_SPLIT_MOST);
    p->steps[p->n++] = step;
    p->has_regex = p->has_regex || step.kind == PRE_SPLIT_REGEX;
    return status_ok();
}

/* ByteLevel, which also splits by GPT-2's pattern unless "use_regex" is false. */
static struct status read_byte_level(struct pre_split *p, const json_t *part, const char *source)
{
    bool prefix = false, splits = true;
    TRY(json_get_bool(part, source, "add_prefix_space", false, &prefix));
    TRY(json_get_bool(part, source, "use_regex", false, &splits));
    FAIL_IF(prefix, STATUS_DATA,
            "%s: \"add_prefix_space\" is true, but kiln supports only false: it puts no space before a text",
            source);
    return splits ? add_step(p, (struct pre_split_step){.kind = PRE_SPLIT_GPT2}, source) : status_ok();
}

static struct status read_behavior(struct pre_split_step *step, const json_t *part, const char *source)
{
    static const char *const names[] = {[PRE_SPLIT_ISOLATED] = "Isolated",
                                        [PRE_SPLIT_REMOVED] = "Removed",
                                        [PRE_SPLIT_TO_PREVIOUS] = "MergedWithPrevious",
                                        [PRE_SPLIT_TO_NEXT] = "MergedWithNext",
                                        [PRE_SPLIT_CONTIGUOUS] = "Contiguous"};
    const char *name = "";
    TRY(json_get_bool(part, source, "invert", false, &step->invert));
    TRY(json_get_string(part, source, "behavior", true, &name));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            step->behavior = (enum pre_split_behavior)i;
            return status_ok();
        }
    }
    return status_error(STATUS_DATA,
                        "%s: the pre_tokenizer has the behavior '%.60s', which kiln does not know", source,
                        name);
}

/* A pattern that kiln has as code is no expression. */
static struct status read_regex(struct pre_split_step *step, const char *regex, size_t n, const char *source)
{
    step->kind = strcmp(regex, bpe_pattern_regex(BPE_GPT2)) == 0    ? PRE_SPLIT_GPT2
                 : strcmp(regex, bpe_pattern_regex(BPE_BLOOM)) == 0 ? PRE_SPLIT_BLOOM
                                                                    : PRE_SPLIT_REGEX;
    if (step->kind != PRE_SPLIT_REGEX && step->behavior == PRE_SPLIT_ISOLATED && !step->invert) {
        return status_ok();
    }
    step->kind = PRE_SPLIT_REGEX;
    return split_regex_create(&step->regex, regex, n, source);
}

static struct status read_split(struct pre_split *p, const json_t *part, const char *source)
{
    const json_t *pattern = json_object_get(part, "pattern"), *text = json_object_get(pattern, "String"),
                 *regex = json_object_get(pattern, "Regex");
    struct pre_split_step step = {.kind = PRE_SPLIT_REGEX};
    struct buf quoted = {0};
    FAIL_IF(!json_is_string(text) && !json_is_string(regex), STATUS_DATA,
            "%s: the pre_tokenizer has a Split without a \"Regex\" or a \"String\" in its \"pattern\"",
            source);
    TRY(read_behavior(&step, part, source));
    if (json_is_string(regex)) {
        TRY(read_regex(&step, json_string_value(regex), json_string_length(regex), source));
    } else {
        regex_syntax_quote(&quoted, json_string_value(text), json_string_length(text));
        struct status s = buf_status(&quoted);
        s = failed(s) ? s : split_regex_create(&step.regex, buf_text(&quoted), quoted.n, source);
        buf_fini(&quoted);
        TRY(s);
    }
    struct status s = add_step(p, step, source);
    if (failed(s)) {
        split_regex_destroy(step.regex);
    }
    return s;
}

static struct status read_digits(struct pre_split *p, const json_t *part, const char *source)
{
    bool one = false;
    TRY(json_get_bool(part, source, "individual_digits", false, &one));
    return add_step(p, (struct pre_split_step){.kind = one ? PRE_SPLIT_DIGIT : PRE_SPLIT_NUMBER}, source);
}

static struct status read_step(struct pre_split *p, const json_t *part, bool is_last, const char *source)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    if (is_type(part, "ByteLevel") && is_last) {
        return read_byte_level(p, part, source);
    }
    FAIL_IF(is_last, STATUS_DATA,
            "%s: the pre_tokenizer must be ByteLevel or a Sequence that ends with ByteLevel, but is or ends "
            "with '%.60s'",
            source, type == NULL ? "none" : type);
    if (is_type(part, "Split")) {
        return read_split(p, part, source);
    }
    if (is_type(part, "Digits")) {
        return read_digits(p, part, source);
    }
    return status_error(STATUS_DATA,
                        "%s: the pre_tokenizer has the step '%.60s'; in front of ByteLevel kiln knows Split "
                        "and Digits",
                        source, type == NULL ? "none" : type);
}

struct status pre_split_read(struct pre_split *p, const json_t *pre_tokenizer, const char *source)
{
    const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
    size_t n = is_type(pre_tokenizer, "Sequence") ? json_array_size(steps) : 1;
    struct status s = status_ok();
    *p = (struct pre_split){0};
    FAIL_IF(n == 0, STATUS_DATA, "%s: the pre_tokenizer is a Sequence of no steps", source);
    for (size_t i = 0; i < n && !failed(s); i++) {
        const json_t *part = is_type(pre_tokenizer, "Sequence") ? json_array_get(steps, i) : pre_tokenizer;
        s = read_step(p, part, i + 1 == n, source);
    }
    if (failed(s)) {
        pre_split_fini(p);
    }
    return s;
}
