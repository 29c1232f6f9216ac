/* index_files: an order is written under Megatron-LM's names and read again, and files that are no order of
 * the store are refused by name.  (tests/data/test_sample_order.c compares the numbers with numpy's.) */
#include "order_fixture.h"
#include "test.h"

#include "data/gpt/index_files.h"
#include "io/file.h"

#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/kiln-index-files-XXXXXX";
static char prefix[64];
static const int32_t sizes[] = {5, 1, 30, 0, 12, 7, 22, 3};
/* 75 tokens of documents 1 to 7, 9 windows of 8 an epoch: the third has 2 of the 20 and is apart */
static const struct sample_order_config config = {
    .sizes = (const unsigned char *)sizes, .first = 1, .end = 8, .n_wanted = 20, .seq_length = 8, .seed = 42};

static void name(char path[INDEX_FILES_PATH_BYTES], enum sample_order_array which)
{
    EXPECT_OK(index_files_path(path, prefix, "train", &config, which));
}

static void expect_refused(const char *part)
{
    struct sample_order o;
    struct index_files f;
    EXPECT_OK(sample_order_plan(&o, &config));
    EXPECT_ERROR(index_files_open(&f, &o, prefix, "train", &config, true), STATUS_DATA, part);
    EXPECT(o.document == NULL && o.starts == NULL && o.shuffled == NULL, "nothing stays mapped");
}

/* Number `at` of a file becomes `value` while `part` is expected. */
static void with_number(enum sample_order_array which, long at, int32_t value, const char *part)
{
    char path[INDEX_FILES_PATH_BYTES];
    int32_t before;
    name(path, which);
    FILE *f = fopen(path, "r+b");
    EXPECT(f != NULL && fseek(f, 128 + 4 * at, SEEK_SET) == 0 && fread(&before, 4, 1, f) == 1, "%s", path);
    EXPECT(before != value && fseek(f, 128 + 4 * at, SEEK_SET) == 0, "it was %d", before);
    EXPECT(fwrite(&value, 4, 1, f) == 1 && fflush(f) == 0, "%s", path);
    expect_refused(path);
    expect_refused(part);
    EXPECT(fseek(f, 128 + 4 * at, SEEK_SET) == 0 && fwrite(&before, 4, 1, f) == 1 && fclose(f) == 0, "%s",
           path);
}

static struct sample_order planned(void)
{
    struct sample_order o;
    EXPECT_OK(sample_order_plan(&o, &config));
    return o;
}

/* Processes that come at once have one set of files, which one of them made. */
static void they_are_made_once(const struct sample_order *o)
{
    enum { N = 4 };
    int n_made = 0;
    EXPECT(!index_files_exist(prefix, "train", &config), "nothing is there yet");
    for (int i = 0; i < N; i++) {
        if (fork() == 0) {
            bool made;
            EXPECT_OK(index_files_make(&made, o, prefix, "train", &config));
            _exit(made);
        }
    }
    for (int i = 0, code; i < N; i++) {
        EXPECT(wait(&code) > 0 && WIFEXITED(code) && WEXITSTATUS(code) <= 1, "a process failed");
        n_made += WEXITSTATUS(code);
    }
    EXPECT(n_made == 1, "%d processes made the files", n_made);
    EXPECT(index_files_exist(prefix, "train", &config) && !index_files_exist(prefix, "valid", &config),
           "there");
}

static void they_come_back(const struct sample_order *wanted)
{
    struct sample_order o = planned();
    struct index_files f;
    EXPECT_OK(index_files_open(&f, &o, prefix, "train", &config, true));
    EXPECT(memcmp(o.document, wanted->document, (size_t)o.n_documents * 4) == 0, "documents");
    EXPECT(memcmp(o.starts, wanted->starts, (size_t)(o.n_samples + 1) * 8) == 0, "starts");
    EXPECT(memcmp(o.shuffled, wanted->shuffled, (size_t)o.n_samples * 4) == 0, "shuffled");
    EXPECT((size_t)(o.n_documents + 3 * o.n_samples + 2) * 4 == sample_order_bytes(&o), "bytes");
    index_files_close(&f);
}

static void wrong_numbers_are_named(const struct sample_order *o)
{
    with_number(SAMPLE_ORDER_DOCUMENT, 2, o->document[3], "there twice");
    with_number(SAMPLE_ORDER_DOCUMENT, 2, 8, "out of bounds");
    with_number(SAMPLE_ORDER_DOCUMENT, 2, -1, "out of bounds");
    with_number(SAMPLE_ORDER_STARTS, 3, o->starts[3] + 1, "do not follow");
    with_number(SAMPLE_ORDER_SHUFFLED, 0, (int32_t)o->shuffled[1], "there twice");
    /* the windows of the last epoch are shuffled apart: none of them may come earlier */
    with_number(SAMPLE_ORDER_SHUFFLED, 0, (int32_t)o->shuffled[o->n_samples - 1], "out of bounds");
}

static void wrong_files_are_named(void)
{
    char path[INDEX_FILES_PATH_BYTES], whole[INDEX_FILES_PATH_BYTES + 8];
    name(path, SAMPLE_ORDER_SHUFFLED);
    snprintf(whole, sizeof whole, "%s.whole", path);
    EXPECT(rename(path, whole) == 0, "%s", path);
    EXPECT(!index_files_exist(prefix, "train", &config), "one is missing");
    expect_refused(path);
    EXPECT_OK(file_write_atomic(path, "\x93NUMPY", 6));
    expect_refused(path);
    char starts[INDEX_FILES_PATH_BYTES];
    name(starts, SAMPLE_ORDER_DOCUMENT);
    EXPECT(unlink(path) == 0 && link(starts, path) == 0, "%s", path);
    expect_refused("numbers of type '<i4'");
    EXPECT(unlink(path) == 0 && rename(whole, path) == 0, "%s", path);
    name(path, SAMPLE_ORDER_DOCUMENT);
    EXPECT(truncate(path, 130) == 0, "%s", path);
    expect_refused("but the file has 2");
}

int main(void)
{
    struct sample_order o;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    snprintf(prefix, sizeof prefix, "%s/text_document", directory);
    struct order_fixture fixture = order_fixture_build(&o, &config);
    EXPECT(o.last_apart && o.n_epochs == 3, "%lld epochs", (long long)o.n_epochs);
    struct sample_order plan = planned();
    they_are_made_once(&plan);
    they_come_back(&o);
    char path[INDEX_FILES_PATH_BYTES];
    name(path, SAMPLE_ORDER_DOCUMENT);
    EXPECT(strstr(path, "/text_document_train_indexmap_20ns_8sl_42s_doc_idx.npy") != NULL, "%s", path);
    wrong_numbers_are_named(&o);
    wrong_files_are_named();
    order_fixture_free(&fixture);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
