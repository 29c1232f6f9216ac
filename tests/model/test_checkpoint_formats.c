/* Checkpoints that earlier builds wrote, in every version of the format (tests/golden/make_checkpoints.sh),
 * are read to the bit, and the same state gives the same files today. */
#include "checkpoint_case.h"

static const char golden_path[] = KILN_SOURCE_DIR "/tests/golden/checkpoints.safetensors";

/* Writes the golden checkpoints as directories. */
static void unpack(const struct safetensors *golden, const struct checkpoint_case *k)
{
    for (int i = 0; i < golden->n; i++) {
        const struct stored_tensor *e = &golden->entries[i];
        char path[CHECKPOINT_PATH_BYTES], parent[FILE_PATH_BYTES];
        EXPECT_OK(checkpoint_path(path, "%s/%s", k->directory, e->name));
        file_parent(parent, path);
        EXPECT_OK(file_make_directories(parent));
        EXPECT_OK(file_write_atomic(path, e->data, e->bytes));
    }
}

static bool has_file(const struct safetensors *golden, int64_t step, const char *file)
{
    char name[64];
    snprintf(name, sizeof name, "ckpt_%d/%s", (int)step, file);
    return safetensors_find(golden, name) != NULL;
}

static void expect_read(struct checkpoint_case *k, const struct safetensors *golden, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint c;
    float read[2 * CASE_HISTORIES], nothing[2 * CASE_HISTORIES] = {0};
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d", k->directory, (int)step));
    EXPECT_OK(checkpoint_open(&c, path));
    EXPECT(c.manifest.step == step && c.manifest.phase_end == (step == 4), "step %lld",
           (long long)c.manifest.step);
    case_expect_values(k, &c, step);
    EXPECT(json_equal(c.config, k->config) && json_equal(c.state, k->state), "config or state");
    EXPECT_OK(checkpoint_read_extra(&c, "fp8.safetensors", "histories",
                                    tensor_2d(read, DTYPE_F32, CASE_HISTORIES, 2)));
    bool has = has_file(golden, step, "fp8.safetensors");
    EXPECT(memcmp(read, has ? case_histories : nothing, sizeof read) == 0, "histories of step %lld",
           (long long)step);
    checkpoint_close(&c);
}

/* All files but the manifest, which names the build, are the golden ones, byte for byte. */
static void expect_same_files(struct checkpoint_case *k, const struct safetensors *golden, int64_t step)
{
    char prefix[16], path[CHECKPOINT_PATH_BYTES];
    int n = 0;
    snprintf(prefix, sizeof prefix, "ckpt_%d/", (int)step);
    for (int i = 0; i < golden->n; i++) {
        const struct stored_tensor *e = &golden->entries[i];
        struct file_map map;
        if (strncmp(e->name, prefix, strlen(prefix)) != 0 || strstr(e->name, "manifest.json") != NULL) {
            continue;
        }
        EXPECT_OK(checkpoint_path(path, "%s/%s", k->directory, e->name));
        EXPECT_OK(file_map_open(&map, path));
        EXPECT(map.n == e->bytes && memcmp(map.data, e->data, map.n) == 0, "%s differs", e->name);
        file_map_close(&map);
        n++;
    }
    EXPECT(n >= 6, "%d files", n);
}

int main(void)
{
    struct checkpoint_case k;
    struct safetensors golden;
    EXPECT_OK(safetensors_open(&golden, golden_path));
    case_init(&k);
    unpack(&golden, &k);
    for (int64_t step = 1; step <= 4; step++) {
        expect_read(&k, &golden, step);
    }
    EXPECT(case_newest(&k) == 4, "newest");
    EXPECT_OK(file_remove_tree(k.directory));
    EXPECT_OK(file_make_directories(k.directory));
    EXPECT_OK(case_save(&k, 1));
    expect_same_files(&k, &golden, 1);
    safetensors_close(&golden);
    case_fini(&k);
    return 0;
}
