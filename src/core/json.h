/* json: jansson (https://jansson.readthedocs.io) with kiln's errors: duplicate keys are rejected, and every
 * message names the file, the key, what was found and what was wanted. */
#ifndef KILN_CORE_JSON_H
#define KILN_CORE_JSON_H

#include "core/buf.h"
#include "core/status.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Parses `n` bytes, after a byte order mark if they begin with one; `source` names them in messages.  The
 * caller json_decref's the result. */
struct status json_parse(json_t **root, const char *text, size_t n, const char *source);

/* Parses a file with numbers that no integer type holds, such as 1e30 in digits: all of them are real. */
struct status json_parse_real(json_t **root, const char *text, size_t n, const char *source);

/* Parses text that people wrote, where a string may hold escapes that are no characters: U+0000 and half of a
 * surrogate pair are read as U+FFFD, which tokenizers leave out. */
struct status json_parse_text(json_t **root, const char *text, size_t n, const char *source);

/* Reads and parses a file of at most 256 MiB whose top is an object. */
struct status json_read_object(json_t **root, const char *path);

/* Values of an object.  An absent key leaves *value alone when `required` is false; a wrong type is always an
 * error. Strings are borrowed from the object. */
struct status json_get_int(const json_t *object, const char *source, const char *key, bool required,
                           int64_t *value);
struct status json_get_real(const json_t *object, const char *source, const char *key, bool required,
                            double *value);
struct status json_get_bool(const json_t *object, const char *source, const char *key, bool required,
                            bool *value);
struct status json_get_string(const json_t *object, const char *source, const char *key, bool required,
                              const char **value);

/* A value of an object, and its place in a struct that holds it: an int64_t, a double, a bool, or a string
 * that may be NULL. */
struct json_field {
    const char *key;
    enum json_field_kind { JSON_FIELD_INT, JSON_FIELD_REAL, JSON_FIELD_BOOL, JSON_FIELD_TEXT } kind;
    size_t offset;
};

/* Reads it, as the functions above do. */
struct status json_field_get(void *to, const struct json_field *f, const json_t *object, const char *source,
                             bool required);

/* The value as a number, 1 for a string that is there; as JSON; and for people, in so many digits. */
double json_field_number(const void *from, const struct json_field *f);
json_t *json_field_value(const void *from, const struct json_field *f);
struct json_field_text {
    char text[160];
};
struct json_field_text json_field_text(const void *from, const struct json_field *f, int digits);

/* A string of arbitrary bytes (a path, a message about one).  Bytes that are not UTF-8 become \xNN; a
 * backslash is then escaped too, so that the bytes can be recovered.  NULL if memory runs out. */
json_t *json_text(const char *text);

/* A real number; null where it is infinite or none, which JSON lacks. */
json_t *json_finite(double number);

/* Appends the text in one line, with so many digits of real numbers (0: all), and a newline, and takes
 * ownership of it.  NULL means that memory ran out: STATUS_MEMORY. */
struct status json_append_line(struct buf *b, json_t *root, unsigned digits);

/* Text with two-space indentation, in the order of insertion, ending in a newline; free() it.  NULL if memory
 * runs out. */
char *json_to_text(const json_t *root);

#endif
