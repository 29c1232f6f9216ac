/* Tests of the forms of tokenizer.json that models have: ids are those of Hugging Face's `tokenizers`
 * (tests/golden/make_tokenizers.py), places lie inside the text and ascend, and decoding gives the text
 * back. */
#include "test.h"

#include "core/json.h"
#include "io/file.h"
#include "text/bpe_tokenizer.h"
#include "text/pre_split.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static json_t *golden(void)
{
    json_t *root;
    EXPECT_OK(json_read_object(&root, KILN_SOURCE_DIR "/tests/golden/tokenizers.json"));
    return root;
}

/* tokenizer.json of a form. */
static json_t *document_of(const json_t *root, const json_t *form)
{
    json_t *model = json_deep_copy(json_object_get(root, "model"));
    json_object_set(model, "ignore_merges", json_object_get(form, "ignore_merges"));
    return json_pack("{s:O, s:O, s:O, s:o}", "pre_tokenizer", json_object_get(form, "pre_tokenizer"),
                     "normalizer", json_object_get(form, "normalizer"), "added_tokens",
                     json_object_get(root, "added_tokens"), "model", model);
}

static struct status open_document(struct tokenizer *t, const json_t *document)
{
    char *text = json_dumps(document, 0);
    struct added_tokens added = {0};
    const struct tokenizer_kind *kind =
        sentencepiece_tokenizer_kind.is_json(document) ? &sentencepiece_tokenizer_kind : &bpe_tokenizer_kind;
    struct status s = kind->open_json(t, &added, document, text, strlen(text), "tokenizer.json");
    if (!failed(s)) {
        tokenizer_take_added(t, &added);
        s = special_tokens_find(t, NULL);
    }
    added_tokens_fini(&added);
    free(text);
    return s;
}

static void expect_places(const struct token_list *tokens, size_t n, const char *name)
{
    for (size_t i = 0; i < tokens->n; i++) {
        struct token k = tokens->tokens[i];
        EXPECT(k.start <= k.end && k.end <= n && (i == 0 || k.start >= tokens->tokens[i - 1].start),
               "%s: token %zu is at %zu to %zu of %zu", name, i, k.start, k.end, n);
    }
}

static void expect_text(const struct tokenizer *t, const struct id_list *ids, const char *text,
                        const char *name)
{
    struct buf out = {0};
    EXPECT_OK(tokenizer_decode(t, &out, ids->ids, ids->n));
    EXPECT(strcmp(buf_text(&out), text) == 0, "%s: '%s' decodes to '%s'", name, text, buf_text(&out));
    buf_fini(&out);
}

static void expect_case(struct tokenizer_scratch *s, const char *text, const json_t *wanted, const char *name,
                        bool is_exact)
{
    struct id_list ids = {0};
    struct token_list tokens = {0};
    EXPECT_OK(tokenizer_encode_ids(s, &ids, text, strlen(text)));
    EXPECT_OK(tokenizer_encode(s, &tokens, text, strlen(text)));
    EXPECT(ids.n == json_array_size(wanted) && tokens.n == ids.n, "%s, '%s': %zu and %zu ids, not %zu", name,
           text, ids.n, tokens.n, json_array_size(wanted));
    for (size_t i = 0; i < ids.n; i++) {
        EXPECT(ids.ids[i] == json_integer_value(json_array_get(wanted, i)) &&
                   tokens.tokens[i].id == ids.ids[i],
               "%s, '%s': id %zu is %d", name, text, i, ids.ids[i]);
    }
    expect_places(&tokens, strlen(text), name);
    if (is_exact) {
        expect_text(s->tokenizer, &ids, text, name);
    }
    id_list_fini(&ids);
    token_list_fini(&tokens);
}

static bool has_regex(const json_t *form)
{
    struct pre_split p;
    bool has = failed(pre_split_read(&p, json_object_get(form, "pre_tokenizer"), "form"));
    pre_split_fini(&p);
    return has;
}

/* Each form, by its name. */
static void ids_are_those_of_tokenizers(void)
{
    json_t *root = golden(), *form, *text;
    const char *name;
    size_t i;
    json_object_foreach(json_object_get(root, "forms"), name, form)
    {
        struct tokenizer t;
        struct tokenizer_scratch s;
        json_t *document = document_of(root, form);
        if (has_regex(form)) { /* a build without PCRE2 */
            EXPECT_ERROR(open_document(&t, document), STATUS_UNAVAILABLE, "libpcre2-dev");
            json_decref(document);
            continue;
        }
        bool is_exact = json_is_null(json_object_get(form, "normalizer")) && strcmp(name, "gpt4") != 0;
        EXPECT_OK(open_document(&t, document));
        EXPECT_OK(tokenizer_scratch_init(&s, &t));
        json_array_foreach(json_object_get(root, "texts"), i, text)
        {
            expect_case(&s, json_string_value(text), json_array_get(json_object_get(form, "ids"), i), name,
                        is_exact);
        }
        tokenizer_scratch_fini(&s);
        tokenizer_fini(&t);
        json_decref(document);
    }
    json_decref(root);
}

/* Whether a text has pieces for all that it says: `tokenizers` decodes byte by byte else. */
static void expect_decoded(const struct tokenizer *t, const json_t *ids, const json_t *wanted,
                           const char *name)
{
    struct buf out = {0};
    struct id_list list = {0};
    size_t i;
    json_t *id;
    const char *text = json_string_value(wanted);
    json_array_foreach((json_t *)ids, i, id)
    {
        EXPECT(id_list_append(&list, (int32_t)json_integer_value(id)), "memory");
    }
    EXPECT_OK(tokenizer_decode_text(t, &out, list.ids, list.n));
    EXPECT(strcmp(buf_text(&out), text) == 0, "%s: '%s' is decoded, not '%s'", name, buf_text(&out), text);
    buf_fini(&out);
    id_list_fini(&list);
}

/* The files of models with SentencePiece's pieces. */
static void documents_give_the_same_ids(void)
{
    json_t *root = golden(), *form, *text;
    const char *name;
    size_t i;
    json_object_foreach(json_object_get(root, "documents"), name, form)
    {
        struct tokenizer t;
        struct tokenizer_scratch s;
        const json_t *ids = json_object_get(form, "ids");
        struct status opened = open_document(&t, json_object_get(form, "tokenizer.json"));
        if (opened.code == STATUS_UNAVAILABLE) { /* a normalizer with an expression, without PCRE2 */
            continue;
        }
        EXPECT_OK(opened);
        EXPECT_OK(tokenizer_scratch_init(&s, &t));
        const json_t *model = json_object_get(json_object_get(form, "tokenizer.json"), "model");
        bool is_byte_exact =
            json_is_true(json_object_get(model, "byte_fallback")) && json_object_get(model, "merges") != NULL;
        json_array_foreach(json_object_get(root, "texts"), i, text)
        {
            expect_case(&s, json_string_value(text), json_array_get(ids, i), name, false);
            if (is_byte_exact && t.adds_space && strchr(json_string_value(text), '<') == NULL) {
                expect_decoded(&t, json_array_get(ids, i),
                               json_array_get(json_object_get(form, "decoded"), i), name);
            }
        }
        tokenizer_scratch_fini(&s);
        tokenizer_fini(&t);
    }
    json_decref(root);
}

/* The bytes that hexadecimal digits say; the caller frees them. */
static char *bytes_of(const char *hex, size_t *n)
{
    char *bytes = malloc(strlen(hex) / 2 + 1);
    EXPECT(bytes != NULL, "memory");
    for (*n = 0; hex[2 * *n] != '\0'; ++*n) {
        char digits[3] = {hex[2 * *n], hex[2 * *n + 1]};
        bytes[*n] = (char)strtol(digits, NULL, 16);
    }
    return bytes;
}

/* A file that lost its end is refused wherever it was cut; one with other bytes in it is read or refused. */
static void expect_damage_is_found(char *bytes, size_t n, const char *name)
{
    struct sentencepiece p;
    struct sentencepiece_specials specials;
    for (size_t cut = 0; cut + 1 < n; cut += n / 97 + 1) {
        struct status s = sentencepiece_model_read(&p, &specials, bytes, cut, "tokenizer.model");
        EXPECT(s.code == STATUS_DATA, "%s: %zu of %zu bytes are read", name, cut, n);
    }
    for (size_t at = 0; at < n; at += n / 97 + 1) {
        char before = bytes[at];
        bytes[at] = (char)(before ^ 0x55);
        if (!failed(sentencepiece_model_read(&p, &specials, bytes, n, "tokenizer.model"))) {
            sentencepiece_fini(&p);
        }
        bytes[at] = before;
    }
}

/* tokenizer.model gives the ids of SentencePiece's library, and a model directory carries the file. */
static void models_give_the_same_ids(void)
{
    json_t *root = golden(), *form, *text;
    const char *name;
    size_t i, n;
    json_object_foreach(json_object_get(root, "models"), name, form)
    {
        char directory[] = "test_tokenizer_forms.XXXXXX", path[64], copy[64];
        char *bytes = bytes_of(json_string_value(json_object_get(form, "hex")), &n);
        struct tokenizer t;
        struct tokenizer_scratch s;
        struct file_map map;
        int64_t max_length;
        EXPECT(mkdtemp(directory) != NULL, "%s", directory);
        snprintf(path, sizeof path, "%s/tokenizer.model", directory);
        snprintf(copy, sizeof copy, "%s/copy", directory);
        EXPECT_OK(file_write_atomic(path, bytes, n));
        EXPECT_OK(tokenizer_open_directory(&t, &max_length, directory));
        t.parses_special = false;
        EXPECT_OK(tokenizer_scratch_init(&s, &t));
        json_array_foreach(json_object_get(root, "texts"), i, text)
        {
            expect_case(&s, json_string_value(text), json_array_get(json_object_get(form, "ids"), i), name,
                        false);
        }
        EXPECT(mkdir(copy, 0777) == 0, "%s", copy);
        EXPECT_OK(tokenizer_files_write_all(&t, copy, 512));
        snprintf(path, sizeof path, "%s/copy/tokenizer.model", directory);
        EXPECT_OK(file_map_open(&map, path));
        EXPECT(map.n == n && memcmp(map.data, bytes, n) == 0, "%s: another file is written", name);
        file_map_close(&map);
        uint64_t hash = t.hash;
        tokenizer_scratch_fini(&s);
        tokenizer_fini(&t);
        EXPECT_OK(tokenizer_open_directory(&t, &max_length, copy));
        EXPECT(t.hash == hash && max_length == 512, "%s: another hash", name);
        tokenizer_fini(&t);
        expect_damage_is_found(bytes, n, name);
        EXPECT_OK(file_remove_tree(directory));
        free(bytes);
    }
    json_decref(root);
}

/* Bytes that are no UTF-8, and runs that make an expression go back, end in ids or in one sentence. */
static void hostile_bytes_are_encoded(void)
{
    json_t *root = golden(), *form = json_object_get(json_object_get(root, "forms"), "llama3");
    json_t *document = document_of(root, form);
    struct tokenizer t;
    struct tokenizer_scratch s;
    if (has_regex(form)) {
        json_decref(document);
        json_decref(root);
        return;
    }
    enum { N = 200003 };
    static char text[N + 1];
    EXPECT_OK(open_document(&t, document));
    EXPECT_OK(tokenizer_scratch_init(&s, &t));
    for (int fill = 0; fill < 4; fill++) {
        struct id_list ids = {0};
        struct buf out = {0};
        memset(text, "a \xFF\n"[fill], N);
        memcpy(text + N / 2, "\xE2\x80", 2);
        EXPECT_OK(tokenizer_encode_ids(&s, &ids, text, N));
        EXPECT_OK(tokenizer_decode(&t, &out, ids.ids, ids.n));
        EXPECT(out.n == N && memcmp(out.data, text, N) == 0, "fill %d: %zu bytes come back", fill, out.n);
        id_list_fini(&ids);
        buf_fini(&out);
    }
    tokenizer_scratch_fini(&s);
    tokenizer_fini(&t);
    json_decref(document);
    json_decref(root);
}

static void refuse(const char *regex, const char *message)
{
    struct pre_split p;
    json_t *part = json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}", "type", "Sequence",
                             "pretokenizers", "type", "Split", "pattern", "Regex", regex, "behavior",
                             "Isolated", "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 0);
    struct status s = pre_split_read(&p, part, "tokenizer.json");
    EXPECT(failed(s), "'%s' is read", regex);
    if (s.code != STATUS_UNAVAILABLE) {
        EXPECT_ERROR(s, STATUS_DATA, message);
    }
    json_decref(part);
}

/* What PCRE2 would read in another way than Oniguruma, and what is no expression. */
static void other_expressions_are_refused(void)
{
    refuse("a$", "an anchor");
    refuse("[a[b]]", "a class inside a class");
    refuse("[a-z&&[^b]]", "a class inside a class");
    refuse("a{2}+", "an interval of another kind");
    refuse("a{,2}", "an interval of another kind");
    refuse("(?<name>a)", "a group of another kind");
    refuse("(a)\\1", "an escape of another kind");
    refuse("[a", "a class without an end");
    refuse("\\pL", "\\p without {...}");
    refuse("\\p{Klingon}", "cannot read the regular expression");
    refuse("(a", "cannot read the regular expression");
    refuse("\\u12", "\\u without four digits");
}

/* An expression that takes exponential time stops with a sentence. */
static void steps_are_counted(void)
{
    struct split_regex *r;
    struct split_regex_scratch *scratch;
    struct split_match m;
    struct status s = split_regex_create(&r, "(?:a|aa|a*)+b|(?:x+x+)+y", 24, "tokenizer.json");
    if (s.code == STATUS_UNAVAILABLE) {
        return;
    }
    EXPECT_OK(s);
    EXPECT_OK(split_regex_scratch_create(&scratch));
    EXPECT_ERROR(split_regex_find(scratch, &m, r, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 44, 0),
                 STATUS_DATA, "cannot split the text");
    EXPECT_OK(split_regex_find(scratch, &m, r, "zxxy", 4, 0));
    EXPECT(m.found && m.begin == 1 && m.end == 4, "a match at %zu", m.begin);
    split_regex_scratch_destroy(scratch);
    split_regex_destroy(r);
}

int main(void)
{
    ids_are_those_of_tokenizers();
    documents_give_the_same_ids();
    models_give_the_same_ids();
    hostile_bytes_are_encoded();
    other_expressions_are_refused();
    steps_are_counted();
    return 0;
}
