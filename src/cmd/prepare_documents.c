#define _GNU_SOURCE /* strtok_r, strdup */
#include "cmd/prepare_documents.h"

#include "core/log.h"
#include "corpus/document_store.h"
#include "task/prepare_plan.h"
#include "text/special_tokens.h"
#include "text/tokenizer_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

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
        TRY(parse_number(&phases[*n].length, length, "max_seq_length", LEAST_LENGTH));
        TRY(parse_number(&phases[*n].n_predictions, prediction, "max_predictions_per_seq", 1));
        for (int i = 0; i < *n; i++) {
            FAIL_IF(phases[i].length == phases[*n].length &&
                        phases[i].n_predictions == phases[*n].n_predictions,
                    STATUS_USAGE, "--max_seq_length and --max_predictions_per_seq name a phase twice");
        }
        (*n)++;
    }
    return predictions == NULL
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--max_predictions_per_seq has more numbers than --max_seq_length");
}

/* ---- documents ---- */

const char prepare_documents_flags[] =
    "merge_file|tokenizer_type|json_keys|output_prefix|dataset_impl|append_eod|"
    "max_bad_lines|merge|shuffle_documents|shuffle_memory_mb|eod_token|no_parse_special_tokens";

static bool is_name(struct prepare_word word)
{
    return word.n > 0 && word.n < PREPARE_KEY_BYTES && memchr(word.text, '/', word.n) == NULL &&
           memchr(word.text, '"', word.n) == NULL && memchr(word.text, '\\', word.n) == NULL;
}

struct status prepare_keys_parse(struct prepare_keys *k, const char *flag, const char *list)
{
    struct prepare_word word;
    k->n = 0;
    for (const char *rest = list; prepare_word_next(&word, &rest); k->n++) {
        FAIL_IF(k->n == SOURCE_MOST_KEYS || !is_name(word), STATUS_USAGE,
                "--%s is '%.60s', but must be a list of at most %d names of up to %d bytes without a slash",
                flag, list, SOURCE_MOST_KEYS, PREPARE_KEY_BYTES - 1);
        snprintf(k->texts[k->n], PREPARE_KEY_BYTES, "%.*s", (int)word.n, word.text);
        k->list[k->n] = k->texts[k->n];
        for (int i = 0; i < k->n; i++) {
            FAIL_IF(strcmp(k->list[i], k->list[k->n]) == 0, STATUS_USAGE, "--%s names '%s' twice", flag,
                    k->list[i]);
        }
    }
    return status_ok();
}

static struct status open_tokenizer(struct tokenizer *t, const struct vocab_flags *vocabulary,
                                    const struct prepare_documents_args *a)
{
    FAIL_IF(
        vocabulary->vocab_file == NULL, STATUS_USAGE,
        "kiln prepare needs --vocab_file FILE: vocab.json with --merge_file merges.txt, or tokenizer.json");
    TRY(tokenizer_open_flags(t, vocabulary));
    t->parses_special &=
        !a->no_parse_special_tokens && strcmp(a->tokenizer_type, DOCUMENT_STORE_PLAIN_ONE) != 0;
    struct status s =
        a->eod_token == NULL ? status_ok() : special_tokens_set_end(t, a->eod_token, "eod_token");
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

void prepare_put_vocabulary(json_t *settings, const struct tokenizer *t)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, t->hash);
    json_object_set_new(settings, "vocabulary", json_string(hash));
}

static struct status write_stores(const struct prepare_documents_args *a, struct document_store_config *c,
                                  struct pass_report *report)
{
    c->max_bad_lines = a->max_bad_lines;
    c->append_end = a->append_eod;
    c->output_prefix = a->output_prefix;
    TRY(document_store_write(report, c));
    if (!c->common.dry_run) {
        prepare_report_text(&report->read, report->total_bytes);
        prepare_report_sources(report->sources);
    }
    if (c->check) {
        log_info("all of the text was read; nothing was written");
    }
    return status_ok();
}

static struct status check_place(const struct prepare_documents_args *a,
                                 const struct document_store_config *c)
{
    FAIL_IF(a->output_prefix == NULL && c->common.output_dir == NULL && !c->check, STATUS_USAGE,
            "kiln prepare --format " DOCUMENT_STORE_FORMAT
            " needs --output_prefix PATH, with which the names of its files begin, or --output_dir DIR");
    FAIL_IF(a->output_prefix != NULL && c->common.output_dir != NULL, STATUS_USAGE,
            "give --output_prefix or --output_dir, not both: the second makes DIR/train and DIR/heldout");
    return status_ok();
}

struct status prepare_documents(const struct prepare_documents_args *a, const struct vocab_flags *vocabulary,
                                const char *keys_list, struct document_store_config *c,
                                struct pass_report *report)
{
    struct prepare_keys keys;
    struct tokenizer t = {0};
    TRY(check_place(a, c));
    c->shuffle = (struct document_shuffle_config){.seed = a->shuffle_documents,
                                                  .memory_bytes = (uint64_t)a->shuffle_memory_mb << 20};
    FAIL_IF(a->merge && (a->append_eod || a->max_bad_lines > 0 || c->resume || c->check ||
                         c->common.output_dir != NULL),
            STATUS_USAGE, "--%s cannot be combined with --merge, whose inputs are stores of tokens",
            a->append_eod          ? "append_eod"
            : a->max_bad_lines > 0 ? "max_bad_lines"
            : c->resume            ? "resume"
            : c->check             ? "check"
                                   : "output_dir");
    if (a->merge) {
        return document_merge(a->output_prefix, c->inputs, c->n_inputs, c->shuffle, c->overwrite,
                              c->common.dry_run);
    }
    TRY(prepare_keys_parse(&keys, "json_keys", keys_list));
    FAIL_IF(keys.n > 1 && c->common.output_dir != NULL, STATUS_USAGE,
            "--output_dir has one store to train on: give one key, or --output_prefix");
    c->source.json_keys = keys.list;
    c->source.n_json_keys = keys.n;
    if (c->check && vocabulary->vocab_file == NULL) {
        return write_stores(a, c, report);
    }
    TRY(open_tokenizer(&t, vocabulary, a));
    c->tokenizer = &t;
    prepare_put_vocabulary(c->settings, &t);
    struct status s = write_stores(a, c, report);
    tokenizer_fini(&t);
    return s;
}
