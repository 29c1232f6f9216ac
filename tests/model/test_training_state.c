/* What runs go on from, as other programs left it (tests/golden/make_resumed.py: torch, and DeepSpeed
 * itself): every weight and both moments to the bit, the position, and what is refused. */
#include "core/log.h"
#include "model/bert/bert_family.h"
#include "model/training_state.h"
#include "read_checkpoint.h"
#include "test.h"
#include "bert_params.h"

#include <unistd.h>

static char directory[128];
static struct safetensors golden;

static const char *path_of(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* Writes the files of all cases: CASE/FILE. */
static void unpack_all(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_resumed_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    for (int i = 0; i < golden.n; i++) {
        const struct stored_tensor *e = &golden.entries[i];
        const char *slash = strrchr(e->name, '/');
        char folder[128];
        if (slash != NULL) {
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - e->name), e->name);
            EXPECT_OK(file_make_directories(path_of(folder)));
            EXPECT_OK(file_write_atomic(path_of(e->name), e->data, e->bytes));
        }
    }
}

static struct training_state_place place_of(const char *folder, int64_t step, int64_t phase_began)
{
    return (struct training_state_place){
        .directory = path_of(folder),
        .step = step,
        .phase_began = phase_began,
        .others = true,
        .given = {path_of("data/bert_config.json"), path_of("data/vocab.txt")},
        .task = MODEL_TASK_PRETRAINING,
    };
}

/* Where the state is, whose tensors are named after `like`. */
struct expected {
    const char *folder, *like, *path;
    int64_t phase_began;
    int64_t phase, step, global_step, n_skipped;
    double loss_scale;
    bool has_moments;
};

static void expect_same(const struct expected *x, const char *kept, const struct param_table *params,
                        tensor flat)
{
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        char name[256];
        snprintf(name, sizeof name, "%s.%s.%s", x->like, kept, p->name);
        const struct stored_tensor *e = safetensors_find(&golden, name);
        EXPECT(e != NULL, "the golden has no %s", name);
        size_t bytes = tensor_bytes(param_view(p, flat)); /* fewer rows of words than the scripts padded */
        EXPECT(bytes <= e->bytes && memcmp(param_view(p, flat).data, e->data, bytes) == 0, "%s: %s differs",
               x->folder, name);
    }
}

static void expect_integer(const struct expected *x, const json_t *position, const char *key, int64_t wanted)
{
    int64_t got = json_integer_value(json_object_get(position, key));
    EXPECT(got == wanted, "%s: %s %lld, wanted %lld", x->folder, key, (long long)got, (long long)wanted);
}

static void expect_position(const struct expected *x, const json_t *position)
{
    expect_integer(x, position, "phase", x->phase);
    expect_integer(x, position, "step", x->step);
    expect_integer(x, position, "global_step", x->global_step);
    expect_integer(x, position, "n_skipped", x->n_skipped);
    EXPECT_NEAR(json_number_value(json_object_get(position, "loss_scale")), x->loss_scale, 0);
    expect_integer(x, position, "loss_scale_steps", x->loss_scale > 0 ? 2 : 0);
}

static void declare(struct param_table *params)
{
    struct bert_config config;
    json_t *json;
    *params = (struct param_table){0};
    EXPECT_OK(json_read_object(&json, path_of("data/bert_config.json")));
    EXPECT_OK(bert_config_parse(&config, json, "config"));
    EXPECT_OK(bert_declare(params, &config, MODEL_TASK_PRETRAINING));
    json_decref(json);
}

static tensor flat_of(const struct param_table *params)
{
    tensor flat = tensor_1d(calloc((size_t)params->n_elements, sizeof(float)), DTYPE_F32, params->n_elements);
    EXPECT(flat.data != NULL, "out of memory");
    return flat;
}

static void check(const struct expected *x)
{
    struct training_state s;
    struct param_table params;
    struct training_state_place place = place_of(x->folder, -1, x->phase_began);
    declare(&params);
    tensor weights = flat_of(&params), m = flat_of(&params), v = flat_of(&params);
    ((float *)m.data)[0] = 1; /* moments that are not there are zero */
    EXPECT_OK(training_state_open(&s, &place));
    EXPECT(s.kind != NULL && strcmp(s.path, path_of(x->path)) == 0, "%s, not %s", s.path, x->path);
    expect_position(x, s.position);
    struct weight_sink sink = weight_sink_of(&weights);
    EXPECT_OK(training_state_read_weights(&s, &params, &sink));
    EXPECT_OK(read_both(&s, &params, 0, m, v));
    expect_same(x, "weight", &params, weights);
    if (x->has_moments) {
        expect_same(x, "exp_avg", &params, m);
        expect_same(x, "exp_avg_sq", &params, v);
    } else {
        EXPECT(tensor_get(m, 0) == 0, "a moment of nothing is %g", tensor_get(m, 0));
    }
    /* a slice, as a rank reads it, is a part of the whole */
    int64_t begin = params.n_elements / 3, n = params.n_elements / 2;
    tensor part_m = flat_of(&params), part_v = flat_of(&params);
    EXPECT_OK(read_both(&s, &params, begin, tensor_slice(part_m, 0, n), tensor_slice(part_v, 0, n)));
    EXPECT(memcmp(part_v.data, (float *)v.data + begin, (size_t)n * sizeof(float)) == 0,
           "%s: a slice differs", x->folder);
    free(part_v.data);
    free(part_m.data);
    training_state_close(&s);
    free(v.data);
    free(m.data);
    free(weights.data);
    param_table_fini(&params);
}

static void test_states(void)
{
    static const struct expected states[] = {
        {"lamb", "lamb", "lamb/ckpt_6.pt", 0, 1, 6, 6, 0, 0, true},
        {"masters", "lamb", "masters/ckpt_6.pt", 0, 1, 6, 6, 0, 0, true},
        {"adamw", "adamw", "adamw/ckpt_15.pt", 10, 2, 5, 15, 0, 0, true},
        {"adamw", "adamw", "adamw/ckpt_15.pt", 0, 2, 5, 15, 0, 0, true}, /* whatever the run is told */
        {"objects", "adamw", "objects/ckpt_5.pt", 0, 1, 5, 5, 0, 65536, true},
        {"weights", "adamw", "weights/ckpt_4.pt", 0, 1, 4, 4, 4, 0, false},
        {"weights", "adamw", "weights/ckpt_4.pt", 3, 2, 1, 4, 1, 0, false}, /* it says nothing of phases */
        {"weights", "adamw", "weights/ckpt_4.pt", 4, 1, 4, 4, 4, 0, false},
        {"plain_1", "plain_1", "plain_1/3/mp_rank_00_model_states.pt", 0, 1, 3, 3, 0, 0, true},
        {"bf16_2", "bf16_2", "bf16_2/3/mp_rank_00_model_states.pt", 0, 1, 3, 3, 0, 0, true},
        {"zero1_2", "zero1_2", "zero1_2/13/mp_rank_00_model_states.pt", 10, 2, 3, 13, 0, 0, true},
        {"zero2_4", "zero2_4", "zero2_4/3/mp_rank_00_model_states.pt", 0, 1, 3, 3, 0, 0, true},
        {"zero2_1", "zero2_1", "zero2_1/global_step3/mp_rank_00_model_states.pt", 0, 1, 3, 3, 0, 0x1p19,
         true},
        {"old_zero", "zero1_2", "old_zero/3/mp_rank_00_model_states.pt", 0, 1, 3, 3, 0, 0x1p19, true},
    };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        check(&states[i]);
    }
}

/* The scripts round 59 words up to 64 rows. */
static void test_padded(void)
{
    static const struct expected state = {"lamb", "lamb", "lamb/ckpt_6.pt", 0, 1, 6, 6, 0, 0, true};
    struct file_map words;
    size_t n = 0;
    EXPECT_OK(file_map_open(&words, path_of("data/vocab.txt")));
    for (int lines = 0; lines < 59; n++) {
        lines += words.data[n] == '\n';
    }
    EXPECT_OK(file_write_atomic(path_of("data/vocab.txt"), words.data, n));
    file_map_close(&words);
    json_t *config;
    EXPECT_OK(json_read_object(&config, path_of("data/bert_config.json")));
    EXPECT(json_object_set_new(config, "vocab_size", json_integer(59)) == 0 &&
               json_dump_file(config, path_of("data/bert_config.json"), 0) == 0,
           "config");
    json_decref(config);
    check(&state);
}

static struct status try(const char *folder, int64_t step)
{
    struct training_state s;
    struct training_state_place place = place_of(folder, step, 0);
    struct status status = training_state_open(&s, &place);
    training_state_close(&s);
    return status;
}

static void test_steps(void)
{
    static const struct {
        const char *folder;
        int64_t step;
    } there[] = {{"lamb", 6}, {"zero1_2", 13}, {"zero2_1", 3}};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        EXPECT_OK(try(there[i].folder, there[i].step));
        EXPECT_ERROR(try(there[i].folder, 7), STATUS_NO_CHECKPOINT, "/ckpt_7 for --resume_step 7");
    }
    EXPECT_OK(file_make_directories(path_of("empty")));
    EXPECT_OK(try("empty", -1));
}

static void copy_file(const char *from, const char *to, size_t cut)
{
    struct file_map map;
    EXPECT_OK(file_map_open(&map, path_of(from)));
    EXPECT_OK(file_write_atomic(path_of(to), map.data, map.n - cut));
    file_map_close(&map);
}

#define STATES  "mp_rank_00_model_states.pt"
#define RANK(r) "bf16_zero_pp_rank_" #r "_mp_rank_00_optim_states.pt"

/* zero2_4/3 as bad_folder/3, with its first `n_ranks` ranks. */
static void copy_ranks(const char *to, int n_ranks)
{
    char from[128], copy[128];
    EXPECT_OK(file_make_directories(path_of(to)));
    for (int r = 0; r < n_ranks; r++) {
        snprintf(from, sizeof from, "zero2_4/3/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt", r);
        snprintf(copy, sizeof copy, "%s/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt", to, r);
        copy_file(from, copy, 0);
    }
    snprintf(copy, sizeof copy, "%s/" STATES, to);
    copy_file("zero2_4/3/" STATES, copy, 0);
}

static void test_half_folders(void)
{
    copy_ranks("half/3", 3);
    EXPECT_ERROR(try("half", 3), STATUS_DATA,
                 "half a checkpoint: it has files of 3 of its 4 ranks, but no " RANK(3));
    copy_ranks("headless/3", 4);
    EXPECT(unlink(path_of("headless/3/" STATES)) == 0, "unlink");
    EXPECT_ERROR(try("headless", 3), STATUS_DATA, "has no " STATES);
    EXPECT_OK(file_write_atomic(path_of("headless/latest"), "3", 1));
    EXPECT_ERROR(try("headless", -1), STATUS_DATA, "has no " STATES);
    copy_ranks("short/3", 4);
    copy_file("zero2_4/3/" RANK(2), "short/3/" RANK(2), 1000);
    EXPECT_ERROR(try("short", 3), STATUS_DATA, RANK(2));
    copy_ranks("mixed/3", 4);
    copy_file("zero1_2/13/" RANK(1), "mixed/3/" RANK(1), 0);
    EXPECT_ERROR(try("mixed", 3), STATUS_DATA, "names 2 ranks, but the file of rank 0 names 4");
    copy_ranks("more/3", 4);
    copy_file("zero1_2/13/" RANK(0), "more/3/" RANK(0), 0);
    EXPECT_ERROR(try("more", 3), STATUS_DATA, "has a file of rank 3, but the file of rank 0 names 2 ranks");
    copy_ranks("other/3", 4);
    copy_file("zero1_2/13/" STATES, "other/3/" STATES, 0);
    EXPECT_ERROR(try("other", 3), STATUS_DATA, "names 2 ranks, but the optimizer has files of 4");
    copy_ranks("twins/3", 4);
    copy_file("zero2_4/3/" RANK(0), "twins/3/" RANK(1), 0);
    EXPECT_ERROR(try("twins", 3), STATUS_DATA,
                 "the fp32 weights of rank 1, rounded to bf16, differ from " STATES);
    copy_ranks("later/3", 4);
    copy_file("zero_later/3/" RANK(1), "later/3/" RANK(1), 0);
    EXPECT_ERROR(try("later", 3), STATUS_DATA, "the optimizer of rank 1 is at step 4");
}

static void test_refused(void)
{
    static const struct {
        const char *folder, *says;
    } bad[] = {
        {"bad_few", "of some parameters only"},
        {"bad_groups", "45 parameters and the state of 46"},
        {"bad_shape", "does not have the shape of that weight"},
        {"bad_steps", "counted 5 steps of one parameter and 4 of another"},
        {"bad_order", "kiln cannot match moments and weights"},
        {"bad_masters", "its \"master params\" are not the 46 weights"},
        {"bad_huge", "an impossible shape for"},
        {"bad_large", "belong to different checkpoints"},
        {"bad_small", "belong to different checkpoints"},
        {"bad_stage", "was written by ZeRO stage 3"},
        {"bad_many", "names 1000000000 ranks"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct status s = try(bad[i].folder, -1);
        EXPECT((s.code == STATUS_DATA || s.code == STATUS_UNAVAILABLE) &&
                   strstr(s.message, bad[i].says) != NULL,
               "%s: %s", bad[i].folder, s.message);
    }
    EXPECT_OK(file_make_directories(path_of("renamed")));
    copy_file("lamb/ckpt_6.pt", "renamed/ckpt_4.pt", 0);
    EXPECT_ERROR(try("renamed", -1), STATUS_DATA, "named after step 4, but counts 6");
    EXPECT_OK(file_make_directories(path_of("latest")));
    EXPECT_OK(file_write_atomic(path_of("latest/latest"), "12", 2));
    EXPECT_ERROR(try("latest", -1), STATUS_DATA, "names the directory 12, which is missing");
    EXPECT_OK(file_write_atomic(path_of("latest/latest"), "../lamb", 7));
    EXPECT_ERROR(try("latest", -1), STATUS_DATA, "must hold the name of a directory");
}

/* Commands that read a model take the fp32 weights of the ranks. */
static void test_as_model(void)
{
    static const char *const paths[] = {"zero2_4", "zero2_4/3", "zero2_4/3/" STATES};
    static const struct expected like = {.folder = "zero2_4", .like = "zero2_4"};
    struct param_table params;
    declare(&params);
    for (int i = 0; i < 3; i++) {
        struct model_dir m;
        struct load_report report;
        tensor weights = flat_of(&params);
        EXPECT_OK(
            model_dir_open_given(&m, path_of(paths[i]),
                                 (struct model_dir_given){.config_file = path_of("data/bert_config.json"),
                                                          .vocab_file = path_of("data/vocab.txt")}));
        EXPECT_OK(model_dir_read_weights(&m, &params, weights, MODEL_TASK_PRETRAINING, 0, &report));
        expect_same(&like, "weight", &params, weights);
        model_dir_close(&m);
        free(weights.data);
    }
    param_table_fini(&params);
}

int main(void)
{
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/resumed.safetensors"));
    unpack_all();
    test_states();
    test_steps();
    test_half_folders();
    test_refused();
    test_as_model();
    test_padded();
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
