/* The fixed input is the same in every version.  The file of a model's outputs holds the batch and every
 * output that is there, under its name; two sets of outputs are compared by their largest difference. */
#define _GNU_SOURCE
#include "serve/model_outputs.h"
#include "session_case.h"

static const char PATH[] = "test_model_outputs.safetensors";

static void expect_entry(const struct safetensors *f, const char *name, int64_t rows, const void *data,
                         size_t bytes)
{
    const struct stored_tensor *e = safetensors_find(f, name);
    EXPECT(e != NULL, "there is no %s", name);
    EXPECT(e->dims[0] == rows && e->bytes == bytes && memcmp(e->data, data, bytes) == 0, "%s is another",
           name);
}

static void files_hold_batch_and_outputs(void)
{
    int32_t ids[6] = {1, 2, 3, 4, 5, 0}, types[6] = {0, 0, 1, 0, 1, 0}, lengths[2] = {3, 2};
    float pairs[4] = {1, -2, 3, -4}, hidden[5] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f};
    struct outputs_input in = {2, 3, ids, types, lengths};
    struct model_outputs o = {0};
    struct safetensors f;
    o.values[MODEL_PAIR_LOGITS] = tensor_2d(pairs, DTYPE_F32, 2, 2);
    o.values[MODEL_HIDDEN] = tensor_2d(hidden, DTYPE_F32, 5, 1);
    EXPECT_OK(model_outputs_save(PATH, &in, &o));
    EXPECT_OK(safetensors_open(&f, PATH));
    EXPECT(f.n == 5, "%d tensors", f.n);
    expect_entry(&f, "ids", 2, ids, sizeof ids);
    expect_entry(&f, "types", 2, types, sizeof types);
    expect_entry(&f, "lengths", 2, lengths, sizeof lengths);
    expect_entry(&f, "nsp", 2, pairs, sizeof pairs);
    expect_entry(&f, "hidden", 5, hidden, sizeof hidden);
    safetensors_close(&f);
    EXPECT_OK(file_remove_tree(PATH));
}

static void outputs_are_compared(void)
{
    float a[4] = {1, -9, 3, 4}, b[4] = {1, -8, 5, 4};
    struct model_outputs one = {0}, other = {0};
    double difference, largest;
    one.values[MODEL_SPAN_LOGITS] = tensor_2d(a, DTYPE_F32, 2, 2);
    EXPECT(!model_outputs_compare(&difference, &largest, &one, &other, MODEL_SPAN_LOGITS),
           "one is not there");
    other.values[MODEL_SPAN_LOGITS] = tensor_2d(b, DTYPE_F32, 1, 4);
    EXPECT(!model_outputs_compare(&difference, &largest, &one, &other, MODEL_SPAN_LOGITS),
           "of another shape");
    other.values[MODEL_SPAN_LOGITS] = tensor_2d(b, DTYPE_F32, 2, 2);
    EXPECT(model_outputs_compare(&difference, &largest, &one, &other, MODEL_SPAN_LOGITS), "both are there");
    EXPECT(difference == 2 && largest == 9, "difference %g of %g", difference, largest);
    b[0] = -7; /* the first and the last element count too */
    EXPECT(model_outputs_compare(&difference, &largest, &one, &other, MODEL_SPAN_LOGITS) && difference == 8,
           "difference %g", difference);
    a[3] = -10;
    EXPECT(model_outputs_compare(&difference, &largest, &one, &other, MODEL_SPAN_LOGITS) &&
               difference == 14 && largest == 10,
           "difference %g of %g", difference, largest);
}

/* Sequences of 7, 4 and 5 tokens, [CLS] A [SEP] B [SEP] each, of 37 pieces; 4 is [MASK]. */
static void input_is_fixed(void)
{
    static const int32_t ids[21] = {2, 12, 13, 3, 15, 16, 3, 2, 31, 3, 3, 0, 0, 0, 2, 13, 3, 4, 3, 0, 0};
    static const int32_t types[21] = {0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0};
    char directory[64], path[SESSION_CASE_PATH];
    struct model_dir m;
    struct outputs_input in;
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/masked_lm", directory);
    EXPECT_OK(model_dir_open(&m, path));
    m.max_length = 7;
    EXPECT_OK(outputs_input_fixed(&in, &m));
    EXPECT(in.n_sequences == 3 && in.length == 7 && in.lengths[0] == 7 && in.lengths[1] == 4 &&
               in.lengths[2] == 5,
           "other lengths: %d %d %d", in.lengths[0], in.lengths[1], in.lengths[2]);
    for (int i = 0; i < 21; i++) {
        EXPECT(in.ids[i] == ids[i] && in.types[i] == types[i], "token %d: %d, type %d", i, in.ids[i],
               in.types[i]);
    }
    outputs_input_fini(&in);
    model_dir_close(&m);
    EXPECT_OK(file_remove_tree(directory));
}

int main(void)
{
    input_is_fixed();
    files_hold_batch_and_outputs();
    outputs_are_compared();
    return 0;
}
