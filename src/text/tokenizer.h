/* tokenizer: text to the token ids of a model and back, whichever kind of tokenizer it is.
 *
 * What a tokenizer is - vocabulary, special tokens, files and their hash - is read once, and threads share it; what
 * encoding writes is a scratch, of one thread.  The rule: whoever stands above this room asks for what a tokenizer has,
 * never for its kind.  A special token that it lacks is -1, and whoever cannot do without it calls tokenizer_require.
 * Special tokens are added by whoever builds a model's input: encoding gives none, whatever the text says. */
#ifndef KILN_TEXT_TOKENIZER_H
#define KILN_TEXT_TOKENIZER_H

#include "core/buf.h"
#include "core/json.h"
#include "core/status.h"
#include "text/token_list.h"

/* Special tokens, by what a model's input uses them for. */
enum special_token {
    SPECIAL_PAD,       /* where there is room but no token */
    SPECIAL_UNKNOWN,   /* what no piece covers */
    SPECIAL_BEGIN,     /* before the first text: [CLS] */
    SPECIAL_SEPARATOR, /* after each text: [SEP] */
    SPECIAL_MASK,      /* where a token is to be predicted: [MASK] */
    SPECIAL_COUNT
};

/* A file of the vocabulary, as it was read. */
struct tokenizer_file {
    const char *name; /* in every directory that kiln writes: "vocab.txt" */
    const void *bytes;
    size_t n;
};

enum { TOKENIZER_MAX_FILES = 2 }; /* byte-level BPE has pieces and merges */

struct tokenizer {
    const struct tokenizer_kind *kind;
    int32_t n;                      /* pieces, of the ids 0 to n - 1; 0: the vocabulary is not known */
    int32_t special[SPECIAL_COUNT]; /* ids; -1: there is none */
    bool lower_case;                /* text loses its upper case and its accents first */
    struct tokenizer_file files[TOKENIZER_MAX_FILES]; /* [n_files]; the bytes are the vocabulary's */
    int n_files;
    uint64_t hash;    /* of the files: goes into every artefact that is made with them */
    void *vocabulary; /* the kind's own */
};

/* What a kind of tokenizer fills in.  Functions get what is theirs: ids are in [0, n). */
struct tokenizer_kind {
    const char *name;              /* for messages */
    const char *const *file_names; /* all that it writes to a model directory; ends with NULL */
    bool has_letter_case;          /* lower_case may be chosen; else it is false */

    /* The scratch of a thread, which may read `t` until it is destroyed. */
    struct status (*scratch_create)(void **scratch, const struct tokenizer *t);
    void (*scratch_destroy)(void *scratch); /* safe on NULL */
    struct status (*encode)(void *scratch, struct token_list *out, const char *text, size_t n);
    struct status (*encode_ids)(void *scratch, struct id_list *out, const char *text, size_t n);

    void (*decode)(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n);
    const char *(*piece)(const struct tokenizer *t, int32_t id, size_t *n);
    bool (*continues_word)(const struct tokenizer *t, int32_t id);

    /* For tokenizer_config.json; NULL without memory. */
    json_t *(*config)(const struct tokenizer *t, int64_t max_length);
    /* The other JSON files of a model directory: an object from their names to what they hold, which the caller
     * json_decref's.  NULL without memory; STATUS_DATA if JSON cannot hold the vocabulary. */
    struct status (*documents)(json_t **documents, const struct tokenizer *t);

    void (*destroy)(void *vocabulary); /* safe on NULL */
};

/* For kinds: sets the files, borrowed, and their hash.  Of a single file that is the FNV-1a of its bytes, as stores
 * and checkpoints have held it ever since; of several, that of a list of their names and hashes. */
void tokenizer_set_files(struct tokenizer *t, const struct tokenizer_file *files, int n_files);

/* Safe on a zeroed struct; nobody may have a scratch any more. */
void tokenizer_fini(struct tokenizer *t);

/* STATUS_USAGE if that cannot be chosen for this kind; to be called before there is a scratch. */
struct status tokenizer_set_lower_case(struct tokenizer *t, bool lower_case);

/* STATUS_DATA unless it has a special token for each bit 1 << enum special_token of `wanted`; `what` needs them. */
struct status tokenizer_require(const struct tokenizer *t, unsigned wanted, const char *what);

/* The piece of an id in [0, n); borrowed, not NUL-terminated. */
const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *n);

/* Whether a token of this id goes on with the word of the token before it: whole words end before all others. */
bool tokenizer_continues_word(const struct tokenizer *t, int32_t id);

/* Appends a readable form of ids[0..n).  An id outside the vocabulary is STATUS_DATA. */
struct status tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n);

/* What encoding writes.  Belongs to one thread. */
struct tokenizer_scratch {
    const struct tokenizer *tokenizer;
    void *own; /* the kind's */
};

/* Borrows the tokenizer, which must neither move nor end before it.  Fini is safe on a zeroed struct and after a failed
 * init. */
struct status tokenizer_scratch_init(struct tokenizer_scratch *s, const struct tokenizer *t);
void tokenizer_scratch_fini(struct tokenizer_scratch *s);

/* Appends the tokens of text[0..n), any bytes, with their offsets.  STATUS_MEMORY is its only failure. */
struct status tokenizer_encode(struct tokenizer_scratch *s, struct token_list *out, const char *text,
                               size_t n);

/* Appends the same ids alone, many times faster. */
struct status tokenizer_encode_ids(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                   size_t n);

#endif
