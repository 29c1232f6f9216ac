/* train_own: a network that is no BERT, trained by kiln's engine.  It needs only the files that `make
 * install` put under a prefix.
 *
 *     train_own --deepspeed_config ds.json [--max_steps 400] [--output_dir DIR]
 *               [--reproducible_ranks N] [--weights FILE]
 *     mpirun -n 2 train_own --deepspeed_config ds.json ...
 *
 * The network is a perceptron of two layers that finds the class of a point in a plane: the arm of a spiral
 * that it lies on.  Points are drawn by their number, so that a global batch is the same whatever the number
 * of ranks.  It goes on from what is in DIR, saves there at the end, and writes all weights to FILE, as
 * fp32. */
#include <kiln/engine.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_INPUTS = 2, N_HIDDEN = 48, N_CLASSES = 3 };
enum { HIDDEN_WEIGHT, HIDDEN_BIAS, OUTPUT_WEIGHT, OUTPUT_BIAS, N_PARAMETERS };

struct flags {
    const char *config, *output_dir, *weights;
    long long max_steps;
    struct kiln_engine_options options;
};

/* A number in [0, 1) for each key: splitmix64. */
static double uniform(uint64_t key)
{
    key += 0x9e3779b97f4a7c15u;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return (double)((key ^ (key >> 31)) >> 11) * 0x1p-53;
}

/* Point `number` of the data, and its class. */
static int draw(uint64_t number, float point[N_INPUTS])
{
    int arm = (int)(uniform(3 * number) * N_CLASSES);
    double r = 0.1 + 0.9 * uniform(3 * number + 1);
    double angle = 4 * r + 2 * 3.14159265358979 * arm / N_CLASSES + 0.2 * (uniform(3 * number + 2) - 0.5);
    point[0] = (float)(2 * r * cos(angle));
    point[1] = (float)(2 * r * sin(angle));
    return arm;
}

/* h = tanh(W1 x + b1), p = softmax(W2 h + b2) */
static void forward(const struct kiln_engine *e, const float *x, float *h, double *p)
{
    const float *w1 = kiln_engine_weights(e, HIDDEN_WEIGHT), *b1 = kiln_engine_weights(e, HIDDEN_BIAS);
    const float *w2 = kiln_engine_weights(e, OUTPUT_WEIGHT), *b2 = kiln_engine_weights(e, OUTPUT_BIAS);
    double sum = 0;
    for (int i = 0; i < N_HIDDEN; i++) {
        h[i] = tanhf(w1[2 * i] * x[0] + w1[2 * i + 1] * x[1] + b1[i]);
    }
    for (int c = 0; c < N_CLASSES; c++) {
        float z = b2[c];
        for (int i = 0; i < N_HIDDEN; i++) {
            z += w2[c * N_HIDDEN + i] * h[i];
        }
        p[c] = exp((double)z);
        sum += p[c];
    }
    for (int c = 0; c < N_CLASSES; c++) {
        p[c] /= sum;
    }
}

/* Adds the gradient of -log p[right], times `share`, to the engine's buffers. */
static void backward(struct kiln_engine *e, const float *x, const float *h, const double *p, int right,
                     double share)
{
    const float *w2 = kiln_engine_weights(e, OUTPUT_WEIGHT);
    float *dw1 = kiln_engine_gradient(e, HIDDEN_WEIGHT), *db1 = kiln_engine_gradient(e, HIDDEN_BIAS);
    float *dw2 = kiln_engine_gradient(e, OUTPUT_WEIGHT), *db2 = kiln_engine_gradient(e, OUTPUT_BIAS);
    float dz[N_CLASSES];
    for (int c = 0; c < N_CLASSES; c++) {
        dz[c] = (float)(share * (p[c] - (c == right)));
        db2[c] += dz[c];
    }
    for (int i = 0; i < N_HIDDEN; i++) {
        float dh = 0;
        for (int c = 0; c < N_CLASSES; c++) {
            dh += dz[c] * w2[c * N_HIDDEN + i];
            dw2[c * N_HIDDEN + i] += dz[c] * h[i];
        }
        float da = dh * (1 - h[i] * h[i]);
        db1[i] += da;
        dw1[2 * i] += da * x[0];
        dw1[2 * i + 1] += da * x[1];
    }
}

/* Loss and gradients of the points [first, first + n): the mean over them. */
static double micro_batch(struct kiln_engine *e, int64_t first, int64_t n)
{
    double loss = 0, p[N_CLASSES];
    float x[N_INPUTS], h[N_HIDDEN];
    for (int64_t i = 0; i < n; i++) {
        int right = draw((uint64_t)(first + i), x);
        forward(e, x, h, p);
        backward(e, x, h, p, right, 1.0 / (double)n);
        loss -= log(p[right]) / (double)n;
    }
    return loss;
}

static struct kiln_status open_engine(struct kiln_engine **e, const struct flags *f)
{
    static float w1[N_HIDDEN * N_INPUTS], w2[N_CLASSES * N_HIDDEN];
    const struct kiln_parameter parameters[N_PARAMETERS] = {
        [HIDDEN_WEIGHT] =
            {.name = "hidden.weight", .n_dims = 2, .dims = {N_HIDDEN, N_INPUTS}, .decay = true, .values = w1},
        [HIDDEN_BIAS] = {.name = "hidden.bias", .n_dims = 1, .dims = {N_HIDDEN}},
        [OUTPUT_WEIGHT] = {.name = "output.weight",
                           .n_dims = 2,
                           .dims = {N_CLASSES, N_HIDDEN},
                           .decay = true,
                           .values = w2},
        [OUTPUT_BIAS] = {.name = "output.bias", .n_dims = 1, .dims = {N_CLASSES}},
    };
    for (int i = 0; i < N_HIDDEN * N_INPUTS; i++) {
        w1[i] = (float)(2 * uniform((uint64_t)i << 32) - 1);
    }
    for (int i = 0; i < N_CLASSES * N_HIDDEN; i++) {
        w2[i] = (float)(0.3 * (uniform(((uint64_t)i << 32) + 1) - 0.5));
    }
    return kiln_engine_open(e, f->config, parameters, N_PARAMETERS, &f->options);
}

/* Micro-batch i of a step on this rank is number rank * gradient_accumulation_steps + i of the global
 * batch. */
static struct kiln_status train(struct kiln_engine *e, const struct flags *f)
{
    struct kiln_engine_info info = kiln_engine_info(e);
    struct kiln_status s = {.code = KILN_OK};
    while (info.step < f->max_steps && s.code == KILN_OK) {
        bool updated = false;
        for (int64_t i = 0; !updated && s.code == KILN_OK; i++) {
            int64_t number = info.rank * info.gradient_accumulation_steps + i;
            int64_t first = info.step * info.train_batch_size + number * info.micro_batch_size;
            s = kiln_engine_backward(e, micro_batch(e, first, info.micro_batch_size));
            if (s.code == KILN_OK) {
                s = kiln_engine_step(e, &updated);
            }
        }
        info = kiln_engine_info(e);
        if (info.rank == 0 && updated && (info.step % 50 == 0 || info.step == 1)) {
            printf("step %lld: loss %.6f, gradient norm %.4f, %d ranks\n", (long long)info.step, info.loss,
                   info.gradient_norm, info.n_ranks);
        }
    }
    return s;
}

static int write_weights(const struct kiln_engine *e, const char *path)
{
    static const size_t sizes[N_PARAMETERS] = {N_HIDDEN * N_INPUTS, N_HIDDEN, N_CLASSES * N_HIDDEN,
                                               N_CLASSES};
    FILE *out = fopen(path, "wb");
    int fine = out != NULL;
    for (int i = 0; i < N_PARAMETERS && fine; i++) {
        fine = fwrite(kiln_engine_weights(e, i), sizeof(float), sizes[i], out) == sizes[i];
    }
    return (out == NULL || fclose(out) == 0) && fine;
}

static struct kiln_status run(struct kiln_engine *e, const struct flags *f)
{
    struct kiln_status s = {.code = KILN_OK};
    bool found = false;
    if (f->output_dir != NULL) {
        s = kiln_engine_load(e, f->output_dir, &found);
    }
    if (s.code == KILN_OK) {
        s = train(e, f);
    }
    if (s.code == KILN_OK && f->output_dir != NULL) {
        s = kiln_engine_save(e, f->output_dir);
    }
    if (s.code == KILN_OK && f->weights != NULL && kiln_engine_info(e).rank == 0 &&
        !write_weights(e, f->weights)) {
        s.code = KILN_IO;
        snprintf(s.message, sizeof s.message, "cannot write %.400s", f->weights);
    }
    return s;
}

static int read_flags(struct flags *f, int argc, char **argv)
{
    *f = (struct flags){.max_steps = 400, .options = kiln_engine_defaults()};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--deepspeed_config") == 0) {
            f->config = argv[i + 1];
        } else if (strcmp(argv[i], "--output_dir") == 0) {
            f->output_dir = argv[i + 1];
        } else if (strcmp(argv[i], "--weights") == 0) {
            f->weights = argv[i + 1];
        } else if (strcmp(argv[i], "--max_steps") == 0) {
            f->max_steps = atoll(argv[i + 1]);
        } else if (strcmp(argv[i], "--reproducible_ranks") == 0) {
            f->options.reproducible_ranks = atoi(argv[i + 1]);
        } else {
            return 0;
        }
    }
    return argc % 2 == 1 && f->config != NULL;
}

int main(int argc, char **argv)
{
    struct flags f;
    struct kiln_engine *e = NULL;
    if (!read_flags(&f, argc, argv)) {
        fprintf(stderr, "usage: train_own --deepspeed_config FILE [--max_steps N] [--output_dir DIR] "
                        "[--reproducible_ranks N] "
                        "[--weights FILE]\n");
        return KILN_USAGE;
    }
    struct kiln_status s = open_engine(&e, &f);
    if (s.code == KILN_OK) {
        s = run(e, &f);
        kiln_engine_close(e);
    }
    if (s.code != KILN_OK) {
        fprintf(stderr, "train_own: %s\n", s.message);
    }
    return (int)s.code;
}
