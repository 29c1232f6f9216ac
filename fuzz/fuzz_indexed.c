/* fuzz_indexed: any bytes as a token store.  A store that opens can be read to its last token, sampled from,
 * and made into batches.  Input: one byte n, n bytes of .bin, the rest is .idx. */
#include "data/bert/bert_loader.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char directory[] = "/dev/shm/kiln-fuzz-XXXXXX"; /* in memory: 50 times faster */

static void remove_directory(void)
{
    file_remove_tree(directory);
}

static void write_file(const char *name, const uint8_t *bytes, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "%s", path);
}

static void read_everything(const struct indexed *x)
{
    int32_t token;
    for (int64_t i = 0; i < x->n_sequences; i++) {
        int64_t document = indexed_find_document(x, i);
        CHECK(indexed_first_sequence(x, document) <= i && i < indexed_first_sequence(x, document + 1),
              "document");
        for (int64_t t = indexed_offset(x, i); t < indexed_offset(x, i + 1); t++) {
            indexed_copy(x, &token, t, 1);
        }
    }
}

static void make_batches(const struct indexed *x)
{
    struct bert_loader_config c = {.store = x,
                                   .vocab_size = 60000,
                                   .cls_id = 1,
                                   .sep_id = 2,
                                   .mask_id = 3,
                                   .batch.max_seq_length = 16,
                                   .max_predictions_per_seq = 3,
                                   .batch.train_batch_size = 4,
                                   .batch.gradient_accumulation_steps = 2,
                                   .masked_lm_prob = 0.15,
                                   .short_seq_prob = 0.3};
    struct bert_loader l;
    struct batch_step step;
    if (failed(bert_loader_open(&l, c))) {
        return;
    }
    CHECK(!failed(bert_loader_init_step(&c, &step)), "memory");
    for (int64_t s = 1; s <= 3; s++) {
        if (!failed(bert_loader_step(&l, s, &step))) {
            CHECK(step.n_sequences == 4 && step.n_tokens >= 4 * 5, "%lld tokens", (long long)step.n_tokens);
        }
    }
    batch_step_fini(&step);
    bert_loader_close(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char prefix[64];
    if (prefix[0] == '\0') {
        CHECK(mkdtemp(directory) != NULL, "mkdtemp");
        atexit(remove_directory);
        snprintf(prefix, sizeof prefix, "%s/x", directory);
    }
    if (n == 0 || n - 1 < data[0]) {
        return 0;
    }
    write_file("x.bin", data + 1, data[0]);
    write_file("x.idx", data + 1 + data[0], n - 1 - data[0]);
    struct indexed x;
    if (!failed(indexed_open(&x, prefix))) {
        read_everything(&x);
        make_batches(&x);
        indexed_close(&x);
    }
    return 0;
}
