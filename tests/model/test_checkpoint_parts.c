/* Ranks of any mesh write their parts of a model as one checkpoint, in which every tensor is whole, and
 * ranks of any other mesh read theirs.  An initial value is a function of the element's place in the whole
 * tensor, so each rank makes the values that it must write and read. */
#include "checkpoint_case.h"
#include "dist/pipeline.h"
#include "nn/bert/bert_model.h"
#include "nn/decoder/decoder_config.h"

#include <stdlib.h>

enum { N_LAYERS = 4, MOST_PARTS = 16, N_SIZES = 3 };

static const int sizes[N_SIZES] = {1, 2, 4};

static struct model *decoder(bool alibi)
{
    const struct decoder_config config = {.vocab_size = 45,
                                          .n_positions = 8,
                                          .hidden_size = 16,
                                          .n_layers = N_LAYERS,
                                          .n_heads = 4,
                                          .feed_forward_size = 32,
                                          .initializer_range = 0.02,
                                          .positions =
                                              alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                          .embedding_norm = alibi};
    struct model *m;
    EXPECT_OK((alibi ? bloom_model_create : gpt2_model_create)(&m, &config, MODEL_TASK_CAUSAL_LM));
    return m;
}

static struct model *bert(void)
{
    const struct bert_config config = {.vocab_size = 45,
                                       .hidden_size = 16,
                                       .num_hidden_layers = N_LAYERS,
                                       .num_attention_heads = 4,
                                       .intermediate_size = 32,
                                       .max_position_embeddings = 8,
                                       .type_vocab_size = 2,
                                       .initializer_range = 0.02,
                                       .sinusoidal_positions = true};
    struct model *m;
    EXPECT_OK(bert_model_create(&m, &config, MODEL_TASK_PRETRAINING));
    return m;
}

/* The table of a rank, and its values under three seeds: weights and both moments. */
struct rank {
    struct param_table params;
    tensor flat[3];
};

static void open_rank(struct rank *r, const struct model *m, int stages, int slices, int part)
{
    int stage = part / slices;
    *r = (struct rank){.params.part = {.slice = part % slices, .n_slices = slices, .n_ranges = 1}};
    r->params.part.ranges[0] = pipeline_layers(N_LAYERS, stage, stages, PIPELINE_BY_LAYERS);
    r->params.part.tied = stage == stages - 1 ? m->tied : NULL;
    EXPECT_OK(m->type->declare(m, &r->params));
    for (int f = 0; f < 3; f++) {
        int64_t n = r->params.n_elements;
        r->flat[f] = tensor_1d(malloc((size_t)n * sizeof(float)), DTYPE_F32, n);
        EXPECT(r->flat[f].data != NULL, "out of memory");
        param_table_initialize(r->flat[f], &r->params, (uint64_t)f);
    }
}

static void close_rank(struct rank *r)
{
    for (int f = 0; f < 3; f++) {
        free(r->flat[f].data);
    }
    param_table_fini(&r->params);
}

static struct checkpoint_contents contents_of(struct checkpoint_case *k, struct rank *r, int part,
                                              int n_parts)
{
    struct checkpoint_contents c = case_contents(k, 7);
    c.params = &r->params;
    c.master = r->flat[0], c.exp_avg = r->flat[1], c.exp_avg_sq = r->flat[2];
    c.part = part, c.n_parts = n_parts;
    return c;
}

static void write_mesh(struct checkpoint_case *k, const struct model *m, int stages, int slices)
{
    struct checkpoint_save save;
    struct checkpoint_part parts[MOST_PARTS];
    struct checkpoint_contents c;
    struct rank r;
    for (int i = 0; i < stages * slices; i++) {
        open_rank(&r, m, stages, slices, i);
        c = contents_of(k, &r, i, stages * slices);
        if (i == 0) {
            EXPECT_OK(checkpoint_save_begin(&save, k->directory, &c));
        }
        EXPECT_OK(checkpoint_save_part(&parts[i], save.temporary.path, &c));
        close_rank(&r);
    }
    EXPECT_OK(checkpoint_save_commit(&save, &c, parts, stages * slices));
    checkpoint_save_end(&save);
}

/* What a rank reads; copies of other ranks' parameters have weights alone. */
static void read_rank(const struct checkpoint *c, const struct model *m, int stages, int slices, int part)
{
    struct rank r;
    float *read[3];
    open_rank(&r, m, stages, slices, part);
    int64_t copies = param_table_end_of_copies(&r.params), n = r.params.n_elements;
    tensor t[3];
    for (int f = 0; f < 3; f++) {
        read[f] = calloc((size_t)n, sizeof *read[f]);
        EXPECT(read[f] != NULL, "out of memory");
        t[f] = tensor_1d(read[f], DTYPE_F32, n);
    }
    EXPECT_OK(read_weights(c, &r.params, 0, t[0]));
    EXPECT_OK(read_moments(c, &r.params, copies, tensor_slice(t[1], copies, n - copies),
                           tensor_slice(t[2], copies, n - copies)));
    for (int f = 0; f < 3; f++) {
        int64_t from = f == 0 ? 0 : copies;
        EXPECT(memcmp(read[f] + from, (float *)r.flat[f].data + from, (size_t)(n - from) * sizeof(float)) ==
                   0,
               "stage %d of %d, slice %d of %d: buffer %d is another", part / slices, stages, part % slices,
               slices, f);
        free(read[f]);
    }
    close_rank(&r);
}

/* `m` is destroyed. */
static void any_mesh_reads_any_other(struct model *m)
{
    struct checkpoint_case k;
    for (int w = 0; w < N_SIZES * N_SIZES; w++) {
        struct checkpoint c;
        char path[CHECKPOINT_PATH_BYTES];
        case_init(&k);
        write_mesh(&k, m, sizes[w / N_SIZES], sizes[w % N_SIZES]);
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_7", k.directory));
        EXPECT_OK(checkpoint_open(&c, path));
        EXPECT(c.model.n * 2 == c.optimizer.n, "%d tensors, %d moments", c.model.n, c.optimizer.n);
        for (int v = 0; v < N_SIZES * N_SIZES; v++) {
            for (int i = 0; i < sizes[v / N_SIZES] * sizes[v % N_SIZES]; i++) {
                read_rank(&c, m, sizes[v / N_SIZES], sizes[v % N_SIZES], i);
            }
        }
        checkpoint_close(&c);
        case_fini(&k);
    }
    free(m);
}

int main(void)
{
    any_mesh_reads_any_other(decoder(false));
    any_mesh_reads_any_other(decoder(true));
    any_mesh_reads_any_other(bert());
    return 0;
}
