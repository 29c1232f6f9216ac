#define _GNU_SOURCE /* strtok_r, strdup */
#include "cmd/prepare_lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool prepare_word_next(struct prepare_word *word, const char **rest)
{
    if (*rest == NULL) {
        return false;
    }
    *word = (struct prepare_word){*rest, strcspn(*rest, ",")};
    *rest = word->text[word->n] == ',' ? word->text + word->n + 1 : NULL;
    return true;
}

static bool is_word(struct prepare_word word, const char *text)
{
    return strlen(text) == word.n && memcmp(word.text, text, word.n) == 0;
}

struct status prepare_formats_parse(struct prepare_formats *f, const char *list, bool packed)
{
    struct prepare_word word;
    *f = (struct prepare_formats){0};
    for (const char *rest = list; prepare_word_next(&word, &rest);) {
        bool *wanted = is_word(word, "store")             ? &f->store
                       : is_word(word, "hdf5") && !packed ? &f->hdf5
                       : is_word(word, "hdf5")            ? &f->packed
                       : is_word(word, "packed")          ? &f->packed
                       : is_word(word, "text")            ? &f->text
                                                          : NULL;
        FAIL_IF(wanted == NULL, STATUS_USAGE,
                "--format has '%.*s', but must be a list of store, hdf5, packed and text", (int)word.n,
                word.text);
        *wanted = true;
    }
    return status_ok();
}

static struct status parse_number(int64_t *value, struct prepare_word word, const char *flag, int64_t least)
{
    enum { MOST = 65536 };
    char text[24] = "", *end = text;
    memcpy(text, word.text, word.n < sizeof text ? word.n : 0);
    *value = strtoll(text, &end, 10);
    FAIL_IF(end == text || *end != '\0', STATUS_USAGE,
            "--%s needs a whole number, or a list of them, not '%.*s'", flag, (int)word.n, word.text);
    return *value >= least && *value <= MOST
               ? status_ok()
               : status_error(STATUS_USAGE, "--%s is %s, but must lie between %lld and %d", flag, text,
                              (long long)least, MOST);
}

struct status prepare_phases_parse(struct prepare_phase phases[PREPARE_MOST_PHASES], int *n,
                                   const char *lengths, const char *predictions)
{
    enum { LEAST_LENGTH = 5 }; /* [CLS] a [SEP] b [SEP] */
    struct prepare_word length, prediction;
    *n = 0;
    while (prepare_word_next(&length, &lengths)) {
        FAIL_IF(*n == PREPARE_MOST_PHASES, STATUS_USAGE,
                "--max_seq_length has more numbers than the limit of %d", PREPARE_MOST_PHASES);
        FAIL_IF(!prepare_word_next(&prediction, &predictions), STATUS_USAGE,
                "--max_predictions_per_seq has fewer numbers than --max_seq_length");
        TRY(parse_number(&phases[*n].max_seq_length, length, "max_seq_length", LEAST_LENGTH));
        TRY(parse_number(&phases[*n].max_predictions_per_seq, prediction, "max_predictions_per_seq", 1));
        for (int i = 0; i < *n; i++) {
            FAIL_IF(phases[i].max_seq_length == phases[*n].max_seq_length &&
                        phases[i].max_predictions_per_seq == phases[*n].max_predictions_per_seq,
                    STATUS_USAGE, "--max_seq_length and --max_predictions_per_seq name a phase twice");
        }
        (*n)++;
    }
    return predictions == NULL
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--max_predictions_per_seq has more numbers than --max_seq_length");
}
