#include "model/weights_average.h"

#include "core/log.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <stdlib.h>

static const char NAME[] = "average_", CHECKPOINT[] = "ckpt_";

struct status weights_average_path(char path[CHECKPOINT_PATH_BYTES], const char *directory, int64_t step)
{
    return checkpoint_path(path, "%s/%s%" PRId64, directory, NAME, step);
}

/* master += the weights of the checkpoint, which are read into exp_avg. */
static struct status add_weights(const char *directory, const struct checkpoint_contents *c, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint from;
    float *sum = c->master.data;
    const float *read = c->exp_avg.data;
    TRY(checkpoint_path(path, "%s/%s%" PRId64, directory, CHECKPOINT, step));
    TRY(checkpoint_open_model(&from, path));
    struct status s = checkpoint_read_weights(&from, c->params, c->master_begin, c->exp_avg);
    checkpoint_close(&from);
    for (int64_t i = 0; i < tensor_count(c->master) && !failed(s); i++) {
        sum[i] += read[i];
    }
    return s;
}

/* A checkpoint that the mean may have, besides the newest. */
static bool is_on_grid(const struct checkpoint_average *a, int64_t step)
{
    return step > a->after && a->every > 0 && (step - a->after) % a->every == 0;
}

static struct status add_earlier(const char *directory, const struct checkpoint_contents *c, int64_t *n)
{
    struct checkpoint_steps list;
    *n = 1;
    struct status s = checkpoint_dir_list(&list, directory, CHECKPOINT);
    for (int i = 0; i < list.n && *n < c->average.n_last && !failed(s); i++) {
        if (list.steps[i] < c->step && is_on_grid(&c->average, list.steps[i])) {
            s = add_weights(directory, c, list.steps[i]);
            ++*n;
        }
    }
    free(list.steps);
    return s;
}

/* The rows and gaps of a buffer that checkpoints do not have are not read, so they must be as those of the
 * sum: 0. */
static void clear(tensor t)
{
    float *values = t.data;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        values[i] = 0;
    }
}

struct checkpoint_contents weights_average_contents(const struct checkpoint_contents *c)
{
    struct checkpoint_contents mean = *c;
    mean.model_name = NAME;
    mean.exp_avg = mean.exp_avg_sq = NULL_TENSOR;
    mean.n_extras = 0;
    return mean;
}

/* c->master becomes the mean. */
static struct status compute(const char *directory, const struct checkpoint_contents *c, int64_t *n)
{
    float *sum = c->master.data;
    int64_t all = tensor_count(c->master);
    CHECK(c->master.dtype == DTYPE_F32 && c->exp_avg.dtype == DTYPE_F32 && tensor_count(c->exp_avg) == all,
          "an average of other slices");
    clear(c->exp_avg);
    TRY(status_context(add_earlier(directory, c, n), "cannot average the weights of step %" PRId64, c->step));
    for (int64_t i = 0; i < all; i++) {
        sum[i] /= (float)*n;
    }
    return status_ok();
}

struct status weights_average_save(const char *directory, const struct checkpoint_contents *c, int64_t *n)
{
    TRY(compute(directory, c, n));
    struct checkpoint_contents mean = weights_average_contents(c);
    return checkpoint_save(directory, &mean);
}

struct status weights_average_save_part(struct checkpoint_part *part, const char *path, const char *directory,
                                        const struct checkpoint_contents *c, int64_t *n)
{
    TRY(compute(directory, c, n));
    struct checkpoint_contents mean = weights_average_contents(c);
    return checkpoint_save_part(part, path, &mean);
}

struct status weights_average_prune(const char *directory)
{
    struct checkpoint_steps list;
    char path[CHECKPOINT_PATH_BYTES];
    struct status s = checkpoint_dir_list(&list, directory, NAME);
    for (int i = 0; i < list.n && !failed(s); i++) {
        s = checkpoint_path(path, "%s/%s%" PRId64, directory, CHECKPOINT, list.steps[i]);
        if (!failed(s) && !file_exists(path)) {
            s = weights_average_path(path, directory, list.steps[i]);
            s = failed(s) ? s : temporary_remove_directory(path);
        }
    }
    free(list.steps);
    return s;
}
