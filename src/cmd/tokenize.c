/* tokenize: `kiln tokenize` makes lines of ids of lines of text. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "corpus/not_text.h"
#include "text/tokenizer_open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokenize_args {
    struct vocab_flags vocabulary;
    const char *model;
    bool parse_special_tokens, no_parse_special_tokens, decode;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_STRING_ROW(
        "vocab_file", offsetof(struct tokenize_args, vocabulary.vocab_file), NULL, "FILE",
        "vocab.txt of WordPiece, tokenizer.json of a byte-level BPE, or vocab.json with --merge_file"),
    OPTION_STRING_ROW("model", offsetof(struct tokenize_args, model), NULL, "DIR",
                      "use the tokenizer of this model directory, instead of --vocab_file"),
    OPTION_FLAG_ROW("decode", offsetof(struct tokenize_args, decode),
                    "turn lines of ids, with spaces between them, back into lines of text"),
    OPTION_STRING_ROW("merge_file", offsetof(struct tokenize_args, vocabulary.merge_file), NULL, "FILE",
                      "merges.txt of a byte-level BPE, whose --vocab_file is vocab.json"),
    OPTION_FLAG_ROW("do_lower_case", offsetof(struct tokenize_args, vocabulary.do_lower_case),
                    "lower-case text and strip accents, for the vocabulary of an uncased model"),
    OPTION_FLAG_ROW(
        "parse_special_tokens", offsetof(struct tokenize_args, parse_special_tokens),
        "read \"[SEP]\" and the like in a text as special tokens, as a byte-level BPE does anyway; WordPiece "
        "reads them as text by default"),
    NO_PARSE_SPECIAL_ROW(offsetof(struct tokenize_args, no_parse_special_tokens)),
    DRY_RUN_ROW(offsetof(struct tokenize_args, common.dry_run),
                "check the vocabulary, print what would be done, and read no text"),
    {0},
};

enum { ID_MAX_CHARS = 11 }; /* ten digits and a space */

/* Writes the digits of an id by hand and returns the end: printf would take most of the time. */
static char *put_id(char *to, int32_t id)
{
    char digits[ID_MAX_CHARS];
    int n = 0;
    do {
        digits[n++] = (char)('0' + id % 10);
        id /= 10;
    } while (id > 0);
    while (n > 0) {
        *to++ = digits[--n];
    }
    return to;
}

static struct status write_ids(struct buf *line, const struct id_list *ids)
{
    buf_clear(line);
    char *start = buf_extend(line, ids->n * ID_MAX_CHARS + 1);
    TRY(buf_status(line));
    char *to = start;
    for (size_t i = 0; i < ids->n; i++) {
        to = put_id(to, ids->ids[i]);
        *to++ = ' ';
    }
    to[ids->n > 0 ? -1 : 0] = '\n'; /* instead of the last space */
    size_t n = (size_t)(to - start) + (ids->n == 0);
    return fwrite(start, 1, n, stdout) == n ? status_ok() : standard_streams_flush();
}

/* Writes the text of a line of ids. */
static struct status decode_line(struct buf *text, struct id_list *ids, const struct tokenizer *t, char *line,
                                 int64_t number)
{
    for (char *at = line, *end; *(at += strspn(at, " \t\r")) != '\0'; at = end) {
        errno = 0;
        long long id = strtoll(at, &end, 10);
        FAIL_IF(end == at || strchr(" \t\r", *end) == NULL || errno != 0 || id < 0 || id >= t->n, STATUS_DATA,
                "standard input line %lld: '%.20s' is not an id from 0 to %d", (long long)number, at,
                t->n - 1);
        FAIL_IF(!id_list_append(ids, (int32_t)id), STATUS_MEMORY, "out of memory for the ids of a line");
    }
    buf_clear(text);
    TRY(tokenizer_decode(t, text, ids->ids, ids->n));
    buf_putc(text, '\n');
    TRY(buf_status(text));
    return fwrite(text->data, 1, text->n, stdout) == text->n ? status_ok() : standard_streams_flush();
}

/* Encodes lines, or decodes them. */
static struct status tokenize_lines(struct tokenizer_scratch *scratch, bool decode)
{
    struct status s = status_ok();
    struct id_list ids = {0};
    struct buf out = {0};
    char *line = NULL;
    size_t line_bytes = 0;
    ssize_t n;
    int64_t n_lines = 0;
    for (bool first = true; !failed(s) && (n = getline(&line, &line_bytes, stdin)) >= 0; first = false) {
        const struct not_text *found = first ? not_text_find(line, (size_t)n) : NULL;
        if (found != NULL && !found->is_readable) {
            s = not_text_refuse(found, "standard input", "");
            break;
        }
        n -= n > 0 && line[n - 1] == '\n';
        ids.n = 0;
        line[n] = '\0';
        s = standard_streams_check_line(line, (size_t)n, ++n_lines);
        if (!failed(s) && decode) {
            s = decode_line(&out, &ids, scratch->tokenizer, line, n_lines);
            continue;
        }
        s = failed(s) ? s : tokenizer_encode_ids(scratch, &ids, line, (size_t)n);
        s = failed(s) ? s : write_ids(&out, &ids);
    }
    s = failed(s) ? s : standard_streams_check_input();
    free(line);
    buf_fini(&out);
    id_list_fini(&ids);
    return s;
}

static struct status open_tokenizer(struct tokenizer *t, const struct tokenize_args *a)
{
    int64_t max_length;
    FAIL_IF((a->vocabulary.vocab_file == NULL) == (a->model == NULL), STATUS_USAGE,
            "kiln tokenize needs --vocab_file FILE, or --model DIR with the tokenizer");
    FAIL_IF(a->model != NULL && (a->vocabulary.merge_file != NULL || a->vocabulary.do_lower_case),
            STATUS_USAGE, "--%s belongs to --vocab_file: the files of --model say what the tokenizer is",
            a->vocabulary.do_lower_case ? "do_lower_case" : "merge_file");
    if (a->model != NULL) {
        return tokenizer_open_directory(t, &max_length, a->model);
    }
    return tokenizer_open_flags(t, &a->vocabulary);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct tokenize_args *a = args;
    struct tokenizer t;
    TRY(open_tokenizer(&t, a));
    if (a->common.dry_run) {
        log_info("%s is valid: %d pieces, hash %016llx; would write %s ids of each line of standard input",
                 a->model != NULL ? a->model : a->vocabulary.vocab_file, t.n, (unsigned long long)t.hash,
                 a->vocabulary.do_lower_case ? "uncased" : "cased");
        tokenizer_fini(&t);
        return status_ok();
    }
    t.parses_special = (t.parses_special || a->parse_special_tokens) && !a->no_parse_special_tokens;
    struct tokenizer_scratch scratch;
    struct status s = tokenizer_scratch_init(&scratch, &t);
    if (!failed(s)) {
        s = tokenize_lines(&scratch, a->decode);
    }
    tokenizer_scratch_fini(&scratch);
    tokenizer_fini(&t);
    return s;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn lines of text into lines of token ids",
    .details = "Reads lines of text from standard input and writes the ids of each as a line, separated by "
               "spaces, without special tokens. Hugging Face's BertTokenizerFast, GPT2TokenizerFast and "
               "BloomTokenizerFast give the same ids. --decode is the way back. Text such as [SEP] is plain "
               "text, unless "
               "--parse_special_tokens is given. A line that is not UTF-8 is an error.",
    .options = options,
    .args_bytes = sizeof(struct tokenize_args),
    .run = run,
};
