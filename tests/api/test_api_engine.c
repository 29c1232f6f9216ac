/* include/kiln/engine.h on one rank: a network of two parameters learns by the file's optimizer, schedule and
 * clipping, is saved and goes on; and everything that a program or its file can get wrong.  Several ranks:
 * tests/train/test_param_engine.c, tests/cli/test_train_own.sh. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "io/file.h"

#include <kiln/engine.h>

#include <unistd.h>

static char directory[] = "/tmp/kiln_api_engine.XXXXXX";
static char file[64];

static const struct kiln_parameter line[] = {
    {.name = "slope", .n_dims = 2, .dims = {1, 2}, .decay = true, .values = (const float[]){0.5F, -0.5F}},
    {.name = "offset", .n_dims = 1, .dims = {1}},
};

static void write_file(const char *text)
{
    EXPECT_OK(file_write_atomic(file, text, strlen(text)));
}

/* ---- what cannot be opened ---- */

static void expect_refused(const char *text, enum kiln_code code, const char *part)
{
    struct kiln_engine *e;
    write_file(text);
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, line, 2, NULL), code, part);
    EXPECT(e == NULL, "an engine of a file that is refused");
}

#define ADAM "\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.1}}"

static void test_files(void)
{
    struct kiln_engine *e;
    EXPECT_KILN_ERROR(kiln_engine_open(&e, "/dev/null/none.json", line, 2, NULL), KILN_DATA,
                      "/dev/null/none.json");
    expect_refused("{\"train_batch_size\": 4}", KILN_DATA, "has no \"optimizer\"");
    expect_refused("{" ADAM "}", KILN_DATA, "train_batch_size");
    expect_refused("{\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 3, " ADAM "}", KILN_DATA,
                   "one rank");
    expect_refused("{\"train_batch_size\": 4, \"zero_optimization\": {\"stage\": 2}, " ADAM "}",
                   KILN_UNAVAILABLE, "\"zero_optimization.stage\" 2");
    expect_refused("{\"train_batch_size\": 4, \"fp16\": {\"enabled\": true}, " ADAM "}", KILN_UNAVAILABLE,
                   "\"fp16\"");
    expect_refused("{\"train_batch_size\": 4, \"zero_optimisation\": {}, " ADAM "}", KILN_DATA,
                   "zero_optimisation");
    expect_refused("{\"train_batch_size\": 4, \"optimizer\": {\"type\": \"RMSprop\"}}", KILN_DATA, "RMSprop");
    expect_refused(
        "{\"train_batch_size\": 4, \"optimizer\": {\"type\": \"Adam\", \"params\": {\"weight_decay\": -1}}}",
        KILN_DATA, "weight_decay");
    expect_refused("{\"train_batch_size\": 4, \"scheduler\": {\"type\": \"OneCycle\"}, " ADAM "}",
                   KILN_UNAVAILABLE, "OneCycle");
}

static void test_parameters(void)
{
    static const struct kiln_parameter twice[] = {{.name = "a", .n_dims = 1, .dims = {1}},
                                                  {.name = "a", .n_dims = 1, .dims = {1}}};
    struct kiln_parameter p = {.name = "a", .n_dims = 1, .dims = {1}};
    struct kiln_engine_options options = kiln_engine_defaults();
    struct kiln_engine *e;
    write_file("{\"train_batch_size\": 4, " ADAM "}");
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, twice, 2, NULL), KILN_USAGE, "parameter 1, 'a'");
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 0, NULL), KILN_USAGE, "n_parameters is 0");
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 10001, NULL), KILN_USAGE, "n_parameters is 10001");
    static const char *const names[] = {"", "a b", "\"", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        p.name = names[i];
        EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 1, NULL), KILN_USAGE, "the name of parameter 0");
    }
    char longest[97];
    memset(longest, 'x', 96);
    longest[96] = '\0';
    p.name = longest;
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 1, NULL), KILN_USAGE, "the name of parameter 0");
    static const struct kiln_parameter shapes[] = {
        {.name = "w", .n_dims = 0, .dims = {1}},
        {.name = "w", .n_dims = 3, .dims = {1, 1}},
        {.name = "w", .n_dims = 1, .dims = {0}},
        {.name = "w", .n_dims = 2, .dims = {1, -1}},
        {.name = "w", .n_dims = 2, .dims = {(int64_t)1 << 40, 2}},
        {.name = "w", .n_dims = 2, .dims = {INT64_MAX, INT64_MAX}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &shapes[i], 1, NULL), KILN_USAGE,
                          "parameter w must have 1 or 2 dims");
    }
    p = (struct kiln_parameter){.name = "huge", .n_dims = 1, .dims = {(int64_t)1 << 40}};
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 1, NULL), KILN_MEMORY, "");
    p = line[0];
    options.reproducible_ranks = 2;
    EXPECT_KILN_ERROR(kiln_engine_open(&e, file, &p, 1, &options), KILN_USAGE,
                      "1 micro-batches on all ranks");
}

/* ---- learning ---- */

#define LEARNS                                                                                               \
    "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 4, \"gradient_clipping\": 1.0, "          \
    "\"zero_optimization\": {\"stage\": 1}, \"bf16\": {\"enabled\": true}, "                                 \
    "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.05, \"weight_decay\": 0.001}}, "            \
    "\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_max_lr\": 0.05, "                    \
    "\"warmup_num_steps\": 10, \"total_num_steps\": 600, \"warmup_type\": \"linear\"}}}"

/* y = 2 a - 3 b + 1, by the mean square. */
static double give(struct kiln_engine *e, int64_t number)
{
    const float *w = kiln_engine_weights(e, 0), *c = kiln_engine_weights(e, 1);
    float *dw = kiln_engine_gradient(e, 0), *dc = kiln_engine_gradient(e, 1);
    double loss = 0;
    for (int64_t i = 4 * number; i < 4 * number + 4; i++) {
        float a = (float)(i % 7) / 7, b = (float)(i % 5) / 5,
              error = w[0] * a + w[1] * b + c[0] - (2 * a - 3 * b + 1);
        loss += (double)(error * error) / 4;
        dw[0] += error * a / 2;
        dw[1] += error * b / 2;
        dc[0] += error / 2;
    }
    return loss;
}

static void learn(struct kiln_engine *e, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; step++) {
        for (int i = 0; i < 2; i++) {
            bool updated = i == 0;
            EXPECT_KILN_OK(kiln_engine_backward(e, give(e, 2 * step + i)));
            EXPECT_KILN_OK(kiln_engine_step(e, &updated));
            EXPECT(updated == (i == 1), "step %lld, micro-batch %d", (long long)step, i);
        }
    }
}

static void test_learning(void)
{
    struct kiln_engine *e, *again;
    bool found = true;
    write_file(LEARNS);
    EXPECT_KILN_OK(kiln_engine_open(&e, file, line, 2, NULL));
    struct kiln_engine_info info = kiln_engine_info(e);
    EXPECT(info.rank == 0 && info.n_ranks == 1 && info.micro_batch_size == 4 &&
               info.gradient_accumulation_steps == 2 && info.train_batch_size == 8 && info.zero_stage == 1 &&
               info.step == 0 && info.memory_bytes > 0,
           "batch of %lld", (long long)info.train_batch_size);
    EXPECT(kiln_engine_weights(e, 0)[1] == -0.5F && kiln_engine_weights(e, 1)[0] == 0, "other values");
    EXPECT(kiln_engine_weights(e, 2) == NULL && kiln_engine_gradient(e, -1) == NULL,
           "a parameter that is not there");
    EXPECT_KILN_OK(kiln_engine_load(e, directory, &found));
    EXPECT(!found, "a checkpoint in an empty directory");
    learn(e, 1, 1);
    info = kiln_engine_info(e);
    EXPECT(info.step == 1 && info.loss > 1 && info.gradient_norm > 1 && fabs(info.learning_rate) < 1e-12,
           "loss %g, rate %g", info.loss, info.learning_rate);
    learn(e, 2, 300);
    EXPECT_KILN_OK(kiln_engine_save(e, directory));
    learn(e, 301, 600);
    info = kiln_engine_info(e);
    EXPECT(info.step == 600 && info.loss < 1e-3, "loss %g", info.loss);
    EXPECT_NEAR(kiln_engine_weights(e, 0)[0], 2, 0.05);
    EXPECT_NEAR(kiln_engine_weights(e, 0)[1], -3, 0.05);
    uint32_t bits;
    memcpy(&bits, kiln_engine_weights(e, 1), sizeof bits);
    EXPECT(abs((int)kiln_engine_weights_bf16(e, 1)[0] - (int)(bits >> 16)) <= 1, "the rounded copy");

    EXPECT_KILN_OK(kiln_engine_open(&again, file, line, 2, NULL)); /* a single process may have several */
    EXPECT_KILN_OK(kiln_engine_load(again, directory, &found));
    EXPECT(found && kiln_engine_info(again).step == 300, "not found");
    learn(again, 301, 600);
    const void *whole = kiln_engine_weights(e, 0), *resumed = kiln_engine_weights(again, 0);
    EXPECT(memcmp(whole, resumed, 2 * sizeof(float)) == 0 && kiln_engine_info(again).loss == info.loss,
           "the run that went on ends elsewhere");
    kiln_engine_close(again);
    kiln_engine_close(e);
}

/* Without a schedule, and with Lamb's decay of some parameters only: by its formula. */
static void test_decay(void)
{
    const struct kiln_parameter p[] = {
        {.name = "a", .n_dims = 1, .dims = {1}, .decay = true, .values = (const float[]){2}},
        {.name = "b", .n_dims = 1, .dims = {1}, .values = (const float[]){2}}};
    struct kiln_engine *e;
    write_file("{\"train_batch_size\": 1, \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.5, "
               "\"weight_decay\": 0.1}}}");
    EXPECT_KILN_OK(kiln_engine_open(&e, file, p, 2, NULL));
    EXPECT_KILN_OK(kiln_engine_backward(e, 0)); /* a gradient of 0 */
    EXPECT_KILN_ERROR(kiln_engine_backward(e, 0), KILN_USAGE, "end it before the next one");
    EXPECT_KILN_OK(kiln_engine_step(e, NULL));
    EXPECT_NEAR(kiln_engine_weights(e, 0)[0], 2 * (1 - 0.5 * 0.1), 1e-6);
    EXPECT(kiln_engine_weights(e, 1)[0] == 2, "decay of a parameter without it");
    EXPECT_NEAR(kiln_engine_info(e).learning_rate, 0.5, 0);
    EXPECT_KILN_ERROR(kiln_engine_step(e, NULL), KILN_USAGE, "without a micro-batch");
    kiln_engine_gradient(e, 1)[0] = INFINITY;
    EXPECT_KILN_OK(kiln_engine_backward(e, 0));
    EXPECT_KILN_ERROR(kiln_engine_step(e, NULL), KILN_NUMERIC, "the gradient of b");
    EXPECT(kiln_engine_weights(e, 1)[0] == 2 && kiln_engine_info(e).step == 1 &&
               kiln_engine_gradient(e, 1)[0] == 0,
           "an update by infinity");
    EXPECT_KILN_ERROR(kiln_engine_save(e, "/dev/null/x"), KILN_IO, "/dev/null");
    EXPECT_KILN_OK(kiln_engine_backward(e, 0)); /* it goes on */
    kiln_engine_close(e);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(file, sizeof file, "%s/ds.json", directory);
    test_files();
    test_parameters();
    test_learning();
    test_decay();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
