#include "data/squad_align.h"

#include "data/squad_examples.h"
#include "data/squad_text.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>

/* A run of letters is cut after this many code points: each becomes at most UNICODE_DECOMPOSITION_MAX
 * characters, so no part is longer than a basic_word can hold. */
enum { RUN_CHARS = BASIC_WORD_MAX_CHARS / UNICODE_DECOMPOSITION_MAX };

struct status squad_align_init(struct squad_align *a, const struct tokenizer *tokenizer)
{
    *a = (struct squad_align){.tokenizer = tokenizer};
    return basic_tokenizer_init(&a->basic, tokenizer->lower_case);
}

void squad_align_fini(struct squad_align *a)
{
    basic_tokenizer_fini(&a->basic);
    buf_fini(&a->pieces);
    buf_fini(&a->answer);
    buf_fini(&a->tokens);
    *a = (struct squad_align){0};
}

/* Removes every `part`, from left to right. */
static void remove_all(struct buf *b, const char *part)
{
    size_t n_part = strlen(part), to = 0;
    for (size_t at = 0; at < b->n;) {
        if (b->n - at >= n_part && memcmp(b->data + at, part, n_part) == 0) {
            at += n_part;
        } else {
            b->data[to++] = b->data[at++];
        }
    }
    b->n = to;
}

/* The text that the ids spell: pieces with a space between words. */
static void spell(struct squad_align *a, const int32_t *ids, int64_t n)
{
    buf_clear(&a->pieces);
    buf_clear(&a->answer);
    for (int64_t i = 0; i < n; i++) {
        size_t n_piece;
        const char *piece = tokenizer_piece(a->tokenizer, ids[i], &n_piece);
        if (i > 0) {
            buf_putc(&a->pieces, ' ');
        }
        buf_append(&a->pieces, piece, n_piece);
    }
    remove_all(&a->pieces,
               " ##"); /* in two passes, as the reference does: vocabularies hold pieces such as "###" */
    remove_all(&a->pieces, "##");
    squad_text_join_words(&a->answer, a->pieces.data, a->pieces.n);
}

static void add_word(void *context, const struct basic_word *w)
{
    struct squad_align *a = context;
    if (a->tokens.n > 0 && !a->joins) {
        buf_putc(&a->tokens, ' ');
    }
    a->joins = false;
    a->too_long |= w->n_chars > BASIC_WORD_MAX_CHARS;
    buf_append(&a->tokens, w->text, w->n_bytes);
}

/* Whether the code point is a letter, so that marks are not reordered across it. */
static bool is_plain(uint32_t c)
{
    uint32_t parts[UNICODE_DECOMPOSITION_MAX];
    unicode_decompose(parts, c);
    return unicode_class(c) == UNICODE_OTHER && unicode_class(parts[0]) == UNICODE_OTHER &&
           unicode_combining_class(parts[0]) == 0;
}

/* Bytes up to the end of the text, or up to a place between two letters in a very long run. */
static size_t part_bytes(const char *text, size_t n)
{
    int run = 0;
    bool after_plain = false;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        size_t n_bytes = (size_t)utf8_decode(&c, text + at, n - at);
        enum unicode_class class = unicode_class(c);
        bool plain = is_plain(c);
        if (run >= RUN_CHARS && plain && after_plain) {
            return at;
        }
        run = class == UNICODE_OTHER || class == UNICODE_MARK || class == UNICODE_REMOVED ? run + 1 : 0;
        after_plain = plain;
        at += n_bytes;
    }
    return n;
}

/* The words of text[0..n) by BERT's BasicTokenizer, of any length, with a space between them. */
static struct status tokenize(struct squad_align *a, const char *text, size_t n)
{
    buf_clear(&a->tokens);
    a->too_long = false;
    a->joins = false;
    for (size_t at = 0; at < n;) {
        size_t n_part = part_bytes(text + at, n - at);
        a->joins = at > 0;
        FAIL_IF(!basic_tokenizer_words(&a->basic, text + at, n_part, at, add_word, a), STATUS_MEMORY,
                "out of memory for the words of an answer");
        at += n_part;
    }
    return buf_status(&a->tokens);
}

/* Characters of text[0..n) that are not ' '. */
static int64_t count_letters(const char *text, size_t n)
{
    int64_t n_letters = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        n_letters += c != ' ';
    }
    return n_letters;
}

/* Finds the characters of text[0..n), spaces between words not counted, with the indices first and last:
 * *from and *to are the bytes around them.  Returns how many there are. */
static int64_t find_letters(size_t *from, size_t *to, const char *text, size_t n, int64_t first, int64_t last)
{
    int64_t index = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        size_t n_space = squad_space_bytes(text + at, n - at);
        size_t n_bytes = n_space > 0 ? n_space : (size_t)utf8_decode(&c, text + at, n - at);
        if (n_space == 0) {
            *from = index == first ? at : *from;
            *to = index == last ? at + n_bytes : *to;
            index++;
        }
        at += n_bytes;
    }
    return index;
}

struct status squad_align_find(struct squad_align *a, int32_t *start, int32_t *end, const char *text,
                               const int32_t *ids, int64_t n)
{
    const char *words = text + *start;
    size_t n_words = (size_t)(*end - *start);
    spell(a, ids, n);
    TRY(buf_status(&a->pieces));
    TRY(buf_status(&a->answer));
    TRY(tokenize(a, words, n_words));
    const char *found = a->answer.n > 0 && !a->too_long ? strstr(buf_text(&a->tokens), a->answer.data) : NULL;
    if (found == NULL) {
        return status_ok();
    }
    int64_t first = count_letters(a->tokens.data, (size_t)(found - a->tokens.data));
    int64_t last = first + count_letters(a->answer.data, a->answer.n) - 1;
    size_t from = 0, to = n_words;
    if (find_letters(&from, &to, words, n_words, first, last) == count_letters(a->tokens.data, a->tokens.n)) {
        *end = *start + (int32_t)to;
        *start += (int32_t)from;
    }
    return status_ok();
}
