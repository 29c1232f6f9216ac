/* fuzz_zero_folder: any pickles as DeepSpeed's states and as the files of its first two ranks: refused, or
 * every parameter and every moment can be read. */
#include "fixture_zip.h"
#include "io/file.h"
#include "io/zero_folder.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_BYTES = 1 << 16 };

static void write_file(const char *folder, const char *name, const uint8_t *pickle, size_t n)
{
    static const unsigned char storage[64];
    char path[256];
    struct zip_maker z = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    zip_put(&z, "archive/data.pkl", pickle, n);
    zip_put(&z, "archive/data/0", storage, sizeof storage);
    zip_finish(&z, "");
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fwrite(z.out.data, 1, z.out.n, f) == z.out.n && fclose(f) == 0, "%s", path);
    zip_fini(&z);
}

static void read_all(const struct zero_folder *z)
{
    static unsigned char room[MOST_BYTES];
    for (int kept = 0; kept < (z->has_moments ? PARAM_N_KEPT : 1); kept++) {
        for (int i = 0; i < z->n; i++) {
            const struct stored_tensor *t = &z->tensors[kept][i];
            int64_t count = (int64_t)(t->bytes / dtype_bytes(t->dtype));
            CHECK(count <= (int64_t)(MOST_BYTES / sizeof(float)), "%s has %lld elements", t->name,
                  (long long)count);
            struct status s = stored_tensor_read_elements(t, 0, tensor_1d(room, DTYPE_F32, count));
            CHECK(!failed(s), "%s", s.message);
        }
    }
}

/* The first two bytes say how the rest is cut into three pickles. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char folder[] = "/tmp/kiln_fuzz_zero_XXXXXX";
    static bool is_made;
    struct torch_file states;
    struct zero_folder z;
    if (n < 2) {
        return 0;
    }
    is_made = is_made || mkdtemp(folder) != NULL;
    CHECK(is_made, "%s", folder);
    size_t left = n - 2, first = left * data[0] / 256, second = (left - first) * data[1] / 256;
    write_file(folder, ZERO_FOLDER_STATES, data + 2, first);
    write_file(folder, "zero_pp_rank_0_mp_rank_00_optim_states.pt", data + 2 + first, second);
    write_file(folder, "zero_pp_rank_1_mp_rank_00_optim_states.pt", data + 2 + first + second,
               left - first - second);
    char path[256];
    snprintf(path, sizeof path, "%s/" ZERO_FOLDER_STATES, folder);
    if (failed(torch_file_open(&states, path))) {
        return 0;
    }
    struct status s = zero_folder_open(&z, folder, states.root);
    CHECK(!failed(s) || s.code == STATUS_DATA || s.code == STATUS_UNAVAILABLE, "%s", s.message);
    if (!failed(s)) {
        read_all(&z);
    }
    zero_folder_close(&z);
    torch_file_close(&states);
    return 0;
}
