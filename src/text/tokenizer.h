/* tokenizer: text to the token ids of a model and back, for any kind of tokenizer.
 *
 * Vocabulary, special tokens, files and their hash are read once, and threads share them; encoding writes to
 * a scratch that belongs to one thread.  The rule: code above this folder asks what a tokenizer has, never
 * for its kind. A special token that it lacks is -1; code that needs one calls tokenizer_require. Special
 * tokens are added by the code that builds a model's input; where a text itself spells one, encoding yields
 * it only if parses_special is set. */
#ifndef KILN_TEXT_TOKENIZER_H
#define KILN_TEXT_TOKENIZER_H

#include "core/buf.h"
#include "core/json.h"
#include "core/status.h"
#include "text/added_tokens.h"
#include "text/input_frame.h"
#include "text/token_list.h"

/* A caller's text or word. */
struct text_bytes {
    const char *bytes; /* [n], any */
    size_t n;
};

/* Special tokens, by their use in a model's input. */
enum special_token {
    SPECIAL_PAD,       /* padding */
    SPECIAL_UNKNOWN,   /* a word that no piece covers */
    SPECIAL_CLASS,     /* token before the first text of BERT: [CLS] */
    SPECIAL_SEPARATOR, /* token after each text: [SEP] */
    SPECIAL_MASK,      /* stands for a token that is to be predicted: [MASK] */
    SPECIAL_BEGIN,     /* token before a document: <|endoftext|>, <s> */
    SPECIAL_END,       /* token after a document: <|endoftext|>, </s> */
    SPECIAL_COUNT
};

/* A file of the vocabulary, as it was read. */
struct tokenizer_file {
    const char *name; /* name in every directory that kiln writes: "vocab.txt" */
    const void *bytes;
    size_t n;
};

enum {
    TOKENIZER_MAX_FILES = 3, /* byte-level BPE has two, pieces and merges, and added tokens are one */
    TOKENIZER_MOST_ENDS = 16
};

struct tokenizer {
    const struct tokenizer_kind *kind;
    int32_t n;                         /* pieces, of the ids 0 to n - 1; 0: the vocabulary is not known */
    int32_t n_own;                     /* pieces of the kind's vocabulary, if tokens were added; 0: all are */
    int32_t special[SPECIAL_COUNT];    /* ids; -1: there is none (special_tokens.h) */
    int32_t ends[TOKENIZER_MOST_ENDS]; /* [n_ends] each ends a text that a model continues */
    int n_ends;
    bool lower_case;                                  /* text loses its upper case and its accents first */
    struct tokenizer_file files[TOKENIZER_MAX_FILES]; /* [n_files]; the bytes are the vocabulary's */
    int n_files;
    /* Hash of the files that decide the ids (tokenizer_set_files): goes into every artefact made with
     * them. */
    uint64_t hash;
    void *vocabulary; /* vocabulary of the kind */

    struct input_frame frame;  /* frame of tokenizer.json; tokenizer_frame returns the one that holds */
    struct added_tokens added; /* the special tokens, and those that were given later */
    char *added_file;          /* the bytes of added_tokens.json; NULL: none were given later */
    /* special tokens that a text spells, such as "<|endoftext|>", are found: as in transformers */
    bool parses_special;
    char *chat_template;  /* text of the model's (text/chat_template.h); NULL: it has none */
    bool adds_space;      /* encoding puts a space in front of a text; tokenizer_decode_text drops it */
    bool has_one_segment; /* the model has no other: the frame's segment 1 is 0 too */
};

/* Where a text that a kind encodes stands: some put a space in front of a text. */
enum tokenizer_place {
    TOKENIZER_AT_START,    /* of a text */
    TOKENIZER_AFTER_TOKEN, /* after an added token of it */
    TOKENIZER_WITHIN,      /* after other text, which was encoded before */
};

/* The functions of a kind of tokenizer.  Callers have checked that ids are in [0, n). */
struct tokenizer_kind {
    const char *name;              /* name of the kind, for messages */
    const char *const *file_names; /* all files that it writes to a model directory; ends with NULL */
    bool has_letter_case;          /* lower_case may be set; else it is false */
    /* the frame of a tokenizer whose files give none */
    struct input_frame (*frame)(int32_t class_id, int32_t separator);
    /* Whether a tokenizer.json, whose top is `root`, is of this kind, and opening it, of n bytes, which are
     * copied, with the tokens that were added.  NULL: the kind has no such file, or needs more. */
    bool (*is_json)(const json_t *root);
    struct status (*open_json)(struct tokenizer *t, struct added_tokens *added, const json_t *root,
                               const char *text, size_t n, const char *source);
    /* The name of a file that is such a vocabulary alone, and opening its bytes, which are copied; NULL: the
     * kind has none. */
    const char *file_name;
    struct status (*open_bytes)(struct tokenizer *t, const void *bytes, size_t n, const char *source);
    bool decodes_bytes; /* decoding gives the text's bytes; else words with spaces between them */
    /* [SPECIAL_COUNT] the usual texts of special tokens, where no file says; NULL: the kind has found them */
    const char *const (*special_names)[2];

    /* The scratch of a thread, which may read `t` until its fini. */
    size_t scratch_bytes;
    struct status (*scratch_init)(void *scratch, const struct tokenizer *t);
    void (*scratch_fini)(void *scratch);
    struct status (*encode)(void *scratch, struct token_list *out, const char *text, size_t n,
                            enum tokenizer_place place);
    struct status (*encode_ids)(void *scratch, struct id_list *out, const char *text, size_t n,
                                enum tokenizer_place place);

    void (*decode)(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n);
    const char *(*piece)(const struct tokenizer *t, int32_t id, size_t *n);
    /* The id of a piece; -1: there is none. */
    int32_t (*find)(const struct tokenizer *t, const char *piece, size_t n);
    bool (*continues_word)(const struct tokenizer *t, int32_t id);

    /* For tokenizer_config.json; NULL if memory runs out. */
    json_t *(*config)(const struct tokenizer *t, int64_t max_length);
    /* The other JSON files of a model directory: an object from their names to their contents, which the
     * caller json_decref's.  NULL if memory runs out; STATUS_DATA if JSON cannot hold the vocabulary. */
    struct status (*documents)(json_t **documents, const struct tokenizer *t);

    /* A hash of what decides the ids, where different files may hold the same; NULL: that of the files. */
    uint64_t (*hash)(const struct tokenizer *t);

    void (*destroy)(void *vocabulary); /* safe on NULL */
};

/* For kinds, once the vocabulary is read: sets the files, borrowed, and the hash.  It is the kind's own; else
 * of a single file the FNV-1a of its bytes, as in all stores and checkpoints so far, and of several files the
 * FNV-1a of a list of their names and hashes.  Added tokens that a text may hold are one more file. */
void tokenizer_set_files(struct tokenizer *t, const struct tokenizer_file *files, int n_files);

/* Gives it the tokens of the list, which it takes over.  tokenizer_close_added, once its special tokens are
 * known, adds those, and what a text may hold to the files. */
void tokenizer_take_added(struct tokenizer *t, struct added_tokens *added);
struct status tokenizer_close_added(struct tokenizer *t);

/* Leaves out the added tokens of the ids from `n` on, for which a model has no rows: a text has them as
 * text. False: there are other pieces among them. */
bool tokenizer_cut(struct tokenizer *t, int32_t n);

/* Whether a text spells a special token of this tokenizer; its bytes are match->at and n. */
bool tokenizer_spells_special(const struct tokenizer *t, struct added_match *match, const char *text,
                              size_t n);

/* Safe on a zeroed struct.  All scratches must have been destroyed. */
void tokenizer_fini(struct tokenizer *t);

/* STATUS_USAGE if this kind has no letter case to choose; call it before any scratch exists. */
struct status tokenizer_set_lower_case(struct tokenizer *t, bool lower_case);

/* STATUS_DATA unless it has a special token for each bit 1 << enum special_token of `wanted`; `what` needs
 * them. */
struct status tokenizer_require(const struct tokenizer *t, unsigned wanted, const char *what);

/* The frame of a model's input: the tokenizer's own, or its kind's with its special tokens; a bare one of
 * byte-level BPE without these, such as a decoder's.  STATUS_DATA: it has none, and `what` needs one. */
struct status tokenizer_frame(struct input_frame *f, const struct tokenizer *t, const char *what);

/* The id for the tail of a stream, which nothing attends to: the padding token's, or 0 where there is
 * none. */
int32_t tokenizer_tail_id(const struct tokenizer *t);

/* The piece of an id in [0, n); borrowed, not NUL-terminated. */
const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *n);

/* The id of the piece or the added token of this text; -1: there is none. */
int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t n);

/* Whether a token of this id ends a text that a model continues. */
bool tokenizer_ends(const struct tokenizer *t, int32_t id);

/* Whether it stands for no text, as [CLS] and <|endoftext|> do. */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);

/* Whether a token of this id continues the word of the token before it.  A complete word ends before a token
 * that does not. */
bool tokenizer_continues_word(const struct tokenizer *t, int32_t id);

/* Appends a readable form of ids[0..n).  An id outside the vocabulary is STATUS_DATA. */
struct status tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n);

/* The same for the ids of a whole text, of which the space that encoding has put in front is left out. */
struct status tokenizer_decode_text(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n);

/* The memory that encoding writes to.  Belongs to one thread. */
struct tokenizer_scratch {
    const struct tokenizer *tokenizer;
    void *own; /* scratch of the kind */
};

/* Borrows the tokenizer, which must neither move nor end before it.  Fini is safe on a zeroed struct and
 * after a failed init. */
struct status tokenizer_scratch_init(struct tokenizer_scratch *s, const struct tokenizer *t);
void tokenizer_scratch_fini(struct tokenizer_scratch *s);

/* Appends the tokens of text[0..n), any bytes, with their offsets.  STATUS_MEMORY is its only failure. */
struct status tokenizer_encode(struct tokenizer_scratch *s, struct token_list *out, const char *text,
                               size_t n);

/* Appends only the ids, many times faster. */
struct status tokenizer_encode_ids(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                   size_t n);

/* The same for what goes on after a text that was encoded before it. */
struct status tokenizer_encode_rest(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                    size_t n);

/* Appends the ids of a word of a list, which stands behind a space: pieces of a kind that decodes bytes have
 * the space in them. */
struct status tokenizer_encode_word(struct tokenizer_scratch *s, struct id_list *out, const char *word,
                                    size_t n);

/* Appends the ids of a decoder's document or prompt, after the tokens that the frame of tokenizer.json puts
 * first. */
struct status tokenizer_encode_document(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                        size_t n);

#endif
