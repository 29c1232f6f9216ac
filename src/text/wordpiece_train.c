#include "text/wordpiece_train.h"

#include "text/unicode.h"
#include "text/utf8.h"
#include "text/vocab.h"
#include "text/wordpiece_merge.h"

#include <stdlib.h>
#include <string.h>

static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
enum { N_SPECIALS = sizeof specials / sizeof specials[0] };

enum { N_CODE_POINTS = UNICODE_MAX + 1 };

struct alphabet_char {
    uint32_t c;
    int64_t count;
};

/* The arrays have an item for each code point; only pages with characters of the text take memory. */
struct alphabet {
    int64_t *counts;             /* occurrences of each character in the words */
    int32_t *ids[2];             /* ids of the pieces that begin, and that continue a word, plus 1; 0: none */
    bool *kept;                  /* whether the alphabet has the character */
    struct alphabet_char *chars; /* [n] those kept, in the order of their code points */
    size_t n;
};

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the words of the text");
}

static struct status alphabet_init(struct alphabet *a)
{
    *a = (struct alphabet){0};
    a->counts = calloc(N_CODE_POINTS, sizeof *a->counts);
    a->ids[0] = calloc(N_CODE_POINTS, sizeof *a->ids[0]);
    a->ids[1] = calloc(N_CODE_POINTS, sizeof *a->ids[1]);
    a->kept = calloc(N_CODE_POINTS, sizeof *a->kept);
    bool ok = a->counts != NULL && a->ids[0] != NULL && a->ids[1] != NULL && a->kept != NULL;
    return ok ? status_ok() : out_of_memory();
}

static void alphabet_fini(struct alphabet *a)
{
    free(a->counts);
    free(a->ids[0]);
    free(a->ids[1]);
    free(a->kept);
    free(a->chars);
}

/* Orders characters by falling counts.  Of equally frequent ones the lower code point comes first, on every
 * machine. */
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

static struct status count_chars(struct alphabet *a, int64_t *n_words, const struct word_tally *tally)
{
    struct word_tally_reader r;
    bool end = false;
    TRY(word_tally_open(&r, tally));
    struct status s = word_tally_next(&r, &end);
    for (*n_words = 0; !end && !failed(s); ++*n_words) {
        for (size_t at = 0; at < r.n_bytes;) {
            uint32_t c;
            at += (size_t)utf8_decode(&c, r.word + at, r.n_bytes - at);
            a->counts[c] += r.count;
        }
        s = word_tally_next(&r, &end);
    }
    word_tally_close(&r);
    return s;
}

/* The number of the most frequent characters to keep, of `total` occurrences in all. */
static size_t n_to_keep(const struct alphabet *a, const struct wordpiece_train_options *o, double total)
{
    size_t n = 0;
    if (o->limit_alphabet > 0) {
        return (int64_t)a->n > o->limit_alphabet ? (size_t)o->limit_alphabet : a->n;
    }
    for (double kept = 0; n < a->n && (n < WORDPIECE_LEAST_ALPHABET || kept < o->alphabet_coverage * total);
         n++) {
        kept += (double)a->chars[n].count;
    }
    return n;
}

/* The characters to keep, in the order of their code points. */
static struct status choose_alphabet(struct alphabet *a, struct wordpiece_train_result *result,
                                     const struct wordpiece_train_options *o)
{
    size_t n_counted = 0;
    double total = 0, kept = 0;
    for (uint32_t c = 0; c < N_CODE_POINTS; c++) {
        n_counted += a->counts[c] > 0;
        total += (double)a->counts[c];
    }
    a->chars = malloc((n_counted + 1) * sizeof *a->chars);
    if (a->chars == NULL) {
        return out_of_memory();
    }
    for (uint32_t c = 0; c < N_CODE_POINTS; c++) {
        if (a->counts[c] > 0 && a->counts[c] >= o->min_frequency) {
            a->chars[a->n++] = (struct alphabet_char){c, a->counts[c]};
        }
    }
    qsort(a->chars, a->n, sizeof *a->chars, by_count);
    a->n = n_to_keep(a, o, total);
    /* Ids of characters follow their code points, not their counts. */
    qsort(a->chars, a->n, sizeof *a->chars, by_code_point);
    for (size_t i = 0; i < a->n; i++) {
        a->kept[a->chars[i].c] = true;
        kept += (double)a->chars[i].count;
    }
    result->n_alphabet = (int64_t)a->n;
    result->lost = total > 0 ? 1 - kept / total : 0;
    return status_ok();
}

static int32_t add_char(struct wordpiece_merge *m, struct alphabet *a, uint32_t c, bool continues)
{
    char text[2 + UTF8_MAX_BYTES] = "##";
    int n = continues ? 2 : 0;
    n += utf8_write(text + n, c);
    int32_t id = wordpiece_merge_piece(m, text, (size_t)n);
    a->ids[continues][c] = id + 1;
    return id;
}

/* Adds the special pieces, then every kept character in both forms, so that any word of kept characters can
 * be covered; characters that always stand alone need only one form. */
static void add_first_pieces(struct wordpiece_merge *m, struct alphabet *a)
{
    for (int i = 0; i < N_SPECIALS; i++) {
        wordpiece_merge_piece(m, specials[i], strlen(specials[i]));
    }
    for (size_t i = 0; i < a->n; i++) {
        add_char(m, a, a->chars[i].c, false);
    }
    for (size_t i = 0; i < a->n; i++) {
        enum unicode_class class = unicode_class(a->chars[i].c);
        if (class != UNICODE_PUNCTUATION && class != UNICODE_CJK) {
            add_char(m, a, a->chars[i].c, true);
        }
    }
}

/* A word with a character that the alphabet lacks is left out: the tokenizer makes the complete word
 * [UNK]. */
static bool is_covered(const struct alphabet *a, const char *word, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, word + at, n - at);
        if (!a->kept[c]) {
            return false;
        }
    }
    return true;
}

static void add_word(struct wordpiece_merge *m, struct alphabet *a, const char *word, size_t n, int64_t count)
{
    int n_symbols = 0;
    if (!is_covered(a, word, n)) {
        return;
    }
    for (size_t at = 0; at < n; n_symbols++) {
        uint32_t c;
        int n_bytes = utf8_decode(&c, word + at, n - at);
        if (n_symbols == 0 && (size_t)n_bytes == n) {
            return; /* a word of one piece has no pairs */
        }
        int32_t id = a->ids[at > 0][c] - 1;
        wordpiece_merge_symbol(m, id >= 0 ? id : add_char(m, a, c, at > 0));
        at += (size_t)n_bytes;
    }
    wordpiece_merge_end_word(m, count);
}

static struct status add_words(struct wordpiece_merge *m, struct alphabet *a, const struct word_tally *tally)
{
    struct word_tally_reader r;
    bool end = false;
    TRY(word_tally_open(&r, tally));
    struct status s = word_tally_next(&r, &end);
    while (!end && !failed(s)) {
        add_word(m, a, r.word, r.n_bytes, r.count);
        s = word_tally_next(&r, &end);
    }
    word_tally_close(&r);
    return s;
}

static struct status merge(struct wordpiece_merge *m, const struct wordpiece_train_options *o,
                           struct progress *progress)
{
    FAIL_IF((int64_t)m->pieces.n > o->vocab_size, STATUS_USAGE,
            "a vocabulary of %lld pieces has no room for the %zu that its characters need; ask for more "
            "pieces or limit the alphabet",
            (long long)o->vocab_size, m->pieces.n);
    wordpiece_merge_begin(m, o->min_frequency);
    while ((int64_t)m->pieces.n < o->vocab_size && wordpiece_merge_next(m)) {
        if (progress_due(progress)) {
            progress_show(progress, "merging: %zu of %lld pieces", m->pieces.n, (long long)o->vocab_size);
        }
    }
    return m->out_of_memory ? out_of_memory() : status_ok();
}

/* Prepares the merges from the words of the tally, which is not needed afterwards. */
static struct status take_words(struct wordpiece_merge *m, struct wordpiece_train_result *result,
                                struct word_tally *tally, const struct wordpiece_train_options *o)
{
    struct alphabet a;
    struct status s = alphabet_init(&a);
    s = failed(s) ? s : count_chars(&a, &result->n_words, tally);
    if (!failed(s) && result->n_words == 0) {
        s = status_error(STATUS_DATA,
                         "the text holds no words, so no vocabulary can be made (of lines of JSON the value "
                         "of \"text\" is read)");
    }
    s = failed(s) ? s : choose_alphabet(&a, result, o);
    if (!failed(s)) {
        add_first_pieces(m, &a);
        s = add_words(m, &a, tally);
    }
    alphabet_fini(&a);
    word_tally_empty(tally);
    return s;
}

struct status wordpiece_train(struct buf *out, struct wordpiece_train_result *result,
                              struct word_tally *tally, const struct wordpiece_train_options *o,
                              struct progress *progress)
{
    struct wordpiece_merge m = {.prefix_bytes = 2};
    *result = (struct wordpiece_train_result){0};
    struct status s = take_words(&m, result, tally, o);
    s = failed(s) ? s : merge(&m, o, progress);
    for (size_t i = 0; i < m.pieces.n && !failed(s); i++) {
        buf_append(out, m.pieces.text + m.pieces.words[i].start, m.pieces.words[i].n_bytes);
        buf_putc(out, '\n');
    }
    result->n_pieces = (int64_t)m.pieces.n;
    s = failed(s) ? s : buf_status(out);
    wordpiece_merge_fini(&m);
    return s;
}
