#include "text/wordpiece_train.h"

#include "text/unicode.h"
#include "text/utf8.h"
#include "text/vocab.h"
#include "text/wordpiece_merge.h"

#include <stdlib.h>
#include <string.h>

/* Longer runs (text without spaces) hardly ever repeat: they are split into words at once. */
static const size_t RUN_MAX_BYTES = 64;

static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
enum { N_SPECIALS = sizeof specials / sizeof specials[0] };

struct alphabet_char {
    uint32_t c;
    int64_t count;
    size_t index; /* in counts */
};

struct alphabet {
    struct word_counts counts;   /* of every character of the words, as UTF-8 */
    bool *kept;                  /* [counts.n] */
    struct alphabet_char *chars; /* [n] those kept */
    size_t n;
};

struct status wordpiece_train_init(struct wordpiece_train *t, bool lower_case)
{
    *t = (struct wordpiece_train){0};
    return basic_tokenizer_init(&t->basic, lower_case);
}

void wordpiece_train_fini(struct wordpiece_train *t)
{
    basic_tokenizer_fini(&t->basic);
    word_counts_fini(&t->runs);
    word_counts_fini(&t->words);
}

static struct status memory_status(bool out_of_memory)
{
    return out_of_memory ? status_error(STATUS_MEMORY, "out of memory for the words of the text")
                         : status_ok();
}

static void count_word(void *context, const struct basic_word *w)
{
    struct wordpiece_train *t = context;
    size_t index;
    if (w->n_chars <= BASIC_WORD_MAX_CHARS) { /* longer ones are unknown to the tokenizer anyhow */
        t->out_of_memory |= !word_counts_add(&t->words, &index, w->text, w->n_bytes, t->multiplicity);
    }
}

static struct status count_words(struct wordpiece_train *t, const char *text, size_t n, int64_t multiplicity)
{
    t->multiplicity = multiplicity;
    t->out_of_memory |= !basic_tokenizer_words(&t->basic, text, n, 0, count_word, t);
    return memory_status(t->out_of_memory);
}

static struct status count_run(struct wordpiece_train *t, const char *text, size_t n)
{
    if (n > RUN_MAX_BYTES) {
        return count_words(t, text, n, 1);
    }
    size_t index;
    return memory_status(!word_counts_add(&t->runs, &index, text, n, 1));
}

struct status wordpiece_train_add(struct wordpiece_train *t, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t start = at;
        while (at < n && basic_kinds[(unsigned char)text[at]] == BASIC_RUN) {
            at++;
        }
        if (at > start) {
            TRY(count_run(t, text + start, at - start));
            continue;
        }
        t->n_punctuation[(unsigned char)text[at]] +=
            basic_kinds[(unsigned char)text[at]] == BASIC_PUNCTUATION;
        at++;
    }
    return status_ok();
}

/* Counts words from runs, so that each distinct run is folded once. */
static struct status count_runs(struct wordpiece_train *t)
{
    for (size_t i = 0; i < t->runs.n; i++) {
        const struct word_count *r = &t->runs.words[i];
        TRY(count_words(t, t->runs.text + r->start, r->n_bytes, r->count));
    }
    for (int c = 0; c < 128; c++) {
        char text = (char)c;
        if (t->n_punctuation[c] > 0) {
            TRY(count_words(t, &text, 1, t->n_punctuation[c]));
        }
    }
    word_counts_fini(&t->runs);
    memset(t->n_punctuation, 0, sizeof t->n_punctuation);
    return t->words.n > 0
               ? status_ok()
               : status_error(STATUS_DATA, "the text holds no words, so no vocabulary can be made");
}

static int by_count(const void *left, const void *right)
{
    const struct alphabet_char *a = left;
    const struct alphabet_char *b = right;
    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    return a->c < b->c ? -1 : a->c > b->c;
}

static int by_code_point(const void *left, const void *right)
{
    const struct alphabet_char *a = left;
    const struct alphabet_char *b = right;
    return a->c < b->c ? -1 : a->c > b->c;
}

/* The index in `counts` of the character at the start of text[0..n), whose bytes go to *n_bytes. */
static bool count_char(struct word_counts *counts, size_t *index, int *n_bytes, const char *text, size_t n,
                       int64_t count)
{
    uint32_t c;
    *n_bytes = utf8_decode(&c, text, n);
    return word_counts_add(counts, index, text, (size_t)*n_bytes, count);
}

static bool count_chars(struct word_counts *counts, const struct word_counts *words)
{
    for (size_t i = 0; i < words->n; i++) {
        const struct word_count *w = &words->words[i];
        int n_bytes;
        for (size_t at = 0; at < w->n_bytes; at += (size_t)n_bytes) {
            size_t index;
            if (!count_char(counts, &index, &n_bytes, words->text + w->start + at, w->n_bytes - at,
                            w->count)) {
                return false;
            }
        }
    }
    return true;
}

/* The characters to keep, in the order of their code points. */
static struct status choose_alphabet(struct alphabet *a, const struct word_counts *words,
                                     const struct wordpiece_train_options *o)
{
    if (!count_chars(&a->counts, words)) {
        return memory_status(true);
    }
    a->kept = calloc(a->counts.n + 1, sizeof *a->kept);
    a->chars = malloc((a->counts.n + 1) * sizeof *a->chars);
    if (a->kept == NULL || a->chars == NULL) {
        return memory_status(true);
    }
    for (size_t i = 0; i < a->counts.n; i++) {
        const struct word_count *w = &a->counts.words[i];
        uint32_t c;
        utf8_decode(&c, a->counts.text + w->start, w->n_bytes);
        if (w->count >= o->min_frequency) {
            a->chars[a->n++] = (struct alphabet_char){c, w->count, i};
        }
    }
    qsort(a->chars, a->n, sizeof *a->chars, by_count);
    a->n = (int64_t)a->n > o->limit_alphabet ? (size_t)o->limit_alphabet : a->n;
    qsort(a->chars, a->n, sizeof *a->chars, by_code_point);
    for (size_t i = 0; i < a->n; i++) {
        a->kept[a->chars[i].index] = true;
    }
    return status_ok();
}

static void alphabet_fini(struct alphabet *a)
{
    word_counts_fini(&a->counts);
    free(a->chars);
    free(a->kept);
}

static int32_t add_char(struct wordpiece_merge *m, uint32_t c, bool continues)
{
    char text[2 + UTF8_MAX_BYTES] = "##";
    int n = continues ? 2 : 0;
    n += utf8_write(text + n, c);
    return wordpiece_merge_piece(m, text, (size_t)n);
}

/* Adds the special pieces, then every kept character in both forms, so that any word of kept characters can
 * be covered; characters that always stand alone need only one form. */
static void add_first_pieces(struct wordpiece_merge *m, const struct alphabet *a)
{
    for (int i = 0; i < N_SPECIALS; i++) {
        wordpiece_merge_piece(m, specials[i], strlen(specials[i]));
    }
    for (size_t i = 0; i < a->n; i++) {
        add_char(m, a->chars[i].c, false);
    }
    for (size_t i = 0; i < a->n; i++) {
        enum unicode_class class = unicode_class(a->chars[i].c);
        if (class != UNICODE_PUNCTUATION && class != UNICODE_CJK) {
            add_char(m, a->chars[i].c, true);
        }
    }
}

static bool is_covered(struct alphabet *a, const char *text, size_t n)
{
    int n_bytes;
    for (size_t at = 0; at < n; at += (size_t)n_bytes) {
        size_t index; /* every character was counted before, so a count of 0 adds nothing */
        if (!count_char(&a->counts, &index, &n_bytes, text + at, n - at, 0) || !a->kept[index]) {
            return false;
        }
    }
    return true;
}

static void add_words(struct wordpiece_merge *m, struct alphabet *a, const struct word_counts *words)
{
    for (size_t i = 0; i < words->n; i++) {
        const struct word_count *w = &words->words[i];
        const char *text = words->text + w->start;
        if (!is_covered(a, text, w->n_bytes)) {
            continue; /* the tokenizer makes it [UNK] as a whole */
        }
        for (size_t at = 0; at < w->n_bytes;) {
            uint32_t c;
            int n_bytes = utf8_decode(&c, text + at, w->n_bytes - at);
            wordpiece_merge_symbol(m, add_char(m, c, at > 0));
            at += (size_t)n_bytes;
        }
        wordpiece_merge_end_word(m, w->count);
    }
}

static struct status merge(struct wordpiece_merge *m, const struct wordpiece_train_options *o,
                           struct progress *progress)
{
    if ((int64_t)m->pieces.n > o->vocab_size) {
        return status_error(STATUS_USAGE,
                            "a vocabulary of %lld pieces has no room for the %zu that its characters need; "
                            "ask for more pieces or limit the alphabet",
                            (long long)o->vocab_size, m->pieces.n);
    }
    wordpiece_merge_begin(m);
    while ((int64_t)m->pieces.n < o->vocab_size && wordpiece_merge_next(m, o->min_frequency)) {
        if (progress_due(progress)) {
            progress_show(progress, "merging: %zu of %lld pieces", m->pieces.n, (long long)o->vocab_size);
        }
    }
    return memory_status(m->out_of_memory);
}

struct status wordpiece_train_finish(struct wordpiece_train *t, struct buf *out, int64_t *n_pieces,
                                     const struct wordpiece_train_options *o, struct progress *progress)
{
    TRY(count_runs(t));
    struct alphabet a = {0};
    struct wordpiece_merge m = {0};
    struct status s = choose_alphabet(&a, &t->words, o);
    if (failed(s)) {
        goto out;
    }
    add_first_pieces(&m, &a);
    add_words(&m, &a, &t->words);
    s = merge(&m, o, progress);
    for (size_t i = 0; i < m.pieces.n && !failed(s); i++) {
        buf_append(out, m.pieces.text + m.pieces.words[i].start, m.pieces.words[i].n_bytes);
        buf_putc(out, '\n');
    }
    *n_pieces = (int64_t)m.pieces.n;
    s = failed(s) ? s : buf_status(out);
out:
    wordpiece_merge_fini(&m);
    alphabet_fini(&a);
    return s;
}
