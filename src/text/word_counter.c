#include "text/word_counter.h"

#include <string.h>

/* Longer runs (text without spaces) hardly ever repeat: they are split into words at once. */
static const size_t RUN_MAX_BYTES = 64;

/* Distinct runs in memory, about 20 MB.  More would save folding a rare run twice, which takes less time than
 * missing the processor's caches. */
enum { MOST_RUNS = 1 << 18 };

/* The least words of a thread's table.  A thread has its share of the words that the tally keeps in memory,
 * but not so few that the file has very many parts. */
enum { LEAST_WORDS = 1 << 16 };

struct status word_counter_init(struct word_counter *c, struct word_tally *tally, bool lower_case,
                                int n_threads)
{
    *c = (struct word_counter){.tally = tally, .most_words = tally->memory_words / (size_t)n_threads};
    if (c->most_words < LEAST_WORDS && tally->memory_words > LEAST_WORDS) {
        c->most_words = LEAST_WORDS;
    }
    return basic_tokenizer_init(&c->basic, lower_case);
}

struct status word_counter_init_pieces(struct word_counter *c, struct word_tally *tally,
                                       enum bpe_pattern pattern, int n_threads)
{
    TRY(word_counter_init(c, tally, false, n_threads));
    c->cuts_pieces = true;
    c->pattern = pattern;
    return status_ok();
}

void word_counter_fini(struct word_counter *c)
{
    basic_tokenizer_fini(&c->basic);
    word_counts_fini(&c->runs);
    word_counts_fini(&c->words);
}

static struct status memory_status(bool out_of_memory)
{
    return out_of_memory ? status_error(STATUS_MEMORY, "out of memory for the words of the text")
                         : status_ok();
}

static void count_word(void *context, const struct basic_word *w)
{
    struct word_counter *c = context;
    size_t index;
    if (w->n_chars <= BASIC_WORD_MAX_CHARS) { /* longer ones are unknown to the tokenizer anyhow */
        c->out_of_memory |= !word_counts_add(&c->words, &index, w->text, w->n_bytes, c->multiplicity);
    }
}

static struct status count_words(struct word_counter *c, const char *text, size_t n, int64_t multiplicity)
{
    c->multiplicity = multiplicity;
    c->out_of_memory |= !basic_tokenizer_words(&c->basic, text, n, 0, count_word, c);
    TRY(memory_status(c->out_of_memory));
    return c->words.n < c->most_words ? status_ok() : word_tally_take(c->tally, &c->words);
}

/* Counts words from runs and forgets the runs. */
static struct status count_runs(struct word_counter *c)
{
    for (size_t i = 0; i < c->runs.n; i++) {
        const struct word_count *r = &c->runs.words[i];
        TRY(count_words(c, c->runs.text + r->start, r->n_bytes, r->count));
    }
    word_counts_clear(&c->runs);
    return status_ok();
}

static struct status count_run(struct word_counter *c, const char *text, size_t n)
{
    if (n > RUN_MAX_BYTES) {
        return count_words(c, text, n, 1);
    }
    size_t index;
    TRY(memory_status(!word_counts_add(&c->runs, &index, text, n, 1)));
    return c->runs.n < MOST_RUNS ? status_ok() : count_runs(c);
}

static struct status count_pieces(struct word_counter *c, const char *text, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        size_t index;
        end = c->pattern == BPE_GPT2 ? bpe_split_quick(text, n, at) : 0;
        end = end > 0 ? end : bpe_split_end(c->pattern, text, n, at);
        if (end - at <= WORD_TALLY_MAX_BYTES) {
            TRY(memory_status(!word_counts_add(&c->words, &index, text + at, end - at, 1)));
        }
        if (c->words.n >= c->most_words) {
            TRY(word_tally_take(c->tally, &c->words));
        }
    }
    return status_ok();
}

struct status word_counter_add(struct word_counter *c, const char *text, size_t n)
{
    if (c->cuts_pieces) {
        return count_pieces(c, text, n);
    }
    for (size_t at = 0; at < n;) {
        size_t start = at;
        while (at < n && basic_kinds[(unsigned char)text[at]] == BASIC_RUN) {
            at++;
        }
        if (at > start) {
            TRY(count_run(c, text + start, at - start));
            continue;
        }
        c->n_punctuation[(unsigned char)text[at]] +=
            basic_kinds[(unsigned char)text[at]] == BASIC_PUNCTUATION;
        at++;
    }
    return status_ok();
}

struct status word_counter_end(struct word_counter *c)
{
    TRY(count_runs(c));
    for (int i = 0; i < 128; i++) {
        char text = (char)i;
        if (c->n_punctuation[i] > 0) {
            TRY(count_words(c, &text, 1, c->n_punctuation[i]));
        }
    }
    memset(c->n_punctuation, 0, sizeof c->n_punctuation);
    return word_tally_take(c->tally, &c->words);
}
