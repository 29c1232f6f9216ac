#include "corpus/document_parts.h"

#include "core/rng.h"
#include "corpus/document_store.h"

static const uint64_t PURPOSE_HOLDOUT = 0x646f6368;

/* Parts of a text that may be held out: at least HELDOUT_PARTS of the text are, if it has so many. */
enum { LEAST_PART_BYTES = 256, MOST_PART_BYTES = 1 << 16, HELDOUT_PARTS = 8 };

/* ---- what is held out ---- */

/* One part of each 1 / fraction parts is drawn; of the first ones it is the second part, so that a text of
 * two parts has one for each store. */
static void draw_heldout(struct document_parts *p)
{
    double u = rng_uniform_at(rng_key(p->seed, PURPOSE_HOLDOUT), (uint64_t)p->n_strata);
    p->next_heldout = p->n_strata == 0 ? 1 : (int64_t)(((double)p->n_strata + u) / p->holdout_fraction);
    p->n_strata++;
}

void document_parts_plan(struct document_parts *p, uint64_t text_bytes)
{
    double part = (double)text_bytes * p->holdout_fraction / HELDOUT_PARTS;
    if (p->holdout_fraction > 0) {
        part = part < MOST_PART_BYTES ? part : MOST_PART_BYTES;
        p->part_bytes = part < LEAST_PART_BYTES ? LEAST_PART_BYTES : (size_t)part;
        draw_heldout(p);
    }
}

static bool is_heldout(struct document_parts *p)
{
    int64_t part = p->n_parts++;
    bool is = p->part_bytes > 0 && part == p->next_heldout;
    while (p->part_bytes > 0 && p->next_heldout <= part) {
        draw_heldout(p);
    }
    return is;
}

/* ---- documents ---- */

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of a document");
}

static void flush(struct document_parts_store *s)
{
    if (s->ids.n > 0) {
        document_output_add(&s->output, s->ids.ids, (int64_t)s->ids.n);
    }
    s->ids.n = 0;
}

static struct status add_tokens(struct document_parts_store *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!id_list_append(&s->ids, ids[i])) {
            return out_of_memory();
        }
    }
    s->has_tokens |= n > 0;
    if (s->ids.n >= DOCUMENT_STORE_SEQUENCE_TOKENS) {
        flush(s);
    }
    return status_ok();
}

static struct status end_document(struct document_parts *p, struct document_parts_store *s)
{
    if (!s->has_tokens) {
        return status_ok();
    }
    if (p->append_end && !id_list_append(&s->ids, p->tokenizer->special[SPECIAL_END])) {
        return out_of_memory();
    }
    flush(s);
    s->has_tokens = false;
    document_output_end_document(&s->output);
    return document_output_status(&s->output);
}

struct status document_parts_end(struct document_parts *p)
{
    for (int i = 0; i < p->n_stores; i++) {
        TRY(end_document(p, &p->stores[i]));
    }
    return status_ok();
}

/* A part of another store than the one before is a document of its own. */
struct status document_parts_add(struct document_parts *p, const struct document_tokens *t)
{
    size_t start = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t n = t->ends[i] - start;
        int store = p->by_key ? (int)i : is_heldout(p);
        bool is_other = p->part_bytes > 0 && p->stores[1 - store].has_tokens;
        TRY(is_other ? end_document(p, &p->stores[1 - store]) : status_ok());
        TRY(add_tokens(&p->stores[store], t->ids.ids + start, n));
        start = t->ends[i];
    }
    return status_ok();
}

/* ---- between runs ---- */

static void put_i64(struct buf *out, int64_t value)
{
    buf_append(out, &value, sizeof value);
}

static void save_mark(struct buf *out, const struct append_mark *mark)
{
    put_i64(out, (int64_t)mark->n_bytes);
    put_i64(out, mark->crc);
}

static struct status save_store(struct document_parts_store *s, struct buf *out)
{
    struct indexed_place place;
    TRY(document_output_save(&s->output, &place));
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        save_mark(out, &place.parts[i]);
    }
    put_i64(out, s->has_tokens);
    put_i64(out, (int64_t)s->ids.n);
    buf_append(out, s->ids.ids, s->ids.n * sizeof *s->ids.ids);
    return status_ok();
}

static struct status load_store(struct document_parts *p, struct document_parts_store *s, struct span *in)
{
    struct indexed_place place;
    for (int i = 0; i < INDEXED_N_PARTS; i++) {
        place.parts[i].n_bytes = bytes_read_u64(in);
        place.parts[i].crc = (uint32_t)bytes_read_u64(in);
    }
    s->has_tokens = bytes_read_u64(in) != 0;
    uint64_t n = bytes_read_u64(in);
    const void *ids = bytes_take_items(in, n, sizeof *s->ids.ids);
    FAIL_IF(in->failed, STATUS_DATA, "the state of an earlier run is damaged, which wrote %s",
            s->output.prefix);
    for (uint64_t i = 0; i < n; i++) {
        int32_t id;
        memcpy(&id, (const char *)ids + i * sizeof id, sizeof id);
        TRY(id_list_append(&s->ids, id) ? status_ok() : out_of_memory());
    }
    return document_output_continue(&s->output, p->tokenizer->n, &place);
}

struct status document_parts_save(struct document_parts *p, struct buf *out)
{
    put_i64(out, p->n_parts);
    put_i64(out, p->next_heldout);
    put_i64(out, p->n_strata);
    for (int i = 0; i < p->n_stores; i++) {
        TRY(save_store(&p->stores[i], out));
    }
    return buf_status(out);
}

struct status document_parts_continue(struct document_parts *p, struct span *in)
{
    p->n_parts = (int64_t)bytes_read_u64(in);
    p->next_heldout = (int64_t)bytes_read_u64(in);
    p->n_strata = (int64_t)bytes_read_u64(in);
    for (int i = 0; i < p->n_stores; i++) {
        TRY(load_store(p, &p->stores[i], in));
    }
    return status_ok();
}

void document_parts_close(struct document_parts *p, bool keeps)
{
    for (int i = 0; i < p->n_stores; i++) {
        p->stores[i].output.keeps = keeps;
        document_output_close(&p->stores[i].output);
        id_list_fini(&p->stores[i].ids);
    }
}
