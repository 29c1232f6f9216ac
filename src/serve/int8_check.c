#include "serve/int8_check.h"

#include "core/log.h"
#include "serve/model_outputs.h"

/* 0.5 % of the squared length of an output, nearly. */
static const double LEAST_COSINE = 0.995;

enum { MOST_TOKENS = 64 };

static const char long_text[] =
    "The committee approved a budget of $2,350,000 for 2024, which is 7.5% more than the year before, "
    "although "
    "several members said that the costs of the new bridge had not been shown to them in time.";

/* Short and long, a question, names and numbers, code, and other languages than English. */
static const char *const texts[] = {
    "The weather was cold and the roads were empty.",
    "Who wrote the first program for a computer?",
    "Yes.",
    "Ada Lovelace, born in London in 1815, described how a machine could compute the numbers of Bernoulli.",
    "This was by far the worst meal that I have ever paid for, and I will not come back.",
    "for (int i = 0; i < n; i++) { sum += a[i] * b[i]; }",
    long_text,
    "Der Zug nach Hamburg f\303\244hrt heute eine Stunde sp\303\244ter.",
    "La biblioteca abre de lunes a viernes.",
};

/* The output that moves most.  Nothing answers by the pooled vector itself. */
static double least_cosine(const struct model_outputs *a, const struct model_outputs *b)
{
    double least = 1;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        double cosine = k == MODEL_POOLED ? 1 : model_outputs_cosine(a, b, k);
        least = cosine < least ? cosine : least;
    }
    return least;
}

static struct status compare(double *cosine, const struct model_dir *m, enum model_task task,
                             const struct outputs_input *in)
{
    const struct precision fp32 = {.dtype = DTYPE_F32}, int8 = {.dtype = DTYPE_F32, .int8 = true};
    struct model_outputs a, b;
    TRY(model_outputs_compute_in(&a, m, task, in, fp32));
    struct status s = model_outputs_compute_in(&b, m, task, in, int8);
    if (!failed(s)) {
        *cosine = least_cosine(&a, &b);
        model_outputs_fini(&b);
    }
    model_outputs_fini(&a);
    return s;
}

struct status int8_check(const struct model_dir *m, enum model_task task)
{
    int n = sizeof texts / sizeof texts[0];
    struct outputs_input in;
    double cosine = 1;
    TRY(outputs_input_texts(&in, m, texts, n, MOST_TOKENS));
    struct status s = compare(&cosine, m, task, &in);
    outputs_input_fini(&in);
    TRY(s);
    FAIL_IF(
        !(cosine >= LEAST_COSINE), STATUS_DATA,
        "%s: in int8 its outputs have a cosine of %.4f with those in fp32, on %d texts, and must have %.3f: "
        "use fp32 or bf16",
        m->path, cosine, n, LEAST_COSINE);
    log_info("int8: cosine %.4f with the outputs in fp32, on %d texts", cosine, n);
    return s;
}
