/* option_value: values of options, from words into the arguments of a command.  Only the files of option.h
 * use it. */
#ifndef KILN_CORE_OPTION_VALUE_H
#define KILN_CORE_OPTION_VALUE_H

#include "core/option.h"

/* Whether a value follows the flag: a bare flag is a switch. */
bool option_takes_value(const struct option *o);

/* Whether the text is one of the choices, "a|b|c". */
bool option_is_choice(const char *choices, const char *text);

/* Whether any word is a value of an OPTION_BOOL. */
bool option_takes_any(const struct option *o);

/* The value of a word that is one; false if it is none. */
bool option_find_bool(const char *text, bool *value);

/* Parses and checks the text, and stores it in the field of the option.  STATUS_USAGE, or STATUS_UNAVAILABLE
 * for a flag that kiln does not have yet. */
struct status option_store(const struct option *o, const char *text, void *args);

/* Appends a word to those of an OPTION_WORDS.  STATUS_USAGE: there are too many. */
struct status option_add_word(const struct option *o, const char *text, struct option_words *words);

#endif
