#include "serve/embed_tokens.h"

#include <stdlib.h>

static struct status take(void *self, int64_t text, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct embed_tokens_job *j = self;
    tensor h = outputs[MODEL_HIDDEN];
    float *row = j->rows + encoded_texts_get(&j->input.texts, text)->row * j->width;
    for (int64_t i = 0; i < h.dims[0]; i++) {
        for (int64_t c = 0; c < j->width; c++) {
            *row++ = (float)tensor_load(h, i * h.strides[0] + c);
        }
    }
    return status_ok();
}

struct status embed_tokens_job_make(struct embed_tokens_job *j, const struct session *s,
                                    struct embed_input *input)
{
    size_t n = (size_t)input->texts.n_rows;
    *j = (struct embed_tokens_job){.input = *input,
                                   .width = s->model->hidden_size,
                                   .rows = calloc(n + 1, (size_t)s->model->hidden_size * sizeof *j->rows)};
    *input = (struct embed_input){0};
    j->request = embed_input_request(&j->input, 1U << MODEL_HIDDEN, take, j);
    return j->rows != NULL ? status_ok()
                           : status_error(STATUS_MEMORY, "out of memory for the vectors of %zu tokens", n);
}

void embed_tokens_job_fini(struct embed_tokens_job *j)
{
    embed_input_fini(&j->input);
    free(j->rows);
    *j = (struct embed_tokens_job){0};
}
