#include "cmd/embed_neighbors.h"

#include "cmd/standard_streams.h"
#include "cmd/text_groups.h"
#include "core/integers.h"
#include "serve/answer_json.h"
#include "serve/vector_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct neighbors {
    struct model_dir m;
    struct tokenizer_scratch scratch;
    struct id_list query, ids; /* a word; the complete words of the vocabulary */
    float *table, *rows;       /* [n, H] vectors of all pieces; of `ids`, scaled to length 1 */
    float *vector;             /* [H] of the word, scaled too */
    int64_t n, width, k;
    struct vector_hit *hits; /* [k + 1]: the word itself is one */
    bool json;
};

/* Reads the table of words. */
static struct status read_table(struct neighbors *g)
{
    struct param_table params = {0};
    const struct param *p = NULL;
    struct status s = model_dir_declare(&g->m, &params, MODEL_TASK_ENCODER);
    for (int i = 0; i < params.n && p == NULL && !failed(s); i++) {
        p = params.params[i].split == PARAM_BY_WORD && params.params[i].n_dims == 2 ? &params.params[i]
                                                                                    : NULL;
    }
    const struct model_tensor *t = p == NULL ? NULL : model_dir_tensor(&g->m, p);
    if (!failed(s) && t == NULL) {
        s = status_error(STATUS_DATA, "%s has no vectors of words", g->m.path);
    }
    if (!failed(s)) {
        g->n = p->dims[0];
        g->width = p->dims[1];
        g->table = malloc((size_t)((2 * g->n + 1) * g->width) * sizeof *g->table);
        g->rows = g->table + g->n * g->width;
        g->vector = g->rows + g->n * g->width;
        tensor values = tensor_2d(g->table, DTYPE_F32, g->n, g->width);
        s = g->table == NULL
                ? status_error(STATUS_MEMORY, "out of memory for vectors of %lld words", (long long)g->n)
                : model_dir_read_tensor(&g->m, PARAM_WEIGHT, p, t, 0, &values);
    }
    param_table_fini(&params);
    return s;
}

static void scale(float *out, const float *v, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        squares += (double)v[i] * v[i];
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = squares > 0 ? (float)(v[i] / sqrt(squares)) : 0;
    }
}

static struct status choose_words(struct neighbors *g)
{
    const struct tokenizer *t = &g->m.tokenizer;
    int64_t n = int_smaller(t->n, g->n);
    for (int32_t id = 0; id < n; id++) {
        if (!tokenizer_is_special(t, id) && !tokenizer_continues_word(t, id)) {
            scale(g->rows + (int64_t)g->ids.n * g->width, g->table + id * g->width, g->width);
            FAIL_IF(!id_list_append(&g->ids, id), STATUS_MEMORY,
                    "out of memory for the words of a vocabulary");
        }
    }
    g->k = int_smaller(g->k, (int64_t)g->ids.n - 1);
    g->hits = calloc((size_t)g->k + 2, sizeof *g->hits);
    FAIL_IF(g->hits == NULL, STATUS_MEMORY, "out of memory for %lld neighbors", (long long)g->k);
    return status_ok();
}

/* The text of a token, without the space that begins a word. */
static json_t *word_of(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *piece = tokenizer_piece(t, id, &n);
    bool has_space = n > 1 && piece[0] == ' ';
    return answer_json_said(piece + has_space, n - has_space);
}

/* Finds the token that is the complete word. */
static struct status find_word(struct neighbors *g, int32_t *id, const struct text_bytes *word)
{
    const struct tokenizer *t = &g->m.tokenizer;
    struct buf text = {0};
    buf_puts(&text, t->kind->decodes_bytes ? " " : ""); /* a word in the middle of a text */
    buf_append(&text, word->bytes, word->n);
    g->query.n = 0;
    struct status s = tokenizer_encode_ids(&g->scratch, &g->query, buf_text(&text), text.n);
    buf_fini(&text);
    TRY(s);
    FAIL_IF(g->query.n != 1 || g->query.ids[0] == t->special[SPECIAL_UNKNOWN], STATUS_DATA,
            "\"%.*s\" is no single word of the vocabulary, which has it in %zu pieces",
            (int)int_smaller((int64_t)word->n, 80), word->bytes, g->query.n);
    *id = g->query.ids[0];
    return status_ok();
}

/* Prints the neighbors, and takes them over. */
static struct status print(const struct neighbors *g, const struct text_bytes *word, json_t *list)
{
    json_t *said = answer_json_said(word->bytes, word->n), *one;
    size_t i;
    if (g->json) {
        return standard_streams_put_json(json_pack("{s:o, s:o}", "word", said, "neighbors", list));
    }
    json_array_foreach(list, i, one)
    {
        printf("%s\t%s\t%.4f\n", json_string_value(said), json_string_value(json_object_get(one, "token")),
               json_real_value(json_object_get(one, "score")));
    }
    json_decref(said);
    json_decref(list);
    return status_ok();
}

/* The words that were found, but for the one that was asked for. */
static json_t *others(const struct neighbors *g, int32_t id)
{
    json_t *list = json_array();
    for (int64_t k = 0; k <= g->k; k++) {
        int32_t found = g->ids.ids[g->hits[k].row];
        if (found != id && (int64_t)json_array_size(list) < g->k) {
            json_array_append_new(list, json_pack("{s:o, s:i, s:f}", "token", word_of(&g->m.tokenizer, found),
                                                  "id", found, "score", (double)g->hits[k].score));
        }
    }
    return list;
}

static struct status answer_words(void *self, const struct text_bytes *words, size_t n)
{
    struct neighbors *g = self;
    for (size_t i = 0; i < n; i++) {
        int32_t id = 0;
        TRY(find_word(g, &id, &words[i]));
        scale(g->vector, g->table + id * g->width, g->width);
        TRY(vector_search(g->hits, g->k + 1, g->vector, 1, g->rows, (int64_t)g->ids.n, g->width));
        TRY(print(g, &words[i], others(g, id)));
    }
    return status_ok();
}

struct status embed_neighbors_print(const struct session_flags *f, int64_t k, bool json, int n_words,
                                    const char *const *words)
{
    struct neighbors g = {.k = k, .json = json};
    struct status s = model_dir_open_given(&g.m, f->model, f->given);
    s = failed(s) ? s : tokenizer_scratch_init(&g.scratch, &g.m.tokenizer);
    s = failed(s) ? s : read_table(&g);
    s = failed(s) ? s : choose_words(&g);
    if (!failed(s) && !json) {
        puts("word\tneighbor\tcosine");
    }
    s = failed(s) ? s : text_groups_answer(n_words, words, answer_words, &g);
    tokenizer_scratch_fini(&g.scratch);
    model_dir_close(&g.m);
    id_list_fini(&g.query);
    id_list_fini(&g.ids);
    free(g.table);
    free(g.hits);
    return s;
}
