/* checkpoint_manifest: the list of a checkpoint's files with their sizes and checksums.
 *
 * manifest.json is JSON whose last line is a CRC-32C over everything before it; that line is compared byte
 * for byte, so the manifest is protected to its last byte and in its length.  The list is open: any number of
 * files, whose names cannot lead out of the directory.  A file of tensors describes its own contents
 * (io/tensor_set.h). */
#ifndef KILN_MODEL_CHECKPOINT_MANIFEST_H
#define KILN_MODEL_CHECKPOINT_MANIFEST_H

#include "io/file.h"

/* 1: the files that every checkpoint has; 2: cublaslt.cache too; 3: fp8.safetensors, with or without
 * cublaslt.cache; 4: any list.  A manifest has the first version that allows its files, so that earlier
 * builds read what they can. */
enum { CHECKPOINT_FORMAT_VERSION = 4 };

enum { CHECKPOINT_NAME_BYTES = 64, CHECKPOINT_MAX_FILES = 4096 };

/* Files that every checkpoint has, besides the sets of tensors (checkpoint_manifest_is_of_set) and the
 * vocabulary. */
#define CHECKPOINT_CONFIG    "config.json"           /* the model's configuration, Hugging Face keys */
#define CHECKPOINT_TOKENIZER "tokenizer_config.json" /* how text is split into pieces of the vocabulary */
#define CHECKPOINT_STATE     "trainer_state.json"    /* the state of training */

/* Sets of tensors: SET.safetensors or, from several ranks, SET-00001-of-00004.safetensors and so on. */
#define CHECKPOINT_MODEL     "model"     /* master weights under Hugging Face names */
#define CHECKPOINT_OPTIMIZER "optimizer" /* exp_avg.NAME, then exp_avg_sq.NAME */

struct checkpoint_listed {
    char name[CHECKPOINT_NAME_BYTES];
    uint64_t bytes;
    uint32_t crc; /* CRC-32C */
};

struct checkpoint_manifest {
    int64_t step;
    bool phase_end;                  /* the last checkpoint of a phase: never pruned */
    uint64_t vocab_hash;             /* hash of the vocabulary, as the trainer computes it */
    struct checkpoint_listed *files; /* [n] */
    int n;
};

/* Safe on a zeroed struct. */
void checkpoint_manifest_fini(struct checkpoint_manifest *m);

/* Whether a checkpoint may hold a file of this name: letters, digits, '.', '_' and '-', no '.' first, shorter
 * than CHECKPOINT_NAME_BYTES, and neither the manifest's own nor that of run.json. */
bool checkpoint_manifest_is_name(const char *name);

/* Adds a file to the list.  STATUS_USAGE: a name that is not allowed, or listed already; STATUS_MEMORY. */
struct status checkpoint_manifest_add(struct checkpoint_manifest *m, const struct checkpoint_listed *file);

/* The file of this name; NULL if it is not listed. */
const struct checkpoint_listed *checkpoint_manifest_find(const struct checkpoint_manifest *m,
                                                         const char *name);

/* The name of part `part` (from 0) of `n_parts` of a set of tensors; with one part, of its only file. */
void checkpoint_manifest_part_name(char name[CHECKPOINT_NAME_BYTES], const char *set, int part, int n_parts);

/* Whether a file belongs to a set of tensors, and which part of how many it is: 0 of 1 for an only file. */
bool checkpoint_manifest_is_of_set(const char *name, const char *set, int *part, int *n_parts);

/* Writes manifest.json; equal manifests give equal bytes. */
struct status checkpoint_manifest_write(const struct checkpoint_manifest *m, const char *path);

/* STATUS_DATA if the bytes are not exactly what checkpoint_manifest_write wrote, or if a file that every
 * checkpoint has is missing; `source` is the path for messages. */
struct status checkpoint_manifest_parse(struct checkpoint_manifest *m, const void *bytes, size_t n,
                                        const char *source);

/* Reads a manifest.  STATUS_IO; STATUS_DATA: it is not one. */
struct status checkpoint_manifest_read(struct checkpoint_manifest *m, const char *path);

/* STATUS_DATA unless the file has the listed size and checksum; `path` is for messages. */
struct status checkpoint_manifest_check(const struct checkpoint_listed *listed, const struct file_map *map,
                                        const char *path);

#endif
