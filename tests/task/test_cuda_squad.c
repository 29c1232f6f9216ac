/* Fine-tuning on answer spans in fp16: from a scale of the loss that is too high, a run learns after steps
 * that leave no trace in the weights; stopped and resumed after every step, it comes to the same bits. */
#define _GNU_SOURCE
#include "gpu_tests.h"
#include "model/bert/bert_family.h"
#include "session_case.h"
#include "trainer_copy.h"

#include "checkop_backend.h"
#include "nn/bert/bert_model.h"
#include "data/squad_features.h"
#include "data/squad_examples.h"
#include "task/finetune_job.h"
#include "core/stop.h"
#include "pass/network_files.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 9, BATCH = 4, MICRO = 1 };

/* What dogs are in: the answer is always the same word, elsewhere. */
static const char questions[] =
    "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": ["
    "{\"context\": \"a big dog ran off\", \"qas\": [{\"id\": \"0\", \"question\": \"had a man?\", "
    "\"answers\": [{\"text\": \"dog\", \"answer_start\": 6}]}]},"
    "{\"context\": \"dog food\", \"qas\": [{\"id\": \"1\", \"question\": \"had a man?\", "
    "\"answers\": [{\"text\": \"dog\", \"answer_start\": 0}]}]},"
    "{\"context\": \"no man had a dog and a cage\", \"qas\": [{\"id\": \"2\", \"question\": \"a man?\", "
    "\"answers\": [{\"text\": \"dog\", \"answer_start\": 13}]}]},"
    "{\"context\": \"food and ice and a dog\", \"qas\": [{\"id\": \"3\", \"question\": \"a man?\", "
    "\"answers\": [{\"text\": \"dog\", \"answer_start\": 19}]}]}"
    "]}]}";

static const struct run_flag_names names = {.data = "--train_file",
                                            .output = "--output_dir",
                                            .resume = "--resume_from_checkpoint",
                                            .command = "squad",
                                            .tunes = true};

static const struct squad_feature_options feature_options = {
    .max_length = 16, .doc_stride = 8, .max_query_length = 4, .training = true};

/* All that runs of one fine-tuning share. */
struct tuning_case {
    struct bert_model bert;
    const char *directory;
    char train_file[SESSION_CASE_PATH];
    struct model_dir model;
    struct squad_examples examples;
    struct squad_features features;
    struct finetune_data data;
    struct finetune_options options;
    struct trainer_config config;
};

static struct finetune_job job_of(const struct tuning_case *c, struct finetune_options *o)
{
    return (struct finetune_job){.options = o, .open = {.model = c->model, .train = c->data}};
}

static void open_case(struct tuning_case *c, struct checkop_backend backend, const char *directory)
{
    char path[SESSION_CASE_PATH];
    *c = (struct tuning_case){.directory = directory};
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/question_answering", directory);
    EXPECT_OK(model_dir_open(&c->model, path));
    EXPECT_OK(squad_examples_parse(&c->examples, questions, sizeof questions - 1, "questions",
                                   (struct squad_read_options){.training = true}));
    EXPECT_OK(squad_features_build(&c->features, &c->examples, &c->model.tokenizer, feature_options));
    c->data = (struct finetune_data){.task = "question answering",
                                     .unit = "questions",
                                     .n_examples = c->examples.n,
                                     .counts_examples = true,
                                     .source = squad_features_source(&c->features)};
    snprintf(c->train_file, sizeof c->train_file, "%s/questions.json", directory);
    EXPECT_OK(file_write_atomic(c->train_file, questions, sizeof questions - 1));
    c->options = (struct finetune_options){
        .run =
            {
                .names = &names,
                .batch.train_batch_size = BATCH,
                .batch.gradient_accumulation_steps = MICRO,
                .batch.max_seq_length = feature_options.max_length,
                .learning_rate = 3e-2,
                .log_freq = 1,
                .seed = 3,
                .resume_from_checkpoint = true,
                .common.disable_progress_bar = true,
                .vocabulary.do_lower_case = true,
            },
        .train_file = c->train_file,
        .max_steps = STEPS,
        .do_train = true,
    };
    c->bert = bert_model(c->model.config, MODEL_TASK_QUESTION_ANSWERING);
    c->config = (struct trainer_config){
        .net =
            {
                .model = &c->bert.blocks.model,
                .device = backend.device,
                .ops = backend.ops,
                .precision = {.dtype = DTYPE_F16},
                .learns = true,
            },
        .optimizer = optimizer_defaults(&optimizer_adamw),
        .saving = true,
        .seed = 3,
    };
    struct finetune_job job = job_of(c, &c->options);
    EXPECT_OK(finetune_train_limits(&job));
    c->config.net.limits = job.limits;
}

static void close_case(struct tuning_case *c)
{
    squad_features_fini(&c->features);
    squad_examples_fini(&c->examples);
    model_dir_close(&c->model);
}

/* What `kiln squad` does, in the directory of this name. */
static struct status tune(struct finetune_job *j, const struct tuning_case *c, const char *name)
{
    char path[SESSION_CASE_PATH];
    struct load_report report;
    struct finetune_options o = c->options;
    snprintf(path, sizeof path, "%s/%s", c->directory, name);
    EXPECT_OK(file_make_directories(path));
    o.run.common.output_dir = path;
    *j = job_of(c, &o);
    run_init(&j->run, NULL, j, &o.run);
    j->run.model = &c->bert.blocks.model;
    j->run.tokenizer = j->run.loop.tokenizer = &c->model.tokenizer;
    EXPECT_OK(finetune_train_limits(j));
    EXPECT_OK(run_open_logs(&j->run));
    EXPECT_OK(trainer_init(&j->run.trainer, &c->config));
    exec_keep_in(&j->run.trainer.net.x, c->directory);
    EXPECT_OK(
        network_files_load(&j->run.trainer.net, &c->model, MODEL_TASK_QUESTION_ANSWERING, 0, NULL, &report));
    EXPECT_OK(finetune_train_restore(j));
    struct status s = finetune_train(j);
    loop_close(&j->run.loop);
    finetune_train_close(j);
    metrics_close(&j->run.metrics);
    return s;
}

static void *loaded_weights(const struct tuning_case *c)
{
    struct trainer t;
    struct load_report report;
    EXPECT_OK(trainer_init(&t, &c->config));
    EXPECT_OK(network_files_load(&t.net, &c->model, MODEL_TASK_QUESTION_ANSWERING, 0, NULL, &report));
    void *weights = copy_of(&t, t.net.master);
    trainer_fini(&t);
    return weights;
}

/* A process for each step, as far as the run can tell, of which the last has a rate of 0; `j` is that of the
 * last. */
static void tune_step_by_step(struct finetune_job *j, const struct tuning_case *c)
{
    struct trainer *t = &j->run.trainer;
    const struct finetune_trained *result = &j->result;
    double first_loss = 0, scale = LOSS_SCALE_FIRST;
    int n_skipped = 0;
    void *before = loaded_weights(c);
    EXPECT(raise(SIGTERM) == 0 && stop_requested(), "no signal came");
    for (int step = 1; step <= STEPS; step++) {
        struct status s = tune(j, c, "steps");
        EXPECT(s.code == (step < STEPS ? STATUS_PREEMPTED : STATUS_OK) && result->n_steps == 1, "step %d: %s",
               step, s.message);
        void *after = copy_of(t, t->net.master);
        bool skipped = t->loss_scale.value < scale,
             same = memcmp(before, after, tensor_bytes(t->net.master)) == 0;
        EXPECT(same == (skipped || step == STEPS) && (!skipped || t->loss_scale.value == scale / 2),
               "step %d at a scale of %g, then %g: %s weights", step, scale, t->loss_scale.value,
               same ? "the same" : "other");
        scale = t->loss_scale.value;
        n_skipped += skipped;
        first_loss = first_loss == 0 ? result->final_loss : first_loss; /* of no step that is skipped */
        free(before);
        before = after;
        if (step < STEPS) {
            trainer_fini(t);
        }
    }
    free(before);
    printf("%d of %d steps skipped, loss %.3f to %.3f at a scale of %g\n", n_skipped, STEPS, first_loss,
           result->final_loss, scale);
    EXPECT(n_skipped >= 2 && n_skipped < STEPS / 2, "%d steps were skipped", n_skipped);
    EXPECT(result->final_loss < 0.7 * first_loss, "nothing was learnt");
}

static void expect_same(struct trainer *a, tensor of_a, struct trainer *b, tensor of_b, const char *what)
{
    void *x = copy_of(a, of_a), *y = copy_of(b, of_b);
    EXPECT(memcmp(x, y, tensor_bytes(of_a)) == 0, "other %s", what);
    free(y);
    free(x);
}

int test_cuda_squad(void)
{
    struct checkop_backend backend = checkop_find_backend("cuda");
    char directory[] = "/tmp/kiln_cuda_squad_XXXXXX";
    struct tuning_case c;
    struct finetune_job whole, steps;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    open_case(&c, backend, directory);
    EXPECT_OK(tune(&whole, &c, "whole"));
    EXPECT(whole.result.n_steps == STEPS, "%lld steps", (long long)whole.result.n_steps);
    stop_install();
    tune_step_by_step(&steps, &c);
    EXPECT(steps.result.final_loss == whole.result.final_loss, "loss %.9g, resumed %.9g",
           whole.result.final_loss, steps.result.final_loss);
    expect_same(&whole.run.trainer, whole.run.trainer.net.master, &steps.run.trainer,
                steps.run.trainer.net.master, "weights");
    expect_same(&whole.run.trainer, whole.run.trainer.exp_avg, &steps.run.trainer, steps.run.trainer.exp_avg,
                "first moments");
    expect_same(&whole.run.trainer, whole.run.trainer.exp_avg_sq, &steps.run.trainer,
                steps.run.trainer.exp_avg_sq, "second moments");
    trainer_fini(&steps.run.trainer);
    trainer_fini(&whole.run.trainer);
    close_case(&c);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
