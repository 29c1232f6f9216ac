/* plain_products: the products and the context of the emulated cuda table: loops over host memory. */
#include "plain_products.h"

#include "emulated_counts.h"
#include "emulated_graphs.h"
#include "emulated_memory.h"
#include "emulated_queue.h"

#include "core/clock.h"
#include "core/fp8.h"
#include "core/tensor.h"
#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/choice/product_forms.h"
#include "ops/workspace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct status emulated_allocate(void **memory, size_t bytes, const char *what)
{
    *memory = emulated_memory_take(bytes);
    return *memory != NULL ? status_ok()
                           : status_error(STATUS_MEMORY, "out of memory for %zu bytes of %s", bytes, what);
}

static void emulated_release(void *memory, size_t bytes)
{
    (void)bytes;
    emulated_memory_give_back(memory);
}

static struct status emulated_copy(void *context, void *to, const void *from, size_t bytes)
{
    if (emulated_is_recording()) {
        return status_error(STATUS_INTERNAL, "a recording cannot wait for a copy");
    }
    emulated_memory_open();
    memmove(to, from, bytes);
    emulated_memory_close();
    return context == NULL ? status_ok() : cuda_context_fault(context);
}

struct status cuda_memory_upload(void **on_device, const void *on_host, size_t bytes)
{
    struct status s = emulated_allocate(on_device, bytes, "a table");
    return failed(s) ? s : emulated_copy(NULL, *on_device, on_host, bytes);
}

void cuda_memory_free(void *on_device)
{
    emulated_memory_give_back(on_device);
}

static double element(const void *p, enum dtype dtype, const float *scale, int64_t offset)
{
    return tensor_load((tensor){.data = (void *)p, .dtype = dtype, .scale = scale}, offset);
}

/* A factor, with 10 bits of fraction if that is enough. */
static double factor(const struct cuda_product *p, const void *matrix, enum dtype dtype, const float *scale,
                     int64_t offset)
{
    enum { BITS = 11 };
    int exponent;
    double value = element(matrix, dtype, scale, offset);
    if (!p->tf32 || dtype != DTYPE_F32) {
        return value;
    }
    double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, BITS)), exponent - BITS);
}

struct multiplication {
    enum product_form form;
    struct cuda_product product;
    void *room;
};

/* C (+)= A B, and what the library's epilogues add to it. */
static void multiply(const void *multiplication)
{
    const struct multiplication *m = multiplication;
    const struct cuda_product *p = &m->product;
    enum product_form form = m->form;
    void *room = m->room;
    tensor c = {.data = p->c, .dtype = p->c_dtype};
    bool adds = p->accumulate || form == PRODUCT_BROADCAST;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = adds ? tensor_load(c, i * p->c_stride + j) : 0;
            sum += form == PRODUCT_EPILOGUE && p->bias != NULL
                       ? element(product_form_bias(p, room), p->c_dtype, NULL, j)
                       : 0;
            for (int64_t k = 0; k < p->k; k++) {
                int64_t a = p->a_transposed ? k * p->a_stride + i : i * p->a_stride + k;
                int64_t b = p->b_transposed ? j * p->b_stride + k : k * p->b_stride + j;
                sum +=
                    factor(p, p->a, p->a_dtype, p->a_scale, a) * factor(p, p->b, p->b_dtype, p->b_scale, b);
            }
            tensor_store(c, i * p->c_stride + j, sum);
        }
    }
    for (int64_t i = 0; form == PRODUCT_EPILOGUE && p->bias_gradient != NULL && i < p->m; i++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
            sum += element(p->a, p->a_dtype, NULL, k * p->a_stride + i);
        }
        ((float *)room)[i] = (float)sum;
    }
}

/* What Hopper has no product of. */
static void check_fp8(const struct cuda_product *p, enum product_form form)
{
    int64_t dims = p->m | p->n | p->k | p->a_stride | p->b_stride | p->c_stride;
    uintptr_t pointers = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c;
    CHECK(dtype_is_fp8(p->a_dtype) && dtype_is_fp8(p->b_dtype), "a product of %s and %s",
          dtype_name(p->a_dtype), dtype_name(p->b_dtype));
    CHECK(p->a_dtype == DTYPE_E4M3 || p->b_dtype == DTYPE_E4M3, "both factors are e5m2");
    CHECK(!p->a_transposed && p->b_transposed, "fp8 that does not lie along k");
    CHECK(dims % 16 == 0 && pointers % 16 == 0, "fp8 that is not in multiples of 16");
    CHECK(p->bias_gradient == NULL && (form != PRODUCT_EPILOGUE || p->c_dtype != DTYPE_F32),
          "an epilogue beside fp8");
}

int emulated_form = -1;

static int asked_for = PRODUCT_ANY; /* KILN_PRODUCT */

/* The form, or the next one that fits, the first after the last. */
static enum product_form form_from(enum product_form form, const struct cuda_product *p)
{
    while (!product_form_fits(form, p)) {
        form = (enum product_form)((form + 1) % PRODUCT_FORMS);
    }
    return form;
}

/* Shapes take turns, unless a test or KILN_PRODUCT asks for one. */
static enum product_form form_of(const struct cuda_product *p)
{
    int64_t turn = (p->m + p->n + p->k) % (asked_for == PRODUCT_LIBRARY ? PRODUCT_SHORT : PRODUCT_FORMS);
    int64_t form = emulated_form >= 0 ? emulated_form : asked_for >= 0 ? PRODUCT_SHORT : turn;
    return form_from((enum product_form)form, p);
}

/* At tiles too. */
static enum launch_product_tile tile_of(const struct cuda_product *p)
{
    int64_t turn = (p->m + p->n + p->k) / PRODUCT_FORMS % LAUNCH_PRODUCT_TILES;
    return (enum launch_product_tile)(asked_for >= 0 ? asked_for : turn);
}

void cuda_product_run(struct exec *x, const char *op, const struct cuda_product *p)
{
    static void *room; /* one for all contexts: products come one after the other */
    if (failed(x->status) || p->m == 0 || p->n == 0) {
        return;
    }
    if (room == NULL) {
        room = emulated_memory_take(PRODUCT_ROOM * sizeof(float));
        CHECK(room != NULL, "out of memory for a bias");
    }
    struct launch l = ((struct cuda_context *)x->context)->launch;
    enum product_form form = form_of(p);
    if (p->a_dtype != p->b_dtype || dtype_is_fp8(p->a_dtype)) {
        check_fp8(p, form);
    }
    l.scratch = p->bias_gradient != NULL ? exec_scratch(x, workspace_column_sum(p->k, p->m)) : NULL;
    if (form == PRODUCT_SHORT) {
        product_form_launch_short(&l, tile_of(p), p);
        exec_queued(x, op);
        return;
    }
    product_form_before(&l, form, p, room);
    emulated_counts_launch("product");
    struct multiplication m = {form, *p, room};
    const void *pointers[] = {p->a, p->b, p->c, p->bias, p->gelu, p->bias_gradient, p->a_scale, p->b_scale};
    for (int i = 0; i < 8; i++) {
        emulated_memory_check(pointers[i]);
    }
    if (emulated_is_recording()) {
        emulated_record(multiply, &m, sizeof m);
    } else {
        emulated_memory_open();
        multiply(&m);
        emulated_memory_close();
    }
    product_form_after(&l, form, p, room);
    exec_queued(x, op);
}

static struct status emulated_open(void **context)
{
    int attention_asked_for;
    TRY(attention_kernel_asked_for(&attention_asked_for));
    TRY(product_asked_for(&asked_for));
    struct cuda_context *c = calloc(1, sizeof *c);
    struct cuda_choices *choices = calloc(1, sizeof *choices);
    int32_t *fault = emulated_memory_take_pinned(LAUNCH_FAULT_WORDS * sizeof *fault);
    *context = c;
    if (c == NULL || choices == NULL || fault == NULL) {
        emulated_memory_give_back(fault);
        free(choices);
        free(c);
        return status_error(STATUS_MEMORY, "out of memory for a context");
    }
    snprintf(choices->machine, sizeof choices->machine, "emulator");
    c->choices = choices;
    c->launch.fault = fault;
    c->attention_asked_for = attention_asked_for;
    emulated_queue_open(c);
    return status_ok();
}

static void emulated_keep_in(void *context, const char *directory)
{
    char path[PRODUCT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/cublaslt.cache", directory);
    product_cache_follow(&((struct cuda_context *)context)->choices->cache, path);
}

static struct status emulated_choices(void *context, char **text, size_t *n)
{
    return product_cache_text_of_run(&((struct cuda_context *)context)->choices->cache, text, n);
}

static void emulated_take_choices(void *context, const void *text, size_t n, const char *source)
{
    struct cuda_choices *choices = ((struct cuda_context *)context)->choices;
    product_cache_take(&choices->cache, text, n, source);
    product_cache_tell_of_machine(&choices->cache, choices->machine, source);
}

static void emulated_close(void *context)
{
    struct cuda_context *c = context;
    product_cache_close(&c->choices->cache);
    free(c->choices);
    emulated_queue_close(c);
    cuda_spans_free(c);
    free(c->marks);
    emulated_memory_give_back(c->launch.fault);
    free(c);
}

static struct status emulated_synchronize(void *context)
{
    return cuda_context_fault(context);
}

/* Ops end before they return, so the host's clock is the device's. */
static struct status emulated_open_marks(void *context, int64_t n)
{
    struct cuda_context *c = context;
    free(c->marks);
    c->marks = calloc((size_t)n, sizeof(int64_t));
    return c->marks != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for marks");
}

static void emulated_close_marks(void *context)
{
    struct cuda_context *c = context;
    free(c->marks);
    c->marks = NULL;
}

static void emulated_mark(void *context, int64_t i)
{
    ((int64_t *)((struct cuda_context *)context)->marks)[i] = clock_ns();
}

static struct status emulated_elapsed(void *context, int64_t from, int64_t to, int64_t *ns)
{
    const int64_t *marks = (const int64_t *)((struct cuda_context *)context)->marks;
    *ns = marks[to] - marks[from];
    return status_ok();
}

static const struct device_clock emulated_clock = {.open = emulated_open_marks,
                                                   .close = emulated_close_marks,
                                                   .mark = emulated_mark,
                                                   .elapsed = emulated_elapsed};

static size_t emulated_free_bytes(void)
{
    return device_cpu.free_bytes();
}

const struct device device_emulated = {
    .name = "emulated cuda",
    .computes_in_f16 = true,
    .sums_in_attention = true,
    .keeps_dropout_bits = true,
    .takes_rounded_biases = true,
    .computes_in_fp8 = true,
    .open = emulated_open,
    .close = emulated_close,
    .allocate = emulated_allocate,
    .release = emulated_release,
    .copy_in = emulated_copy,
    .copy_out = emulated_copy,
    .copy_within = emulated_copy,
    .stage = emulated_queue_stage,
    .send = emulated_queue_send,
    .graphs = &emulated_queue_graphs,
    .beside = &emulated_queue_beside,
    .streams = &emulated_queue_streams,
    .synchronize = emulated_synchronize,
    .clock = &emulated_clock,
    .free_bytes = emulated_free_bytes,
    .keep_in = emulated_keep_in,
    .choices = emulated_choices,
    .take_choices = emulated_take_choices,
};
