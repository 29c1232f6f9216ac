/* tokenize: `kiln tokenize` makes lines of ids of lines of text. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "corpus/not_text.h"
#include "text/tokenizer_open.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokenize_args {
    struct vocab_flags vocabulary;
    const char *model;
    bool parse_special_tokens, no_parse_special_tokens, decode, json;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_STRING_ROW(
        "vocab_file", offsetof(struct tokenize_args, vocabulary.vocab_file), NULL, "FILE",
        "vocab.txt of WordPiece, tokenizer.json of a byte-level BPE, or vocab.json with merges.txt"),
    OPTION_STRING_ROW("model", offsetof(struct tokenize_args, model), NULL, "DIR",
                      "use the tokenizer of this model directory or GGUF file, instead of --vocab_file"),
    OPTION_FLAG_ROW("decode", offsetof(struct tokenize_args, decode),
                    "turn lines of ids, with spaces between them, back into lines of text"),
    OPTION_FLAG_ROW("json", offsetof(struct tokenize_args, json),
                    "print a JSON object for each text: ids, tokens, and their offsets in characters"),
    OPTION_STRING_ROW(
        "merge_file", offsetof(struct tokenize_args, vocabulary.merge_file), NULL, "FILE",
        "merges.txt of a byte-level BPE, whose --vocab_file is vocab.json; default: the one beside it"),
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

/* The state that all texts of a command share. */
struct tokenizing {
    const struct tokenize_args *args;
    struct tokenizer_scratch scratch;
    struct id_list ids;
    struct token_list tokens;
    struct buf out;
};

/* Writes the text of ids; `place` says where they stand. */
static struct status decode_ids(struct tokenizing *z, const char *line, const char *place)
{
    const struct tokenizer *t = z->scratch.tokenizer;
    char *end;
    for (const char *at = line; *(at += strspn(at, " \t\r")) != '\0'; at = end) {
        errno = 0;
        long long id = strtoll(at, &end, 10);
        FAIL_IF(end == at || strchr(" \t\r", *end) == NULL || errno != 0 || id < 0 || id >= t->n, STATUS_DATA,
                "%s: '%.20s' is not an id from 0 to %d", place, at, t->n - 1);
        FAIL_IF(!id_list_append(&z->ids, (int32_t)id), STATUS_MEMORY, "out of memory for the ids of a line");
    }
    buf_clear(&z->out);
    TRY(tokenizer_decode_text(t, &z->out, z->ids.ids, z->ids.n));
    buf_putc(&z->out, '\n');
    TRY(buf_status(&z->out));
    return fwrite(z->out.data, 1, z->out.n, stdout) == z->out.n ? status_ok() : standard_streams_flush();
}

/* {"text", "ids", "tokens", "offsets"}, as an Encoding of Hugging Face's tokenizers names them. */
static struct status write_json(struct tokenizing *z, const char *text, size_t n)
{
    json_t *ids = json_array(), *tokens = json_array(), *offsets = json_array();
    z->tokens.n = 0;
    struct status s = tokenizer_encode(&z->scratch, &z->tokens, text, n);
    for (size_t i = 0; i < z->tokens.n && !failed(s); i++) {
        struct token k = z->tokens.tokens[i];
        size_t piece_bytes;
        const char *piece = tokenizer_piece(z->scratch.tokenizer, k.id, &piece_bytes);
        buf_clear(&z->out);
        buf_append(&z->out, piece, piece_bytes);
        s = buf_status(&z->out);
        json_array_append_new(ids, json_integer(k.id));
        json_array_append_new(tokens, json_text(failed(s) ? "" : buf_text(&z->out)));
        json_array_append_new(offsets,
                              json_pack("[I, I]", utf8_count(text, k.start), utf8_count(text, k.end)));
    }
    json_t *line =
        json_pack("{s:s%, s:o, s:o, s:o}", "text", text, n, "ids", ids, "tokens", tokens, "offsets", offsets);
    if (failed(s)) {
        json_decref(line);
        return s;
    }
    return standard_streams_put_json(line);
}

static struct status tokenize_text(struct tokenizing *z, const char *text, size_t n, const char *place)
{
    z->ids.n = 0;
    if (z->args->decode) {
        return decode_ids(z, text, place);
    }
    if (z->args->json) {
        return write_json(z, text, n);
    }
    TRY(tokenizer_encode_ids(&z->scratch, &z->ids, text, n));
    return write_ids(&z->out, &z->ids);
}

static struct status tokenize_lines(struct tokenizing *z)
{
    struct status s = status_ok();
    char *line = NULL, place[48];
    size_t line_bytes = 0;
    ssize_t n;
    int64_t n_lines = 0;
    while (!failed(s) && (n = getline(&line, &line_bytes, stdin)) >= 0) {
        const struct not_text *found = n_lines == 0 ? not_text_find(line, (size_t)n) : NULL;
        if (found != NULL && !found->is_readable) {
            s = not_text_refuse(found, "standard input", "");
            break;
        }
        n -= n > 0 && line[n - 1] == '\n';
        line[n] = '\0';
        s = standard_streams_check_line(line, (size_t)n, ++n_lines);
        snprintf(place, sizeof place, "standard input line %lld", (long long)n_lines);
        s = failed(s) ? s : tokenize_text(z, line, (size_t)n, place);
    }
    s = failed(s) ? s : standard_streams_check_input();
    free(line);
    return s;
}

static struct status tokenize_arguments(struct tokenizing *z, int n, const char *const *texts)
{
    char place[32];
    for (int i = 0; i < n; i++) {
        snprintf(place, sizeof place, "text %d", i + 1);
        TRY(standard_streams_check_argument(texts[i], i + 1));
        TRY(tokenize_text(z, texts[i], strlen(texts[i]), place));
    }
    return status_ok();
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
    const struct tokenize_args *a = args;
    struct tokenizer t;
    FAIL_IF(a->decode && a->json, STATUS_USAGE, "--json is for tokens of a text, and --decode makes text");
    TRY(open_tokenizer(&t, a));
    if (a->common.dry_run) {
        log_info("%s is valid: %d pieces, hash %016llx; would write %s ids of each line of standard input",
                 a->model != NULL ? a->model : a->vocabulary.vocab_file, t.n, (unsigned long long)t.hash,
                 a->vocabulary.do_lower_case ? "uncased" : "cased");
        tokenizer_fini(&t);
        return status_ok();
    }
    t.parses_special = (t.parses_special || a->parse_special_tokens) && !a->no_parse_special_tokens;
    struct tokenizing z = {.args = a};
    struct status s = tokenizer_scratch_init(&z.scratch, &t);
    if (!failed(s)) {
        s = n_positional > 0 ? tokenize_arguments(&z, n_positional, positional) : tokenize_lines(&z);
    }
    buf_fini(&z.out);
    id_list_fini(&z.ids);
    token_list_fini(&z.tokens);
    tokenizer_scratch_fini(&z.scratch);
    tokenizer_fini(&t);
    return s;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn lines of text into lines of token ids",
    .details =
        "Reads texts from the arguments, or lines from standard input, and writes the ids of each as a "
        "line, separated by spaces, without special tokens. Hugging Face's BertTokenizerFast, "
        "GPT2TokenizerFast and "
        "BloomTokenizerFast give the same ids. --decode is the way back. Text such as [SEP] is plain "
        "text, unless "
        "--parse_special_tokens is given. A line that is not UTF-8 is an error.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct tokenize_args),
    .run = run,
};
