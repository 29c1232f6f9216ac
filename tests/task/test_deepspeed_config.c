/* Numbers of DeepSpeed's JSON: the third batch size from the other two, for one rank and for several;
 * defaults; a warm-up of at least two steps; and both sides of each limit. */
#include "io/file.h"
#include "task/deepspeed_config.h"
#include "test.h"

static const char PATH[] = "test_deepspeed_config.json";

static struct status read(struct deepspeed_config *c, const char *text, int n_ranks)
{
    EXPECT_OK(file_write_atomic(PATH, text, strlen(text)));
    return deepspeed_config_read(c, PATH, false, n_ranks);
}

static void two_batch_sizes_give_the_third(void)
{
    static const struct {
        const char *text;
        int n_ranks;
        int64_t batch, steps; /* of a rank; 0: refused */
    } cases[] = {
        {"{\"train_batch_size\": 48}", 1, 48, 1},
        {"{\"train_batch_size\": 48}", 3, 16, 1},
        {"{\"train_batch_size\": 48, \"train_micro_batch_size_per_gpu\": 4}", 3, 16, 4},
        {"{\"train_batch_size\": 48, \"gradient_accumulation_steps\": 2}", 3, 16, 2},
        {"{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}", 3, 8, 2},
        {"{\"train_micro_batch_size_per_gpu\": 4}", 3, 4, 1},
        {"{\"train_batch_size\": 24, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": "
         "2}",
         3, 8, 2},
        {"{\"train_batch_size\": 25, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": "
         "2}",
         3, 0, 0},
        {"{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": "
         "2}",
         3, 0, 0},
        {"{\"train_batch_size\": 2}", 3, 0, 0},
        {"{\"train_batch_size\": 47}", 3, 0, 0},
        {"{}", 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct deepspeed_config c = {0};
        struct status s = read(&c, cases[i].text, cases[i].n_ranks);
        EXPECT(failed(s) == (cases[i].batch == 0), "%s: %s", cases[i].text, s.message);
        EXPECT(failed(s) || (c.batch.train_batch_size == cases[i].batch &&
                             c.batch.gradient_accumulation_steps == cases[i].steps),
               "%s: %lld in %lld", cases[i].text, (long long)c.batch.train_batch_size,
               (long long)c.batch.gradient_accumulation_steps);
    }
}

/* The reading of a file with this behind its batch size. */
static struct status read_with(struct deepspeed_config *c, const char *rest)
{
    char text[512];
    snprintf(text, sizeof text, "{\"train_batch_size\": 8, %s}", rest);
    return read(c, text, 1);
}

static void limits_have_two_sides(void)
{
    static const struct {
        const char *rest;
        bool allowed;
    } cases[] = {
        {"\"gradient_clipping\": 0", true},
        {"\"gradient_clipping\": 1e9", true},
        {"\"gradient_clipping\": -0.5", false},
        {"\"gradient_clipping\": 2e9", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0, \"eps\": 1, \"weight_decay\": 0}}",
         true},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 100, \"eps\": 1e-30, \"weight_decay\": "
         "100}}",
         true},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": -1e-9}}", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 100.5}}", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"eps\": 1e-31}}", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"eps\": 1.5}}", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"weight_decay\": -0.5}}", false},
        {"\"optimizer\": {\"type\": \"Adam\", \"params\": {\"weight_decay\": 100.5}}", false},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": 100}}", true},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": 100.5}}", false},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_min_lr\": -0.5}}", false},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_min_lr\": 1, \"warmup_max_lr\": 1}}",
         true},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_min_lr\": 1, \"warmup_max_lr\": "
         "0.5}}",
         false},
        {"\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": 5, "
         "\"total_num_steps\": "
         "5}}",
         true},
        {"\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": 5, "
         "\"total_num_steps\": "
         "4}}",
         false},
        {"\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": 5}}", false},
        {"\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"total_num_steps\": 9}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct deepspeed_config c = {0};
        struct status s = read_with(&c, cases[i].rest);
        EXPECT(!failed(s) == cases[i].allowed, "%s: %s", cases[i].rest,
               failed(s) ? s.message : "it was allowed");
        EXPECT(!failed(s) || s.code == STATUS_DATA, "%s: code %d", cases[i].rest, (int)s.code);
    }
}

static void a_warm_up_has_two_steps(void)
{
    static const int64_t cases[][2] = {{0, 2}, {1, 2}, {2, 2}, {3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct deepspeed_config c = {0};
        char rest[256];
        snprintf(rest, sizeof rest,
                 "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": %lld}}",
                 (long long)cases[i][0]);
        EXPECT_OK(read_with(&c, rest));
        EXPECT(c.has_scheduler && c.scheduler.warmup_steps == cases[i][1], "%lld steps are %lld",
               (long long)cases[i][0], (long long)c.scheduler.warmup_steps);
    }
    struct deepspeed_config c = {0};
    EXPECT_OK(read_with(&c, "\"scheduler\": {\"type\": \"WarmupLR\"}"));
    EXPECT(c.scheduler.warmup_steps == 1000 && c.scheduler.max == 1e-3 && c.scheduler.min == 0 &&
               c.scheduler.is_log && c.scheduler.decay_steps == 0,
           "other defaults than DeepSpeed's");
}

int main(void)
{
    two_batch_sizes_give_the_third();
    limits_have_two_sides();
    a_warm_up_has_two_steps();
    EXPECT_OK(file_remove_tree(PATH));
    return 0;
}
