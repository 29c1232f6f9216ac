/* model_family: the files of a kind of model: its config.json, its classes, and the names of its tensors.  A
 * row of this table describes how to read and write its model directories; model_family.c lists the rows.
 *
 * The rule: model_dir, model_files, names_hf and load_report know models only through this table. */
#ifndef KILN_MODEL_MODEL_FAMILY_H
#define KILN_MODEL_MODEL_FAMILY_H

#include "core/json.h"
#include "io/gguf_types.h"
#include "nn/model.h"

#include <stdbool.h>

/* The part of a model that a tensor belongs to; a family has some of them. */
enum names_part {
    NAMES_EMBEDDINGS,
    NAMES_ENCODER, /* the layers */
    NAMES_POOLER,
    NAMES_MLM,
    NAMES_NSP,
    NAMES_QA,
    NAMES_CLASSIFIER,
    NAMES_BUFFER, /* constants in old files, not weights */
    NAMES_STATE,  /* the saving run's own: its optimizer, its step */
    NAMES_OTHER,  /* no part of these models */
    NAMES_N_PARTS,
};

/* A replacement in a tensor's name: of `old` at its end or, without `at_end`, of its first occurrence. */
struct model_family_rename {
    const char *old, *new;
    bool at_end;
    bool transposes;   /* the matrix of the old name is the transpose of the new one's */
    bool pairs_halves; /* in the old one's matrix rows i and D / 2 + i of a head of D lie side by side */
};

/* Heads of attention, whose rows some files hold in another order. */
struct model_heads {
    int64_t n;    /* heads of queries; 0: not known */
    int64_t size; /* rows of one */
    int64_t n_kv; /* heads of keys, and of values; 0: as many as of queries */
};

enum { MODEL_JOIN_MOST_PARTS = 3 };

/* One tensor in files that is three parameters, those of query, key and value, or two, of a gate: the ends of
 * its name and of theirs.  Its rows are [N + G + G, D], or by_head [N, 3, D], N heads of D for queries and G
 * for keys; or [2, F] of a gate. */
struct model_family_join {
    const char *whole, *parts[MODEL_JOIN_MOST_PARTS]; /* NULL as `whole` ends a list, as a part those */
    bool by_head;
    bool transposed; /* the file has the transpose */
};

static inline int model_family_join_parts(const struct model_family_join *j)
{
    return j->parts[MODEL_JOIN_MOST_PARTS - 1] == NULL ? MODEL_JOIN_MOST_PARTS - 1 : MODEL_JOIN_MOST_PARTS;
}

/* The rows of a join before a part, of the part and of all, over those of one share. */
struct model_family_share {
    int64_t before, own, all;
};

/* Shares are heads, or of equal parts the parts. */
static inline struct model_family_share model_family_join_share(const struct model_family_join *j, int part,
                                                                struct model_heads heads)
{
    int n = model_family_join_parts(j);
    bool are_equal = j->by_head || heads.n_kv == 0 || n < MODEL_JOIN_MOST_PARTS;
    int64_t first = are_equal ? 1 : heads.n, other = are_equal ? 1 : heads.n_kv;
    return (struct model_family_share){part == 0 ? 0 : first + (part - 1) * other, part == 0 ? first : other,
                                       first + (n - 1) * other};
}

/* How the files of a form hold the tensors of a model: its names for them, which of them are transposed, and
 * which are three parameters. */
struct model_family_layout {
    /* from the form's names to kiln's, which are renamed back in the same order */
    const struct model_family_rename *renames;
    const struct model_family_join *joins; /* NULL: it has none */
};

/* The numbers of a configuration that a model directory needs. */
struct model_family_sizes {
    int64_t vocab_size; /* rows of the word embeddings; 0: not given */
    int64_t max_length; /* tokens that it has positions for */
    int64_t n_layers;
    struct model_heads heads;
    double norm_eps;
    bool has_one_segment; /* the second text of a pair is of segment 0 too */
};

/* How the training scripts that kiln replaces keep a model of the family in their ckpt_N.pt. */
struct model_family_script {
    const struct model_family_rename *renames; /* renames from kiln's names to theirs */
    const char *const (*copies)[2]; /* tied parameters that they list, and those they equal; NULL ends them */
    int64_t word_multiple;          /* the scripts round a vocabulary up to a multiple of it */
};

/* A value of a configuration under its two names, that of GGUF files and that of config.json. */
struct model_family_gguf_key {
    const char *name; /* in GGUF behind the architecture and a dot: "block_count"; NULL ends a table */
    const char *key;  /* in config.json, "outer.inner" in an object of its own; NULL: it changes no network */
    enum gguf_value type; /* U32, F32, TEXT or BOOL, as it is written; readers take any width */
    int times; /* above 0: GGUF's is so many times the value of `key`, which a row before this one has */
    enum { GGUF_KEY_BOTH, GGUF_KEY_NEEDED, GGUF_KEY_READ } use; /* needed in files; read but not written */
};

struct gguf_file;

/* Description of a family in GGUF files. */
struct model_family_gguf {
    const char *architecture; /* llama.cpp's name of the family; families may share it: the first reads */
    const struct model_family_layout *layout;
    const char *const *in_f32; /* matrices that are fp32 in files of any type; NULL ends them */
    const struct model_family_gguf_key *keys;
    /* Changes config.json before its values are put, and says what the program that reads them will compute
     * otherwise; NULL: nothing is to do.  STATUS_UNAVAILABLE: no such program computes this model. */
    struct status (*before_write)(json_t *root, const void *config);
    /* Completes the config.json that the keys gave by what else the file has; NULL: it is complete.
     * STATUS_DATA. */
    struct status (*after_read)(json_t *root, const struct gguf_file *f, const char *source);
    /* The divisors of rotary angles, one for each pair of a head, in llama.cpp's tensor
     * "rope_freqs.weight", and their number; 0: there is no such tensor, and NULL: none ever. */
    int64_t (*divisors)(float *to, int64_t most, const void *config);
};

struct model_family {
    const char *name;               /* name for messages */
    const char *const *model_types; /* "model_type" in config.json; NULL ends them */
    /* whether a configuration of such a type is this family's; a later row has the others.  NULL: all are */
    bool (*owns)(const json_t *config);
    /* key of config.json that identifies the family without "model_type"; NULL: none */
    const char *own_key;
    const char *old_config; /* the name of config.json in other releases; NULL: none */
    const char *old_prefix; /* prefix of the TensorFlow checkpoint next to it; NULL: none */
    size_t config_bytes;    /* size of the family's configuration, plain memory */
    /* vocabulary of its published models: that of a plan where nothing says another */
    int64_t usual_words;

    /* STATUS_DATA for a config.json that does not describe a model of the family. */
    struct status (*parse_config)(void *config, const json_t *object, const char *source);
    /* The config.json of a task's class; the caller json_decref's it.  NULL without memory. */
    json_t *(*config_to_json)(const void *config, enum model_task task);
    struct model_family_sizes (*sizes)(const void *config);
    /* Sets `n_words` pieces of the vocabulary, and rows for them. */
    void (*set_words)(void *config, int64_t vocab_size, int64_t n_words);

    /* Labels of a classifier, in the configuration.  NULL: no model of the family classifies. */
    struct model_labels *(*labels)(void *config);

    /* The model of a configuration, which it copies but for names of labels; the caller frees it.
     * STATUS_MEMORY. */
    struct status (*create)(struct model **model, const void *config, enum model_task task);

    /* STATUS_DATA naming the first field in which two architectures differ; dropout, initialisation and the
     * vocabulary may differ. */
    struct status (*same_architecture)(const void *a, const void *b);

    const char *(*class_of)(enum model_task task); /* name in "architectures" of config.json */
    /* The task of files with these parts.  NULL: the first that has a class. */
    enum model_task (*task_of)(const bool has[NAMES_N_PARTS], const json_t *config);

    /* Names of tensors.  A model without a head is written without the prefix `root`, and read without it
     * where a name begins with one of `bare`.  NULL for a list: it is empty. */
    enum model_task bare_task;
    const char *root;
    const char *const *bare;                   /* NULL ends them */
    const struct model_family_rename *renames; /* renames in order; NULL as `old` ends them */
    const struct model_family_join *joins;     /* NULL as `whole` ends them */
    /* tensors that Hugging Face's files hold under another name, or transposed */
    const struct model_family_rename *forms;
    const char *const (*tied)[2]; /* copies, and the tensors they are tied to; NULL ends them */
    const char *tied_pattern;     /* names of copies, for messages */
    enum names_part tied_part;    /* the head that reads them */
    const char *const *buffers;   /* names of NAMES_BUFFER; NULL ends them */
    /* whether the configuration switches off this tensor's layer, so that files may have it; NULL: none */
    bool (*is_off)(const void *config, const char *name);
    const char *const *states;        /* prefixes of the last parts of names of NAMES_STATE; NULL ends them */
    const char *words;                /* the word embeddings */
    const char *parts[NAMES_N_PARTS]; /* prefixes of their names; NULL: no such part */

    const struct model_family_script *script; /* NULL: they have none */
    const struct model_family_gguf *gguf;     /* NULL: kiln cannot */
    /* layout in Megatron-DeepSpeed's layer files; NULL: it has none */
    const struct model_family_layout *megatron;
};

/* The family of a configuration; without "model_type", as in files of 2018, the first in the list.
 * STATUS_DATA names a type that no family has. */
struct status model_family_find(const struct model_family **family, const json_t *config, const char *source);

/* Reads a config.json, or the keys of a GGUF file as one (gguf_config.h).  The caller frees the
 * configuration and json_decref's *root; both are NULL after a failure. */
struct status model_family_read_config(const struct model_family **family, void **config, json_t **root,
                                       const char *path);

/* Reads as model_family_read_config does a config.json that was parsed before, which the caller keeps. */
struct status model_family_parse_config(const struct model_family **family, void **config, const json_t *root,
                                        const char *source);

/* The model of a config.json, for a plan or a measurement without files: its vocabulary is the family's
 * usual_words where the file says none.  the caller frees it. */
struct status model_family_create(struct model **model, const json_t *root, const char *source,
                                  enum model_task task);

/* Whether "architectures" of config.json names a class of this end: "ForTokenClassification". */
bool model_family_names_class(const json_t *config, const char *end);

/* All families, in order; NULL ends them (model_families.c).  A program that is linked with the library may
 * have a table of its own, as tests/toy has. */
extern const struct model_family *const model_families[];

#endif
