#include "text/tokenizer_open.h"

#include "core/log.h"
#include "text/bpe_tokenizer.h"
#include "text/chat_template.h"
#include "text/gguf_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

#include <string.h>

static const struct tokenizer_kind *const kinds[] = {&wordpiece_tokenizer_kind, &sentencepiece_tokenizer_kind,
                                                     &bpe_tokenizer_kind};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static struct status too_long(const char *path)
{
    return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", path, FILE_PATH_BYTES - 1);
}

/* The kind of a tokenizer.json that holds all that the kind needs; NULL: none. */
static const struct tokenizer_kind *kind_of_json(const json_t *root)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        if (kinds[i]->is_json != NULL && kinds[i]->is_json(root)) {
            return kinds[i];
        }
    }
    return NULL;
}

/* The kind whose file has the name of this path; NULL: none. */
static const struct tokenizer_kind *kind_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (kinds[i]->file_name != NULL && strcmp(kinds[i]->file_name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

struct status tokenizer_open_json(struct tokenizer *t, struct added_tokens *added, bool *found,
                                  const json_t *root, const char *text, size_t n, const char *source)
{
    const struct tokenizer_kind *kind = kind_of_json(root);
    *found = kind != NULL;
    if (kind == NULL) {
        return status_ok();
    }
    TRY(kind->open_json(t, added, root, text, n, source));
    struct status s = input_frame_parse(&t->frame, json_object_get(root, "post_processor"), source);
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

/* Opens tokenizer.json if it is of a kind that it describes alone; else *found is false. */
static struct status open_json(struct tokenizer *t, struct added_tokens *added, bool *found, const char *path)
{
    struct file_map map;
    json_t *root;
    TRY(file_map_open(&map, path));
    const char *text = map.n == 0 ? "" : (const char *)map.data;
    struct status s = json_parse(&root, text, map.n, path);
    if (!failed(s)) {
        s = tokenizer_open_json(t, added, found, root, text, map.n, path);
        json_decref(root);
    }
    file_map_close(&map);
    return s;
}

/* Opens a file that is a kind's vocabulary alone. */
static struct status open_kind(struct tokenizer *t, const struct tokenizer_kind *kind, const char *path)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status s = kind->open_bytes(t, map.data, map.n, path);
    file_map_close(&map);
    return s;
}

/* Whether a file of a vocabulary is JSON: no vocab.txt begins so and has a line for [UNK] too. */
static struct status is_json(bool *json, const char *path)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    size_t blanks = utf8_mark_bytes((const char *)map.data, map.n);
    while (blanks < map.n && strchr(" \t\r\n", map.data[blanks]) != NULL) {
        blanks++;
    }
    *json =
        blanks + 1 < map.n && map.data[blanks] == '{' && strchr(" \t\r\n\"", map.data[blanks + 1]) != NULL;
    file_map_close(&map);
    return status_ok();
}

static struct status open_file(struct tokenizer *t, struct added_tokens *added, const char *path,
                               bool lower_case)
{
    bool json, found;
    *t = (struct tokenizer){0};
    const struct tokenizer_kind *kind = kind_of_name(path);
    if (kind != NULL) {
        FAIL_IF(lower_case, STATUS_USAGE, "a %s tokenizer keeps the case of text; leave out --do_lower_case",
                kind->name);
        return open_kind(t, kind, path);
    }
    TRY(is_json(&json, path));
    if (!json) {
        return wordpiece_tokenizer_open(t, path, lower_case);
    }
    TRY(open_json(t, added, &found, path));
    FAIL_IF(!found, STATUS_DATA,
            "%s is JSON, but not a tokenizer.json that kiln reads alone, of byte-level BPE or SentencePiece; "
            "a vocab.json needs merges.txt "
            "beside it (--merge_file), and WordPiece needs vocab.txt",
            path);
    struct status s = tokenizer_set_lower_case(t, lower_case);
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

/* added_tokens.json, which says least of them, so what other files say counts. */
static struct status read_added_map(struct added_tokens *added, const char *path)
{
    json_t *ids;
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(json_read_object(&ids, path));
    struct status s = added_tokens_read_map(added, ids, path);
    json_decref(ids);
    return s;
}

static struct status find_file(char path[FILE_PATH_BYTES], bool *found, const char *directory,
                               const char *name)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/%s", directory, name);
    *found = n < FILE_PATH_BYTES && file_exists(path);
    return n < FILE_PATH_BYTES ? status_ok() : too_long(path);
}

struct status tokenizer_open_find(char path[FILE_PATH_BYTES], bool *found, const char *directory)
{
    return find_file(path, found, directory, "vocab.txt");
}

/* Overwrites what tokenizer_config.json says. */
static struct status read_config(struct tokenizer_config *c, const char *path, enum tokenizer_classes allowed)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status s =
        tokenizer_config_parse(c, map.n == 0 ? "" : (const char *)map.data, map.n, allowed, path);
    file_map_close(&map);
    return s;
}

/* Completes the tokenizer of a vocabulary file with the settings and tokens of the files next to it; or ends
 * it.  A vocab.txt may have only its special tokens from there, where the caller knows the letter case. */
static struct status complete_beside(struct tokenizer *t, struct added_tokens *added, const char *vocabulary,
                                     bool all)
{
    char folder[FILE_PATH_BYTES], path[FILE_PATH_BYTES];
    struct tokenizer_config c = tokenizer_config_defaults();
    bool exists;
    c.added = added;
    c.adds_space = t->adds_space;
    struct status s = status_ok();
    file_parent(folder, vocabulary);
    if (all) {
        s = find_file(path, &exists, folder, TOKENIZER_CONFIG_NAME);
        s = failed(s) || !exists ? s : read_config(&c, path, TOKENIZER_CLASS_ANY);
        s = failed(s) ? s : find_file(path, &exists, folder, "added_tokens.json");
        s = failed(s) ? s : read_added_map(added, path);
        s = failed(s) ? s : tokenizer_set_lower_case(t, c.lower_case && t->kind->has_letter_case);
    }
    if (!failed(s)) {
        tokenizer_take_added(t, added);
        s = special_tokens_find(t, folder);
        s = failed(s) ? s : chat_template_find(t, folder);
    }
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

/* A GGUF file has the settings too. */
static struct status open_gguf(struct tokenizer *t, const char *path, bool lower_case)
{
    TRY(gguf_tokenizer_open(t, path));
    struct status s = tokenizer_set_lower_case(t, lower_case);
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

struct status tokenizer_open_vocabulary(struct tokenizer *t, const char *path, bool lower_case)
{
    struct added_tokens added = {0};
    if (gguf_file_is_at(path)) {
        return open_gguf(t, path, lower_case);
    }
    struct status s = open_file(t, &added, path, lower_case);
    s = failed(s) ? s : complete_beside(t, &added, path, t->kind->decodes_bytes);
    added_tokens_fini(&added);
    return s;
}

struct status tokenizer_open_merges(struct tokenizer *t, const char *vocab_path, const char *merges_path)
{
    struct added_tokens added = {0};
    TRY(bpe_tokenizer_open(t, vocab_path, merges_path));
    struct status s = complete_beside(t, &added, vocab_path, true);
    added_tokens_fini(&added);
    return s;
}

/* Finds merges.txt next to a file that is named vocab.json; "": there is none, or the file has another
 * name. */
static void find_merges(char merges[FILE_PATH_BYTES], const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    bool is_pieces = strcmp(name, "vocab.json") == 0;
    int n = snprintf(merges, FILE_PATH_BYTES, "%.*smerges.txt", (int)(name - path), path);
    if (!is_pieces || n >= FILE_PATH_BYTES || !file_exists(merges)) {
        merges[0] = '\0';
    }
}

struct status tokenizer_open_flags(struct tokenizer *t, const struct vocab_flags *f)
{
    char beside[FILE_PATH_BYTES];
    const char *merges = f->merge_file;
    if (merges == NULL) {
        find_merges(beside, f->vocab_file);
        merges = beside;
    }
    if (merges[0] == '\0') {
        return tokenizer_open_vocabulary(t, f->vocab_file, f->do_lower_case);
    }
    TRY(tokenizer_open_merges(t, f->vocab_file, merges));
    struct status s = tokenizer_set_lower_case(t, f->do_lower_case);
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

struct status tokenizer_open_beside(struct tokenizer *t, const char *path)
{
    char merges[FILE_PATH_BYTES];
    struct added_tokens added = {0};
    find_merges(merges, path);
    if (merges[0] != '\0') {
        return tokenizer_open_merges(t, path, merges);
    }
    if (gguf_file_is_at(path)) {
        return open_gguf(t, path, false);
    }
    struct status s = open_file(t, &added, path, false);
    s = failed(s) ? s : complete_beside(t, &added, path, true);
    added_tokens_fini(&added);
    return s;
}

/* Two files of a directory say which pieces there are; tokenizer.json may have some more at the end, which
 * were added.  Warns and returns false where they disagree. */
static bool has_same_pieces(const struct tokenizer *t, const char *pieces, const char *path)
{
    for (int32_t id = 0; t != NULL && id < t->n; id++) {
        size_t n, n_here = strcspn(pieces, "\n");
        const char *piece = tokenizer_piece(t, id, &n);
        if (*pieces == '\0' || n != n_here || memcmp(piece, pieces, n) != 0) {
            log_warning("%s and vocab.txt beside it disagree: id %d is '%.*s' there, and '%.*s' in "
                        "vocab.txt, which is used",
                        path, id, (int)n_here, pieces, (int)n, piece);
            return false;
        }
        pieces += n_here + 1;
    }
    return true;
}

/* Reads the vocabulary of tokenizer.json, if wanted, and its letter case, which tokenizer_config.json may
 * override. */
static struct status read_json(struct tokenizer *t, struct tokenizer_config *c, bool *exists,
                               const char *directory)
{
    char path[FILE_PATH_BYTES];
    struct file_map map;
    struct tokenizer_json json;
    bool wants_vocabulary = t->kind == NULL;
    TRY(find_file(path, exists, directory, "tokenizer.json"));
    if (!*exists) {
        return wants_vocabulary
                   ? status_error(STATUS_DATA,
                                  "%s has neither vocab.txt nor tokenizer.json, nor a tokenizer.model",
                                  directory)
                   : status_ok();
    }
    TRY(file_map_open(&map, path));
    struct status s = tokenizer_json_parse(&json, map.n == 0 ? "" : (const char *)map.data, map.n, path);
    file_map_close(&map);
    if (!failed(s)) {
        c->lower_case = json.lower_case;
        bool same = has_same_pieces(wants_vocabulary ? NULL : t, buf_text(&json.vocab), path);
        s = wants_vocabulary
                ? wordpiece_tokenizer_init(t, json.vocab.data, json.vocab.n, path, json.lower_case)
                : s;
        t->frame = same && !failed(s) ? json.frame : t->frame; /* valid with the ids of the file */
        *c->added = json.added;                                /* moved */
        json.added = (struct added_tokens){0};
        tokenizer_json_fini(&json);
    }
    return s;
}

/* Opens a byte-level BPE by tokenizer.json, which also says the pattern, or by vocab.json and merges.txt. */
static struct status find_bpe(struct tokenizer *t, struct added_tokens *added, bool *found,
                              const char *directory)
{
    char path[FILE_PATH_BYTES], merges[FILE_PATH_BYTES];
    bool has_json, has_merges;
    *found = false;
    TRY(find_file(path, &has_json, directory, "tokenizer.json"));
    if (has_json) {
        TRY(open_json(t, added, found, path));
    }
    for (size_t i = 0; i < N_KINDS && !*found && !has_json; i++) {
        if (kinds[i]->file_name != NULL) {
            TRY(find_file(path, found, directory, kinds[i]->file_name));
            TRY(*found ? open_kind(t, kinds[i], path) : status_ok());
        }
    }
    TRY(find_file(merges, &has_merges, directory, "merges.txt"));
    if (*found || has_json || !has_merges) {
        return status_ok();
    }
    TRY(find_file(path, found, directory, "vocab.json"));
    return *found ? bpe_tokenizer_open(t, path, merges) : status_ok();
}

static struct status read_directory(struct tokenizer *t, struct tokenizer_config *c, const char *directory)
{
    char path[FILE_PATH_BYTES];
    bool has_vocabulary, is_bpe = false, has_json = false, has_config, has_added;
    TRY(tokenizer_open_find(path, &has_vocabulary, directory));
    if (has_vocabulary) {
        TRY(wordpiece_tokenizer_open(t, path, false));
    } else {
        TRY(find_bpe(t, c->added, &is_bpe, directory));
    }
    if (!is_bpe) {
        TRY(read_json(t, c, &has_json, directory));
    }
    TRY(find_file(path, &has_config, directory, TOKENIZER_CONFIG_NAME));
    if (has_config) {
        bool lower_case = c->lower_case;
        c->adds_space = t->adds_space;
        TRY(read_config(c, path,
                        is_bpe     ? TOKENIZER_CLASS_ANY
                        : has_json ? TOKENIZER_CLASS_GENERIC
                                   : TOKENIZER_CLASS_BERT));
        if (has_json && c->lower_case != lower_case) {
            log_warning("%s says \"do_lower_case\": %s, but the normalizer of tokenizer.json beside it says "
                        "\"lowercase\": %s; the first is used",
                        path, c->lower_case ? "true" : "false", lower_case ? "true" : "false");
        }
    }
    TRY(find_file(path, &has_added, directory, "added_tokens.json"));
    TRY(read_added_map(c->added, path));
    TRY(tokenizer_set_lower_case(t, !is_bpe && c->lower_case));
    tokenizer_take_added(t, c->added);
    TRY(special_tokens_find(t, directory));
    TRY(chat_template_find(t, directory));
    return input_frame_check(&t->frame, t->n, directory);
}

struct status tokenizer_open_find_any(char path[FILE_PATH_BYTES], bool *found, const char *directory)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};
    TRY(tokenizer_open_find(path, found, directory));
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !*found; i++) {
        TRY(find_file(path, found, directory, names[i]));
    }
    return status_ok();
}

struct status tokenizer_open_near(struct tokenizer *t, char path[FILE_PATH_BYTES], bool *found,
                                  const char *directory)
{
    char parent[FILE_PATH_BYTES];
    TRY(tokenizer_open_find_any(path, found, directory));
    if (!*found && snprintf(parent, sizeof parent, "%s/..", directory) < FILE_PATH_BYTES) {
        TRY(tokenizer_open_find(path, found, parent));
    }
    return *found ? tokenizer_open_beside(t, path) : status_ok();
}

struct status tokenizer_open_directory(struct tokenizer *t, int64_t *max_length, const char *directory)
{
    struct tokenizer_config c = tokenizer_config_defaults();
    struct added_tokens added = {0};
    *t = (struct tokenizer){0};
    c.added = &added;
    *max_length = INT64_MAX;
    if (gguf_file_is_at(directory)) {
        return gguf_tokenizer_open(t, directory);
    }
    struct status s = read_directory(t, &c, directory);
    added_tokens_fini(&added);
    *max_length = c.model_max_length;
    if (failed(s)) {
        tokenizer_fini(t);
    }
    return s;
}

void tokenizer_open_unknown(struct tokenizer *t)
{
    wordpiece_tokenizer_init_unknown(t, tokenizer_config_defaults().lower_case);
}

bool tokenizer_open_writes(const char *name)
{
    for (size_t k = 0; k < N_KINDS; k++) {
        for (const char *const *own = kinds[k]->file_names; *own != NULL; own++) {
            if (strcmp(*own, name) == 0) {
                return true;
            }
        }
    }
    return false;
}
