/* Any bytes as the files of sentence-transformers: the input, cut at its NULs, is modules.json,
 * sentence_bert_config.json, the config.json of the pooling and of a dense layer, and
 * config_sentence_transformers.json. */
#define _GNU_SOURCE
#include "serve/sentence_model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = {"modules.json", "sentence_bert_config.json", "1_Pooling/config.json",
                                    "2_Dense/config.json", "config_sentence_transformers.json"};
enum { N_FILES = 5 };
static char directory[64];

static void remove_directory(void)
{
    file_remove_tree(directory);
}

static void make_directory(void)
{
    char folder[128];
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%.32s/kiln_fuzz_XXXXXX", parent == NULL ? "/tmp" : parent);
    CHECK(mkdtemp(directory) != NULL, "%s", directory);
    for (int i = 1; i <= 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", directory, i == 1 ? "1_Pooling" : "2_Dense");
        CHECK(!failed(file_make_directories(folder)), "%s", folder);
    }
    atexit(remove_directory);
}

static void write_file(const char *name, const uint8_t *data, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL, "%s", path);
    fwrite(data, 1, n, f);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sentence_model m;
    const char *prompt;
    if (directory[0] == '\0') {
        make_directory();
    }
    for (int i = 0; i < N_FILES; i++) {
        const uint8_t *end = i == N_FILES - 1 ? NULL : memchr(data, 0, size);
        size_t n = end == NULL ? size : (size_t)(end - data);
        write_file(files[i], data, n);
        data += end == NULL ? n : n + 1;
        size -= end == NULL ? n : n + 1;
    }
    if (!failed(sentence_model_open(&m, directory))) {
        CHECK(sentence_model_width(&m, 16) > 0, "no width");
        (void)sentence_model_prompt(&m, "query", &prompt);
    }
    sentence_model_close(&m);
    return 0;
}
