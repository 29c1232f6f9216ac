/* A log of tensors holds what a step computed: the batch; activations and gradients that fit the weights and
 * each other by formulas written here; the gradients of parameters that another trainer computes.  And it
 * changes no bit of the step, in any window, with and without recomputation. */
#include "bert_fixture.h"
#include "captured_log.h"
#include "rank_trainer.h"
#include "result_mean.h"

#include "io/tensor_diff.h"
#include "ops/plain_ops.h"
#include "report/tensor_log.h"

#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 14, SEQUENCES = 6 };

static char directory[64];

static struct tensor_log_options everything(const char *path)
{
    return (struct tensor_log_options){true, true, true, 4, 1, path, 0};
}

static void open_log(struct tensor_log *l, struct trainer *t, const struct tensor_log_options *o)
{
    EXPECT_OK(tensor_log_open(l, o, directory, t));
}

static const char *path_of(const char *folder, int64_t step, int64_t micro)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s/tensor_logger_rank_0_step_%lld_micro_%lld.safetensors", directory,
             folder, (long long)step, (long long)micro);
    return path;
}

static const char *folder_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* Its numbers in their own precision; the caller frees data. */
static tensor read_tensor(const struct safetensors *f, const char *name)
{
    const struct stored_tensor *e = safetensors_find(f, name);
    EXPECT(e != NULL, "%s is not in the file", name);
    void *data = malloc(e->bytes);
    tensor t = e->n_dims == 1 ? tensor_1d(data, e->dtype, e->dims[0])
                              : tensor_2d(data, e->dtype, e->dims[0], e->dims[1]);
    EXPECT_OK(stored_tensor_read(e, t));
    return t;
}

static void expect_array(const struct safetensors *f, const char *name, const int32_t *wanted)
{
    tensor t = read_tensor(f, name);
    EXPECT(t.dtype == DTYPE_I32 && memcmp(t.data, wanted, tensor_bytes(t)) == 0, "other %s", name);
    free(t.data);
}

static void inputs_are_the_batch(const struct safetensors *f, const struct batch *b)
{
    expect_array(f, "model_inputs/input_ids", b->ids);
    expect_array(f, "model_inputs/position_ids", b->positions);
    expect_array(f, "model_inputs/cu_seqlens", b->cu_seqlens);
    expect_array(f, "model_inputs/token_type_ids", b->fields[TEXT_TYPES]);
    expect_array(f, "model_inputs/masked_lm_labels", b->fields[TEXT_MASKED_LABELS]);
    expect_array(f, "model_inputs/next_sentence_labels", b->fields[TEXT_PAIR_LABELS]);
    EXPECT(safetensors_find(f, "model_inputs/input_ids")->dims[0] == b->n_tokens, "not all tokens");
}

/* out = in W^T + b, in double. */
static void expect_product(const struct safetensors *f, const struct trainer *t, const char *out_name,
                           const char *in_name, const char *module)
{
    char name[PARAM_NAME_BYTES];
    tensor out = read_tensor(f, out_name), in = read_tensor(f, in_name);
    snprintf(name, sizeof name, "%s.weight", module);
    tensor w = param_view(param_table_find(&t->net.params, name), t->net.master);
    snprintf(name, sizeof name, "%s.bias", module);
    tensor b = param_view(param_table_find(&t->net.params, name), t->net.master);
    for (int64_t i = 0; i < in.dims[0]; i++) {
        for (int64_t o = 0; o < w.dims[0]; o++) {
            double sum = tensor_get(b, o);
            for (int64_t k = 0; k < w.dims[1]; k++) {
                sum += tensor_get(in, i * w.dims[1] + k) * tensor_get(w, o * w.dims[1] + k);
            }
            EXPECT_NEAR(tensor_get(out, i * out.dims[1] + o), sum, 1e-5 * fmax(1, fabs(sum)));
        }
    }
    free(out.data);
    free(in.data);
}

/* The sum of a column of a tensor; 0 of none. */
static double column_sum(const struct safetensors *f, const char *name, int64_t column)
{
    double sum = 0;
    if (name != NULL) {
        tensor t = read_tensor(f, name);
        for (int64_t i = 0; i < t.dims[0]; i++) {
            sum += tensor_get(t, i * t.dims[1] + column);
        }
        free(t.data);
    }
    return sum;
}

/* A bias's gradient is the sum of the rows of that of the product, in one or two tensors. */
static void expect_bias_gradient(const struct safetensors *f, const char *out_name, const char *more_name,
                                 const char *bias_name)
{
    tensor db = read_tensor(f, bias_name);
    double largest = 0;
    for (int64_t o = 0; o < db.dims[0]; o++) {
        double sum = column_sum(f, out_name, o) + column_sum(f, more_name, o);
        EXPECT_NEAR(tensor_get(db, o), sum, 1e-6);
        largest = fmax(largest, fabs(sum));
    }
    EXPECT(largest > 1e-6, "%s is 0", bias_name);
    free(db.data);
}

/* The loss of the logits. */
static double loss_of(const struct safetensors *f, const struct batch *b)
{
    tensor logits = read_tensor(f, "fwd_act/model.cls.predictions");
    double loss = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < logits.dims[0]; i++) {
        int32_t label = b->fields[TEXT_MASKED_LABELS][i];
        double sum = 0;
        for (int64_t v = 0; v < FIXTURE_VOCAB; v++) {
            sum += exp(tensor_get(logits, i * logits.dims[1] + v));
        }
        if (label >= 0) {
            loss += log(sum) - tensor_get(logits, i * logits.dims[1] + label);
            n++;
        }
    }
    free(logits.data);
    return loss / (double)n;
}

static void param_gradients_are(const struct safetensors *f, const struct trainer *other)
{
    for (int i = 0; i < other->net.params.n; i++) {
        char name[PARAM_NAME_BYTES + 16];
        const struct param *p = &other->net.params.params[i];
        tensor wanted = param_view(p, other->grad);
        snprintf(name, sizeof name, "param_grad/%s", p->name);
        tensor t = read_tensor(f, name);
        EXPECT(memcmp(t.data, wanted.data, tensor_bytes(t)) == 0, "other %s", name);
        free(t.data);
    }
}

static void tensors_fit_each_other(bool pre_ln)
{
    struct batch_step step;
    struct trainer t, other;
    struct trainer_result r;
    struct tensor_log log;
    struct safetensors f;
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step.micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.layer_norm_large_model = pre_ln;
    fixture_bert_changed(bert);
    struct tensor_log_options o = everything(folder_of(pre_ln ? "pre" : "post"));
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(trainer_init(&other, &config));
    open_log(&log, &t, &o);
    EXPECT_OK(trainer_step(&t, &step, 1, 1, 0, &r)); /* the weights stay */
    tensor_log_close(&log);
    EXPECT_OK(safetensors_open(&f, path_of(pre_ln ? "pre" : "post", 1, 0)));
    inputs_are_the_batch(&f, &step.micro[0]);
    expect_product(&f, &t, "fwd_act/model.bert.encoder.layer.0.attention.self.query",
                   "fwd_act/model.bert.embeddings", "bert.encoder.layer.0.attention.self.query");
    expect_product(&f, &t, "fwd_act/model.bert.encoder.layer.1.attention.self.value",
                   "fwd_act/model.bert.encoder.layer.0.output", "bert.encoder.layer.1.attention.self.value");
    expect_product(&f, &t, "fwd_act/model.cls.seq_relationship", "fwd_act/model.bert.pooler",
                   "cls.seq_relationship");
    EXPECT_NEAR(loss_of(&f, &step.micro[0]), result_mean(&r, "mlm_loss"), 1e-5);
    expect_bias_gradient(&f, "bwd_grad_out/model.cls.predictions", NULL, "param_grad/cls.predictions.bias");
    expect_bias_gradient(&f, "bwd_grad_out/model.bert.encoder.layer.0.intermediate.dense", NULL,
                         "param_grad/bert.encoder.layer.0.intermediate.dense.bias");
    expect_bias_gradient(&f, "bwd_grad_out/model.bert.encoder.layer.1.intermediate.dense.masked_lm_rows",
                         "bwd_grad_out/model.bert.encoder.layer.1.intermediate.dense.cls_rows",
                         "param_grad/bert.encoder.layer.1.intermediate.dense.bias");
    expect_bias_gradient(&f, "bwd_grad_out/model.bert.encoder.layer.0.attention.self.value", NULL,
                         "param_grad/bert.encoder.layer.0.attention.self.value.bias");
    EXPECT(safetensors_find(&f, "bwd_grad_in/model.bert.encoder.layer.0") != NULL &&
               safetensors_find(&f, "bwd_grad_out/model.bert.encoder.layer.1.masked_lm_rows") != NULL &&
               safetensors_find(&f, "bwd_grad_out/model.bert.encoder.layer.1.cls_rows") != NULL,
           "no gradients between layers");
    EXPECT_OK(trainer_gradients(&other, &step, 1, &r));
    param_gradients_are(&f, &other);
    safetensors_close(&f);
    trainer_fini(&other);
    trainer_fini(&t);
    batch_step_fini(&step);
}

/* Three steps of two micro-batches, of which some are logged. */
static void train(const char *folder, const struct tensor_log_options *o, int64_t recompute, tensor *weights)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    struct tensor_log log = {0};
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_BF16, step.micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = 5;
    fixture_bert_changed(bert);
    config.net.recompute = recompute;
    EXPECT_OK(trainer_init(&t, &config));
    if (o != NULL) {
        struct tensor_log_options here = *o;
        here.path = folder_of(folder);
        open_log(&log, &t, &here);
    }
    for (int64_t i = 1; i <= 3; i++) {
        EXPECT_OK(trainer_step(&t, &step, i, i, 1e-3, &r));
    }
    tensor_log_close(&log);
    *weights = t.net.master;
    weights->data = malloc(tensor_bytes(t.net.master));
    memcpy(weights->data, t.net.master.data, tensor_bytes(t.net.master));
    trainer_fini(&t);
    batch_step_fini(&step);
}

static bool is_there(const char *folder, int64_t step, int64_t micro)
{
    return access(path_of(folder, step, micro), R_OK) == 0;
}

static void expect_same_files(const char *a, const char *b, int64_t step, int64_t micro)
{
    struct safetensors of_a, of_b;
    EXPECT_OK(safetensors_open(&of_a, path_of(a, step, micro)));
    EXPECT_OK(safetensors_open(&of_b, path_of(b, step, micro)));
    EXPECT(of_a.map.n == of_b.map.n && memcmp(of_a.map.data, of_b.map.data, of_a.map.n) == 0,
           "%s and %s differ in step %lld", a, b, (long long)step);
    safetensors_close(&of_a);
    safetensors_close(&of_b);
}

static void a_log_changes_nothing(void)
{
    tensor plain, logged, recomputed;
    struct tensor_log_options o = {true, true, true, 3, 2, NULL, 0};
    train(NULL, NULL, 0, &plain);
    train("window", &o, 0, &logged);
    train("again", &o, 2, &recomputed);
    EXPECT(memcmp(plain.data, logged.data, tensor_bytes(plain)) == 0, "a log changed the weights");
    EXPECT(memcmp(plain.data, recomputed.data, tensor_bytes(plain)) == 0, "with recomputation it did");
    EXPECT(!is_there("window", 1, 1) && is_there("window", 2, 0) && is_there("window", 2, 1) &&
               is_there("window", 3, 0) && !is_there("window", 3, 1),
           "another window");
    for (int64_t micro = 0; micro < 2; micro++) {
        expect_same_files("window", "again", 2, micro);
    }
    struct safetensors f;
    EXPECT_OK(safetensors_open(&f, path_of("window", 2, 0)));
    EXPECT(safetensors_find(&f, "param_grad/cls.predictions.bias") == NULL, "gradients of half a step");
    EXPECT(safetensors_find(&f, "fwd_act/model.bert.encoder.layer.3.intermediate")->dtype == DTYPE_BF16,
           "another type");
    safetensors_close(&f);
    free(plain.data);
    free(logged.data);
    free(recomputed.data);
}

/* The size that is announced is that of a file, of the largest batch. */
static void the_size_is_announced(void)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    struct tensor_log log;
    struct stat file;
    char text[CAPTURED_LOG_BYTES];
    double mib = 0;
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step.micro[0].limits);
    struct tensor_log_options o = everything(folder_of("size"));
    EXPECT_OK(trainer_init(&t, &config));
    struct captured_log captured = captured_log_begin();
    open_log(&log, &t, &o);
    captured_log_end(&captured, text);
    const char *size = strstr(text, "at most ");
    EXPECT(size != NULL && sscanf(size, "at most %lf MiB each", &mib) == 1, "'%s'", text);
    EXPECT_OK(trainer_step(&t, &step, 1, 1, 1e-3, &r));
    tensor_log_close(&log);
    EXPECT(stat(path_of("size", 1, 0), &file) == 0, "no file");
    EXPECT_NEAR(mib, (double)file.st_size / 0x1p20, 0.1 + 0.5 * mib);
    EXPECT(mib > 0, "'%s'", text);
    trainer_fini(&t);
    batch_step_fini(&step);
}

/* Kernels with an error in one element. */
static void wrong_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    ops_cpu()->gelu_backward(x, dpre, dbias, dout, pre);
    if (dpre.dims[1] == fixture_config().intermediate_size) { /* not in the head */
        tensor_set(dpre, 7, tensor_get(dpre, 7) + 0.01);
    }
}

static void wrong_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                            struct attention a)
{
    ops_cpu()->attention(x, out, lse, q, k, v, a);
    tensor_set(out, 5, tensor_get(out, 5) * 1.5);
}

static void log_one_step(const struct ops *ops, const char *plain, const char *folder)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    struct tensor_log log;
    static struct plain_ops table;
    struct backend b = {&device_cpu, ops};
    struct tensor_log_options o = everything(folder_of(folder));
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    EXPECT_OK(plain_ops_init(&table, &b, plain));
    struct trainer_config config = fixture_trainer(b.ops, DTYPE_F32, step.micro[0].limits);
    EXPECT_OK(trainer_init(&t, &config));
    open_log(&log, &t, &o);
    EXPECT_OK(trainer_step(&t, &step, 1, 1, 1e-3, &r));
    tensor_log_close(&log);
    trainer_fini(&t);
    batch_step_fini(&step);
}

/* The first tensor of the file that differs between two folders, and where; NULL: none does. */
static const char *first_difference(const char *a, const char *b, struct tensor_diff *d)
{
    static char name[TENSOR_LOG_NAME_BYTES];
    struct safetensors of_a, of_b;
    bool found = false;
    EXPECT_OK(safetensors_open(&of_a, path_of(a, 1, 0)));
    EXPECT_OK(safetensors_open(&of_b, path_of(b, 1, 0)));
    EXPECT(of_a.n == of_b.n, "other tensors");
    for (int i = 0; i < of_a.n && !found; i++) {
        struct stored_tensor x = of_a.entries[i], y = of_b.entries[i];
        EXPECT(strcmp(x.name, y.name) == 0, "another order");
        EXPECT_OK(tensor_diff_compare(d, &x, &y, (struct tensor_tolerance){1e-5, 1e-4}));
        found = d->first >= 0;
        snprintf(name, sizeof name, "%s", x.name);
    }
    safetensors_close(&of_a);
    safetensors_close(&of_b);
    return found ? name : NULL;
}

/* As docs/howto/debug_a_run.md goes about it: the log says where it begins, and plain ops say which op it
 * is. */
static void a_wrong_op_is_found(void)
{
    struct ops backward = *ops_cpu(), forward = *ops_cpu();
    struct tensor_diff d;
    backward.gelu_backward = wrong_gelu_backward;
    forward.attention = wrong_attention;
    log_one_step(ops_cpu(), NULL, "right");
    log_one_step(&backward, NULL, "backward");
    log_one_step(&forward, NULL, "forward");
    const char *name = first_difference("right", "backward", &d);
    EXPECT(name != NULL &&
               strcmp(name, "bwd_grad_out/model.bert.encoder.layer.1.intermediate.dense.masked_lm_rows") ==
                   0 &&
               d.first == 7 && d.n_different == 1,
           "%s, element %lld", name, (long long)d.first);
    EXPECT_NEAR(d.max_abs, 0.01, 1e-4);
    name = first_difference("right", "forward", &d);
    EXPECT(name != NULL && strcmp(name, "fwd_act/model.bert.encoder.layer.0.attention.self") == 0 &&
               d.first == 5,
           "%s, element %lld", name, (long long)d.first);
    log_one_step(&backward, "linear,attention", "innocent");
    EXPECT(first_difference("right", "innocent", &d) != NULL, "other ops were at fault");
    log_one_step(&backward, "gelu_backward", "cured");
    name = first_difference("right", "cured", &d);
    EXPECT(name == NULL, "%s differs still", name);
}

/* Each rank has its own files: of other sequences, and of the same gradients once they are summed. */
static void log_a_rank(const struct comm *c, void *context)
{
    struct trainer_config config = *(const struct trainer_config *)context;
    struct batch_step step, mine;
    struct trainer t;
    struct trainer_result r;
    struct tensor_log log;
    struct tensor_log_options o = everything(NULL);
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    mine = batch_step_part(&step, c->rank, c->size);
    o.rank = c->rank;
    config.ranks = replicas_of(c, 0);
    open_trainer_of(&t, &config, c);
    open_log(&log, &t, &o);
    EXPECT_OK(trainer_step(&t, &mine, 5, 1, 1e-3, &r));
    tensor_log_close(&log);
    trainer_fini(&t);
    batch_step_fini(&step);
}

static bool same_in_both(const struct safetensors files[2], const char *name)
{
    tensor a = read_tensor(&files[0], name), b = read_tensor(&files[1], name);
    bool same = tensor_bytes(a) == tensor_bytes(b) && memcmp(a.data, b.data, tensor_bytes(a)) == 0;
    free(a.data);
    free(b.data);
    return same;
}

static void ranks_have_their_own_files(void)
{
    struct safetensors files[2];
    char path[256];
    struct batch_step step;
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step.micro[0].limits);
    batch_step_fini(&step);
    run_ranks(2, 60, log_a_rank, &config);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(path, sizeof path, "%s/tensor_logger/tensor_logger_rank_%d_step_5_micro_0.safetensors",
                 directory, rank);
        EXPECT_OK(safetensors_open(&files[rank], path));
    }
    EXPECT(same_in_both(files, "param_grad/bert.pooler.dense.weight") &&
               same_in_both(files, "param_grad/bert.embeddings.word_embeddings.weight"),
           "gradients that were not summed");
    EXPECT(!same_in_both(files, "model_inputs/input_ids") &&
               !same_in_both(files, "fwd_act/model.bert.embeddings"),
           "both ranks had the same sequences");
    safetensors_close(&files[0]);
    safetensors_close(&files[1]);
}

static void bad_places_are_named(void)
{
    struct batch_step step;
    struct trainer t;
    struct tensor_log log;
    struct trainer_result r;
    fixture_step(&step, 1, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step.micro[0].limits);
    EXPECT_OK(trainer_init(&t, &config));
    struct tensor_log_options o = everything("/proc/nowhere");
    EXPECT_ERROR(tensor_log_open(&log, &o, directory, &t), STATUS_IO, "--tensor_logger_path");
    tensor_log_close(&log);
    o = everything(folder_of("huge"));
    o.max_iterations = INT64_C(1) << 50;
    EXPECT_ERROR(tensor_log_open(&log, &o, directory, &t), STATUS_IO, "--tensor_logger_path");
    tensor_log_close(&log);

    /* The folder disappears: a warning, and training goes on. */
    o = everything(folder_of("gone"));
    open_log(&log, &t, &o);
    EXPECT(rmdir(folder_of("gone")) == 0, "rmdir");
    EXPECT_OK(trainer_step(&t, &step, 1, 1, 1e-3, &r));
    EXPECT(failed(log.status) && log.n_files == 0, "the log did not fail");
    EXPECT_OK(trainer_step(&t, &step, 2, 2, 1e-3, &r));
    tensor_log_close(&log);

    /* Half of a wish is none. */
    o = (struct tensor_log_options){.activations = true};
    open_log(&log, &t, &o);
    EXPECT(log.trainer == NULL, "something is logged");
    tensor_log_close(&log);
    trainer_fini(&t);
    batch_step_fini(&step);
}

int main(void)
{
    snprintf(directory, sizeof directory, "/tmp/kiln_tensor_log_XXXXXX");
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    tensors_fit_each_other(false);
    tensors_fit_each_other(true);
    a_log_changes_nothing();
    the_size_is_announced();
    a_wrong_op_is_found();
    ranks_have_their_own_files();
    bad_places_are_named();
    EXPECT_OK(file_remove_tree(directory));
    puts("test_tensor_log: files hold what steps computed, and change nothing");
    return 0;
}
