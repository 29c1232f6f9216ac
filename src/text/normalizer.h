/* normalizer: the steps by which a normalizer of tokenizer.json changes a text before it is split
 * (https://huggingface.co/docs/tokenizers/api/normalizers).
 *
 * The rule: the result is that of Hugging Face's `tokenizers`; a step that kiln does not know is refused.
 * Bytes that are no UTF-8 become U+FFFD first. */
#ifndef KILN_TEXT_NORMALIZER_H
#define KILN_TEXT_NORMALIZER_H

#include "core/json.h"
#include "text/charsmap.h"
#include "text/normal_text.h"
#include "text/split_regex.h"
#include "text/unicode_form.h"

enum normalizer_kind {
    NORMALIZER_FORM,     /* NFC or NFD */
    NORMALIZER_PREPEND,  /* puts a text in front of one that is not empty */
    NORMALIZER_REPLACE,  /* a text by another */
    NORMALIZER_REGEX,    /* matches by a text */
    NORMALIZER_CHARSMAP, /* SentencePiece's table, by characters with their marks */
    NORMALIZER_STRIP,    /* takes white space from the ends */
};

struct normalizer_step {
    enum normalizer_kind kind;
    enum unicode_form form;
    char *wanted, *content; /* for REPLACE, and what REPLACE, REGEX and PREPEND put */
    size_t n_wanted, n_content;
    struct split_regex *regex;
    struct charsmap charsmap;
    bool left, right; /* ends that STRIP takes from */
};

enum { NORMALIZER_MOST = 16 };

struct normalizer {
    struct normalizer_step steps[NORMALIZER_MOST]; /* [n] */
    int n;
    bool has_regex;
};

/* Reads a normalizer, which may be null.  STATUS_DATA names what kiln does not know. */
struct status normalizer_read(struct normalizer *z, const json_t *normalizer, const char *source);

/* Adds a step that replaces one text by another; or that puts one in front. */
struct status normalizer_add_replacement(struct normalizer *z, const char *wanted, const char *content);

/* Safe on a zeroed struct and after a failed read. */
void normalizer_fini(struct normalizer *z);

/* The memory that normalizing writes to: of one thread. */
struct normalizer_scratch {
    struct normal_text texts[2];
    struct unicode_form_room room;
    struct split_regex_scratch *regex;
};

/* Fini is safe on a zeroed struct and after a failed init. */
struct status normalizer_scratch_init(struct normalizer_scratch *s, const struct normalizer *z);
void normalizer_scratch_fini(struct normalizer_scratch *s);

/* Changes a text, which `t` views, to its normal form, which the scratch holds until the next call.  The step
 * that prepends is left out unless `prepends`.  STATUS_MEMORY, and what split_regex_find says. */
struct status normalizer_apply(const struct normalizer *z, struct normalizer_scratch *s,
                               struct normal_text *t, bool prepends, bool keeps_origins);

#endif
