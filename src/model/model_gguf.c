/* model_gguf: writes a model as one GGUF file: what its family says of it, its tokenizer, and its weights in
 * one of four types.  Vectors are fp32 in all of them. */
#include "core/log.h"
#include "io/gguf_writer.h"
#include "model/file_tensors.h"
#include "model/gguf_config.h"
#include "model/model_dir_forms.h"
#include "text/bpe_tokenizer.h"
#include "text/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the tokenizer ---- */

/* A piece as the vocabulary's file writes it; tokens that were added are texts. */
static void put_piece(struct gguf_writer *w, const struct tokenizer *t, int32_t id, struct buf *room)
{
    size_t n;
    const char *bytes = tokenizer_piece(t, id, &n);
    buf_clear(room);
    if (n == 0) { /* no token has the id; llama.cpp wants a text of its own for each */
        buf_printf(room, "[PAD%d]", (int)id);
    } else if (added_tokens_of(&t->added, id) == NULL) {
        bpe_merges_write(room, bytes, n);
    } else {
        buf_append(room, bytes, n);
    }
    gguf_put_list_text(w, buf_text(room), room->n);
}

static int32_t type_of(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const struct added_token *added = added_tokens_of(&t->added, id);
    (void)tokenizer_piece(t, id, &n);
    return n == 0           ? GGUF_TOKEN_UNUSED
           : added == NULL  ? GGUF_TOKEN_NORMAL
           : added->special ? GGUF_TOKEN_CONTROL
                            : GGUF_TOKEN_USER_DEFINED;
}

static void put_pieces(struct gguf_writer *w, const struct tokenizer *t, struct buf *room)
{
    gguf_put_list(w, GGUF_TOKENIZER_TOKENS, GGUF_VALUE_TEXT, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        put_piece(w, t, id, room);
    }
    gguf_put_list(w, GGUF_TOKENIZER_TYPES, GGUF_VALUE_I32, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        gguf_put_list_i32(w, type_of(t, id));
    }
}

static void put_side(const struct bpe_merges *m, int32_t id, struct buf *room)
{
    size_t n;
    const char *bytes = bpe_merges_piece(m, id, &n);
    bpe_merges_write(room, bytes, n);
}

static void put_merges(struct gguf_writer *w, const struct bpe_merges *m,
                       const struct bpe_merge *const *by_rank, struct buf *room)
{
    gguf_put_list(w, GGUF_TOKENIZER_MERGES, GGUF_VALUE_TEXT, (uint64_t)m->n_merges);
    for (int32_t i = 0; i < m->n_merges; i++) {
        buf_clear(room);
        put_side(m, by_rank[i]->left, room);
        buf_putc(room, ' ');
        put_side(m, by_rank[i]->right, room);
        gguf_put_list_text(w, buf_text(room), room->n);
    }
}

/* Whether special tokens stand first or last around a text. */
static bool has_special(const struct input_specials *s, int32_t id)
{
    return s->n > 0 && id >= 0 && s->ids[0] == id;
}

/* The end of a turn, where it is not that of a document. */
static void put_turn_end(struct gguf_writer *w, const struct tokenizer *t)
{
    int i = 0;
    while (i < t->n_ends && t->ends[i] == t->special[SPECIAL_END]) {
        i++;
    }
    if (i < t->n_ends) {
        gguf_put_u32(w, GGUF_TOKENIZER_TURN_END, (uint32_t)t->ends[i]);
    }
}

static void put_specials(struct gguf_writer *w, const struct tokenizer *t)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        const char *key = gguf_tokenizer_special_key((enum special_token)i);
        if (key != NULL && t->special[i] >= 0) {
            gguf_put_u32(w, key, (uint32_t)t->special[i]);
        }
    }
    put_turn_end(w, t);
    gguf_put_bool(w, GGUF_TOKENIZER_BEGINS, has_special(&t->frame.one.before, t->special[SPECIAL_BEGIN]));
    gguf_put_bool(w, GGUF_TOKENIZER_ENDS, has_special(&t->frame.one.after, t->special[SPECIAL_END]));
}

/* A tokenizer.json says more than the other keys, such as a normalizer; llama.cpp leaves it alone. */
static void put_json(struct gguf_writer *w, const struct tokenizer *t)
{
    const struct tokenizer_file *file = &t->files[0];
    if (t->n_files > 0 && strcmp(file->name, "tokenizer.json") == 0 &&
        memchr(file->bytes, '\0', file->n) == NULL) {
        gguf_put_bytes(w, GGUF_TOKENIZER_JSON, file->bytes, file->n);
    }
}

static struct status put_tokenizer(struct gguf_writer *w, const struct model_dir_contents *c)
{
    const struct bpe *bpe = bpe_tokenizer_view(c->tokenizer);
    FAIL_IF(bpe == NULL, STATUS_UNAVAILABLE, "kiln writes GGUF with byte-level BPE, not with %s",
            c->tokenizer->kind->name);
    FAIL_IF(bpe->gguf_name == NULL, STATUS_UNAVAILABLE,
            "llama.cpp has no name for the pre_tokenizer of this tokenizer that kiln knows, so kiln writes "
            "no GGUF");
    const struct bpe_merge **by_rank = bpe_merges_by_rank(&bpe->merges);
    struct buf room = {0};
    FAIL_IF(by_rank == NULL, STATUS_MEMORY, "out of memory for the merges of a tokenizer");
    gguf_put_text(w, GGUF_TOKENIZER_MODEL, BPE_GGUF_MODEL);
    gguf_put_text(w, GGUF_TOKENIZER_PRE, bpe->gguf_name);
    put_pieces(w, c->tokenizer, &room);
    put_merges(w, &bpe->merges, by_rank, &room);
    put_specials(w, c->tokenizer);
    if (c->tokenizer->chat_template != NULL) {
        gguf_put_text(w, GGUF_TOKENIZER_TEMPLATE, c->tokenizer->chat_template);
    }
    put_json(w, c->tokenizer);
    free((void *)by_rank);
    struct status s = buf_status(&room);
    buf_fini(&room);
    return s;
}

/* ---- the weights ---- */

static uint32_t file_type(enum model_dir_type type)
{
    static const uint32_t types[] = {
        [MODEL_DIR_F32] = 0, [MODEL_DIR_F16] = 1, [MODEL_DIR_Q8_0] = 7, [MODEL_DIR_BF16] = 32};
    return types[type];
}

static bool is_in(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* The type of a tensor's elements; *falls_back: Q8_0 has no blocks for its rows. */
static enum gguf_type element_type(const struct model_dir_contents *c, const struct file_tensor *t,
                                   bool *falls_back)
{
    static const enum gguf_type types[] = {[MODEL_DIR_F32] = GGUF_F32,
                                           [MODEL_DIR_F16] = GGUF_F16,
                                           [MODEL_DIR_Q8_0] = GGUF_Q8_0,
                                           [MODEL_DIR_BF16] = GGUF_BF16};
    *falls_back = false;
    if (t->shape.n_dims == 1 || is_in(c->family->gguf->in_f32, t->name)) {
        return GGUF_F32;
    }
    *falls_back = c->form.type == MODEL_DIR_Q8_0 && t->shape.dims[1] % GGUF_Q8_ITEMS != 0;
    return *falls_back ? GGUF_F16 : types[c->form.type];
}

static void describe(struct gguf_item *items, const struct file_tensors *tensors,
                     const struct model_dir_contents *c)
{
    int n_back = 0;
    for (int i = 0; i < tensors->n; i++) {
        const struct file_tensor *t = &tensors->tensors[i];
        bool falls_back;
        items[i] = (struct gguf_item){t->name, t->shape, element_type(c, t, &falls_back)};
        n_back += falls_back;
    }
    if (n_back > 0) {
        log_warning("%d matrices are written as F16: their rows are not whole blocks of %d elements, which "
                    "Q8_0 needs",
                    n_back, GGUF_Q8_ITEMS);
    }
}

/* Columns of a head, at most, and so divisors of its angles. */
enum { MOST_DIVISORS = 4096 };

/* The tensor of divisors behind the others, where the model has one. */
struct divisors {
    int64_t n;
    float values[MOST_DIVISORS];
};

static void find_divisors(struct divisors *d, const struct model_dir_contents *c)
{
    const struct model_family_gguf *of = c->family->gguf;
    d->n = of->divisors == NULL ? 0 : of->divisors(d->values, MOST_DIVISORS, c->config);
}

static tensor divisors_view(struct divisors *d)
{
    return tensor_1d(d->values, DTYPE_F32, d->n);
}

static struct status put_all(struct gguf_writer *w, const char *path, struct file_tensors *tensors,
                             const struct model_dir_contents *c)
{
    struct weight_source weights = weight_source_either(c->weights, &c->master);
    struct divisors divisors;
    struct gguf_item *items = calloc((size_t)tensors->n + 1, sizeof *items);
    struct status s = items == NULL ? status_error(STATUS_MEMORY, "out of memory for the tensors of %s", path)
                                    : status_ok();
    if (!failed(s)) {
        describe(items, tensors, c);
        find_divisors(&divisors, c);
        items[tensors->n] = (struct gguf_item){"rope_freqs.weight", divisors_view(&divisors), GGUF_F32};
        s = gguf_writer_open(w, path, items, tensors->n + (divisors.n > 0));
    }
    for (int i = 0; i < tensors->n && !failed(s) && !failed(w->file.status); i++) {
        tensor values;
        struct status read = file_tensors_read(tensors, i, &weights, &values);
        if (failed(read)) {
            w->file.status = read;
        } else {
            gguf_writer_put(w, values);
        }
    }
    if (!failed(s) && divisors.n > 0 && !failed(w->file.status)) {
        gguf_writer_put(w, divisors_view(&divisors));
    }
    s = failed(s) ? s : gguf_writer_commit(w);
    free(items);
    return s;
}

struct status model_gguf_write(const char *path, const char *name, const struct model_dir_contents *c)
{
    struct gguf_writer w;
    struct file_tensors tensors;
    const struct model_family_gguf *of = c->family->gguf;
    FAIL_IF(of == NULL, STATUS_UNAVAILABLE, "kiln does not write models of the kind %s in GGUF",
            c->family->name);
    TRY(file_tensors_init(&tensors, *of->layout, c->family->sizes(c->config).heads, c->params, DTYPE_F32));
    gguf_writer_init(&w);
    gguf_put_text(&w, "general.architecture", of->architecture);
    gguf_put_text(&w, "general.name", name);
    gguf_put_u32(&w, "general.file_type", file_type(c->form.type));
    struct status s = gguf_config_put(&w, c->family, c->config);
    s = failed(s) ? s : put_tokenizer(&w, c);
    if (failed(s)) {
        gguf_writer_discard(&w);
    } else {
        s = put_all(&w, path, &tensors, c);
    }
    file_tensors_fini(&tensors);
    return s;
}
