/* checkpoint_manifest: the list of a checkpoint's files with their sizes and checksums.
 *
 * manifest.json is JSON whose last line is a CRC-32C over everything before it; that line is compared byte
 * for byte, so the manifest is protected to its last byte and in its length.  The set of files is closed: a
 * manifest cannot name a path. */
#ifndef KILN_MODEL_CHECKPOINT_MANIFEST_H
#define KILN_MODEL_CHECKPOINT_MANIFEST_H

#include "io/file.h"

/* 1 with the files that each checkpoint has; 2 with the choices of a device too, which only GPUs make; 3 with histories of
 * fp8, and choices or none. */
enum { CHECKPOINT_FORMAT_VERSION = 3 };

enum checkpoint_file {
    CHECKPOINT_MODEL,     /* model.safetensors: master weights under Hugging Face names */
    CHECKPOINT_OPTIMIZER, /* optimizer.safetensors: exp_avg.NAME, then exp_avg_sq.NAME */
    CHECKPOINT_CONFIG,    /* config.json: the model's configuration, Hugging Face keys */
    CHECKPOINT_VOCAB,     /* vocab.txt */
    CHECKPOINT_TOKENIZER, /* tokenizer_config.json: how text becomes pieces of the vocabulary */
    CHECKPOINT_STATE,     /* trainer_state.json: where training stands */
    CHECKPOINT_CHOICES, /* cublaslt.cache: what the run computes with on a GPU; of no bytes: there is no such file */
    CHECKPOINT_FP8, /* fp8.safetensors: histories of factors in fp8; the same */
    CHECKPOINT_N_FILES,
};

struct checkpoint_manifest {
    int64_t step;
    bool phase_end;      /* the last checkpoint of a phase: never pruned */
    uint64_t vocab_hash; /* of the vocabulary, as the trainer computes it */
    struct {
        uint64_t bytes;
        uint32_t crc; /* CRC-32C */
    } files[CHECKPOINT_N_FILES];
};

const char *checkpoint_manifest_file_name(enum checkpoint_file file);

/* Whether a checkpoint has the file: each has all but the choices of a device and histories of fp8. */
bool checkpoint_manifest_has(const struct checkpoint_manifest *m, enum checkpoint_file file);

/* Writes manifest.json; equal manifests give equal bytes. */
struct status checkpoint_manifest_write(const struct checkpoint_manifest *m, const char *path);

/* STATUS_DATA if the bytes are not exactly what checkpoint_manifest_write wrote; `source` names them. */
struct status checkpoint_manifest_parse(struct checkpoint_manifest *m, const void *bytes, size_t n,
                                        const char *source);

struct status checkpoint_manifest_read(struct checkpoint_manifest *m, const char *path);

/* STATUS_DATA unless the file has the listed size and checksum; `path` names it. */
struct status checkpoint_manifest_check(const struct checkpoint_manifest *m, enum checkpoint_file file,
                                        const struct file_map *map, const char *path);

#endif
