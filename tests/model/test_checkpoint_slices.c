/* The open list of a checkpoint: files that nobody knew before, and the state in slices of several files: any
 * cut is read back by any other cut, and what does not make whole tensors is refused with the file and the
 * tensor. */
#define _GNU_SOURCE
#include "checkpoint_case.h"

#include "model/model_dir.h"

enum { MOST_PARTS = 4 };

/* The first element of part `part` of `n`: inside a row, at no end of a tensor; one of four parts has only
 * padding. */
static int64_t cut_at(int part, int n)
{
    static const int64_t cuts[][MOST_PARTS + 1] = {[1] = {0, CASE_ELEMENTS},
                                                   [2] = {0, 50, CASE_ELEMENTS},
                                                   [4] = {0, 37, 200, CASE_SLAB - 1, CASE_ELEMENTS}};
    static const int64_t others[][MOST_PARTS + 1] = {[4] = {0, 3, 95, CASE_SLAB + 2, CASE_ELEMENTS}};
    return n < 0 ? others[-n][part] : cuts[n][part];
}

/* What rank `part` of `n` has of the state. */
static struct checkpoint_contents contents_of(struct checkpoint_case *k, int64_t step, int part, int n)
{
    struct checkpoint_contents c = case_contents(k, step);
    int64_t begin = cut_at(part, n), count = cut_at(part + 1, n) - begin;
    c.master = tensor_slice(c.master, begin, count);
    c.exp_avg = tensor_slice(c.exp_avg, begin, count);
    c.exp_avg_sq = tensor_slice(c.exp_avg_sq, begin, count);
    c.master_begin = c.moments_begin = begin;
    c.part = part;
    c.n_parts = n;
    return c;
}

static void save_parts(struct checkpoint_case *k, int64_t step, int n)
{
    struct checkpoint_save save;
    struct checkpoint_part parts[MOST_PARTS];
    struct checkpoint_contents first = contents_of(k, step, 0, n);
    EXPECT_OK(checkpoint_save_begin(&save, k->directory, &first));
    for (int part = n - 1; part >= 0; part--) {
        struct checkpoint_contents c = contents_of(k, step, part, n);
        EXPECT_OK(checkpoint_save_part(&parts[part], save.temporary.path, &c));
        EXPECT(parts[part].n == 2, "%d files", parts[part].n);
    }
    EXPECT_OK(checkpoint_save_commit(&save, &first, parts, n));
    checkpoint_save_end(&save);
}

static void open_step(struct checkpoint *c, const struct checkpoint_case *k, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d", k->directory, (int)step));
    EXPECT_OK(checkpoint_open(c, path));
}

/* Written by n, read by m, for 1, 2 and 4 of each. */
static void test_any_cut(void)
{
    struct checkpoint_case k;
    case_init(&k);
    for (int n = 1; n <= MOST_PARTS; n *= 2) {
        struct checkpoint c;
        save_parts(&k, n, n);
        EXPECT(case_newest(&k) == n, "newest of %d parts", n);
        open_step(&c, &k, n);
        for (int way = 0; way < 4; way++) {
            int m = (int[]){1, 2, 4, -4}[way];
            float read[3][CASE_ELEMENTS];
            memset(read, 0, sizeof read);
            for (int part = 0; part < abs(m); part++) {
                int64_t begin = cut_at(part, m), count = cut_at(part + 1, m) - begin;
                tensor t[3];
                for (int f = 0; f < 3; f++) {
                    t[f] = tensor_1d(read[f] + begin, DTYPE_F32, count);
                }
                EXPECT_OK(read_weights(&c, &k.params, begin, t[0]));
                EXPECT_OK(read_moments(&c, &k.params, begin, t[1], t[2]));
            }
            for (int f = 0; f < 3; f++) {
                for (int i = 0; i < CASE_ELEMENTS; i++) {
                    bool real = i < 6 * 16 || (i >= CASE_SLAB && i < CASE_SLAB + 6);
                    EXPECT(read[f][i] == (real ? k.flat[f][i] : 0), "%d to %d: buffer %d element %d", n, m, f,
                           i);
                }
            }
        }
        checkpoint_close(&c);
    }
    case_fini(&k);
}

/* The files of one rank are those of a plain save. */
static void test_one_part(void)
{
    struct checkpoint_case k;
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors", "manifest.json"};
    char path[CHECKPOINT_PATH_BYTES];
    struct file_map plain[3], parts[3];
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_1/%s", k.directory, files[i]));
        EXPECT_OK(file_map_open(&plain[i], path));
    }
    save_parts(&k, 1, 1);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_1/%s", k.directory, files[i]));
        EXPECT_OK(file_map_open(&parts[i], path));
        EXPECT(plain[i].n == parts[i].n && memcmp(plain[i].data, parts[i].data, plain[i].n) == 0, "%s",
               files[i]);
        file_map_close(&plain[i]);
        file_map_close(&parts[i]);
    }
    case_fini(&k);
}

/* Ranks that share the weights and have slices of the moments: one writes model.safetensors as ever. */
static void test_whole_weights(void)
{
    struct checkpoint_case k;
    struct checkpoint_save save;
    struct checkpoint_part parts[2];
    case_init(&k);
    struct checkpoint_contents c[2] = {contents_of(&k, 3, 0, 2), contents_of(&k, 3, 1, 2)};
    c[0].master = case_contents(&k, 3).master;
    c[1].master = NULL_TENSOR;
    EXPECT_OK(checkpoint_save_begin(&save, k.directory, &c[0]));
    EXPECT_OK(checkpoint_save_part(&parts[0], save.temporary.path, &c[0]));
    EXPECT_OK(checkpoint_save_part(&parts[1], save.temporary.path, &c[1]));
    EXPECT(parts[1].n == 1, "%d files", parts[1].n);
    EXPECT_OK(checkpoint_save_commit(&save, &c[0], parts, 2));
    checkpoint_save_end(&save);
    struct checkpoint open;
    open_step(&open, &k, 3);
    EXPECT(open.manifest.n == 7 && checkpoint_find(&open, "model.safetensors") != NULL &&
               checkpoint_find(&open, "optimizer-00001-of-00002.safetensors") != NULL,
           "%d files", open.manifest.n);
    case_expect_values(&k, &open, 3);
    checkpoint_close(&open);
    case_fini(&k);
}

/* A file of a name that no build has known: it is listed, checked, and read by who asks for it. */
static void test_new_file(void)
{
    struct checkpoint_case k;
    struct checkpoint c;
    bool found;
    char path[CHECKPOINT_PATH_BYTES];
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    char bytes[] = "abc";
    struct checkpoint_contents contents = case_contents(&k, 2);
    contents.extras[contents.n_extras++] =
        (struct checkpoint_extra){.file = "notes.v2", .data = tensor_1d(bytes, DTYPE_U8, 3)};
    EXPECT_OK(checkpoint_save(k.directory, &contents));
    open_step(&c, &k, 2);
    EXPECT(memcmp(checkpoint_find(&c, "notes.v2")->map.data, "abc", 3) == 0, "its bytes");
    checkpoint_close(&c);
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_2/notes.v2", k.directory));
    EXPECT_OK(file_write_atomic(path, "abd", 3));
    EXPECT(case_newest(&k) == 1, "damage was not seen");
    contents.extras[0].file = "../notes";
    EXPECT_ERROR(checkpoint_save(k.directory, &contents), STATUS_USAGE, "'../notes' cannot be a file");
    contents.extras[0].file = "config.json";
    EXPECT_ERROR(checkpoint_save(k.directory, &contents), STATUS_USAGE, "two files named config.json");
    EXPECT_OK(checkpoint_dir_open_newest(&c, k.directory, &found));
    checkpoint_close(&c);
    case_fini(&k);
}

/* ckpt_2 of two parts, of which the second has other moments than it should. */
static void expect_refused(struct checkpoint_case *k, int64_t begin, int64_t count, const char *message)
{
    struct checkpoint_save save;
    struct checkpoint_part parts[2];
    struct checkpoint c;
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint_contents first = contents_of(k, 2, 0, 2), second = contents_of(k, 2, 1, 2);
    second.exp_avg = tensor_1d(k->flat[1] + begin, DTYPE_F32, count);
    second.exp_avg_sq = tensor_1d(k->flat[2] + begin, DTYPE_F32, count);
    second.moments_begin = begin;
    EXPECT_OK(checkpoint_save_begin(&save, k->directory, &first));
    EXPECT_OK(checkpoint_save_part(&parts[0], save.temporary.path, &first));
    EXPECT_OK(checkpoint_save_part(&parts[1], save.temporary.path, &second));
    EXPECT_OK(checkpoint_save_commit(&save, &first, parts, 2));
    checkpoint_save_end(&save);
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_2", k->directory));
    EXPECT_ERROR(checkpoint_open(&c, path), STATUS_DATA, message);
    EXPECT(case_newest(k) == 1, "it was resumed from");
}

static void test_refused(void)
{
    struct checkpoint_case k;
    case_init(&k);
    EXPECT_OK(case_save(&k, 1));
    expect_refused(
        &k, 52, CASE_ELEMENTS - 52,
        "optimizer-00002-of-00002.safetensors: tensor exp_avg.bert.embeddings.word_embeddings.weight lacks "
        "the elements [50, 52), which no file holds");
    expect_refused(&k, 50, CASE_SLAB + 3 - 50,
                   "optimizer-00002-of-00002.safetensors: tensor exp_avg.cls.predictions.bias lacks the "
                   "elements [3, 6)");
    expect_refused(
        &k, 40, CASE_ELEMENTS - 40,
        "optimizer-00002-of-00002.safetensors: tensor exp_avg.bert.embeddings.word_embeddings.weight: its "
        "elements from 40 on are also in");
    case_fini(&k);
}

/* A manifest of these files, whose last line is right: what parsing it says. */
static void expect_manifest(const char *files, int version, const char *message)
{
    char text[4096];
    struct checkpoint_manifest m;
    int n = snprintf(text, sizeof text,
                     "{\n  \"format\": \"kiln checkpoint\",\n  \"format_version\": %d,\n  \"step\": 3,\n  "
                     "\"phase_end\": false,\n  \"vocab_hash\": \"e78096dfd01cf895\",\n  \"files\": {%s},\n",
                     version, files);
    uint32_t crc = hash_crc32c(0, text, (size_t)n);
    n += snprintf(text + n, sizeof text - (size_t)n, "  \"manifest_crc32c\": \"%08x\"\n}\n", crc);
    struct status s = checkpoint_manifest_parse(&m, text, (size_t)n, "manifest");
    EXPECT(message == NULL ? !failed(s) : s.code == STATUS_DATA && strstr(s.message, message) != NULL,
           "version %d of %s: %s", version, files, s.message);
    checkpoint_manifest_fini(&m);
}

#define ONE(name) "\"" name "\": {\"bytes\": 5, \"crc32c\": \"00000000\"}"
#define OTHERS    ONE("config.json") "," ONE("tokenizer_config.json") "," ONE("trainer_state.json")
#define SETS      ONE("model.safetensors") "," ONE("optimizer.safetensors")
#define PLAIN     SETS "," OTHERS "," ONE("vocab.txt")

static void test_manifests(void)
{
    expect_manifest(PLAIN, 1, NULL);
    expect_manifest(PLAIN "," ONE("cublaslt.cache"), 2, NULL);
    expect_manifest(PLAIN "," ONE("fp8.safetensors"), 3, NULL);
    expect_manifest(PLAIN "," ONE("other"), 4, NULL);
    expect_manifest(SETS "," OTHERS, 4, NULL);
    expect_manifest(OTHERS
                    "," ONE("model.safetensors") "," ONE("optimizer-00002-of-00002.safetensors") "," ONE(
                        "optimizer-00001-of-00002.safetensors"),
                    4, NULL);
    expect_manifest(PLAIN "," ONE("other"), 1, "has version 1, but lists files of version 4");
    expect_manifest(PLAIN, 4, "has version 4, but lists files of version 1");
    expect_manifest(PLAIN, 5, "of version 5; this kiln reads");
    expect_manifest(PLAIN, 0, "of version 0; this kiln reads");
    expect_manifest("", 4, "does not list model.safetensors");
    expect_manifest(SETS, 4, "does not list config.json");
    expect_manifest(OTHERS "," ONE("model.safetensors"), 4, "does not list optimizer.safetensors");
    expect_manifest(OTHERS "," ONE("model.safetensors") "," ONE("optimizer-00002-of-00002.safetensors"), 4,
                    "does not list optimizer-00001-of-00002.safetensors");
    expect_manifest(PLAIN "," ONE("optimizer-00001-of-00002.safetensors"), 4, "optimizer");
    expect_manifest(PLAIN "," ONE("optimizer-00001-of-00001.safetensors"), 4,
                    NULL); /* of no set, so an optional file */
    expect_manifest(PLAIN "," ONE("optimizer-00003"), 4, NULL);
    static const char *const names[] = {
        ONE("../x"),
        ONE("a/b"),
        ONE(".x"),
        ONE(""),
        ONE("manifest.json"),
        ONE("a\\u0000b"),
        ONE("an-eight-and-sixty-bytes-long-name-that-nobody-would-ever-want-to-have"),
        "\"x\": 3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char files[2048];
        snprintf(files, sizeof files, "%s,%s", PLAIN, names[i]);
        expect_manifest(files, 4, i == 5 ? "JSON" : "names of files in its directory");
    }
    expect_manifest(PLAIN ",\"x\": {\"bytes\": -1, \"crc32c\": \"00000000\"}", 4, "x has a size of -1");
    expect_manifest(PLAIN ",\"x\": {\"bytes\": 1, \"crc32c\": \"0000000\"}", 4, "8 hexadecimal digits");
    expect_manifest(PLAIN "," ONE("config.json"), 4, "JSON");
}

int main(void)
{
    test_any_cut();
    test_one_part();
    test_whole_weights();
    test_new_file();
    test_refused();
    test_manifests();
    return 0;
}
