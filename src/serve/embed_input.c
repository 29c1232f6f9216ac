#include "serve/embed_input.h"

#include "core/integers.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Lower-cases each code point by itself, as Rust's str does except for a final sigma; one code point becomes
 * two. */
static void append_lower(struct buf *out, const char *text, size_t n)
{
    enum { I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    char bytes[UTF8_MAX_BYTES];
    uint32_t c;
    for (size_t i = 0; i < n;) {
        i += (size_t)utf8_decode(&c, text + i, n - i);
        buf_append(out, bytes, (size_t)utf8_write(bytes, c == I_WITH_DOT ? 'i' : letter_case_lower(c)));
        if (c == I_WITH_DOT) {
            buf_append(out, bytes, (size_t)utf8_write(bytes, DOT_ABOVE));
        }
    }
}

static void append_bytes(struct buf *out, const char *text, size_t n)
{
    buf_append(out, text, n);
}

/* The ids of the text after a prompt. */
static struct status encode_text(struct embed_input *in, struct tokenizer_scratch *scratch, const char *text,
                                 size_t n)
{
    const char *prompt = in->plan->prompt;
    if (prompt[0] != '\0' || in->plan->lower_case) {
        void (*append)(struct buf *, const char *, size_t) =
            in->plan->lower_case ? append_lower : append_bytes;
        buf_clear(&in->bytes);
        append(&in->bytes, prompt, strlen(prompt));
        append(&in->bytes, text, n);
        TRY(buf_status(&in->bytes));
        text = buf_text(&in->bytes);
        n = in->bytes.n;
    }
    return tokenizer_encode_ids(scratch, &in->texts.ids, text, n);
}

/* The special tokens before a text, and the tokens that the prompt has alone. */
static struct status count_skipped(struct embed_input *in, struct tokenizer_scratch *scratch)
{
    const struct input_form *form = &in->texts.frame.one;
    if (!in->plan->skips_prompt || in->plan->prompt[0] == '\0') {
        return status_ok();
    }
    TRY(encode_text(in, scratch, "", 0));
    in->n_skipped_whole =
        int_smaller((int64_t)in->texts.ids.n + form->before.n, in->plan->max_length - form->after.n);
    in->texts.ids.n = 0;
    return status_ok();
}

struct status embed_input_init(struct embed_input *in, const struct session *s,
                               struct tokenizer_scratch *scratch, const struct embed_plan *plan,
                               size_t n_texts)
{
    *in = (struct embed_input){
        .plan = plan,
        .tokenizer = s->tokenizer,
        .texts = {.frame = s->frame, .limit = plan->max_length, .cut = plan->cut}, /* without labels */
        .n_skipped = calloc(n_texts + 1, sizeof *in->n_skipped),
        .order = calloc(n_texts + 1, sizeof *in->order),
        .capacity = (int64_t)n_texts};
    return in->n_skipped == NULL || in->order == NULL
               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
               : count_skipped(in, scratch);
}

void embed_input_fini(struct embed_input *in)
{
    free(in->n_skipped);
    free(in->order);
    buf_fini(&in->bytes);
    encoded_texts_fini(&in->texts);
    *in = (struct embed_input){0};
}

/* Makes a text of the tokens from `first` on. */
static struct status end(struct embed_input *in, int64_t first)
{
    struct encoded_texts *t = &in->texts;
    CHECK(t->n < in->capacity, "%lld texts", (long long)t->n);
    TRY(encoded_texts_fit(t, (struct token_range){first, (int64_t)t->ids.n - first}, NULL));
    int64_t n_lost = encoded_texts_get(t, t->n - 1)->a.first - first;
    in->n_skipped[t->n - 1] = int_larger(in->n_skipped_whole - n_lost, 0);
    return status_ok();
}

struct status embed_input_add(struct embed_input *in, struct tokenizer_scratch *scratch,
                              const struct text_bytes *text)
{
    int64_t first = (int64_t)in->texts.ids.n;
    TRY(encode_text(in, scratch, text->bytes, text->n));
    return end(in, first);
}

/* Whether ids [n] are those of one place of a form. */
static bool are(const int32_t *ids, const struct input_specials *s)
{
    return memcmp(ids, s->ids, (size_t)s->n * sizeof *ids) == 0;
}

static bool has_frame(const struct input_form *f, const int32_t *ids, size_t n)
{
    return n >= (size_t)input_form_n_special(f) && are(ids, &f->before) &&
           are(ids + n - f->after.n, &f->after);
}

static struct status check_ids(const struct embed_input *in, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(ids[i] < 0 || ids[i] >= in->tokenizer->n, STATUS_DATA,
                "id %d of text %lld is none of the model's, which are 0 to %d: send ids of its own "
                "tokenizer, or texts (with langchain-openai: check_embedding_ctx_length=False)",
                ids[i], (long long)in->texts.n, in->tokenizer->n - 1);
    }
    return status_ok();
}

struct status embed_input_add_ids(struct embed_input *in, struct tokenizer_scratch *scratch,
                                  const int32_t *ids, size_t n)
{
    const struct input_form *form = &in->texts.frame.one;
    int64_t first = (int64_t)in->texts.ids.n;
    TRY(check_ids(in, ids, n));
    if (has_frame(form, ids, n)) {
        ids += form->before.n;
        n -= (size_t)input_form_n_special(form);
    }
    TRY(encode_text(in, scratch, "", 0)); /* the prompt */
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(!id_list_append(&in->texts.ids, ids[i]), STATUS_MEMORY,
                "out of memory for the tokens of a text");
    }
    return end(in, first);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct request embed_input_request(struct embed_input *in, unsigned outputs,
                                   struct status (*take)(void *self, int64_t text,
                                                         const tensor outputs[MODEL_N_OUTPUTS]),
                                   void *self)
{
    size_t n = (size_t)in->texts.n;
    for (size_t i = 0; i < n; i++) { /* sorted by length, then by number */
        in->order[i] = (int64_t)((uint64_t)encoded_texts_length(&in->texts, (int64_t)i) << 32 | i);
    }
    qsort(in->order, n, sizeof *in->order, by_value);
    for (size_t i = 0; i < n; i++) {
        in->order[i] &= UINT32_MAX;
    }
    return (struct request){.source = encoded_texts_source(&in->texts, "texts"),
                            .order = in->order,
                            .outputs = outputs,
                            .take = take,
                            .self = self};
}
