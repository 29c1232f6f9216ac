/* What does not fit is refused before anything is allocated, with flags that do fit: on a device of any
 * size. */
#include "bert_fixture.h"

#include "train/memory_fit.h"

enum { BATCH = 48, LENGTH = 16, MASKED = 4, OVERHEAD = 4096 };

static size_t free_bytes;

static size_t small_free_bytes(void)
{
    return free_bytes;
}

static struct status never_allocate(void **memory, size_t bytes, const char *what)
{
    (void)memory;
    EXPECT(false, "%zu bytes were allocated for %s", bytes, what);
    return status_ok();
}

static const struct device device_small = {
    .name = "small", .allocate = never_allocate, .free_bytes = small_free_bytes, .overhead_bytes = OVERHEAD};

static struct trainer_config config_of(int64_t n_sequences)
{
    struct trainer_config c =
        fixture_trainer(ops_cpu(), DTYPE_BF16, text_batch_limits(n_sequences, LENGTH, MASKED));
    struct bert_model *bert = fixture_bert(&c);
    bert->config.num_hidden_layers = 9;
    fixture_bert_changed(bert);
    c.net.device = &device_small;
    c.net.learns = true;
    return c;
}

static size_t bytes_of(int64_t n_sequences, int64_t recompute)
{
    struct trainer_config c = config_of(n_sequences);
    struct trainer_plan plan;
    c.net.recompute = recompute;
    EXPECT_OK(trainer_plan(&plan, &c));
    EXPECT(plan.net.library_bytes == OVERHEAD, "the device's own part");
    return memory_fit_device_bytes(&plan, c.net.device);
}

/* The verdict on one step of BATCH sequences at once. */
static struct status check(size_t available, int64_t recompute)
{
    struct trainer_config c = config_of(BATCH);
    struct trainer_plan plan;
    free_bytes = available;
    EXPECT_OK(trainer_plan(&plan, &c));
    return memory_fit_check(&c, &plan,
                            (struct memory_cut){"--train_batch_size", BATCH, 1, true, recompute, 0, 0});
}

/* The found size is the largest: one more does not fit. */
static void test_bisection(void)
{
    struct trainer_config c = config_of(BATCH);
    for (int64_t n = 1; n < BATCH; n += 5) {
        size_t budget = bytes_of(n, 0);
        int64_t found = memory_fit_micro_size(&c, BATCH, budget);
        EXPECT(found >= n && bytes_of(found, 0) <= budget && bytes_of(found + 1, 0) > budget,
               "%lld sequences in the bytes of %lld", (long long)found, (long long)n);
    }
    EXPECT(memory_fit_micro_size(&c, BATCH, bytes_of(BATCH, 0)) == BATCH, "all of them");
    EXPECT(memory_fit_micro_size(&c, BATCH, 1000) == 0, "nothing fits into 1,000 bytes");
}

static void test_messages(void)
{
    EXPECT_OK(check(bytes_of(BATCH, 0), 0));
    EXPECT_ERROR(check(bytes_of(BATCH, 0) - 1, 0), STATUS_MEMORY,
                 "--gradient_accumulation_steps 2 (micro-batches of 24)");
    /* 20 sequences fit, but 16 is the largest divisor of the batch below */
    EXPECT_ERROR(check(bytes_of(20, 0), 0), STATUS_MEMORY,
                 "--gradient_accumulation_steps 3 (micro-batches of 16)");
    EXPECT_ERROR(check(bytes_of(20, 0), 0), STATUS_MEMORY, "of small memory are needed, but only");
    EXPECT_ERROR(check(bytes_of(BATCH, 3), 3), STATUS_MEMORY,
                 "it fits with --checkpoint_activations, or with --grad");
    EXPECT_ERROR(
        check(bytes_of(24, 3), 3), STATUS_MEMORY,
        "it fits with --checkpoint_activations and --gradient_accumulation_steps 2 (micro-batches of 24)");
    EXPECT_ERROR(check(bytes_of(1, 0) / 4, 3), STATUS_MEMORY, "not even one sequence at a time would fit");
    struct trainer_config c = config_of(BATCH);
    struct trainer_plan plan;
    EXPECT_OK(trainer_plan(&plan, &c));
    free_bytes = bytes_of(7, 0);
    EXPECT_ERROR(
        memory_fit_check(&c, &plan, (struct memory_cut){"--predict_batch_size", BATCH, 1, false, 0, 0, 0}),
        STATUS_MEMORY, "it fits with --predict_batch_size");
}

/* The copy that is being saved is the host's memory, not the device's. */
static void test_saving(void)
{
    struct trainer_config c = config_of(BATCH);
    struct trainer_plan plan;
    c.saving = true;
    free_bytes = bytes_of(BATCH, 0);
    EXPECT_OK(trainer_plan(&plan, &c));
    EXPECT(plan.saving_bytes > 0, "nothing to save");
    EXPECT_OK(
        memory_fit_check(&c, &plan, (struct memory_cut){"--train_batch_size", BATCH, 1, true, 0, 0, 0}));
    c.net.device = &device_cpu;
    EXPECT(memory_fit_device_bytes(&plan, &device_cpu) == plan.total_bytes, "on the host all of it counts");
}

/* On the host leaving out the copy is a way out too, as long as the rest fits. */
static void test_saving_on_the_host(void)
{
    struct device host = device_small;
    struct trainer_config c = config_of(BATCH);
    struct trainer_plan plan;
    struct memory_cut cut = {"--train_batch_size", BATCH, 1, true, 0, 0, 0};
    host.is_host = true;
    c.net.device = &host;
    c.saving = true;
    EXPECT_OK(trainer_plan(&plan, &c));
    free_bytes = plan.total_bytes;
    EXPECT_OK(memory_fit_check(&c, &plan, cut));
    free_bytes = plan.total_bytes - plan.saving_bytes;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "with --skip_checkpoint");
    free_bytes--;
    EXPECT(strstr(memory_fit_check(&c, &plan, cut).message, "skip_checkpoint") == NULL, "it would not fit");
}

/* Batches are in the host's memory: on the cpu beside the plan, and elsewhere beside the copy for a save. */
static void test_batches(void)
{
    struct device host = device_small;
    struct trainer_config c = config_of(BATCH);
    struct trainer_plan plan;
    struct memory_cut cut = {"--train_batch_size", BATCH, 1, true, 0, 0, 100000};
    EXPECT_OK(trainer_plan(&plan, &c));
    free_bytes = plan.total_bytes;
    EXPECT_OK(memory_fit_check(&c, &plan, cut));
    host.is_host = true;
    c.net.device = &host;
    EXPECT_OK(trainer_plan(&plan, &c));
    free_bytes = plan.total_bytes;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "(micro-batches of 24)");
    free_bytes += cut.batch_bytes - 1;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "(micro-batches of 24)");
    free_bytes++;
    EXPECT_OK(memory_fit_check(&c, &plan, cut));
    cut.n_processes = 2;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "each of the 2 ranks");
    cut.batch_bytes = SIZE_MAX / 2;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "the batches alone take");
    c.net.device = &device_small;
    free_bytes = plan.total_bytes;
    EXPECT_ERROR(memory_fit_check(&c, &plan, cut), STATUS_MEMORY, "of host memory are needed");
}

int main(void)
{
    test_batches();
    test_saving_on_the_host();
    test_bisection();
    test_messages();
    test_saving();
    return 0;
}
