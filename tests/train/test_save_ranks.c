/* A checkpoint that 1, 2 and 4 ranks write together, each its slice, is one checkpoint: read back by 1, 2 and
 * 4 ranks it has the same bytes, opened as a model it has the same tensors, and one rank's failure fails all
 * and leaves nothing. */
#include "checkpoint_case.h"
#include "ranks.h"

#include "model/model_files.h"
#include "train/save_ranks.h"

enum { N_WAYS = 3 };

static const int ways[N_WAYS] = {1, 2, 4};
static const double DEADLINE_S = 60;

struct saving {
    struct checkpoint_case *k;
    const struct checkpoint_contents *whole;
    int failing; /* the exec of this rank has failed before; -1: of none */
    int n_failed;
    pthread_mutex_t mutex;
};

static int64_t begin_of(int rank, int n)
{
    static const int64_t quarters[] = {0, 33, 90, CASE_SLAB + 4, CASE_ELEMENTS};
    return quarters[rank * 4 / n];
}

static void take_slice(struct checkpoint_contents *c, int rank, int n)
{
    int64_t begin = begin_of(rank, n), count = begin_of(rank + 1, n) - begin;
    c->master = tensor_slice(c->master, begin, count);
    c->exp_avg = tensor_slice(c->exp_avg, begin, count);
    c->exp_avg_sq = tensor_slice(c->exp_avg_sq, begin, count);
    c->master_begin = c->moments_begin = begin;
    if (rank > 0) { /* what only the first needs */
        c->config = c->tokenizer = c->state = NULL;
        c->n_vocabulary = 0;
    }
}

static void save_slice(const struct comm *comm, void *context)
{
    struct saving *s = context;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    struct checkpoint_contents c = *s->whole;
    take_slice(&c, comm->rank, comm->size);
    if (s->failing == comm->rank) {
        exec_fail(&x, STATUS_IO, "test", "no more");
    }
    struct status status = save_ranks(comm, &x, s->k->directory, &c);
    pthread_mutex_lock(&s->mutex);
    s->n_failed += failed(status);
    EXPECT(!failed(status) ||
               (strstr(status.message, "no more") != NULL && strstr(status.message, "step") != NULL),
           "rank %d: %s", comm->rank, status.message);
    pthread_mutex_unlock(&s->mutex);
    EXPECT_OK(comm_agree(comm, status_ok())); /* a save that failed ends nothing else */
}

static int save(struct checkpoint_case *k, int64_t step, int n, int failing)
{
    struct checkpoint_contents whole = case_contents(k, 11); /* the same values whoever saves */
    struct saving s = {.k = k, .whole = &whole, .failing = failing};
    pthread_mutex_init(&s.mutex, NULL);
    whole.step = step;
    run_ranks(n, DEADLINE_S, save_slice, &s);
    pthread_mutex_destroy(&s.mutex);
    return s.n_failed;
}

struct loading {
    const struct checkpoint_case *k;
    const struct checkpoint *c;
    float (*read)[CASE_ELEMENTS];
};

static void load_slice(const struct comm *comm, void *context)
{
    const struct loading *l = context;
    int64_t begin = begin_of(comm->rank, comm->size), count = begin_of(comm->rank + 1, comm->size) - begin;
    tensor t[3];
    for (int f = 0; f < 3; f++) {
        t[f] = tensor_1d(l->read[f] + begin, DTYPE_F32, count);
    }
    EXPECT_OK(read_weights(l->c, &l->k->params, begin, t[0]));
    EXPECT_OK(read_moments(l->c, &l->k->params, begin, t[1], t[2]));
}

static void expect_same_tensors(const char *path, const char *other)
{
    struct model_place place, other_place;
    struct model_files a, b;
    EXPECT_OK(model_place_find(&place, path));
    EXPECT_OK(model_place_find(&other_place, other));
    EXPECT_OK(model_files_open(&a, &place, model_families[0], 0));
    EXPECT_OK(model_files_open(&b, &other_place, model_families[0], 0));
    EXPECT(a.n_tensors == 2 && b.n_tensors == 2, "%d and %d tensors", a.n_tensors, b.n_tensors);
    for (int i = 0; i < 2; i++) {
        const struct stored_tensor *x = &a.tensors[i].stored, *y = &b.tensors[i].stored;
        bool same;
        EXPECT_OK(stored_tensor_compare(&same, x, y));
        EXPECT(same && x->data != y->data, "%s differs", x->name);
    }
    model_files_close(&a);
    model_files_close(&b);
}

static void test_any_number(struct checkpoint_case *k)
{
    static float read[3][CASE_ELEMENTS], first[3][CASE_ELEMENTS];
    char path[N_WAYS][CHECKPOINT_PATH_BYTES];
    for (int w = 0; w < N_WAYS; w++) {
        struct checkpoint c;
        EXPECT(save(k, ways[w], ways[w], -1) == 0, "a rank of %d failed", ways[w]);
        EXPECT_OK(checkpoint_path(path[w], "%s/ckpt_%d", k->directory, ways[w]));
        EXPECT_OK(checkpoint_open(&c, path[w]));
        EXPECT(c.manifest.n == 4 + 2 * ways[w], "%d files of %d ranks", c.manifest.n, ways[w]);
        case_expect_values(k, &c, 11);
        for (int v = 0; v < N_WAYS; v++) {
            memset(read, 0, sizeof read);
            run_ranks(ways[v], DEADLINE_S, load_slice, &(struct loading){k, &c, read});
            if (w == 0 && v == 0) {
                memcpy(first, read, sizeof first);
                EXPECT(first[2][CASE_SLAB + 5] != 0, "nothing was read");
            }
            EXPECT(memcmp(first, read, sizeof first) == 0, "written by %d, read by %d", ways[w], ways[v]);
        }
        checkpoint_close(&c);
        expect_same_tensors(path[0], path[w]);
    }
}

/* Whichever rank it is: all hear of it, and the directory is as it was. */
static void test_failure(struct checkpoint_case *k)
{
    EXPECT_OK(file_remove_tree(k->directory));
    EXPECT_OK(file_make_directories(k->directory));
    for (int failing = 0; failing < 4; failing++) {
        EXPECT(save(k, 5, 4, failing) == 4, "a rank did not hear that rank %d failed", failing);
        struct checkpoint c;
        bool found;
        EXPECT_OK(checkpoint_dir_open_newest(&c, k->directory, &found));
        EXPECT(!found && rmdir(k->directory) == 0, "something is left of a save in which rank %d failed",
               failing);
        EXPECT_OK(file_make_directories(k->directory));
    }
}

int main(void)
{
    struct checkpoint_case k;
    case_init(&k);
    test_any_number(&k);
    test_failure(&k);
    case_fini(&k);
    return 0;
}
