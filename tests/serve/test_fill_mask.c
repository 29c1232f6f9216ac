/* Tests of serve/fill_mask: among words that are equally probable the lower id comes first, inside the list
 * and at its end. */
#define _GNU_SOURCE
#include "session_case.h"

#include "core/dtype.h"

/* Makes every weight zero but the bias of two words: the model finds these two equally probable, and all
 * others too. */
static void make_equal(const char *path, int32_t a, int32_t b)
{
    struct safetensors weights;
    struct file_map map;
    struct buf out = {0};
    const uint16_t one = 0x3f80; /* in bf16 */
    EXPECT_OK(safetensors_open(&weights, path));
    EXPECT_OK(file_map_open(&map, path));
    buf_append(&out, map.data, map.n);
    for (int i = 0; i < weights.n; i++) {
        const struct stored_tensor *e = &weights.entries[i];
        memset(out.data + ((const unsigned char *)e->data - weights.map.data), 0, e->bytes);
    }
    const struct stored_tensor *bias = safetensors_find(&weights, "cls.predictions.bias");
    EXPECT(bias != NULL && bias->dtype == DTYPE_BF16, "the model has another bias");
    char *at = (char *)out.data + ((const unsigned char *)bias->data - weights.map.data);
    memcpy(at + a * sizeof one, &one, sizeof one);
    memcpy(at + b * sizeof one, &one, sizeof one);
    EXPECT_OK(buf_status(&out));
    file_map_close(&map);
    safetensors_close(&weights);
    EXPECT_OK(file_write_atomic(path, out.data, out.n));
    buf_fini(&out);
}

static void the_lower_id_comes_first(const char *path)
{
    static const int32_t wanted[] = {7, 20, 0, 1};
    enum { N = sizeof wanted / sizeof wanted[0] };
    struct session_options options = session_defaults();
    struct session owner, s;
    struct fill_result result;
    EXPECT_OK(session_open_model(&owner, path, &options));
    EXPECT_OK(session_open_shared(&s, &owner, MODEL_TASK_MASKED_LM, &(struct session_options){0}));
    for (int64_t k = 1; k <= N; k++) {
        EXPECT_OK(fill_mask(&s, session_case_masked, strlen(session_case_masked), k, &result));
        EXPECT(result.n_masks == 2 && result.top_k == k, "%lld masks", (long long)result.n_masks);
        for (int64_t i = 0; i < 2 * k; i++) {
            EXPECT(result.candidates[i].id == wanted[i % k], "candidate %lld of %lld is %d, not %d",
                   (long long)i, (long long)k, result.candidates[i].id, wanted[i % k]);
        }
        fill_result_fini(&result);
    }
    session_close(&s);
    session_close(&owner);
}

/* A session for one mask in each text refuses a text with more of them than a batch has room for. */
static void too_many_masks(const char *path)
{
    enum { MASKS = 8 };
    struct session_options options = session_defaults();
    struct session s;
    struct fill_job j;
    struct buf text = {0};
    options.batching = BATCHING_FEW_ASKED;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_MASKED_LM, &options));
    for (int i = 0; i < MASKS; i++) {
        buf_append(&text, "[MASK] ", 7);
    }
    s.packer.limits.n_labels = MASKS;
    EXPECT_OK(fill_job_make(&j, &s, &s.scratch, buf_text(&text), text.n, 1));
    fill_job_fini(&j);
    s.packer.limits.n_labels = MASKS - 1;
    EXPECT_ERROR(fill_job_make(&j, &s, &s.scratch, buf_text(&text), text.n, 1), STATUS_DATA, "has 8 masks");
    fill_job_fini(&j);
    buf_fini(&text);
    session_close(&s);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH], weights[SESSION_CASE_PATH + 32];
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/masked_lm", directory);
    snprintf(weights, sizeof weights, "%s/model.safetensors", path);
    make_equal(weights, 20, 7);
    the_lower_id_comes_first(path);
    too_many_masks(path);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
