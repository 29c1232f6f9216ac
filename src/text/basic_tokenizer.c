#include "text/basic_tokenizer.h"

#include "core/array.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Values of enum basic_kind; the upper half are bytes of longer characters, which belong to runs. */
/* clang-format off */
const uint8_t basic_kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2,
    2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2,
    2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 0,
};
/* clang-format on */

struct basic_mark {
    uint32_t c;
    int combining_class;
    bool inserted; /* a later part of a decomposition: has no source bytes of its own */
    size_t index;  /* keeps the sort stable */
};

/* The high byte of a fold says what to do with a code point; the low 24 bits are the code point to
 * write. */
enum { FOLD_LETTER = 1, FOLD_ALONE, FOLD_SPACE, FOLD_REMOVED, FOLD_HANGUL, FOLD_GENERAL };
enum { N_FOLDS = 0x10000 };

/* Hangul syllables and their parts, which are letters without marks: The Unicode Standard, chapter 3.12. */
enum {
    HANGUL_FIRST = 0xAC00,
    HANGUL_LAST = 0xD7A3,
    HANGUL_LEADING = 0x1100,
    HANGUL_VOWEL = 0x1161,
    HANGUL_BEFORE_TRAILING = 0x11A7,
    HANGUL_N_TRAILING = 28, /* one of them: none */
    HANGUL_N_VOWELS = 21,
};

struct status basic_tokenizer_init(struct basic_tokenizer *b, bool lower_case)
{
    *b = (struct basic_tokenizer){.lower_case = lower_case};
    b->folds = calloc(N_FOLDS, sizeof *b->folds);
    return b->folds != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a tokenizer");
}

void basic_tokenizer_fini(struct basic_tokenizer *b)
{
    free(b->marks);
    free(b->sources);
    free(b->folds);
    *b = (struct basic_tokenizer){0};
}

static void end_word(struct basic_tokenizer *b)
{
    if (b->word.n_chars > 0) {
        b->on_word(b->context, &b->word);
        b->word.n_chars = 0;
        b->word.n_bytes = 0;
    }
}

static void add_char(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    struct basic_word *w = &b->word;
    if (w->n_chars == 0) {
        w->whole.start = span.start;
    }
    w->whole.end = span.end;
    if (w->n_chars >= BASIC_WORD_MAX_CHARS) {
        w->n_chars = BASIC_WORD_MAX_CHARS + 1;
        return;
    }
    w->char_starts[w->n_chars] = (uint16_t)w->n_bytes;
    w->spans[w->n_chars++] = span;
    w->n_bytes += (size_t)utf8_write(w->text + w->n_bytes, c);
}

static void add_alone(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    end_word(b);
    add_char(b, c, span);
    end_word(b);
}

/* Writes one part of an ordered decomposition. */
static void add_part(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    switch (unicode_class(c)) {
    case UNICODE_MARK: break;
    case UNICODE_PUNCTUATION: add_alone(b, c, span); break;
    default: add_char(b, unicode_lower(c), span); break;
    }
}

/* Offsets belong to positions, not to the parts: ordering the parts does not move them.  `tokenizers` does
 * so, and its offsets must be matched. */
static struct basic_span take_source(struct basic_tokenizer *b, bool inserted)
{
    if (!inserted) {
        b->last_source = b->sources[b->next_source++];
    }
    return b->last_source;
}

static int compare_marks(const void *left, const void *right)
{
    const struct basic_mark *a = left;
    const struct basic_mark *b = right;
    if (a->combining_class != b->combining_class) {
        return a->combining_class < b->combining_class ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

static void end_marks(struct basic_tokenizer *b)
{
    if (b->n_marks > 1) {
        qsort(b->marks, b->n_marks, sizeof *b->marks, compare_marks);
    }
    for (size_t i = 0; i < b->n_marks; i++) {
        struct basic_span span = take_source(b, b->marks[i].inserted);
        add_part(b, b->marks[i].c, span);
    }
    b->n_marks = 0;
}

/* Decomposes a code point and writes its parts in canonical order, as soon as that order is known. */
static void add_decomposed(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    uint32_t parts[UNICODE_DECOMPOSITION_MAX];
    int n = unicode_decompose(parts, c);
    if (!ARRAY_RESERVE(b->sources, b->sources_capacity, b->n_sources + 1) ||
        !ARRAY_RESERVE(b->marks, b->marks_capacity, b->n_marks + (size_t)n)) {
        b->out_of_memory = true;
        return;
    }
    if (b->n_marks == 0) { /* every source so far has been used */
        b->n_sources = 0;
        b->next_source = 0;
    }
    b->sources[b->n_sources++] = span;
    for (int i = 0; i < n; i++) {
        int combining_class = unicode_combining_class(parts[i]);
        if (combining_class != 0) {
            b->marks[b->n_marks] = (struct basic_mark){parts[i], combining_class, i > 0, b->n_marks};
            b->n_marks++;
            continue;
        }
        end_marks(b);
        struct basic_span source = take_source(b, i > 0);
        add_part(b, parts[i], source);
    }
}

/* Writes a code point that takes no part in ordering: it ends the marks before it. */
static void add_starter(struct basic_tokenizer *b, struct basic_span span)
{
    if (b->n_sources > 0) {
        end_marks(b);
        b->n_sources = 0;
        b->next_source = 0;
    }
    b->last_source = span;
}

/* The canonical decomposition of a Hangul syllable: two or three letters. */
static int decompose_hangul(uint32_t parts[3], uint32_t c)
{
    uint32_t index = c - HANGUL_FIRST;
    parts[0] = HANGUL_LEADING + index / (HANGUL_N_VOWELS * HANGUL_N_TRAILING);
    parts[1] = HANGUL_VOWEL + index / HANGUL_N_TRAILING % HANGUL_N_VOWELS;
    parts[2] = HANGUL_BEFORE_TRAILING + index % HANGUL_N_TRAILING;
    return parts[2] == HANGUL_BEFORE_TRAILING ? 2 : 3;
}

static uint32_t fold_case(uint32_t c, enum unicode_class class)
{
    if (c >= HANGUL_FIRST && c <= HANGUL_LAST) {
        return (uint32_t)FOLD_HANGUL << 24 | c;
    }
    uint32_t parts[UNICODE_DECOMPOSITION_MAX];
    int n = unicode_decompose(parts, c);
    bool simple = unicode_combining_class(parts[0]) == 0 && unicode_class(parts[0]) != UNICODE_MARK;
    for (int i = 1; i < n; i++) {
        simple = simple && unicode_class(parts[i]) == UNICODE_MARK;
    }
    if (!simple) {
        return (uint32_t)FOLD_GENERAL << 24;
    }
    bool alone = class == UNICODE_CJK || unicode_class(parts[0]) == UNICODE_PUNCTUATION;
    return (uint32_t)(alone ? FOLD_ALONE : FOLD_LETTER) << 24 | unicode_lower(parts[0]);
}

static uint32_t find_fold(const struct basic_tokenizer *b, uint32_t c)
{
    enum unicode_class class = unicode_class(c);
    if (class == UNICODE_REMOVED) {
        return (uint32_t)FOLD_REMOVED << 24;
    }
    if (class == UNICODE_SPACE) {
        return (uint32_t)FOLD_SPACE << 24;
    }
    if (b->lower_case) {
        return fold_case(c, class);
    }
    bool alone = class == UNICODE_CJK || class == UNICODE_PUNCTUATION;
    return (uint32_t)(alone ? FOLD_ALONE : FOLD_LETTER) << 24 | c;
}

static uint32_t recall_fold(struct basic_tokenizer *b, uint32_t c)
{
    if (c >= N_FOLDS) {
        return find_fold(b, c);
    }
    if (b->folds[c] == 0) {
        b->folds[c] = find_fold(b, c);
    }
    return b->folds[c];
}

static void add_hangul(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    uint32_t parts[3];
    int n = decompose_hangul(parts, c);
    for (int i = 0; i < n; i++) {
        add_char(b, parts[i], span);
    }
}

bool basic_tokenizer_fold(struct basic_tokenizer *b, char out[BASIC_FOLD_BYTES], size_t *n_out,
                          const char *text, size_t n)
{
    *n_out = 0;
    int n_chars = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c = (unsigned char)text[at];
        at += c < 0x80 ? 1 : (size_t)utf8_decode(&c, text + at, n - at);
        uint32_t fold = recall_fold(b, c);
        uint32_t parts[3] = {fold & 0xFFFFFF};
        int n_parts = 1;
        switch (fold >> 24) {
        case FOLD_LETTER: break;
        case FOLD_REMOVED: continue;
        case FOLD_HANGUL: n_parts = decompose_hangul(parts, c); break;
        default: return false;
        }
        n_chars += n_parts;
        if (n_chars > BASIC_WORD_MAX_CHARS) {
            return false;
        }
        for (int i = 0; i < n_parts; i++) {
            *n_out += (size_t)utf8_write(out + *n_out, parts[i]);
        }
    }
    return true;
}

enum basic_role basic_tokenizer_role(struct basic_tokenizer *b, uint32_t c)
{
    switch (recall_fold(b, c) >> 24) {
    case FOLD_ALONE: return BASIC_ALONE;
    case FOLD_SPACE: return BASIC_SEPARATES;
    default: return BASIC_PART;
    }
}

static void add_code_point(struct basic_tokenizer *b, uint32_t c, struct basic_span span)
{
    uint32_t fold = recall_fold(b, c);
    switch (fold >> 24) {
    case FOLD_LETTER:
        add_starter(b, span);
        add_char(b, fold & 0xFFFFFF, span);
        break;
    case FOLD_ALONE:
        add_starter(b, span);
        add_alone(b, fold & 0xFFFFFF, span);
        break;
    case FOLD_SPACE:
        add_starter(b, span);
        end_word(b);
        break;
    case FOLD_HANGUL:
        add_starter(b, span);
        add_hangul(b, c, span);
        break;
    case FOLD_GENERAL: add_decomposed(b, c, span); break;
    default: break; /* removed before anything is ordered, so it does not end the marks */
    }
}

bool basic_tokenizer_words(struct basic_tokenizer *b, const char *text, size_t n, size_t offset,
                           void (*on_word)(void *context, const struct basic_word *word), void *context)
{
    b->on_word = on_word;
    b->context = context;
    b->last_source = (struct basic_span){offset, offset};
    for (size_t at = 0; at < n;) {
        uint32_t c;
        int n_bytes = utf8_decode(&c, text + at, n - at);
        add_code_point(b, c, (struct basic_span){offset + at, offset + at + (size_t)n_bytes});
        at += (size_t)n_bytes;
    }
    add_starter(b, (struct basic_span){offset + n, offset + n});
    end_word(b);
    bool ok = !b->out_of_memory;
    b->out_of_memory = false;
    return ok;
}
