/* The choice of a kernel of attention without a device: who competes, how a shape is named, what the
 * environment asks for, which winner is kept, what doctor says.  Which kernels fit, and how long they take,
 * is said by this test. */
#include "test.h"

#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_context.h"

/* The device: how long kernels take, infinite for one that is not launched. */
static double takes[LAUNCH_ATTENTION_KERNELS];
static int launched;
static int n_timed;
static bool captures;

/* As the kernels do: matrix instructions want two bytes an element, 64 columns, alignment. */
int cuda_attention_fits(enum launch_attention_kernel kernel, const struct launch_attention_form *f)
{
    bool fits = f->aligned && f->head_size == 64 && f->type != LAUNCH_F32;
    if (kernel == LAUNCH_ATTENTION_CLUSTER) {
        return fits && !f->windowed && f->backward && f->type == LAUNCH_F16 && f->longest > 128 &&
               f->longest <= 512;
    }
    return kernel == LAUNCH_ATTENTION_PLAIN || (kernel == LAUNCH_ATTENTION_MMA && fits);
}

/* Without a window. */
static struct attention_candidates candidates_of(enum launch_type type, int64_t head_size, int64_t longest,
                                                 bool aligned, bool backward, int asked_for)
{
    return attention_candidates_of(
        (struct launch_attention_form){type, head_size, longest, aligned, false, backward}, asked_for);
}

void cuda_launch_attention(const struct launch *l, enum launch_attention_kernel kernel,
                           const struct launch_attention *a, const struct launch_attention_rows *r,
                           enum launch_type type)
{
    (void)l, (void)a, (void)type;
    EXPECT(r->dq.data == NULL, "the gradient is another call");
    launched = (int)kernel;
}

void cuda_launch_attention_backward(const struct launch *l, enum launch_attention_kernel kernel,
                                    const struct launch_attention *a, const struct launch_attention_rows *r,
                                    enum launch_type type)
{
    (void)l, (void)a, (void)type;
    EXPECT(r->dq.data != NULL, "the gradient is another call");
    launched = (int)kernel;
}

const char *cuda_launch_error(void)
{
    return isfinite(takes[launched]) ? NULL : "refused";
}

double cuda_choices_time(struct cuda_choices *choices, struct CUstream_st *stream, bool (*run)(void *self),
                         void *self)
{
    (void)choices, (void)stream;
    n_timed++;
    return run(self) ? takes[launched] : (double)INFINITY;
}

bool cuda_choices_is_capturing(struct CUstream_st *stream)
{
    (void)stream;
    return captures;
}

static const struct attention_candidates BOTH = {2, {LAUNCH_ATTENTION_PLAIN, LAUNCH_ATTENTION_MMA}};

static void expect_only(struct attention_candidates a, enum launch_attention_kernel kernel)
{
    EXPECT(a.n == 1 && a.kernels[0] == kernel, "%d candidates, first %s", a.n,
           attention_kernel_name(a.kernels[0]));
    EXPECT(attention_is_candidate(&a, (int)kernel) && !attention_is_candidate(&a, LAUNCH_ATTENTION_KERNELS),
           "the one and no other");
}

static void test_candidates(void)
{
    expect_only(candidates_of(LAUNCH_F32, 64, 128, true, false, ATTENTION_ANY), LAUNCH_ATTENTION_PLAIN);
    expect_only(candidates_of(LAUNCH_BF16, 48, 128, true, false, ATTENTION_ANY), LAUNCH_ATTENTION_PLAIN);
    expect_only(candidates_of(LAUNCH_BF16, 64, 128, false, true, ATTENTION_ANY), LAUNCH_ATTENTION_PLAIN);
    expect_only(candidates_of(LAUNCH_BF16, 64, 128, true, true, ATTENTION_ANY), LAUNCH_ATTENTION_MMA);
    expect_only(candidates_of(LAUNCH_BF16, 64, 128, true, true, LAUNCH_ATTENTION_PLAIN),
                LAUNCH_ATTENTION_PLAIN);
    expect_only(candidates_of(LAUNCH_F32, 64, 128, true, true, LAUNCH_ATTENTION_MMA), LAUNCH_ATTENTION_PLAIN);
    expect_only(candidates_of(LAUNCH_F16, 64, 128, true, true, ATTENTION_ANY), LAUNCH_ATTENTION_MMA);
    expect_only(candidates_of(LAUNCH_F16, 64, 513, true, true, ATTENTION_ANY), LAUNCH_ATTENTION_MMA);
    expect_only(candidates_of(LAUNCH_F16, 64, 512, true, false, LAUNCH_ATTENTION_CLUSTER),
                LAUNCH_ATTENTION_MMA);
    expect_only(candidates_of(LAUNCH_F16, 64, 512, true, true, LAUNCH_ATTENTION_CLUSTER),
                LAUNCH_ATTENTION_CLUSTER);
    struct attention_candidates two = candidates_of(LAUNCH_F16, 64, 129, true, true, ATTENTION_ANY);
    EXPECT(two.n == 2 && attention_is_candidate(&two, LAUNCH_ATTENTION_CLUSTER), "%d candidates", two.n);
    struct launch_attention_form windowed = {LAUNCH_F16, 64, 129, true, true, true};
    expect_only(attention_candidates_of(windowed, LAUNCH_ATTENTION_CLUSTER), LAUNCH_ATTENTION_MMA);
}

static void test_names(void)
{
    for (int i = 0; i < LAUNCH_ATTENTION_KERNELS; i++) {
        int kernel;
        const char *name = attention_kernel_name((enum launch_attention_kernel)i);
        EXPECT(name != NULL && attention_served_by((enum launch_attention_kernel)i) != NULL,
               "kernel %d has no name", i);
        setenv("KILN_ATTENTION", name, 1);
        EXPECT_OK(attention_kernel_asked_for(&kernel));
        EXPECT(kernel == i, "%s is kernel %d", name, kernel);
    }
    int kernel;
    setenv("KILN_ATTENTION", "flash", 1);
    EXPECT_ERROR(attention_kernel_asked_for(&kernel), STATUS_USAGE,
                 "KILN_ATTENTION=flash: no kernel of attention is called that; there are plain, mma.sync");
    setenv("KILN_ATTENTION", "", 1);
    EXPECT_OK(attention_kernel_asked_for(&kernel));
    EXPECT(kernel == ATTENTION_ANY, "kernel %d", kernel);
    unsetenv("KILN_ATTENTION");
    EXPECT_OK(attention_kernel_asked_for(&kernel));
    EXPECT(kernel == ATTENTION_ANY, "kernel %d", kernel);
}

/* BERT-large at 128 tokens, in views of one [T, 3H]. */
static struct attention_call call_of(void *memory)
{
    char *qkv = memory;
    return (struct attention_call){
        .type = LAUNCH_BF16,
        .sizes = {.n_rows_q = 8192,
                  .n_rows_kv = 8192,
                  .n_sequences = 64,
                  .n_heads = 16,
                  .n_kv_heads = 16,
                  .head_size = 64,
                  .max_seqlen_q = 128,
                  .max_seqlen_kv = 128,
                  .dropout = {.threshold = 6554}},
        .rows = {
            .q = {qkv, 3072}, .k = {qkv + 2048, 3072}, .v = {qkv + 4096, 3072}, .out = {qkv + 8192, 1024}}};
}

static void expect_key(const struct attention_call *call, const struct attention_candidates *a,
                       const char *wanted)
{
    char key[PRODUCT_KEY_BYTES];
    attention_key(key, "gpu", call, a);
    EXPECT(strcmp(key, wanted) == 0, "%s", key);
}

static void test_keys(void)
{
    static _Alignas(16) char memory[3 * 4096];
    static const float slopes[1];
    struct attention_call call = call_of(memory);
    expect_key(&call, &BOTH,
               "gpu\tattention forward bf16, 16 heads of 64, 8192x8192 rows, 64 sequences up to 128x128, "
               "dropout, aligned, of plain mma.sync");
    static uint32_t bits[1];
    call.sizes.bits = bits; /* a gradient that draws takes longer */
    expect_key(&call, &BOTH,
               "gpu\tattention forward bf16, 16 heads of 64, 8192x8192 rows, 64 sequences up to 128x128, "
               "dropout, bits, aligned, of plain mma.sync");
    call.sizes.bits = NULL;
    call.sizes.n_kv_heads = 4; /* fewer blocks with longer walks */
    expect_key(&call, &BOTH,
               "gpu\tattention forward bf16, 16 heads of 64 that share 4, 8192x8192 rows, 64 sequences up to "
               "128x128, dropout, aligned, of plain mma.sync");
    call.sizes.n_kv_heads = 16;
    EXPECT(attention_served_why(&call, LAUNCH_ATTENTION_MMA, ATTENTION_ANY) == NULL, "as expected");
    EXPECT(strstr(attention_served_why(&call, LAUNCH_ATTENTION_PLAIN, ATTENTION_ANY), "head size"), "why");
    EXPECT(strstr(attention_served_why(&call, LAUNCH_ATTENTION_PLAIN, LAUNCH_ATTENTION_PLAIN),
                  "KILN_ATTENTION") != NULL,
           "why");
    call.rows.k.stride = 3073;
    EXPECT(!attention_is_aligned(&call), "rows are apart by 16 bytes");
    EXPECT(strstr(attention_served_why(&call, LAUNCH_ATTENTION_PLAIN, ATTENTION_ANY), "16 bytes"), "why");
    call.rows.k.stride = 3072;
    call.rows.out.data = memory + 8;
    EXPECT(!attention_is_aligned(&call), "rows begin at 16 bytes");
    call.backward = true;
    call.sizes.causal = 1;
    call.type = LAUNCH_F32;
    call.sizes.slopes = slopes;
    call.sizes.dropout.threshold = 0;
    call.sizes.n_rows_kv = 16;
    call.sizes.max_seqlen_kv = 8;
    const struct attention_candidates one = {1, {LAUNCH_ATTENTION_PLAIN}};
    expect_key(
        &call, &one,
        "gpu\tattention backward fp32, 16 heads of 64, 8192x16 rows, 64 sequences up to 128x8, causal, "
        "slopes, of plain");
    call.sizes.window = 64;
    expect_key(&call, &one,
               "gpu\tattention backward fp32, 16 heads of 64, 8192x16 rows, 64 sequences up to 128x8, "
               "causal, window "
               "64, slopes, of plain");
}

static void keep(struct product_cache *c, const char *key, int form, double micros)
{
    struct product_choice choice = {.form = form, .micros = micros};
    EXPECT_OK(product_cache_keep(c, key, &choice));
}

static void expect_says(const struct product_cache *c, const char *machine, const char *part, bool says)
{
    char text[8000];
    attention_describe(text, sizeof text, c, machine);
    EXPECT((strstr(text, part) != NULL) == says, "\"%s\" %s:\n%s", part, says ? "lacks" : "is said", text);
}

/* What is chosen, after so many kernels were timed; -1: nothing, for the reason. */
static void expect_choice(struct cuda_choices *choices, const struct attention_call *call, int wanted,
                          int timed, const char *why)
{
    struct cuda_context context = {.choices = choices};
    struct exec x = {.context = &context};
    enum launch_attention_kernel kernel;
    n_timed = 0;
    bool found = cuda_attention_choose(&kernel, &x, "attention", &context.launch, call, &BOTH);
    EXPECT(found == (wanted >= 0) && (!found || (int)kernel == wanted), "chosen: %d",
           found ? (int)kernel : -1);
    EXPECT(n_timed == timed, "%d kernels were timed", n_timed);
    EXPECT(found == !failed(x.status) && strstr(x.status.message, why) != NULL, "%s", x.status.message);
}

static void test_choosing(void)
{
    static _Alignas(16) char memory[3 * 4096], gradient[16];
    static struct cuda_choices choices = {.machine = "gpu"};
    struct attention_call call = call_of(memory);
    captures = true;
    expect_choice(&choices, &call, -1, 0,
                  "up to 128x128, dropout, aligned, of plain mma.sync is first met while a");
    captures = false;
    takes[LAUNCH_ATTENTION_PLAIN] = takes[LAUNCH_ATTENTION_MMA] = (double)INFINITY;
    expect_choice(&choices, &call, -1, 2, "no kernel runs attention forward");
    takes[LAUNCH_ATTENTION_MMA] = 7;
    expect_choice(&choices, &call, LAUNCH_ATTENTION_MMA, 2, "");
    takes[LAUNCH_ATTENTION_PLAIN] = 3; /* too late */
    captures = true;                   /* and a graph may be captured now */
    expect_choice(&choices, &call, LAUNCH_ATTENTION_MMA, 0, "");
    captures = false;
    call.backward = true;
    call.rows.dq = call.rows.dk = call.rows.dv = (struct launch_rows){gradient, 3072};
    expect_choice(&choices, &call, LAUNCH_ATTENTION_PLAIN, 2, "");
    call.sizes.n_rows_q++;
    takes[LAUNCH_ATTENTION_PLAIN] = 8;
    expect_choice(&choices, &call, LAUNCH_ATTENTION_MMA, 2, "");
    char key[PRODUCT_KEY_BYTES]; /* a kernel that this build does not have */
    attention_key(key, "gpu", &call, &BOTH);
    keep(&choices.cache, key, LAUNCH_ATTENTION_KERNELS, 1);
    takes[LAUNCH_ATTENTION_PLAIN] = 6;
    expect_choice(&choices, &call, LAUNCH_ATTENTION_PLAIN, 2, "");
    expect_choice(&choices, &call, LAUNCH_ATTENTION_PLAIN, 0, "");
    EXPECT(attention_count_kept(&choices.cache, "gpu") == 3, "rows");
    EXPECT(product_cache_find(&choices.cache, key)->micros == 6, "its time");
    product_cache_close(&choices.cache);
}

static void test_description(void)
{
    enum { SHAPES = 20 };
    struct product_cache c;
    char key[PRODUCT_KEY_BYTES];
    product_cache_open(&c, "");
    expect_says(&c, "gpu", "attention: 0 shapes timed on this GPU\n", true);
    expect_says(&c, "gpu",
                "\nattention of a new shape, heads of 64: fp32 plain, bf16 mma.sync, fp16 mma.sync (backward "
                "of 512 tokens mma.sync or cluster)\n",
                true);
    expect_says(&c, "gpu",
                "\nattention of a new shape, heads of 96, 128, 160: fp32 plain, bf16 plain, fp16 plain",
                true);
    keep(&c, "gpu\t8x8x8 bf16 = bf16 nt", 1, 5);
    keep(&c, "gpu\tattention of a later kiln", LAUNCH_ATTENTION_KERNELS, 5);
    keep(&c, "gpu 2\tattention elsewhere", LAUNCH_ATTENTION_PLAIN, 5);
    keep(&c, "gpu\tattention forward bf16, of both", LAUNCH_ATTENTION_MMA, 41.25);
    keep(&c, "gpu\tattention backward bf16, of both", LAUNCH_ATTENTION_PLAIN, 99.96);
    EXPECT(attention_count_kept(&c, "gpu") == 3 && product_cache_count(&c, "gpu", "") == 4, "rows of both");
    expect_says(&c, "gpu",
                "attention: 3 shapes timed on this GPU, plain won 1, mma.sync won 1\n"
                "  backward bf16, of both: plain, 100.0 us\n"
                "  forward bf16, of both: mma.sync, 41.2 us\nattention of a new",
                true);
    expect_says(&c, "gpu", "elsewhere", false);
    for (int i = 0; i < SHAPES; i++) {
        snprintf(key, sizeof key, "gpu\tattention shape %02d", i);
        keep(&c, key, LAUNCH_ATTENTION_MMA, 1);
    }
    expect_says(&c, "gpu", "  and 6 more\n", true);
    setenv("KILN_ATTENTION", "plain", 1);
    expect_says(&c, "gpu", "heads of 32, 64, 96, 128, 160: fp32 plain, bf16 plain, fp16 plain\n", true);
    expect_says(&c, "gpu", "KILN_ATTENTION asks for plain wherever it fits", true);
    setenv("KILN_ATTENTION", "flash", 1);
    expect_says(&c, "gpu", "KILN_ATTENTION=flash", true);
    unsetenv("KILN_ATTENTION");
    char little[24];
    memset(little, 'x', sizeof little);
    attention_describe(little, sizeof little - 1, &c, "gpu");
    EXPECT(strlen(little) == sizeof little - 2 && little[sizeof little - 1] == 'x', "%s", little);
    product_cache_close(&c);
}

int main(void)
{
    test_candidates();
    test_names();
    test_keys();
    test_choosing();
    test_description();
    return 0;
}
