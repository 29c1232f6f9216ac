/* Ranks that share the update save the moments of their shards, or of their stages, as one checkpoint;
 * whoever resumes from it, alone, in shards or in stages, has the weights and moments that were saved, each
 * what it needs of them. */
#include "train/save_ranks.h"
#include "train/trainer_state.h"

#include "bert_fixture.h"
#include "checkpoint_case.h"
#include "rank_trainer.h"

enum { N_FLAT = 3, N_MICRO = 4, SEQUENCES = 2, LONGEST = 14 };

static const double DEADLINE_S = 60;

struct way {
    int n_ranks;
    bool in_stages, shares_gradients;
};

struct run {
    struct trainer_config config;
    struct batch_step batch;
    struct checkpoint_case k;            /* its directory and JSON */
    struct checkpoint_contents contents; /* all but tensors and table */
    struct way way;
    int64_t step;
    struct param_table params; /* of the whole model */
    /* [elements of the table] weights and moments, put together of what each rank has */
    float *saved[N_FLAT];
};

static struct trainer_config config_of(const struct run *r, const struct comm *c)
{
    struct trainer_config config = r->config;
    config.ranks = r->way.in_stages ? stages_of(c, N_MICRO) : replicas_of(c, r->way.shares_gradients ? 2 : 1);
    return config;
}

/* A stage's table has its own layers only. */
static int64_t place_of(const struct run *r, const struct param *p)
{
    return param_table_find(&r->params, p->name)->offset;
}

static tensor own_part(const struct trainer *t, tensor flat)
{
    struct param_shard own = t->update.shard;
    return tensor_slice(flat, own.begin, own.end - own.begin);
}

static void train_and_save(const struct comm *c, void *context)
{
    struct run *r = context;
    struct trainer_config config = config_of(r, c);
    struct trainer t;
    struct trainer_result result;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    open_trainer_of(&t, &config, c);
    EXPECT_OK(trainer_step(&t, r->way.in_stages ? &r->batch : &mine, 1, 1, 1e-2, &result));
    struct checkpoint_contents contents = r->contents;
    contents.params = &t.net.params;
    contents.master = network_has_master(&t.net) ? own_part(&t, t.net.master) : t.net.master;
    contents.exp_avg = t.exp_avg;
    contents.exp_avg_sq = t.exp_avg_sq;
    contents.master_begin = contents.moments_begin = t.update.shard.begin;
    EXPECT_OK(save_ranks(c, &t.net.x, r->k.directory, &contents));
    const tensor parts[N_FLAT] = {contents.master, t.exp_avg, t.exp_avg_sq};
    for (int i = 0; i < t.net.params.n; i++) {
        const struct param *p = &t.net.params.params[i];
        struct param_shard own = param_shard_cut(p, t.update.shard);
        int64_t to = place_of(r, p) + own.begin - p->offset, from = own.begin - t.update.shard.begin;
        for (int f = 0; f < N_FLAT && own.begin < own.end; f++) {
            memcpy(r->saved[f] + to, (const float *)parts[f].data + from,
                   (size_t)(own.end - own.begin) * sizeof(float));
        }
    }
    trainer_fini(&t);
}

/* The parameters of a slice that begins at `begin`; what is between them is nobody's. */
static void expect_saved(const struct run *r, const struct trainer *t, int f, tensor got, int64_t begin)
{
    struct param_shard slice = {begin, begin + tensor_count(got)};
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        struct param_shard part = param_shard_cut(p, slice);
        EXPECT(memcmp((const float *)got.data + part.begin - begin,
                      r->saved[f] + place_of(r, p) + part.begin - p->offset,
                      (size_t)(part.end - part.begin) * sizeof(float)) == 0,
               "%s, flat buffer %d: not what was saved", p->name, f);
    }
}

/* What passes read of all weights, whichever rank has them in fp32. */
static void expect_copies(const struct run *r, const struct trainer *t)
{
    const struct network *n = &t->net;
    bool whole = network_has_master(n);
    for (int i = 0; i < n->params.n; i++) {
        const struct param *p = &n->params.params[i];
        const float *saved = r->saved[0] + place_of(r, p);
        tensor working = param_view(p, n->working);
        bool in_fp32 = !whole && vector_places_has(&n->places, p);
        tensor vector = in_fp32 ? param_view(&n->places.table.params[i], n->vectors) : NULL_TENSOR;
        for (int64_t k = 0; k < param_count(p); k++) {
            uint16_t bits;
            tensor rounded = tensor_1d(&bits, working.dtype, 1);
            tensor_set(rounded, 0, (double)saved[k]);
            EXPECT(tensor_get(working, k) == tensor_get(rounded, 0), "the copy of %s", p->name);
            EXPECT(!in_fp32 || ((const float *)vector.data)[k] == saved[k], "the vector %s", p->name);
        }
    }
}

static void resume(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer_config config = config_of(r, c);
    struct trainer t;
    struct checkpoint checkpoint;
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_%lld", r->k.directory, (long long)r->step));
    EXPECT_OK(checkpoint_open(&checkpoint, path));
    struct training_state state = training_state_of(&checkpoint);
    EXPECT_OK(trainer_state_resume(&t, &state));
    checkpoint_close(&checkpoint);
    expect_saved(r, &t, 0, t.net.master, t.net.owned.begin);
    expect_copies(r, &t);
    expect_saved(r, &t, 1, t.exp_avg, t.update.shard.begin);
    expect_saved(r, &t, 2, t.exp_avg_sq, t.update.shard.begin);
    trainer_fini(&t);
}

int main(void)
{
    static const struct way ways[] = {{.n_ranks = 1},
                                      {.n_ranks = 2},
                                      {.n_ranks = 4},
                                      {.n_ranks = 2, .in_stages = true},
                                      {.n_ranks = 4, .in_stages = true},
                                      {.n_ranks = 2, .shares_gradients = true},
                                      {.n_ranks = 4, .shares_gradients = true}};
    struct run r = {0};
    case_init(&r.k);
    fixture_step(&r.batch, N_MICRO, SEQUENCES, LONGEST);
    r.config = fixture_trainer(ops_cpu(), DTYPE_BF16, r.batch.micro[0].limits);
    struct bert_model *bert = fixture_bert(&r.config);
    bert->config.num_hidden_layers = 4;
    fixture_bert_changed(bert);
    EXPECT_OK(r.config.net.model->type->declare(r.config.net.model, &r.params));
    for (int f = 0; f < N_FLAT; f++) {
        r.saved[f] = calloc((size_t)r.params.n_elements, sizeof *r.saved[f]);
        EXPECT(r.saved[f] != NULL, "out of memory");
    }
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        r.way = ways[w];
        r.step = (int64_t)w + 1;
        r.contents = case_contents(&r.k, r.step);
        run_ranks(r.way.n_ranks, DEADLINE_S, train_and_save, &r);
        for (size_t v = 0; v < sizeof ways / sizeof ways[0]; v++) {
            r.way = ways[v];
            run_ranks(r.way.n_ranks, DEADLINE_S, resume, &r);
        }
    }
    for (int f = 0; f < N_FLAT; f++) {
        free(r.saved[f]);
    }
    param_table_fini(&r.params);
    batch_step_fini(&r.batch);
    case_fini(&r.k);
    return 0;
}
