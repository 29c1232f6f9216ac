/* Saves in the background: what is written is the state as it was when the save began, byte for byte what a
 * save in the foreground writes; failures come back as results; nothing is lost when a run ends early. */
#include "checkpoint_case.h"

#include "core/clock.h"
#include "model/background_save.h"

static struct checkpoint_contents shared_contents(struct checkpoint_case *k, int64_t step)
{
    struct checkpoint_contents c = case_contents(k, step);
    json_incref(k->config);
    json_incref(k->tokenizer);
    json_incref(k->state);
    char *choices = strdup("choices of a device");
    EXPECT(choices != NULL, "memory");
    c.owned = choices;
    case_add_choices(&c, choices);
    case_add_histories(&c);
    return c;
}

static struct status begin(struct background_save *b, struct checkpoint_case *k, const char *directory,
                           int64_t step, int64_t keep_last)
{
    struct checkpoint_contents c = shared_contents(k, step);
    return background_save_begin(b, directory, &(struct exec){.device = &device_cpu}, &c, keep_last,
                                 clock_ns(), 0.25);
}

static void init(struct background_save *b, struct checkpoint_case *k)
{
    EXPECT_OK(background_save_init(b, background_save_bytes(k->params.n_elements, DTYPE_F32) +
                                          sizeof case_histories));
}

static void saves_the_state_of_the_beginning(struct checkpoint_case *k)
{
    struct background_save b;
    struct background_save_result r;
    init(&b, k);
    EXPECT(!background_save_take(&b, true, &r), "a result of nothing");
    for (int64_t step = 1; step <= 4; step++) {
        EXPECT_OK(begin(&b, k, k->directory, step, 2));
        int64_t n = 0;
        while (!background_save_take(&b, false, &r)) { /* training goes on */
            case_set_values(k, 100 + n++ % 50);
        }
        EXPECT_OK(r.status);
        EXPECT(r.step == step, "step %lld", (long long)r.step);
        EXPECT(r.wait_s == 0.25 && r.stall_s >= 0 && r.to_ns > r.from_ns,
               "stall %g, wait %g, written in %lld ns", r.stall_s, r.wait_s,
               (long long)(r.to_ns - r.from_ns));
        EXPECT(case_newest(k) == step, "newest is %lld", (long long)case_newest(k));
    }
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_2", k->directory));
    EXPECT(!file_exists(path), "nothing was pruned");
    background_save_fini(&b);
}

static void writes_the_bytes_of_the_foreground(struct checkpoint_case *k)
{
    struct background_save b;
    char other[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(other, "%s/other", k->directory));
    EXPECT_OK(file_make_directories(other));
    struct checkpoint_contents c = shared_contents(k, 5);
    EXPECT_OK(checkpoint_save(k->directory, &c));
    free(c.owned);
    json_decref(k->config);
    json_decref(k->tokenizer);
    json_decref(k->state);
    init(&b, k);
    EXPECT_OK(begin(&b, k, other, 5, 0));
    background_save_fini(&b); /* a run that ends early waits for its save */
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "config.json",
                                        "vocab.txt",         "tokenizer_config.json", "trainer_state.json",
                                        "cublaslt.cache",    "fp8.safetensors",       "manifest.json"};
    for (size_t file = 0; file < sizeof names / sizeof names[0]; file++) {
        struct file_map one, two;
        char path[CHECKPOINT_PATH_BYTES];
        const char *name = names[file];
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_5/%s", k->directory, name));
        EXPECT_OK(file_map_open(&one, path));
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_5/%s", other, name));
        EXPECT_OK(file_map_open(&two, path));
        EXPECT(one.n == two.n && memcmp(one.data, two.data, one.n) == 0, "%s differs", name);
        file_map_close(&one);
        file_map_close(&two);
    }
}

static void failures_are_results(struct checkpoint_case *k)
{
    struct background_save b;
    struct background_save_result r;
    init(&b, k);
    EXPECT_OK(begin(&b, k, "/dev/null/nowhere", 6, 0));
    EXPECT(background_save_take(&b, true, &r), "no result");
    EXPECT(r.status.code == STATUS_IO && strstr(r.status.message, "step 6") != NULL, "%s", r.status.message);

    struct checkpoint_contents c = shared_contents(k, 6);
    json_decref(k->state);
    c.state = NULL;
    EXPECT_ERROR(
        background_save_begin(&b, k->directory, &(struct exec){.device = &device_cpu}, &c, 0, clock_ns(), 0),
        STATUS_MEMORY, "out of memory for a checkpoint");
    EXPECT(!background_save_take(&b, true, &r), "a save that was refused has a result");

    EXPECT_OK(begin(&b, k, k->directory, 6, 0));
    EXPECT(background_save_take(&b, true, &r), "no result");
    EXPECT_OK(r.status);
    EXPECT(case_newest(k) == 6, "newest is %lld", (long long)case_newest(k));
    background_save_fini(&b);
}

int main(void)
{
    struct checkpoint_case k;
    case_init(&k);
    saves_the_state_of_the_beginning(&k);
    writes_the_bytes_of_the_foreground(&k);
    failures_are_results(&k);
    case_fini(&k);
    return 0;
}
