/* model_dir: a model as a directory: config.json, model.safetensors (or shards and their index), and the
 * tokenizer's files (vocab.txt, tokenizer_config.json, tokenizer.json) - the format of Hugging Face's
 * `transformers`, and kiln's own checkpoints; or another program's file of tensors with these files next to
 * it (model_place.h).
 *
 * The rule: no silent guesses.  A tensor that is missing, unexpected or contradictory is an error, or a line
 * of the load report where the task makes it normal. Source:
 * huggingface.co/docs/transformers, model files; shared tensors are stored once there, so the decoder of the
 * MLM head is absent, as a rule. */
#ifndef KILN_MODEL_MODEL_DIR_H
#define KILN_MODEL_MODEL_DIR_H

#include "text/tokenizer.h"
#include "model/weight_source.h"
#include "model/load_report.h"
#include "model/model_files.h"

enum { MODEL_DIR_PATH_BYTES = 1024 };

struct model_progress;

struct model_dir {
    char path[MODEL_DIR_PATH_BYTES]; /* path as it was given */
    struct model_place place;
    const struct model_family *family;
    void *config; /* the family's; vocab_size is the vocabulary's, or config.json's if the files have it */
    bool takes_config; /* `config` is that of model_dir_given */
    struct tokenizer tokenizer;
    int64_t max_length;         /* most tokens of a sequence: at most the model's positions */
    int64_t vocab_rows;         /* rows of words in the files: the vocabulary, or more */
    enum model_task task;       /* task whose heads the files have */
    struct label_names *labels; /* labels of a model with a classifier; config views them; owned */
    struct model_files files;
};

/* Reads and checks everything but the values of the weights; a checkpoint with a manifest is verified
 * against it, a directory with checksums against them (model_sums.h). The old_config of a family replaces a
 * missing config.json.  STATUS_DATA names the file, the key or the tensor. */
struct status model_dir_open(struct model_dir *m, const char *path);

/* Files and a configuration that a command was given for the model; NULL: none.  Each is used where the model
 * has no such file, and ignored where it has one. */
struct model_dir_given {
    const char *config_file, *vocab_file;
    const struct model_family *family; /* family of `config` */
    const void *config;                /* instead of a file; n_words then replaces the vocabulary */
    int64_t n_words;
};

/* Opens a model as model_dir_open does, with what was given. */
struct status model_dir_open_given(struct model_dir *m, const char *path, struct model_dir_given given);

/* Safe on a zeroed struct and after a failed open. */
void model_dir_close(struct model_dir *m);

/* The sizes and the labels of its configuration; NULL: models of its family have no labels. */
struct model_family_sizes model_dir_sizes(const struct model_dir *m);
struct model_labels *model_dir_labels(const struct model_dir *m);

/* STATUS_DATA if the configuration in a file is of another architecture than the model. */
struct status model_dir_check_config(const struct model_dir *m, const char *path);

/* Declares the parameters of its model for a task in `params`, which is zeroed. */
struct status model_dir_declare(const struct model_dir *m, struct param_table *params, enum model_task task);

/* Fills the parameters of the task's table (declared with m->config) in `master`, a flat fp32 or fp64
 * host buffer of its layout; padded rows, rows that the files lack and new parameters keep their values.
 * Tensors are F32, F16, BF16 or F64.
 *
 * `may_be_new` has the bit 1 << part for each enum names_part that the files may lack completely: fine-tuning
 * allows the task's head, sentence vectors the pooler that they do not read, other uses nothing.  STATUS_DATA
 * names any other missing tensor, a shape that config.json contradicts, a decoder that is not tied, or an
 * encoder's tensor that kiln would not read; STATUS_NUMERIC the first weight that is not finite. */
struct status model_dir_read_weights(const struct model_dir *m, const struct param_table *params,
                                     tensor master, enum model_task task, unsigned may_be_new,
                                     struct load_report *report);

/* The tensor of a parameter, or the tied copy of it; NULL: there is none. */
const struct model_tensor *model_dir_tensor(const struct model_dir *m, const struct param *p);

/* Reads elements of the local part of a parameter, or of a moment of it, from `from` on, out of a tensor of
 * the model's files or one like it.  Elements that the tensor lacks keep their values; those of a parameter
 * that ranks share are zeroed.  If *values has the shape of the parameter, it is cut to the rows that were
 * read.  STATUS_DATA: the tensor has another shape than the complete parameter; STATUS_NUMERIC: a number is
 * not finite. */
struct status model_dir_read_tensor(const struct model_dir *m, enum param_kept kept, const struct param *p,
                                    const struct model_tensor *t, int64_t from, tensor *values);

/* Checks names and shapes as model_dir_read_weights does, which reads values too. */
struct status model_dir_check(const struct model_dir *m, const struct param_table *params,
                              enum model_task task, struct load_report *report);

/* The weights of a task in a directory, to be written in another form: one parameter at a time is in
 * memory. */
struct model_dir_source {
    const struct model_dir *m;
    const struct param_table *params;
    enum model_task task;
    tensor values; /* owned; values of the parameter that was read last */
};

/* Checks as model_dir_check; then a source checks values as it reads them.  `params` is borrowed. */
struct status model_dir_source_open(struct model_dir_source *s, const struct model_dir *m,
                                    const struct param_table *params, enum model_task task,
                                    struct load_report *report);
struct weight_source model_dir_source_of(struct model_dir_source *s);

/* After reading: STATUS_IO or STATUS_DATA if a file changed meanwhile.  Safe on a zeroed struct. */
struct status model_dir_source_close(struct model_dir_source *s);

/* Reads as model_dir_read_weights does, a tensor at a time, into any sink. */
struct status model_dir_read_into(const struct model_dir *m, const struct param_table *params,
                                  const struct weight_sink *sink, enum model_task task, unsigned may_be_new,
                                  struct load_report *report);

/* Form in which a save writes the weights; the configuration and the tokenizer's files lie next to them. */
enum model_dir_kind {
    MODEL_DIR_HUGGING_FACE, /* model.safetensors, or shards and their index, and config.json */
    MODEL_DIR_SCRIPT, /* ckpt_STEP.pt of the scripts that kiln replaces, and the older name of config.json */
    /* with the state of a run: latest, the folder of ZeRO 1 that it names, and the older config.json */
    MODEL_DIR_DEEPSPEED,
    MODEL_DIR_GGUF,     /* model.gguf, which llama.cpp loads, and config.json */
    MODEL_DIR_MEGATRON, /* global_stepSTEP of Megatron-DeepSpeed, what names it, and config.json */
    /* with the state of a run: its universal checkpoint, what names it, and config.json */
    MODEL_DIR_UNIVERSAL,
};

/* Types of the elements of matrices, in forms that have a choice. */
enum model_dir_type { MODEL_DIR_F32, MODEL_DIR_F16, MODEL_DIR_BF16, MODEL_DIR_Q8_0 };

struct model_dir_form {
    enum model_dir_kind kind;
    int64_t step; /* step in MODEL_DIR_SCRIPT, MODEL_DIR_DEEPSPEED and MODEL_DIR_MEGATRON */
    enum model_dir_type type;
    /* ranks of tensor parallelism, and stages of a pipeline, in MODEL_DIR_MEGATRON; 0: 1 */
    int64_t n_ranks, n_stages;
};

/* Contents of a save; everything is borrowed for the call. */
struct model_dir_contents {
    const struct model_family *family;
    enum model_task task;
    const struct param_table *params; /* parameters of the task */
    tensor master;                    /* [params->n_elements] host, fp32; null with `weights` */
    /* read instead of `master`, a parameter at a time, by forms for which model_dir_form_streams is true;
     * NULL: `master` is read */
    const struct weight_source *weights;
    const void *config; /* configuration of the family */
    const struct tokenizer *tokenizer;
    uint64_t max_shard_bytes; /* most bytes of tensors in one file; 0: MODEL_DIR_SHARD_BYTES */
    struct model_dir_form form;
    /* state of a run, in forms that can have it; NULL: the weights alone */
    const struct model_progress *progress;
};

#define MODEL_DIR_SHARD_BYTES 5000000000U /* the default of `transformers` before its version 5 */

/* More bytes than a save appends to the directory's path: its temporary name, and the names in it. */
enum { MODEL_DIR_LONGEST_SUFFIX = 64 };

/* Whether a save in this form needs no more than one tensor of the weights in memory; others need all. */
bool model_dir_form_streams(struct model_dir_form form);

/* Whether a form has rows for the pieces of a tokenizer alone.  The writer drops the others first:
 * model_dir_drop_rows makes them no part of the model that is read. */
bool model_dir_form_drops_rows(struct model_dir_form form);
void model_dir_drop_rows(struct model_dir *m);

/* Whether model_dir_save could write there, as far as can be checked without writing: STATUS_USAGE if the
 * directory holds anything but a model of this form, is the current one or the top of a file system, or is
 * not a directory; STATUS_IO if it cannot be replaced. */
struct status model_dir_check_place(const char *path, struct model_dir_form form);

/* Checks as model_dir_check_place does, with a trial write (file_check_output_directory), before the work. */
struct status model_dir_check_output(const char *path, struct model_dir_form form, uint64_t bytes_wanted);

/* Writes the directory under another name and renames it, so it is there completely or not at all.  It
 * replaces a directory that holds nothing but such a model (io/temporary.h); a link to a directory stays. */
struct status model_dir_save(const char *path, const struct model_dir_contents *c);

/* Saves as model_dir_save does the weights in the directory `from`, such as a checkpoint, of which one
 * parameter at a time is in memory: c has neither params nor weights. */
struct status model_dir_save_of(const char *path, const char *from, const struct model_dir_contents *c);

/* Reads the weights of what was saved there and compares them with c->master, bit by bit: STATUS_IO names the
 * first that differs. */
struct status model_dir_verify(const char *path, const struct model_dir_contents *c);

/* The path by which commands name what was saved there: the directory, or the file of the weights in it. */
struct status model_dir_written_path(char out[MODEL_DIR_PATH_BYTES], const char *path,
                                     struct model_dir_form form);

#endif
