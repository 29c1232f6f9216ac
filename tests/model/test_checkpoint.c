/* Checkpoints: what is saved is read back to the bit, equal states give equal files, and no damaged byte in
 * any file goes unseen. */
#define _GNU_SOURCE
#include "checkpoint_case.h"

#include <sys/stat.h>

static const char *const all_files[] = {"model.safetensors", "optimizer.safetensors", "config.json",
                                        "vocab.txt",         "tokenizer_config.json", "trainer_state.json",
                                        "manifest.json"};
enum { N_FILES = sizeof all_files / sizeof *all_files };

static void path_of(char out[CHECKPOINT_PATH_BYTES], const struct checkpoint_case *k, const char *checkpoint,
                    const char *file)
{
    EXPECT_OK(checkpoint_path(out, "%s/%s/%s", k->directory, checkpoint, file));
}

/* The bytes of a file, in memory; free() them. */
static unsigned char *read_bytes(const char *path, size_t *n)
{
    struct file_map map;
    EXPECT_OK(file_map_open(&map, path));
    unsigned char *bytes = malloc(map.n + 1);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, map.data, map.n);
    *n = map.n;
    file_map_close(&map);
    return bytes;
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0, "writing %s", path);
}

static bool manifest_says(struct checkpoint_case *k, const char *checkpoint, const char *what)
{
    char path[CHECKPOINT_PATH_BYTES];
    size_t n;
    path_of(path, k, checkpoint, "manifest.json");
    unsigned char *bytes = read_bytes(path, &n);
    bool found = memmem(bytes, n, what, strlen(what)) != NULL;
    free(bytes);
    return found;
}

static void test_round_trip(void)
{
    struct checkpoint_case k;
    struct checkpoint c;
    bool found = true;
    case_init(&k);
    EXPECT_OK(checkpoint_dir_open_newest(&c, k.directory, &found));
    EXPECT(!found, "an empty directory has no checkpoint");
    EXPECT_OK(case_save(&k, 7));
    EXPECT_OK(case_save(&k, 20));
    EXPECT_OK(case_save(&k, 9));
    EXPECT_OK(checkpoint_dir_open_newest(&c, k.directory, &found));
    EXPECT(found && c.manifest.step == 20, "step %lld", (long long)c.manifest.step);
    case_expect_values(&k, &c, 20);
    EXPECT(json_equal(c.config, k.config) && json_equal(c.state, k.state), "config or state changed");
    const struct checkpoint_file *vocab = checkpoint_find(&c, "vocab.txt");
    EXPECT(vocab->map.n == sizeof case_vocab - 1 && memcmp(vocab->map.data, case_vocab, vocab->map.n) == 0,
           "vocabulary changed");
    EXPECT(c.manifest.vocab_hash == hash_fnv1a(case_vocab, sizeof case_vocab - 1), "vocabulary hash");
    EXPECT(json_string_value(
               json_object_get(checkpoint_find(&c, "model.safetensors")->tensors.metadata, "format")) != NULL,
           "no format for transformers");
    checkpoint_close(&c);
    case_fini(&k);
}

/* A vocabulary may be other files, of any safe names; under another name nothing is left of the save. */
static void test_other_vocabulary(void)
{
    const struct tokenizer_file files[] = {{"vocab.json", "{}", 2}, {"merges.txt", "", 0}};
    static const char *const refused[] = {
        "../vocab.json",     "a/b",      ".hidden",     "",
        "manifest.json",     "run.json", "config.json", "trainer_state.json",
        "model.safetensors", "a b"};
    struct checkpoint_case k;
    bool found;
    struct checkpoint c;
    case_init(&k);
    struct checkpoint_contents contents = case_contents(&k, 1);
    contents.n_vocabulary = 1;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        contents.vocabulary = &(struct tokenizer_file){refused[i], "x", 1};
        EXPECT_ERROR(checkpoint_save(k.directory, &contents), STATUS_USAGE, "a file of a vocabulary as '");
    }
    EXPECT_OK(checkpoint_dir_open_newest(&c, k.directory, &found));
    EXPECT(!found, "something was saved");
    contents.vocabulary = files;
    contents.n_vocabulary = 2;
    EXPECT_OK(checkpoint_save(k.directory, &contents));
    EXPECT(case_newest(&k) == 1, "newest");
    EXPECT(manifest_says(&k, "ckpt_1", "\"format_version\": 4,"), "version");
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_1", k.directory));
    EXPECT_OK(checkpoint_open(&c, path));
    const struct file_map *map = &checkpoint_find(&c, "vocab.json")->map;
    EXPECT(map->n == 2 && memcmp(map->data, "{}", 2) == 0, "vocabulary changed");
    EXPECT(checkpoint_find(&c, "merges.txt")->map.n == 0, "an empty file");
    checkpoint_close(&c);
    case_fini(&k);
}

/* Two runs write the same bytes, whatever gaps and padded rows hold. */
static void test_equal_bytes(void)
{
    struct checkpoint_case k[2];
    for (int r = 0; r < 2; r++) {
        case_init(&k[r]);
        struct checkpoint_contents c = case_contents(&k[r], 5);
        k[r].flat[0][6 * 16] = (float)r;
        k[r].flat[2][CASE_SLAB + 6] = (float)r;
        EXPECT_OK(checkpoint_save(k[r].directory, &c));
    }
    for (int i = 0; i < N_FILES; i++) {
        char path[2][CHECKPOINT_PATH_BYTES];
        size_t n[2];
        unsigned char *bytes[2];
        for (int r = 0; r < 2; r++) {
            path_of(path[r], &k[r], "ckpt_5", all_files[i]);
            bytes[r] = read_bytes(path[r], &n[r]);
        }
        EXPECT(n[0] == n[1] && memcmp(bytes[0], bytes[1], n[0]) == 0, "%s differs between runs",
               all_files[i]);
        free(bytes[0]);
        free(bytes[1]);
    }
    case_fini(&k[0]);
    case_fini(&k[1]);
}

static void expect_falls_back(struct checkpoint_case *k, const char *file, const char *damage)
{
    int64_t step = case_newest(k);
    EXPECT(step == 1, "%s %s: resumed from step %lld", file, damage, (long long)step);
}

/* Every 1/64 of every file and its last byte: flipped, and the file cut there. */
static void test_damage(void)
{
    struct checkpoint_case k;
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    EXPECT_OK(case_save(&k, 2));
    for (int i = 0; i < N_FILES; i++) {
        char path[CHECKPOINT_PATH_BYTES];
        size_t n;
        path_of(path, &k, "ckpt_2", all_files[i]);
        unsigned char *bytes = read_bytes(path, &n);
        for (int part = 0; part <= 64; part++) {
            size_t at = part == 64 ? n - 1 : n * (size_t)part / 64;
            unsigned char old = bytes[at];
            bytes[at] = (unsigned char)(old ^ (1U << part % 8));
            write_bytes(path, bytes, n);
            expect_falls_back(&k, all_files[i], "with a flipped bit");
            bytes[at] = old;
            write_bytes(path, bytes, at);
            expect_falls_back(&k, all_files[i], "cut short");
        }
        bytes[n] = '\n';
        write_bytes(path, bytes, n + 1);
        expect_falls_back(&k, all_files[i], "with a byte more");
        EXPECT(unlink(path) == 0, "unlink %s", path);
        expect_falls_back(&k, all_files[i], "missing");
        write_bytes(path, bytes, n);
        free(bytes);
        EXPECT(case_newest(&k) == 2, "%s: not whole after repair", all_files[i]);
    }
    case_fini(&k);
}

/* Files of another checkpoint are as bad as damaged ones; a file too many is not read. */
static void test_mixed(void)
{
    struct checkpoint_case k;
    char from[CHECKPOINT_PATH_BYTES];
    char to[CHECKPOINT_PATH_BYTES];
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    EXPECT_OK(case_save(&k, 2));
    path_of(to, &k, "ckpt_2", "notes.txt");
    write_bytes(to, "mine", 4);
    EXPECT(case_newest(&k) == 2, "a foreign file must not hurt");
    path_of(from, &k, "ckpt_1", "optimizer.safetensors");
    path_of(to, &k, "ckpt_2", "optimizer.safetensors");
    size_t n;
    unsigned char *bytes = read_bytes(from, &n);
    write_bytes(to, bytes, n);
    free(bytes);
    expect_falls_back(&k, "optimizer.safetensors", "of another step");
    path_of(from, &k, "ckpt_1", "");
    path_of(to, &k, "ckpt_9", "");
    from[strlen(from) - 1] = to[strlen(to) - 1] = '\0';
    EXPECT(rename(from, to) == 0, "rename");
    struct checkpoint c;
    bool found;
    EXPECT_ERROR(checkpoint_dir_open_newest(&c, k.directory, &found), STATUS_NO_CHECKPOINT, "none of the 2");
    case_fini(&k);
}

static void test_other_model(void)
{
    struct checkpoint_case k;
    struct checkpoint c;
    char path[CHECKPOINT_PATH_BYTES];
    case_init(&k);
    EXPECT_OK(case_save(&k, 3));
    path_of(path, &k, "ckpt_3", "");
    EXPECT_OK(checkpoint_open(&c, path));
    tensor flat = tensor_1d(k.flat[0], DTYPE_F32, CASE_ELEMENTS);
    k.params.params[0].dims[0] = k.params.params[0].full[0] = 5;
    EXPECT_ERROR(read_weights(&c, &k.params, 0, flat), STATUS_DATA, "word_embeddings");
    k.params.params[0].dims[0] = k.params.params[0].full[0] = 6;
    k.params.n = 1;
    EXPECT_OK(read_weights(&c, &k.params, 0, flat));
    EXPECT_ERROR(read_moments(&c, &k.params, 0, flat, flat), STATUS_DATA, "4 tensors");
    k.params.n = 2;
    snprintf(k.params.params[1].name, PARAM_NAME_BYTES, "other.bias");
    EXPECT_ERROR(read_weights(&c, &k.params, 0, flat), STATUS_DATA, "no tensor other.bias");
    checkpoint_close(&c);
    case_fini(&k);
}

/* A model directory needs four files; without a manifest nothing is verified, with one they are. */
static void test_model_directory(void)
{
    struct checkpoint_case k;
    struct checkpoint c;
    char path[CHECKPOINT_PATH_BYTES];
    static const char *const others[] = {"optimizer.safetensors", "trainer_state.json", "manifest.json"};
    case_init(&k);
    EXPECT_OK(case_save(&k, 3));
    char model[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(model, "%s/ckpt_3", k.directory));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(checkpoint_open_model(&c, model));
        EXPECT(c.has_manifest && c.model.n == 2 && c.config != NULL, "model");
        checkpoint_close(&c);
        path_of(path, &k, "ckpt_3", others[i]);
        EXPECT(unlink(path) == 0, "unlink");
    }
    EXPECT_OK(checkpoint_open_model(&c, model));
    EXPECT(!c.has_manifest, "no manifest");
    checkpoint_close(&c);
    path_of(path, &k, "ckpt_3", "config.json");
    write_bytes(path, "[]", 2);
    EXPECT_ERROR(checkpoint_open_model(&c, model), STATUS_DATA,
                 "config.json: the file must hold one JSON object");
    write_bytes(path, "", 0);
    EXPECT_ERROR(checkpoint_open_model(&c, model), STATUS_DATA, "config.json is not valid JSON");
    case_fini(&k);
}

static void test_prune(void)
{
    struct checkpoint_case k;
    case_init(&k);
    for (int64_t step = 1; step <= 6; step++) {
        struct checkpoint_contents c = case_contents(&k, step);
        c.phase_end = step == 2;
        EXPECT_OK(checkpoint_save(k.directory, &c));
    }
    char path[CHECKPOINT_PATH_BYTES];
    path_of(path, &k, "ckpt_3", "manifest.json");
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT_OK(checkpoint_dir_prune(k.directory, 5, 0, 0));
    EXPECT_OK(checkpoint_dir_prune(k.directory, 5, 1, 4)); /* 6 is of another life and does not count */
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_4", k.directory));
    EXPECT(file_exists(path), "the best checkpoint was removed");
    EXPECT_OK(checkpoint_dir_prune(k.directory, 5, 1, 0));
    static const bool kept[] = {false, true, true, false, true, true};
    for (int step = 1; step <= 6; step++) {
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d", k.directory, step));
        EXPECT(file_exists(path) == kept[step - 1], "step %d", step);
    }
    case_fini(&k);
}

/* Saving a step again replaces it, and what dead runs left behind goes, or comes back. */
static void test_replace_and_clean(void)
{
    struct checkpoint_case k;
    char path[CHECKPOINT_PATH_BYTES];
    char other[CHECKPOINT_PATH_BYTES];
    case_init(&k);
    EXPECT_OK(case_save(&k, 4));
    path_of(path, &k, "ckpt_4", "model.safetensors");
    write_bytes(path, "broken", 6);
    EXPECT(case_newest(&k) == -1, "must be bad");
    EXPECT_OK(case_save(&k, 4));
    EXPECT(case_newest(&k) == 4, "must be replaced");
    path_of(path, &k, ".ckpt_5.tmp.123", "");
    EXPECT_OK(file_make_directories(path));
    path_of(path, &k, ".ckpt_4.old", "");
    path_of(other, &k, "ckpt_4", "");
    path[strlen(path) - 1] = other[strlen(other) - 1] = '\0';
    EXPECT(rename(other, path) == 0, "rename");
    EXPECT_OK(checkpoint_dir_clean(k.directory));
    EXPECT(case_newest(&k) == 4, "must be put back");
    path_of(path, &k, ".ckpt_5.tmp.123", "");
    EXPECT(!file_exists(path), "the dead run's directory must go");
    case_fini(&k);
}

/* What a device has chosen is a file like the others, of checkpoints that have it; those without are of
 * version 1, as they were before there was such a file. */
static void test_choices(void)
{
    static const char choices[] = "kiln products 1\n";
    struct checkpoint_case k;
    struct checkpoint c;
    char path[CHECKPOINT_PATH_BYTES];
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    struct checkpoint_contents contents = case_contents(&k, 2);
    case_add_choices(&contents, choices);
    EXPECT_OK(checkpoint_save(k.directory, &contents));
    EXPECT(manifest_says(&k, "ckpt_1", "\"format_version\": 1,") &&
               !manifest_says(&k, "ckpt_1", "cublaslt.cache"),
           "without choices");
    EXPECT(manifest_says(&k, "ckpt_2", "\"format_version\": 2,") &&
               manifest_says(&k, "ckpt_2", "cublaslt.cache"),
           "with choices");
    EXPECT(case_newest(&k) == 2, "newest");
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_2", k.directory));
    EXPECT_OK(checkpoint_open(&c, path));
    const struct file_map *file = &checkpoint_find(&c, "cublaslt.cache")->map;
    EXPECT(file->n == sizeof choices - 1 && memcmp(file->data, choices, file->n) == 0, "other choices");
    checkpoint_close(&c);
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_1", k.directory));
    EXPECT_OK(checkpoint_open(&c, path));
    EXPECT(checkpoint_find(&c, "cublaslt.cache") == NULL, "choices of nobody");
    checkpoint_close(&c);
    path_of(path, &k, "ckpt_2", "cublaslt.cache");
    write_bytes(path, "kiln products 2\n", sizeof choices - 1);
    expect_falls_back(&k, "cublaslt.cache", "of other bytes");
    EXPECT(unlink(path) == 0, "unlink");
    expect_falls_back(&k, "cublaslt.cache", "missing");
    case_fini(&k);
}

/* So are the histories of a run in fp8, with or without choices; a run that has others is told. */
static void test_histories(void)
{
    struct checkpoint_case k;
    struct checkpoint c;
    char path[CHECKPOINT_PATH_BYTES];
    float read[2 * CASE_HISTORIES], nothing[2 * CASE_HISTORIES] = {0};
    tensor histories = tensor_2d(read, DTYPE_F32, CASE_HISTORIES, 2);
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    for (int64_t step = 2; step <= 3; step++) {
        struct checkpoint_contents contents = case_contents(&k, step);
        if (step == 3) {
            case_add_choices(&contents, "some");
        }
        case_add_histories(&contents);
        EXPECT_OK(checkpoint_save(k.directory, &contents));
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d", k.directory, (int)step));
        EXPECT_OK(checkpoint_open(&c, path));
        EXPECT_OK(checkpoint_read_extra(&c, "fp8.safetensors", "histories", histories));
        EXPECT(memcmp(read, case_histories, sizeof read) == 0, "other histories");
        EXPECT((checkpoint_find(&c, "cublaslt.cache") != NULL) == (step == 3), "choices");
        EXPECT_ERROR(
            checkpoint_read_extra(&c, "fp8.safetensors", "histories", tensor_2d(read, DTYPE_F32, 2, 2)),
            STATUS_DATA, "fp8.safetensors");
        checkpoint_close(&c);
    }
    EXPECT(manifest_says(&k, "ckpt_1", "\"format_version\": 1,") &&
               !manifest_says(&k, "ckpt_1", "fp8.safetensors"),
           "without histories");
    EXPECT(manifest_says(&k, "ckpt_2", "\"format_version\": 3,") &&
               manifest_says(&k, "ckpt_3", "\"format_version\": 3,"),
           "with histories");
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_1", k.directory));
    EXPECT_OK(checkpoint_open(&c, path));
    EXPECT_OK(checkpoint_read_extra(&c, "fp8.safetensors", "histories", histories));
    EXPECT(memcmp(read, nothing, sizeof read) == 0, "histories of nobody");
    checkpoint_close(&c);
    path_of(path, &k, "ckpt_3", "fp8.safetensors");
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT(case_newest(&k) == 2, "newest");
    case_fini(&k);
}

int main(void)
{
    test_choices();
    test_histories();
    test_round_trip();
    test_other_vocabulary();
    test_equal_bytes();
    test_damage();
    test_mixed();
    test_other_model();
    test_model_directory();
    test_prune();
    test_replace_and_clean();
    return 0;
}
