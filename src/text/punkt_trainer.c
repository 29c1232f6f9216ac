#include "text/punkt_trainer.h"

#include "core/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NLTK's constants: PunktTrainer.ABBREV, ABBREV_BACKOFF, COLLOCATION and SENT_STARTER. */
static const double least_abbreviation = 0.3, least_pair = 7.88, least_starter = 30;
enum { RARE = 5 };

enum {
    FORM_HAS_LETTER = 1,
    FORM_IS_LETTERS = 2,
    FORM_IS_INITIAL = 4,
    FORM_IS_CASELESS = 8,
    FORM_IS_NUMBER = 16,
    FORM_IS_ELLIPSIS = 32,
    FORM_HAS_STOP = 64,    /* a full stop after something else */
    FORM_ABBREVIATED = 128 /* ... and that is an abbreviation */
};

static const uint32_t no_word = UINT32_MAX;

struct punkt_trainer_facts {
    uint32_t stem;      /* the word without its full stop, itself if it has none */
    uint32_t with_stop; /* the word with one, no_word if it never occurred */
    uint32_t n_begins;  /* times that it began a sentence */
    unsigned char bits; /* text/punkt.h */
    unsigned char form;
};

struct punkt_trainer_pair {
    uint32_t first, second;
    unsigned char second_case;
    bool begins_paragraph;
};

void punkt_trainer_fini(struct punkt_trainer *t)
{
    word_counts_fini(&t->words);
    free(t->facts);
    free(t->pairs);
    *t = (struct punkt_trainer){0};
}

/* ---- counting ---- */

static unsigned char form_of(const struct punkt_word *w)
{
    bool has_stop = w->ends_in_stop && !w->is_end && !w->is_ellipsis && !w->is_number;
    return (unsigned char)((w->has_letter ? FORM_HAS_LETTER : 0) | (w->is_letters ? FORM_IS_LETTERS : 0) |
                           (w->is_initial ? FORM_IS_INITIAL : 0) | (w->is_caseless ? FORM_IS_CASELESS : 0) |
                           (w->is_number ? FORM_IS_NUMBER : 0) | (w->is_ellipsis ? FORM_IS_ELLIPSIS : 0) |
                           (has_stop ? FORM_HAS_STOP : 0));
}

static struct status no_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the words that sentences are learned from");
}

/* Counts a word and sets its index. */
static struct status count_word(struct punkt_trainer *t, uint32_t *index, const char *text, size_t n,
                                unsigned char form, int64_t count)
{
    size_t i = 0;
    if (!word_counts_add(&t->words, &i, text, n, count) ||
        !ARRAY_RESERVE(t->facts, t->facts_capacity, i + 1)) {
        return no_memory();
    }
    if (i >= t->n_facts) {
        t->facts[i] = (struct punkt_trainer_facts){.stem = (uint32_t)i, .with_stop = no_word, .form = form};
        t->n_facts = i + 1;
    }
    *index = (uint32_t)i;
    return status_ok();
}

static struct status add_pair(struct punkt_trainer *t, uint32_t second, bool begins_paragraph)
{
    if (t->n_pairs >= PUNKT_TRAINER_PAIRS) {
        return status_ok();
    }
    if (!ARRAY_RESERVE(t->pairs, t->pairs_capacity, t->n_pairs + 1)) {
        return no_memory();
    }
    t->pairs[t->n_pairs++] =
        (struct punkt_trainer_pair){t->before, second, (unsigned char)t->now.first_case, begins_paragraph};
    return status_ok();
}

enum place { BEGINS, INSIDE, UNKNOWN };

static unsigned char place_bit(enum place where, enum punkt_case first)
{
    static const unsigned char bits[3][3] = {
        [BEGINS] = {0, PUNKT_BEGINS_LOWER, PUNKT_BEGINS_UPPER},
        [INSIDE] = {0, PUNKT_INSIDE_LOWER, PUNKT_INSIDE_UPPER},
        [UNKNOWN] = {0, PUNKT_UNKNOWN_LOWER, PUNKT_UNKNOWN_UPPER},
    };
    return bits[where][first];
}

static struct status add_word(struct punkt_trainer *t, bool begins_paragraph)
{
    const struct punkt_word *w = &t->now;
    uint32_t index = no_word;
    t->n_tokens++;
    t->n_with_stop += w->ends_in_stop;
    t->n_ends += w->is_end || (w->is_number && w->ends_in_stop);
    if (w->n > 0 && (t->words.n < PUNKT_TRAINER_WORDS || word_counts_find(&t->words, w->text, w->n) > 0)) {
        TRY(count_word(t, &index, w->text, w->n, form_of(w), 1));
        if (t->before_end == PUNKT_BEFORE_STOP) {
            TRY(add_pair(t, index, begins_paragraph));
        } else if (t->before_end != PUNKT_BEFORE_UNKNOWN_STOP) {
            bool begins = begins_paragraph || t->before_end == PUNKT_BEFORE_END;
            t->facts[index].bits |= place_bit(begins ? BEGINS : INSIDE, w->first_case);
        }
    }
    t->before = index;
    t->before_end = w->ends_in_stop ? (index == no_word ? PUNKT_BEFORE_UNKNOWN_STOP : PUNKT_BEFORE_STOP)
                    : w->is_end     ? PUNKT_BEFORE_END
                                    : PUNKT_BEFORE_INSIDE;
    return status_ok();
}

struct status punkt_trainer_add(struct punkt_trainer *t, const char *text, size_t n)
{
    struct punkt_span word;
    bool begins_paragraph = true;
    for (size_t at = 0; punkt_word_next(&word, &at, text, n);) {
        punkt_word_describe(&t->now, text + word.start, word.end - word.start);
        TRY(add_word(t, begins_paragraph));
        begins_paragraph = false;
    }
    return status_ok();
}

/* ---- abbreviations (section 3) ---- */

static int64_t count_of(const struct punkt_trainer *t, uint32_t word)
{
    return word == no_word ? 0 : t->words.words[word].count;
}

/* The occurrences of a word, with a full stop and without. */
static int64_t count_both(const struct punkt_trainer *t, uint32_t stem)
{
    return count_of(t, stem) + count_of(t, t->facts[stem].with_stop);
}

static const char *text_of(const struct punkt_trainer *t, uint32_t word)
{
    return t->words.text + t->words.words[word].start;
}

/* Dunning's ratio as the paper changes it: an abbreviation has its full stop in 99 % of its occurrences. */
static double abbreviation_likelihood(int64_t n_word, int64_t n_with_stop, int64_t n_stops, int64_t n_tokens)
{
    double p = (double)n_stops / (double)n_tokens;
    double with = (double)n_with_stop, without = (double)(n_word - n_with_stop);
    double null = with * log(p + 1e-8) + without * log(1 - p + 1e-8);
    double other = with * log(0.99) + without * log(1 - 0.99);
    return -2 * (null - other);
}

static bool is_abbreviation(const struct punkt_trainer *t, uint32_t word)
{
    const struct punkt_trainer_facts *f = &t->facts[word];
    if ((f->form & FORM_HAS_LETTER) == 0 || (f->form & FORM_IS_CASELESS) != 0) {
        return false;
    }
    const char *text = text_of(t, word);
    double n_stops = 0, n_others = 0;
    for (uint32_t i = 0; i < t->words.words[word].n_bytes; i++) {
        n_stops += text[i] == '.';
        n_others += text[i] != '.' && ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    int64_t with = count_of(t, word), without = count_of(t, f->stem);
    double likelihood = abbreviation_likelihood(with + without, with, t->n_with_stop, t->n_tokens);
    return likelihood * exp(-n_others) * n_stops * pow(n_others, -(double)without) >= least_abbreviation;
}

static struct status find_stems(struct punkt_trainer *t)
{
    for (uint32_t i = 0, n = (uint32_t)t->words.n; i < n; i++) {
        if ((t->facts[i].form & FORM_HAS_STOP) != 0) {
            char text[PUNKT_LOWER_BYTES];
            size_t n_stem = t->words.words[i].n_bytes - 1;
            uint32_t stem = 0;
            memcpy(text, text_of(t, i), n_stem); /* adding moves it */
            TRY(count_word(t, &stem, text, n_stem, t->facts[i].form & (FORM_HAS_LETTER | FORM_IS_CASELESS),
                           0));
            t->facts[i].stem = stem;
            t->facts[stem].with_stop = i;
        }
    }
    return status_ok();
}

/* Marks words whose part after the last hyphen is an abbreviation. */
static void mark_hyphenated(struct punkt_trainer *t, uint32_t word, const struct word_counts *abbreviations)
{
    const char *text = text_of(t, word);
    size_t n = t->words.words[word].n_bytes - 1, start = n;
    while (start > 0 && text[start - 1] != '-') {
        start--;
    }
    if (start > 0 && word_counts_find(abbreviations, text + start, n - start) > 0) {
        t->facts[word].form |= FORM_ABBREVIATED;
    }
}

static struct status find_abbreviations(struct punkt_trainer *t)
{
    struct word_counts found = {0};
    bool ok = true;
    for (uint32_t i = 0; i < t->words.n && ok; i++) {
        if ((t->facts[i].form & FORM_HAS_STOP) != 0 && is_abbreviation(t, i)) {
            size_t index = 0;
            t->facts[i].form |= FORM_ABBREVIATED;
            t->facts[t->facts[i].stem].bits |= PUNKT_ABBREVIATION;
            ok = word_counts_add(&found, &index, text_of(t, i), t->words.words[i].n_bytes - 1, 1);
        }
    }
    for (uint32_t i = 0; i < t->words.n && ok; i++) {
        if ((t->facts[i].form & FORM_HAS_STOP) != 0) {
            bool known = punkt_knows(text_of(t, i), t->words.words[i].n_bytes - 1);
            t->facts[i].form |= known ? FORM_ABBREVIATED : 0;
            mark_hyphenated(t, i, &found);
        }
    }
    word_counts_fini(&found);
    return ok ? status_ok() : no_memory();
}

/* ---- the words across full stops (section 4.1) ---- */

static bool ends_sentence(const struct punkt_trainer *t, uint32_t word)
{
    return (t->facts[word].form & (FORM_ABBREVIATED | FORM_IS_ELLIPSIS)) == 0;
}

/* The word as its case is counted: without a full stop that ends a sentence. */
static uint32_t fold(const struct punkt_trainer *t, uint32_t word)
{
    return (t->facts[word].form & FORM_ABBREVIATED) != 0 ? word : t->facts[word].stem;
}

static bool is_ordinal_or_initial(const struct punkt_trainer *t, uint32_t word)
{
    return (t->facts[word].form & (FORM_IS_NUMBER | FORM_IS_INITIAL)) != 0;
}

static void count_places(struct punkt_trainer *t)
{
    for (size_t k = 0; k < t->n_pairs; k++) {
        const struct punkt_trainer_pair *p = &t->pairs[k];
        enum place where = UNKNOWN;
        if (ends_sentence(t, p->first) && !is_ordinal_or_initial(t, p->first)) {
            where = BEGINS;
        }
        t->facts[p->second].bits |= place_bit(where, p->second_case);
    }
    for (uint32_t i = 0; i < t->words.n; i++) {
        uint32_t folded = fold(t, i);
        if (folded != i) {
            t->facts[folded].bits |= t->facts[i].bits & (PUNKT_UPPER_BITS | PUNKT_LOWER_BITS);
        }
    }
}

/* A rare word is an abbreviation if the next shows that no sentence ends. */
static void mark_if_rare(struct punkt_trainer *t, const struct punkt_trainer_pair *p)
{
    const struct punkt_trainer_facts *first = &t->facts[p->first];
    int form = first->form & (FORM_HAS_STOP | FORM_HAS_LETTER | FORM_IS_CASELESS | FORM_ABBREVIATED);
    if (form != (FORM_HAS_STOP | FORM_HAS_LETTER) || count_both(t, first->stem) >= RARE) {
        return;
    }
    unsigned bits = t->facts[fold(t, p->second)].bits;
    bool goes_on = strchr(",:;", text_of(t, p->second)[0]) != NULL;
    bool is_inside =
        p->second_case == PUNKT_LOWER && (bits & PUNKT_BEGINS_UPPER) != 0 && (bits & PUNKT_INSIDE_UPPER) == 0;
    if (goes_on || is_inside) {
        t->facts[first->stem].bits |= PUNKT_ABBREVIATION;
    }
}

static void count_starters(struct punkt_trainer *t)
{
    for (size_t k = 0; k < t->n_pairs; k++) {
        const struct punkt_trainer_pair *p = &t->pairs[k];
        mark_if_rare(t, p);
        t->facts[p->second].n_begins += ends_sentence(t, p->first) && !is_ordinal_or_initial(t, p->first) &&
                                        (t->facts[p->second].form & FORM_IS_LETTERS) != 0;
    }
}

/* a log(p) + b log(1 - p) */
static double binomial(double a, double b, double p)
{
    return p <= 0 || p >= 1 ? 0 : a * log(p) + b * log(1 - p);
}

/* Dunning's log-likelihood ratio that b, which occurs n_b times in n words, depends on a. */
static double pair_likelihood(double n_a, double n_b, double n_ab, double n)
{
    double p = n_b / n, p_1 = n_ab / n_a, p_2 = n > n_a ? (n_b - n_ab) / (n - n_a) : 1;
    double rest = n - n_a - n_b + n_ab;
    double apart = binomial(n_ab, n_a - n_ab, p) + binomial(n_b - n_ab, rest, p);
    double together = (n_a == n_ab ? 0 : binomial(n_ab, n_a - n_ab, p_1)) +
                      (n_b == n_ab ? 0 : binomial(n_b - n_ab, rest, p_2));
    return -2 * (apart - together);
}

static void find_starters(struct punkt_trainer *t)
{
    int64_t n_ends = t->n_ends;
    for (uint32_t i = 0; i < t->words.n; i++) {
        n_ends +=
            (t->facts[i].form & (FORM_HAS_STOP | FORM_ABBREVIATED)) == FORM_HAS_STOP ? count_of(t, i) : 0;
    }
    for (uint32_t i = 0; i < t->words.n; i++) {
        double begins = t->facts[i].n_begins, n_word = (double)count_both(t, i), n = (double)t->n_tokens;
        if (begins > 0 && pair_likelihood((double)n_ends, n_word, begins, n) >= least_starter &&
            n / (double)n_ends > n_word / begins) {
            t->facts[i].bits |= PUNKT_STARTER;
        }
    }
}

/* ---- pairs that belong together (section 4.1.2) ---- */

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool may_belong_together(const struct punkt_trainer *t, const struct punkt_trainer_pair *p)
{
    return ends_sentence(t, p->first) && is_ordinal_or_initial(t, p->first) &&
           (t->facts[p->second].form & FORM_HAS_LETTER) != 0 &&
           (t->facts[fold(t, p->second)].bits & PUNKT_STARTER) == 0;
}

static bool belong_together(const struct punkt_trainer *t, uint32_t first, uint32_t second, int64_t n_pair)
{
    int64_t n_first = count_both(t, first), n_second = count_both(t, second);
    double n = (double)t->n_tokens;
    return n_pair > 1 && n_pair <= n_first && n_pair <= n_second &&
           pair_likelihood((double)n_first, (double)n_second, (double)n_pair, n) >= least_pair &&
           n / (double)n_first > (double)n_second / (double)n_pair;
}

static bool keep_pair(const struct punkt_trainer *t, struct punkt *p, uint32_t first, uint32_t second)
{
    char text[2 * PUNKT_LOWER_BYTES + 1];
    size_t n_first = t->words.words[first].n_bytes, n_second = t->words.words[second].n_bytes, index = 0;
    memcpy(text, text_of(t, first), n_first);
    text[n_first] = ' ';
    memcpy(text + n_first + 1, text_of(t, second), n_second);
    return word_counts_add(&p->pairs, &index, text, n_first + 1 + n_second, 1);
}

static struct status find_pairs(const struct punkt_trainer *t, struct punkt *p)
{
    uint64_t *keys = malloc((t->n_pairs + 1) * sizeof *keys);
    size_t n = 0;
    bool ok = keys != NULL;
    for (size_t k = 0; k < t->n_pairs && ok; k++) {
        if (may_belong_together(t, &t->pairs[k])) {
            keys[n++] = (uint64_t)t->facts[t->pairs[k].first].stem << 32 | fold(t, t->pairs[k].second);
        }
    }
    if (n > 0) {
        qsort(keys, n, sizeof *keys, compare_keys);
    }
    for (size_t i = 0, end = 0; i < n && ok; i = end) {
        while (end < n && keys[end] == keys[i]) {
            end++;
        }
        uint32_t first = (uint32_t)(keys[i] >> 32), second = (uint32_t)keys[i];
        ok = !belong_together(t, first, second, (int64_t)(end - i)) || keep_pair(t, p, first, second);
    }
    free(keys);
    return ok ? status_ok() : no_memory();
}

/* ---- the result ---- */

/* Words that were never seen with a small letter, and are neither abbreviations nor begin sentences, answer
 * as words that were never seen at all. */
static struct status keep_words(const struct punkt_trainer *t, struct punkt *p)
{
    for (uint32_t i = 0; i < t->words.n; i++) {
        unsigned char bits = t->facts[i].bits;
        size_t index = 0;
        if (fold(t, i) == i && (bits & (PUNKT_ABBREVIATION | PUNKT_STARTER | PUNKT_LOWER_BITS)) != 0 &&
            !word_counts_add(&p->words, &index, text_of(t, i), t->words.words[i].n_bytes, bits)) {
            return no_memory();
        }
    }
    return status_ok();
}

struct status punkt_trainer_finish(struct punkt_trainer *t, struct punkt *p)
{
    if (t->n_tokens == 0) {
        return status_ok();
    }
    TRY(find_stems(t));
    TRY(find_abbreviations(t));
    count_places(t);
    count_starters(t);
    find_starters(t);
    struct status s = keep_words(t, p);
    s = failed(s) ? s : find_pairs(t, p);
    p->has_learned = !failed(s);
    if (failed(s)) {
        punkt_fini(p);
    }
    return s;
}
