/* Stores that Megatron-LM wrote, read and written again: both files come out byte for byte. */
#include "fixture_shared.h"
#include "fixture_store.h"

static void same_files(const char *a, const char *b)
{
    struct file_map x, y;
    EXPECT_OK(file_map_open(&x, a));
    EXPECT_OK(file_map_open(&y, b));
    EXPECT(x.n == y.n && memcmp(x.data, y.data, x.n) == 0, "%s differs from %s", b, a);
    file_map_close(&x);
    file_map_close(&y);
}

/* The vocabulary sizes of the stores' makers, which chose the element type. */
static void round_trip(const char *directory, const char *name, int64_t vocab_size)
{
    char source[600], copy[600];
    snprintf(source, sizeof source, "%s/formats/megatron/%s", directory, name);
    struct indexed x;
    EXPECT_OK(indexed_open(&x, source));
    EXPECT(x.n_sequences >= 100 && x.n_documents == x.n_sequences, "%s has %lld sequences", name,
           (long long)x.n_sequences);
    struct indexed_writer w;
    snprintf(copy, sizeof copy, "%s", fixture_path(name));
    EXPECT_OK(indexed_writer_open(&w, copy, vocab_size));
    int32_t *ids = malloc((size_t)x.n_tokens * sizeof *ids);
    EXPECT(ids != NULL, "memory");
    for (int64_t i = 0; i < x.n_sequences; i++) {
        int64_t begin = indexed_offset(&x, i), n = indexed_offset(&x, i + 1) - begin;
        indexed_copy(&x, ids, begin, n);
        indexed_writer_add(&w, ids, n);
        indexed_writer_end_document(&w);
    }
    free(ids);
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    indexed_close(&x);
    static const char *const suffixes[] = {".bin", ".idx"};
    for (int i = 0; i < 2; i++) {
        char a[700], b[700];
        snprintf(a, sizeof a, "%s%s", source, suffixes[i]);
        snprintf(b, sizeof b, "%s%s", copy, suffixes[i]);
        same_files(a, b);
    }
}

int main(void)
{
    char command[2200];
    const char *archive = shared_find("formats.tar.xz");
    fixture_path(".");
    snprintf(command, sizeof command, "tar -xJf '%s' -C '%s' --wildcards '*megatron*'", archive,
             fixture_directory);
    EXPECT(system(command) == 0, "%s", command);
    round_trip(fixture_directory, "ag_news_prompt_inputs_document", 100000);
    round_trip(fixture_directory, "ag_news_prompt_targets_document", 100000);
    round_trip(fixture_directory, "meg-gpt2-openwebtext_text_document", 50257);
    fixture_remove();
    return 0;
}
