#include "corpus/cleaning.h"

#include "core/digest.h"
#include "text/script.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1 << 12 };

bool cleaning_is_on(const struct cleaning_config *config)
{
    return config->drop_duplicates || config->drop_repeated_lines > 0 || config->min_document_chars > 0 ||
           config->scripts != 0;
}

struct document_facts_config cleaning_facts(const struct cleaning_config *config)
{
    return (struct document_facts_config){
        .hash = config->drop_duplicates, .chars = config->min_document_chars > 0, .scripts = config->scripts};
}

/* ---- documents that are known ---- */

static bool is_empty(const unsigned char *hash)
{
    static const unsigned char zeros[DOCUMENT_HASH_BYTES];
    return memcmp(hash, zeros, DOCUMENT_HASH_BYTES) == 0;
}

/* The slot of a hash, or the empty slot where it goes. */
static unsigned char *slot_of(const struct cleaning *c, const unsigned char *hash)
{
    size_t at;
    memcpy(&at, hash, sizeof at);
    at %= c->capacity;
    while (!is_empty(c->known[at]) && memcmp(c->known[at], hash, DOCUMENT_HASH_BYTES) != 0) {
        at = (at + 1) % c->capacity;
    }
    return c->known[at];
}

/* Reserves a slot for one more hash; at most half of the slots are used. */
static struct status make_room(struct cleaning *c)
{
    if (2 * (c->n_known + 1) <= c->capacity) {
        return status_ok();
    }
    struct cleaning grown = {.capacity = c->capacity == 0 ? FIRST_CAPACITY : 2 * c->capacity};
    grown.known = calloc(grown.capacity, sizeof *grown.known);
    FAIL_IF(grown.known == NULL, STATUS_MEMORY, "out of memory for the hashes of %zu documents", c->n_known);
    for (size_t i = 0; i < c->capacity; i++) {
        if (!is_empty(c->known[i])) {
            memcpy(slot_of(&grown, c->known[i]), c->known[i], DOCUMENT_HASH_BYTES);
        }
    }
    free(c->known);
    c->known = grown.known;
    c->capacity = grown.capacity;
    return status_ok();
}

/* Remembers a hash; *is_new is false if it is known. */
static struct status remember(struct cleaning *c, const unsigned char *hash, bool *is_new)
{
    TRY(make_room(c));
    unsigned char *slot = slot_of(c, hash);
    *is_new = is_empty(slot);
    if (!*is_new) {
        return status_ok();
    }
    if (c->n_known == CLEANING_MOST_DOCUMENTS) {
        c->counts.n_unremembered++;
        return status_ok();
    }
    memcpy(slot, hash, DOCUMENT_HASH_BYTES);
    c->n_known++;
    if (c->has_file) {
        append_file_put(&c->file, hash, DOCUMENT_HASH_BYTES);
    }
    return status_ok();
}

/* ---- decisions ---- */

static struct status judge(struct cleaning *c, enum document_fate *fate, const struct document_facts *facts)
{
    bool is_new = true;
    if (facts->n_chars < c->config.min_document_chars) {
        *fate = DOCUMENT_TOO_SHORT;
    } else if (c->config.scripts != 0 && (facts->n_wanted == 0 || 2 * facts->n_wanted < facts->n_letters)) {
        *fate = DOCUMENT_OTHER_SCRIPT;
    } else if (c->config.drop_duplicates) {
        TRY(remember(c, facts->hash, &is_new));
        *fate = is_new ? DOCUMENT_KEPT : DOCUMENT_DUPLICATE;
    }
    return status_ok();
}

struct status cleaning_judge(struct cleaning *c, enum document_fate *fate, const struct document_facts *facts,
                             bool begins)
{
    *fate = DOCUMENT_KEPT;
    if (begins) {
        TRY(judge(c, fate, facts));
        c->drops = *fate != DOCUMENT_KEPT;
        c->counts.documents[*fate] += c->drops;
    } else if (c->drops) {
        *fate = DOCUMENT_DUPLICATE;
    }
    return status_ok();
}

bool cleaning_keeps_line(struct cleaning *c, uint64_t hash, const char *line, size_t n)
{
    uint32_t count = repeats_add(&c->repeats, hash, line, n);
    bool keeps = c->config.drop_repeated_lines == 0 || (int64_t)count <= c->config.drop_repeated_lines;
    c->counts.n_lines += !keeps;
    return keeps;
}

/* ---- between runs ---- */

struct reader {
    struct cleaning *cleaning;
    struct status status;
};

static void read_hashes(void *context, const unsigned char *bytes, size_t n)
{
    struct reader *r = context;
    bool is_new;
    for (size_t i = 0; i + DOCUMENT_HASH_BYTES <= n && !failed(r->status); i += DOCUMENT_HASH_BYTES) {
        r->status = remember(r->cleaning, bytes + i, &is_new);
    }
}

static struct status open_file(struct cleaning *c, const char *directory, const struct cleaning_place *from)
{
    char path[FILE_PATH_BYTES];
    struct reader reader = {.cleaning = c};
    FAIL_IF((size_t)snprintf(path, sizeof path, "%s/documents", directory) >= sizeof path, STATUS_USAGE,
            "the path %.60s... is too long", directory);
    TRY(append_file_open(&c->file, path, from->documents));
    TRY(append_file_read(path, from->documents.n_bytes, read_hashes, &reader));
    c->has_file = true;
    return reader.status;
}

struct status cleaning_open(struct cleaning *c, struct cleaning_config config, const char *directory,
                            const struct cleaning_place *from, struct span *in)
{
    *c = (struct cleaning){.config = config, .file.fd = -1, .counts = from->counts, .drops = from->drops};
    struct status s = repeats_init(&c->repeats);
    if (!failed(s) && in != NULL) {
        s = repeats_load(&c->repeats, in);
    }
    if (!failed(s) && directory != NULL && config.drop_duplicates) {
        s = open_file(c, directory, from);
    }
    if (failed(s)) {
        cleaning_close(c);
    }
    return s;
}

void cleaning_close(struct cleaning *c)
{
    append_file_close(&c->file);
    repeats_fini(&c->repeats);
    free(c->known);
    c->known = NULL;
    c->n_known = c->capacity = 0;
    c->has_file = false;
}

struct status cleaning_save(struct cleaning *c, struct cleaning_place *place, struct buf *out)
{
    *place = (struct cleaning_place){.counts = c->counts, .drops = c->drops};
    if (c->has_file) {
        TRY(append_file_sync(&c->file));
        place->documents = c->file.mark;
    }
    repeats_save(&c->repeats, out);
    return buf_status(out);
}

/* ---- facts of a document ---- */

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void make_hash(struct document_facts *f, const struct document *d)
{
    struct digest digest;
    struct digest_text hex;
    digest_init(&digest, DIGEST_MD5);
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        digest_put(&digest, p.text, p.n);
        digest_put(&digest, "\n", 1);
    }
    digest_end(&digest, &hex);
    for (int i = 0; i < DOCUMENT_HASH_BYTES; i++) {
        f->hash[i] = (unsigned char)(digit(hex.text[2 * i]) << 4 | digit(hex.text[2 * i + 1]));
    }
}

static void count_chars(struct document_facts *f, uint64_t scripts, const struct document *d)
{
    for (size_t at = 0; at < d->text.n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, d->text.data + at, d->text.n - at);
        int script = scripts == 0 ? SCRIPT_NONE : script_of(c);
        f->n_chars++;
        f->n_letters += script != SCRIPT_NONE;
        f->n_wanted += script != SCRIPT_NONE && (scripts >> script & 1) != 0;
    }
}

void cleaning_make_facts(struct document_facts *f, const struct document_facts_config *config,
                         const struct document *d)
{
    *f = (struct document_facts){0};
    if (config->hash) {
        make_hash(f, d);
    }
    if (config->chars || config->scripts != 0) {
        count_chars(f, config->scripts, d);
    }
}
