/* squad_cache: a file of features, so that a second run need not compute them.
 *
 * The rule: a cache is used only if it was made from the same bytes of data and vocabulary, with the same
 * settings, and is whole; else the caller computes the features again.  Layout: key, counts, the arrays of
 * squad_features in the order of their declaration, CRC-32C; numbers are in this host's byte order, so a
 * cache of another byte order counts as stale. */
#ifndef KILN_DATA_SQUAD_CACHE_H
#define KILN_DATA_SQUAD_CACHE_H

#include "data/squad_features.h"

/* Everything that features depend on. */
struct squad_cache_key {
    uint64_t file_hash, vocab_hash; /* FNV-1a */
    struct squad_feature_options options;
    bool lower_case, version_2;
};

/* Hashes the data file.  STATUS_DATA if it cannot be read. */
struct status squad_cache_key_init(struct squad_cache_key *key, const char *data_file,
                                   const struct tokenizer *tokenizer, struct squad_feature_options options,
                                   bool version_2);

/* Appends run_squad.py's name for it: `<data_file>_<model>_<seq>_<stride>_<query>`, in cache_dir if that is
 * not NULL. */
void squad_cache_name(struct buf *out, const char *data_file, const char *cache_dir, const char *model,
                      const struct squad_feature_options *options);

/* Reads features.  STATUS_DATA if it cannot be used: missing, made from something else, or damaged. */
struct status squad_cache_read(struct squad_features *f, const char *path, const struct squad_cache_key *key);

/* Writes features to `path`, whole or not at all. */
struct status squad_cache_write(const char *path, const struct squad_features *f,
                                const struct squad_cache_key *key);

#endif
