#include "corpus/document_facts.h"

#include "core/digest.h"
#include "text/script.h"
#include "text/utf8.h"

#include <string.h>

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

void document_facts_make(struct document_facts *f, const struct document_facts_config *config,
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
