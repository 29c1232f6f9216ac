#include "cmd/train_choice.h"

#include "core/buf.h"
#include "core/integers.h"
#include "io/token_store.h"
#include "text/tokenizer_open.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_TOKENS = 12, MOST_TOKENS = 16, MOST_WORDS = 8, MASKED_WORD = 4 };

/* Whether the text is words with spaces between them that people read: no markup, and no line end. */
static bool is_prose(const char *text, size_t n)
{
    return utf8_find_invalid(text, n) == n && memchr(text, '[', n) == NULL && memchr(text, '<', n) == NULL;
}

/* Appends the first words of a text; `masked` replaces one of them. */
static int put_words(struct buf *out, char *text, bool masked)
{
    char *state = NULL;
    int n = 0;
    for (char *word = strtok_r(text, " \n\t\r", &state); word != NULL && n < MOST_WORDS;
         word = strtok_r(NULL, " \n\t\r", &state)) {
        buf_printf(out, "%s%s", n == 0 ? "" : " ", masked && n == MASKED_WORD ? "[MASK]" : word);
        n++;
    }
    return n;
}

/* Takes the beginning of a sequence as a prompt, if it has one. */
static struct status take(struct train_prompts *p, const struct token_store *s, const struct tokenizer *t,
                          int64_t sequence, bool masked)
{
    int32_t ids[MOST_TOKENS];
    int64_t begin = indexed_offset(&s->index, sequence), n = indexed_offset(&s->index, sequence + 1) - begin;
    struct buf text = {0}, prompt = {0};
    n = int_smaller(n, MOST_TOKENS);
    indexed_copy(&s->index, ids, begin, n);
    struct status status = n < FEWEST_TOKENS ? status_ok() : tokenizer_decode_text(t, &text, ids, (size_t)n);
    char *end = failed(status) || text.n == 0 ? NULL : strrchr(text.data, ' ');
    if (end != NULL && is_prose(text.data, (size_t)(end - text.data))) {
        *end = '\0'; /* the last word may be cut */
        bool is_one = put_words(&prompt, text.data, masked) > MASKED_WORD;
        status = buf_status(&prompt);
        p->of[p->n] = is_one && !failed(status) ? strdup(buf_text(&prompt)) : NULL;
        p->n += p->of[p->n] != NULL;
    }
    buf_fini(&text);
    buf_fini(&prompt);
    return status;
}

static struct status choose(struct train_prompts *p, const struct token_store *s, const struct tokenizer *t,
                            bool masked)
{
    enum { MOST_LOOKS = 300 };
    int64_t n = s->index.n_sequences, looks = int_smaller(n, MOST_LOOKS);
    for (int64_t i = 0; i < looks && p->n < TRAIN_N_PROMPTS; i++) {
        TRY(take(p, s, t, i * (n / looks), masked));
    }
    return status_ok();
}

struct status train_prompts_choose(struct train_prompts *p, const char *data, const char *vocab_file,
                                   bool masked)
{
    char prefix[FILE_PATH_BYTES];
    struct token_store s;
    struct tokenizer t;
    *p = (struct train_prompts){0};
    TRY(file_make_path(prefix, "%s/heldout", data));
    TRY(tokenizer_open_beside(&t, vocab_file));
    struct status status = token_store_open(&s, prefix);
    if (!failed(status)) {
        status = choose(p, &s, &t, masked);
        token_store_close(&s);
    }
    tokenizer_fini(&t);
    if (failed(status)) {
        train_prompts_fini(p);
    }
    return status;
}

void train_prompts_fini(struct train_prompts *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->of[i]);
    }
    *p = (struct train_prompts){0};
}
