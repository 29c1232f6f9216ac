/* model/weights_average: the mean is of the newest checkpoint and of those before it on the grid, of one
 * phase; it is saved in the background beside each checkpoint, as a model without moments, and goes with
 * it. */
#include "checkpoint_case.h"

#include "core/clock.h"
#include "model/background_save.h"
#include "model/weights_average.h"

static void save(struct background_save *b, struct checkpoint_case *k, int64_t step,
                 struct checkpoint_average a, struct background_save_result *r)
{
    struct checkpoint_contents c = case_contents(k, step);
    json_incref(k->config);
    json_incref(k->tokenizer);
    json_incref(k->state);
    c.average = a;
    EXPECT_OK(
        background_save_begin(b, k->directory, &(struct exec){.device = &device_cpu}, &c, 3, clock_ns(), 0));
    EXPECT(background_save_take(b, true, r), "no result");
    EXPECT_OK(r->status);
    EXPECT_OK(r->average);
}

static bool exists(const struct checkpoint_case *k, const char *name, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(path, "%s/%s_%lld", k->directory, name, (long long)step));
    return file_exists(path);
}

/* The weights of average_STEP are the mean of those of these steps. */
static void expect_mean(struct checkpoint_case *k, int64_t step, const int64_t *steps, int n)
{
    static float mean[CASE_ELEMENTS], sum[CASE_ELEMENTS];
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint c;
    memset(mean, 0, sizeof mean);
    memset(sum, 0, sizeof sum);
    EXPECT_OK(weights_average_path(path, k->directory, step));
    EXPECT_OK(checkpoint_open_model(&c, path));
    EXPECT(checkpoint_find(&c, "optimizer.safetensors") == NULL, "a mean has moments");
    EXPECT_OK(checkpoint_read_weights(&c, &k->params, 0, tensor_1d(mean, DTYPE_F32, CASE_ELEMENTS)));
    for (int s = 0; s < n; s++) {
        case_set_values(k, steps[s]);
        for (int i = 0; i < CASE_ELEMENTS; i++) {
            sum[i] += k->flat[0][i];
        }
    }
    for (int i = 0; i < 6 * 16; i++) {
        EXPECT(mean[i] == sum[i] / (float)n, "element %d is %g, not %g", i, (double)mean[i],
               (double)(sum[i] / (float)n));
    }
    EXPECT(mean[CASE_SLAB + 5] == sum[CASE_SLAB + 5] / (float)n, "the last parameter");
    checkpoint_close(&c);
}

static void means_are_of_the_last_on_the_grid(struct checkpoint_case *k)
{
    struct background_save b;
    struct background_save_result r;
    const struct checkpoint_average a = {.n_last = 3, .every = 10, .after = 0};
    EXPECT_OK(background_save_init(&b, background_save_bytes(k->params.n_elements, DTYPE_F32)));
    save(&b, k, 10, a, &r);
    EXPECT(r.n_averaged == 1, "%lld checkpoints", (long long)r.n_averaged);
    expect_mean(k, 10, (int64_t[]){10}, 1);
    save(&b, k, 20, a, &r);
    save(&b, k, 23, a, &r); /* a signal */
    expect_mean(k, 23, (int64_t[]){23, 20, 10}, 3);
    save(&b, k, 30, a, &r);
    EXPECT(r.n_averaged == 3, "%lld checkpoints", (long long)r.n_averaged);
    expect_mean(k, 30, (int64_t[]){30, 20, 10}, 3);
    save(&b, k, 40, a, &r);
    expect_mean(k, 40, (int64_t[]){40, 30, 20}, 3);
    save(&b, k, 50, a, &r);
    expect_mean(k, 50, (int64_t[]){50, 40, 30}, 3);
    EXPECT(exists(k, "ckpt", 40) && exists(k, "average", 40) && !exists(k, "ckpt", 20) &&
               !exists(k, "average", 20),
           "means go with their checkpoints");
    EXPECT(case_newest(k) == 50, "the mean changed the checkpoint");
    const struct checkpoint_average next = {.n_last = 3, .every = 10, .after = 40};
    save(&b, k, 60, next, &r); /* of a phase that began at 40 */
    expect_mean(k, 60, (int64_t[]){60, 50}, 2);
    background_save_fini(&b);
}

/* A checkpoint that cannot be read makes no mean, but stays no less a checkpoint. */
static void damage_is_told(struct checkpoint_case *k)
{
    struct background_save b;
    struct background_save_result r;
    char path[CHECKPOINT_PATH_BYTES];
    EXPECT_OK(checkpoint_path(path, "%s/ckpt_60/model.safetensors", k->directory));
    FILE *file = fopen(path, "r+b");
    EXPECT(file != NULL && fseek(file, 600, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0,
           "%s", path);
    EXPECT_OK(background_save_init(&b, background_save_bytes(k->params.n_elements, DTYPE_F32)));
    struct checkpoint_contents c = case_contents(k, 70);
    json_incref(k->config);
    json_incref(k->tokenizer);
    json_incref(k->state);
    c.average = (struct checkpoint_average){.n_last = 3, .every = 10};
    EXPECT_OK(
        background_save_begin(&b, k->directory, &(struct exec){.device = &device_cpu}, &c, 3, clock_ns(), 0));
    EXPECT(background_save_take(&b, true, &r), "no result");
    EXPECT_OK(r.status);
    EXPECT(failed(r.average) && strstr(r.average.message, "cannot average the weights of step 70") != NULL,
           "%s", r.average.message);
    EXPECT(!exists(k, "average", 70) && case_newest(k) == 70, "no checkpoint");
    background_save_fini(&b);
}

int main(void)
{
    struct checkpoint_case k;
    case_init(&k);
    means_are_of_the_last_on_the_grid(&k);
    damage_is_told(&k);
    case_fini(&k);
    return 0;
}
