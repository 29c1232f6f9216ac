#include "text/bpe_train.h"

#include "text/bpe_json.h"
#include "text/bpe_tokenizer.h"
#include "text/wordpiece_merge.h"

#include <stdlib.h>
#include <string.h>

static const char *const gpt2_specials[] = {"<|endoftext|>", NULL};
static const char *const bloom_specials[] = {"<unk>", "<s>", "</s>", "<pad>", NULL};

static const char *const *specials_of(enum bpe_pattern pattern)
{
    return pattern == BPE_BLOOM ? bloom_specials : gpt2_specials;
}

struct status bpe_train_check_size(int64_t vocab_size, enum bpe_pattern pattern)
{
    int64_t n = 256;
    for (const char *const *special = specials_of(pattern); *special != NULL; special++) {
        n++;
    }
    return vocab_size >= n
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "a vocabulary of %lld pieces has no room for the 256 bytes and the special "
                              "tokens; ask for at least %lld",
                              (long long)vocab_size, (long long)n);
}

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the pieces of the text");
}

/* ---- merging ---- */

/* Adds the special tokens and the bytes: ids[byte] = the id of each. */
static void add_first_pieces(struct wordpiece_merge *m, int32_t ids[256], enum bpe_pattern pattern)
{
    unsigned char order[256];
    for (const char *const *special = specials_of(pattern); *special != NULL; special++) {
        wordpiece_merge_piece(m, *special, strlen(*special));
    }
    bpe_merges_byte_order(order);
    for (int i = 0; i < 256; i++) {
        ids[order[i]] = wordpiece_merge_piece(m, (const char *)&order[i], 1);
    }
}

static struct status add_words(struct wordpiece_merge *m, int64_t *n_words, const int32_t ids[256],
                               const struct word_tally *tally)
{
    struct word_tally_reader r;
    bool end = false;
    TRY(word_tally_open(&r, tally));
    struct status s = word_tally_next(&r, &end);
    for (; !end && !failed(s); s = word_tally_next(&r, &end)) {
        ++*n_words;
        if (r.n_bytes > 1) { /* a piece of one byte has no pairs */
            for (size_t i = 0; i < r.n_bytes; i++) {
                wordpiece_merge_symbol(m, ids[(unsigned char)r.word[i]]);
            }
            wordpiece_merge_end_word(m, r.count);
        }
    }
    word_tally_close(&r);
    return s;
}

static void put_piece(struct buf *out, const struct wordpiece_merge *m, int32_t id)
{
    bpe_merges_write(out, m->pieces.text + m->pieces.words[id].start, m->pieces.words[id].n_bytes);
}

/* Merges until the vocabulary is full, and writes each merge to merges.txt and to a list of pairs. */
static struct status merge(struct bpe_train_result *result, json_t *pairs, struct wordpiece_merge *m,
                           const struct bpe_train_options *o, struct progress *progress)
{
    struct buf left = {0}, right = {0};
    buf_puts(&result->merges, "#version: 0.2\n");
    wordpiece_merge_begin(m, o->min_frequency);
    while ((int64_t)m->pieces.n < o->vocab_size && wordpiece_merge_next(m)) {
        buf_clear(&left);
        buf_clear(&right);
        put_piece(&left, m, m->newest_left);
        put_piece(&right, m, m->newest_right);
        buf_puts(&result->merges, buf_text(&left));
        buf_putc(&result->merges, ' ');
        buf_puts(&result->merges, buf_text(&right));
        buf_putc(&result->merges, '\n');
        json_array_append_new(pairs, json_pack("[ss]", buf_text(&left), buf_text(&right)));
        if (progress_due(progress)) {
            progress_show(progress, "merging: %zu of %lld pieces", m->pieces.n, (long long)o->vocab_size);
        }
    }
    struct status s = buf_status(&left);
    s = failed(s) ? s : buf_status(&right);
    buf_fini(&left);
    buf_fini(&right);
    return failed(s) || !m->out_of_memory ? s : out_of_memory();
}

/* ---- files ---- */

static json_t *make_pieces(const struct wordpiece_merge *m)
{
    json_t *pieces = json_object();
    struct buf text = {0};
    for (size_t id = 0; id < m->pieces.n; id++) {
        buf_clear(&text);
        put_piece(&text, m, (int32_t)id);
        json_object_set_new(pieces, buf_text(&text), json_integer((json_int_t)id));
    }
    buf_fini(&text);
    return pieces;
}

static struct status put_json(struct buf *out, const json_t *root, size_t flags)
{
    char *text = root == NULL ? NULL : json_dumps(root, flags);
    if (text == NULL) {
        return out_of_memory();
    }
    buf_puts(out, text);
    free(text);
    return buf_status(out);
}

/* Reads the result back, so that none is written that kiln itself would refuse, or that lost a piece. */
static struct status check(const struct bpe_train_result *result, const json_t *root)
{
    struct tokenizer t;
    struct added_tokens added = {0};
    struct status s = bpe_tokenizer_init(&t, &added, root, (const char *)result->tokenizer.data,
                                         result->tokenizer.n, "the new vocabulary");
    added_tokens_fini(&added);
    TRY(s);
    CHECK(t.n == result->n_pieces, "%d pieces of %lld", t.n, (long long)result->n_pieces);
    tokenizer_fini(&t);
    return status_ok();
}

static struct status write_files(struct bpe_train_result *result, json_t *pairs,
                                 const struct wordpiece_merge *m, enum bpe_pattern pattern)
{
    json_t *pieces = make_pieces(m);
    json_t *root = bpe_json_make(pieces, pairs, specials_of(pattern), pattern);
    struct status s = put_json(&result->vocab, pieces, JSON_COMPACT);
    s = failed(s) ? s : put_json(&result->tokenizer, root, JSON_INDENT(2));
    s = failed(s) ? s : buf_status(&result->merges);
    s = failed(s) ? s : check(result, root);
    json_decref(root);
    json_decref(pieces);
    return s;
}

struct status bpe_train(struct bpe_train_result *result, struct word_tally *tally,
                        const struct bpe_train_options *o, struct progress *progress)
{
    struct wordpiece_merge m = {0};
    int32_t ids[256];
    *result = (struct bpe_train_result){0};
    TRY(bpe_train_check_size(o->vocab_size, o->pattern));
    json_t *pairs = json_array();
    add_first_pieces(&m, ids, o->pattern);
    struct status s = m.out_of_memory || pairs == NULL ? out_of_memory() : status_ok();
    s = failed(s) ? s : add_words(&m, &result->n_words, ids, tally);
    word_tally_empty(tally);
    if (!failed(s) && result->n_words == 0) {
        s = status_error(STATUS_DATA,
                         "the text holds no words, so no vocabulary can be made (of lines of JSON the value "
                         "of \"text\" is read)");
    }
    s = failed(s) ? s : merge(result, pairs, &m, o, progress);
    result->n_pieces = (int64_t)m.pieces.n;
    s = failed(s) ? s : write_files(result, pairs, &m, o->pattern);
    json_decref(pairs);
    wordpiece_merge_fini(&m);
    return s;
}

void bpe_train_fini(struct bpe_train_result *result)
{
    buf_fini(&result->vocab);
    buf_fini(&result->merges);
    buf_fini(&result->tokenizer);
    *result = (struct bpe_train_result){0};
}
