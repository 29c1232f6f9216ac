#include "corpus/cleaning.h"

#include "core/digest.h"
#include "text/script.h"
#include "text/utf8.h"

#include <string.h>

enum { MOST_NEAR_HASHES = CLEANING_MOST_NEAR_DOCUMENTS * NEAR_HASHES_BANDS };

bool cleaning_is_on(const struct cleaning_config *config)
{
    return config->drop_duplicates || config->drop_near_duplicates || config->drop_repeated_lines > 0 ||
           config->min_document_chars > 0 || config->scripts != 0 || config->evaluation != NULL ||
           quality_is_limited(&config->quality);
}

struct document_facts_config cleaning_facts(const struct cleaning_config *config)
{
    return (struct document_facts_config){.hash = config->drop_duplicates,
                                          .near = config->drop_near_duplicates,
                                          .chars = config->min_document_chars > 0,
                                          .scripts = config->scripts,
                                          .quality = config->quality,
                                          .evaluation = config->evaluation};
}

size_t cleaning_memory_bytes(const struct cleaning_config *config, double n_documents)
{
    double n_near = n_documents * NEAR_HASHES_BANDS;
    return (config->drop_duplicates
                ? hash_set_bytes(DOCUMENT_HASH_BYTES, CLEANING_MOST_DOCUMENTS, n_documents)
                : 0) +
           (config->drop_near_duplicates ? hash_set_bytes(sizeof(uint64_t), MOST_NEAR_HASHES, n_near) : 0);
}

/* ---- decisions ---- */

/* Whether a document shares a hash with one that is remembered; else it is remembered. */
static struct status is_near(struct cleaning *c, bool *is, const uint64_t *hashes)
{
    bool is_new, has_words = hashes[0] != 0;
    *is = false;
    for (int i = 0; i < NEAR_HASHES_BANDS && has_words && !*is; i++) {
        *is = hash_set_has(&c->near, &hashes[i]);
    }
    bool is_full = c->near.n + NEAR_HASHES_BANDS > MOST_NEAR_HASHES;
    c->counts.n_unremembered += has_words && !*is && is_full;
    for (int i = 0; i < NEAR_HASHES_BANDS && has_words && !*is && !is_full; i++) {
        TRY(hash_set_add(&c->near, &hashes[i], &is_new));
    }
    return status_ok();
}

static struct status judge_repeats(struct cleaning *c, enum document_fate *fate,
                                   const struct document_facts *facts)
{
    bool is_new = true, near = false;
    if (c->config.drop_duplicates) {
        TRY(hash_set_add(&c->known, facts->hash, &is_new));
        c->counts.n_unremembered += is_new && !hash_set_has(&c->known, facts->hash);
    }
    if (is_new && c->config.drop_near_duplicates) {
        TRY(is_near(c, &near, facts->near));
    }
    *fate = !is_new ? DOCUMENT_DUPLICATE : near ? DOCUMENT_NEAR_DUPLICATE : DOCUMENT_KEPT;
    return status_ok();
}

static struct status judge(struct cleaning *c, enum document_fate *fate, const struct document_facts *facts)
{
    if (facts->n_chars < c->config.min_document_chars) {
        *fate = DOCUMENT_TOO_SHORT;
    } else if (c->config.scripts != 0 && (facts->n_wanted == 0 || 2 * facts->n_wanted < facts->n_letters)) {
        *fate = DOCUMENT_OTHER_SCRIPT;
    } else if (facts->quality != DOCUMENT_KEPT) {
        *fate = facts->quality;
    } else {
        TRY(judge_repeats(c, fate, facts));
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
    } else if (c->drops) {
        *fate = DOCUMENT_DUPLICATE;
        return status_ok();
    }
    *fate = *fate == DOCUMENT_KEPT && facts->is_contaminated ? DOCUMENT_CONTAMINATED : *fate;
    c->counts.documents[*fate] += *fate != DOCUMENT_KEPT;
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

static struct status open_sets(struct cleaning *c, const char *directory, const struct cleaning_place *from)
{
    char documents[FILE_PATH_BYTES], near[FILE_PATH_BYTES];
    if (directory != NULL) {
        TRY(file_make_path(documents, "%s/documents", directory));
        TRY(file_make_path(near, "%s/near_documents", directory));
    }
    bool keeps = directory != NULL && c->config.drop_duplicates;
    bool keeps_near = directory != NULL && c->config.drop_near_duplicates;
    TRY(hash_set_open(&c->known, DOCUMENT_HASH_BYTES, CLEANING_MOST_DOCUMENTS, keeps ? documents : NULL,
                      from->documents));
    return hash_set_open(&c->near, sizeof(uint64_t), MOST_NEAR_HASHES, keeps_near ? near : NULL,
                         from->near_documents);
}

struct status cleaning_open(struct cleaning *c, struct cleaning_config config, const char *directory,
                            const struct cleaning_place *from, struct span *in)
{
    *c = (struct cleaning){.config = config,
                           .counts = from->counts,
                           .drops = from->drops,
                           .known.file.fd = -1,
                           .near.file.fd = -1};
    struct status s = repeats_init(&c->repeats);
    if (!failed(s) && in != NULL) {
        s = repeats_load(&c->repeats, in);
    }
    s = failed(s) ? s : open_sets(c, directory, from);
    if (failed(s)) {
        cleaning_close(c);
    }
    return s;
}

void cleaning_close(struct cleaning *c)
{
    hash_set_close(&c->known);
    hash_set_close(&c->near);
    repeats_fini(&c->repeats);
}

struct status cleaning_save(struct cleaning *c, struct cleaning_place *place, struct buf *out)
{
    *place = (struct cleaning_place){.counts = c->counts, .drops = c->drops};
    if (c->known.has_file) {
        TRY(append_file_sync(&c->known.file));
        place->documents = c->known.file.mark;
    }
    if (c->near.has_file) {
        TRY(append_file_sync(&c->near.file));
        place->near_documents = c->near.file.mark;
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

struct status cleaning_make_facts(struct document_facts *f, const struct document_facts_config *config,
                                  const struct document *d)
{
    *f = (struct document_facts){.quality = DOCUMENT_KEPT};
    if (config->hash) {
        make_hash(f, d);
    }
    if (config->near) {
        near_hashes_make(f->near, d);
    }
    if (config->chars || config->scripts != 0) {
        count_chars(f, config->scripts, d);
    }
    f->is_contaminated = config->evaluation != NULL && evaluation_words_occur(config->evaluation, d);
    return quality_is_limited(&config->quality) ? quality_judge(&f->quality, &config->quality, d)
                                                : status_ok();
}
