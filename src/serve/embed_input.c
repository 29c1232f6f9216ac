#include "serve/embed_input.h"

#include "data/text_batch.h"
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
    return tokenizer_encode_ids(scratch, &in->ids, text, n);
}

/* The special tokens before a text, and the tokens that the prompt has alone. */
static struct status count_skipped(struct embed_input *in, struct tokenizer_scratch *scratch)
{
    if (!in->plan->skips_prompt || in->plan->prompt[0] == '\0') {
        return status_ok();
    }
    TRY(encode_text(in, scratch, "", 0));
    int64_t n = (int64_t)in->ids.n + in->form->before.n, most = in->plan->max_length - in->form->after.n;
    in->n_skipped = n < most ? n : most;
    in->ids.n = 0;
    return status_ok();
}

struct status embed_input_init(struct embed_input *in, const struct session *s,
                               struct tokenizer_scratch *scratch, const struct embed_plan *plan,
                               size_t n_texts)
{
    *in = (struct embed_input){.plan = plan,
                               .form = &s->frame.one,
                               .tokenizer = s->tokenizer,
                               .pieces = calloc(n_texts + 1, sizeof *in->pieces),
                               .order = calloc(n_texts + 1, sizeof *in->order),
                               .capacity = n_texts};
    return in->pieces == NULL || in->order == NULL
               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
               : count_skipped(in, scratch);
}

void embed_input_fini(struct embed_input *in)
{
    free(in->pieces);
    free(in->order);
    buf_fini(&in->bytes);
    id_list_fini(&in->ids);
    *in = (struct embed_input){0};
}

/* Takes the tokens from `p` on as far as they fit before the special tokens behind a text. */
static struct status cut(struct embed_input *in, struct embed_piece *p)
{
    size_t most = (size_t)(in->plan->max_length - in->form->after.n), n = in->ids.n - p->start;
    if (n <= most) {
        return status_ok();
    }
    if (in->plan->cut == TEXT_CUT_NOTHING) {
        return status_error(
            STATUS_DATA, "text %zu has %zu tokens, special ones included, but the model reads at most %lld",
            in->n, n + (size_t)in->form->after.n, (long long)in->plan->max_length);
    }
    if (in->plan->cut == TEXT_CUT_BEGINNING) {
        int32_t *text = in->ids.ids + p->start + in->form->before.n;
        size_t n_kept = most - (size_t)in->form->before.n, n_lost = n - most;
        memmove(text, text + n_lost, n_kept * sizeof *text);
        p->n_skipped = p->n_skipped > (int64_t)n_lost ? p->n_skipped - (int64_t)n_lost : 0;
    }
    in->ids.n = p->start + most;
    in->n_cut++;
    return status_ok();
}

static struct embed_piece *begin(struct embed_input *in)
{
    CHECK(in->n < in->capacity, "%zu texts", in->n);
    struct embed_piece *p = &in->pieces[in->n];
    *p = (struct embed_piece){.start = in->ids.n, .n_skipped = in->n_skipped};
    return p;
}

static struct status end(struct embed_input *in, struct embed_piece *p)
{
    TRY(cut(in, p));
    TRY(input_specials_append(&in->ids, &in->form->after));
    p->n = in->ids.n - p->start;
    in->n++;
    return p->n > 0 ? status_ok()
                    : status_error(STATUS_DATA, "a text has no tokens, and the tokenizer adds none");
}

struct status embed_input_add(struct embed_input *in, struct tokenizer_scratch *scratch,
                              const struct text_bytes *text)
{
    struct embed_piece *p = begin(in);
    TRY(input_specials_append(&in->ids, &in->form->before));
    TRY(encode_text(in, scratch, text->bytes, text->n));
    return end(in, p);
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
        if (ids[i] < 0 || ids[i] >= in->tokenizer->n) {
            return status_error(
                STATUS_DATA,
                "id %d of text %zu is none of the model's, which are 0 to %d: send ids of its own "
                "tokenizer, or texts (with langchain-openai: check_embedding_ctx_length=False)",
                ids[i], in->n, in->tokenizer->n - 1);
        }
    }
    return status_ok();
}

struct status embed_input_add_ids(struct embed_input *in, struct tokenizer_scratch *scratch,
                                  const int32_t *ids, size_t n)
{
    struct embed_piece *p = begin(in);
    TRY(check_ids(in, ids, n));
    if (has_frame(in->form, ids, n)) {
        ids += in->form->before.n;
        n -= (size_t)input_form_n_special(in->form);
    }
    TRY(input_specials_append(&in->ids, &in->form->before));
    TRY(encode_text(in, scratch, "", 0)); /* the prompt */
    for (size_t i = 0; i < n; i++) {
        if (!id_list_append(&in->ids, ids[i])) {
            return status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
        }
    }
    return end(in, p);
}

/* The texts as a source of sequences. */
static int64_t length(const void *self, int64_t i)
{
    return (int64_t)((const struct embed_input *)self)->pieces[i].n;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct embed_input *in = self;
    const struct embed_piece *p = &in->pieces[i];
    int64_t n = (int64_t)p->n, n_text = n - input_form_n_special(in->form);
    int32_t *ids = text_batch_add(out, n, input_form_n_first(in->form, n_text, 0), -1, key);
    memcpy(ids, in->ids.ids + p->start, p->n * sizeof *ids);
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
    for (size_t i = 0; i < in->n; i++) { /* sorted by length, then by number */
        in->order[i] = (int64_t)(in->pieces[i].n << 32 | i);
    }
    qsort(in->order, in->n, sizeof *in->order, by_value);
    for (size_t i = 0; i < in->n; i++) {
        in->order[i] &= UINT32_MAX;
    }
    return (struct request){
        .source = {.name = "texts", .self = in, .n = (int64_t)in->n, .length = length, .add = add},
        .order = in->order,
        .outputs = outputs,
        .take = take,
        .self = self};
}
