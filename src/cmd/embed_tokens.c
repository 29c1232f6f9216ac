#include "cmd/embed_tokens.h"

#include "cmd/standard_streams.h"
#include "text/utf8.h"

#include <stdlib.h>

/* The id of token k of a text, special ones included. */
static int32_t id_at(const struct encoded_texts *t, const struct encoded_text *text, int64_t k)
{
    const struct input_form *form = &t->frame.one;
    int64_t i = k - form->before.n;
    return i < 0           ? form->before.ids[k]
           : i < text->a.n ? t->ids.ids[text->a.first + i]
                           : form->after.ids[i - text->a.n];
}

static json_t *json_of_vector(const float *v, int64_t n)
{
    json_t *vector = json_array();
    for (int64_t i = 0; i < n; i++) {
        json_array_append_new(vector, json_real((double)v[i]));
    }
    return vector;
}

static struct status print_token(const struct session *s, int64_t text, int64_t token, int32_t id,
                                 const float *vector)
{
    struct buf piece = {0};
    size_t n;
    const char *bytes = tokenizer_piece(s->tokenizer, id, &n);
    utf8_repair(&piece, bytes, n);
    json_t *line = json_pack("{s:I, s:I, s:i, s:o, s:o}", "text", (json_int_t)text, "token",
                             (json_int_t)token, "id", id, "piece", json_text(buf_text(&piece)), "vector",
                             json_of_vector(vector, s->model->hidden_size));
    buf_fini(&piece);
    return standard_streams_put_json(line);
}

static struct status print_rows(const struct session *s, const struct embed_job *j, const float *vectors,
                                int64_t n_before)
{
    const struct encoded_texts *t = &j->input.texts;
    for (int64_t i = 0; i < t->n; i++) {
        const struct encoded_text *text = encoded_texts_get(t, i);
        int64_t n = text->a.n + input_form_n_special(&t->frame.one);
        for (int64_t k = 0; k < n; k++) {
            TRY(print_token(s, n_before + i + 1, k + 1, id_at(t, text, k),
                            vectors + (text->row + k) * s->model->hidden_size));
        }
    }
    return status_ok();
}

static struct status compute(struct session *s, struct embed_input *in, int64_t n_before)
{
    float *vectors = malloc((size_t)(in->texts.n_rows * s->model->hidden_size + 1) * sizeof *vectors);
    struct embed_job j;
    if (vectors == NULL) {
        int64_t n_rows = in->texts.n_rows;
        embed_input_fini(in);
        return status_error(STATUS_MEMORY, "out of memory for the vectors of %lld tokens", (long long)n_rows);
    }
    struct status status = embed_job_make_of(&j, s, vectors, in, true);
    status = failed(status) ? status : packer_explain(&s->packer, packer_answer(&s->packer, &j.request));
    status = failed(status) ? status : print_rows(s, &j, vectors, n_before);
    embed_job_fini(&j);
    free(vectors);
    return status;
}

struct status embed_tokens_print(struct session *s, const struct embed_plan *plan,
                                 const struct text_bytes *texts, size_t n, int64_t n_before, int64_t *n_cut)
{
    struct embed_input in;
    struct status status = embed_input_init(&in, s, &s->scratch, plan, n);
    for (size_t i = 0; i < n && !failed(status); i++) {
        status = embed_input_add(&in, &s->scratch, &texts[i]);
    }
    if (failed(status)) {
        embed_input_fini(&in);
        return status;
    }
    *n_cut = in.texts.n_cut;
    return compute(s, &in, n_before);
}
