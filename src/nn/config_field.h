/* config_field: the numbers of a model's configuration as a table, a row a number, by which a family's
 * config.json is read, written and compared. */
#ifndef KILN_NN_CONFIG_FIELD_H
#define KILN_NN_CONFIG_FIELD_H

#include "core/json.h"

struct config_field {
    struct json_field at;
    const char *other; /* another key, which published files have; NULL: none */
    double min, max;   /* limits of the value */
    bool architecture; /* two models that differ here are two networks: they cannot share weights */
};

/* Reads the numbers that a file has, the others keep their values; null counts as absent, or with `strict`
 * for flags only.  STATUS_DATA names a value of another type or beyond its limits. */
struct status config_fields_parse(void *config, const struct config_field *rows, int n, bool strict,
                                  const json_t *object, const char *source);

/* Adds the numbers, except flags that are off, which other programs' files do not have; false if memory runs
 * out. */
bool config_fields_put(json_t *object, const void *config, const struct config_field *rows, int n);

/* STATUS_DATA names the first number in which two architectures differ. */
struct status config_fields_same(const void *a, const void *b, const struct config_field *rows, int n);

/* A key with one value that kiln computes: another means another model. */
struct config_constant {
    const char *key, *wanted; /* the value as JSON */
    const char *why;
};

/* STATUS_DATA names the first key with another value; null counts as absent. */
struct status config_constants_check(const struct config_constant *rows, int n, const json_t *object,
                                     const char *source);

#endif
