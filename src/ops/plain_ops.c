#include "ops/plain_ops.h"

#include "core/log.h"
#include "ops/op_slots.h"

#include <stdlib.h>
#include <string.h>

const char plain_ops_served_by[] = "its definition, in double arithmetic";
static const char ASKED_FOR[] = "--plain_ops asks for it";

/* ---- a call on the host, with copies of what its tensors view ---- */

enum { MOST_REGIONS = 40 }; /* tensors of one call: embed_backward has 15, attention's struct adds 6 */

/* Memory of the device that some tensors view, and its copy.  Views that overlap share a region, so that
 * parts of one matrix stay parts of it, and results that alias inputs still do. */
struct region {
    char *device, *end;
    char *host;
};

struct mirror {
    struct exec *x;
    struct exec host; /* the exec that runs the definition */
    bool collecting;  /* regions are collected; later, tensors are moved to their copies */
    struct region regions[MOST_REGIONS];
    int n;
    uint64_t dropout_key;
};

static void collect(struct mirror *m, tensor t)
{
    int64_t n = 1;
    for (int i = 0; i < t.n_dims; i++) {
        n += (t.dims[i] - 1) * t.strides[i];
    }
    struct region r = {.device = t.data};
    r.end = r.device + (size_t)n * dtype_bytes(t.dtype);
    for (int i = 0; i < m->n;) {
        struct region *other = &m->regions[i];
        if (other->device >= r.end || r.device >= other->end) {
            i++;
            continue;
        }
        r.device = other->device < r.device ? other->device : r.device;
        r.end = other->end > r.end ? other->end : r.end;
        *other = m->regions[--m->n];
        i = 0; /* it has grown */
    }
    CHECK(m->n < MOST_REGIONS, "an op with more than %d tensors", MOST_REGIONS);
    m->regions[m->n++] = r;
}

static tensor mirror_tensor(struct mirror *m, tensor t)
{
    if (tensor_is_null(t) || tensor_count(t) == 0) {
        return t;
    }
    if (t.dtype == DTYPE_E4M3 || t.dtype == DTYPE_E5M2 || t.has_maxima || t.rounded != NULL) {
        exec_fail(m->x, STATUS_USAGE, "--plain_ops", "--plain_ops cannot compute an op in fp8 on %s",
                  m->x->device->name);
        return t;
    }
    if (m->collecting) {
        collect(m, t);
        return t;
    }
    for (int i = 0; i < m->n; i++) {
        const struct region *r = &m->regions[i];
        if ((char *)t.data >= r->device && (char *)t.data < r->end) {
            t.data = r->host + ((char *)t.data - r->device);
            break;
        }
    }
    return t;
}

static struct attention mirror_attention(struct mirror *m, struct attention a)
{
    a.cu_seqlens_q = mirror_tensor(m, a.cu_seqlens_q);
    a.cu_seqlens_kv = mirror_tensor(m, a.cu_seqlens_kv);
    a.alibi_slopes = mirror_tensor(m, a.alibi_slopes);
    a.block_table = mirror_tensor(m, a.block_table);
    a.row_keys = mirror_tensor(m, a.row_keys);
    a.bits = mirror_tensor(m, a.bits);
    return a;
}

static struct optim_buffers mirror_buffers(struct mirror *m, struct optim_buffers b)
{
    b.master = mirror_tensor(m, b.master);
    b.working = mirror_tensor(m, b.working);
    b.grad = mirror_tensor(m, b.grad);
    b.exp_avg = mirror_tensor(m, b.exp_avg);
    b.exp_avg_sq = mirror_tensor(m, b.exp_avg_sq);
    return b;
}

/* Arguments that are in host memory as they are. */
#define KEPT(name, type)                                                                                     \
    static type keep_##name(struct mirror *m, type value)                                                    \
    {                                                                                                        \
        (void)m;                                                                                             \
        return value;                                                                                        \
    }
typedef const struct optim_span *span_list;
KEPT(dropout, struct dropout)
KEPT(spans, span_list)
KEPT(real, double)
KEPT(int, int64_t)
KEPT(bool, bool)
KEPT(dtype, enum dtype)
KEPT(loss, enum pointwise_loss)
KEPT(gate, enum gate_function)

static void copy_to_host(struct mirror *m)
{
    m->collecting = false;
    for (int i = 0; i < m->n && !failed(m->x->status); i++) {
        struct region *r = &m->regions[i];
        size_t bytes = (size_t)(r->end - r->device);
        r->host = malloc(bytes);
        if (r->host == NULL) {
            exec_fail(m->x, STATUS_MEMORY, "--plain_ops", "out of memory for a copy of %zu bytes", bytes);
            return;
        }
        exec_copy_out(m->x, r->host, r->device, bytes);
    }
    m->host = *m->x;
    m->host.device = &device_cpu;
    m->host.ops = &ops_ref;
    m->host.context = NULL;
    if (m->x->dropout_key != NULL) {
        exec_copy_out(m->x, &m->dropout_key, m->x->dropout_key, sizeof m->dropout_key);
        m->host.dropout_key = &m->dropout_key;
    }
    m->host.status = m->x->status;
}

static void copy_back(struct mirror *m)
{
    if (!failed(m->x->status)) {
        m->x->status = m->host.status;
    }
    for (int i = 0; i < m->n; i++) {
        const struct region *r = &m->regions[i];
        exec_copy_in(m->x, r->device, r->host, (size_t)(r->end - r->device));
        free(r->host);
    }
}

/* ---- the ops ---- */

/* clang-format off */
#define MIRRORED(m, argument) _Generic((argument), tensor: mirror_tensor, \
    struct attention: mirror_attention, struct optim_buffers: mirror_buffers, struct dropout: keep_dropout, \
    span_list: keep_spans, double: keep_real, int64_t: keep_int, bool: keep_bool, enum dtype: keep_dtype, \
    enum pointwise_loss: keep_loss, enum gate_function: keep_gate)(m, argument)

/* MIRRORED of each argument. */
#define EACH_1(m, a) MIRRORED(m, a)
#define EACH_2(m, a, ...) MIRRORED(m, a), EACH_1(m, __VA_ARGS__)
#define EACH_3(m, a, ...) MIRRORED(m, a), EACH_2(m, __VA_ARGS__)
#define EACH_4(m, a, ...) MIRRORED(m, a), EACH_3(m, __VA_ARGS__)
#define EACH_5(m, a, ...) MIRRORED(m, a), EACH_4(m, __VA_ARGS__)
#define EACH_6(m, a, ...) MIRRORED(m, a), EACH_5(m, __VA_ARGS__)
#define EACH_7(m, a, ...) MIRRORED(m, a), EACH_6(m, __VA_ARGS__)
#define EACH_8(m, a, ...) MIRRORED(m, a), EACH_7(m, __VA_ARGS__)
#define EACH_9(m, a, ...) MIRRORED(m, a), EACH_8(m, __VA_ARGS__)
#define EACH_10(m, a, ...) MIRRORED(m, a), EACH_9(m, __VA_ARGS__)
#define EACH_11(m, a, ...) MIRRORED(m, a), EACH_10(m, __VA_ARGS__)
#define EACH_12(m, a, ...) MIRRORED(m, a), EACH_11(m, __VA_ARGS__)
#define EACH_13(m, a, ...) MIRRORED(m, a), EACH_12(m, __VA_ARGS__)
#define EACH_14(m, a, ...) MIRRORED(m, a), EACH_13(m, __VA_ARGS__)
#define EACH_15(m, a, ...) MIRRORED(m, a), EACH_14(m, __VA_ARGS__)
#define EACH_16(m, a, ...) MIRRORED(m, a), EACH_15(m, __VA_ARGS__)
#define EACH_17(m, a, ...) MIRRORED(m, a), EACH_16(m, __VA_ARGS__)
#define PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, each, ...) each
#define EACH(m, ...) PICK(__VA_ARGS__, EACH_17, EACH_16, EACH_15, EACH_14, EACH_13, EACH_12, EACH_11, \
    EACH_10, EACH_9, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1, )(m, __VA_ARGS__)
/* clang-format on */

#define PLAIN(slot, parameters, arguments, ...)                                                              \
    static void plain_##slot(struct exec *x, OP_UNPACK parameters)                                           \
    {                                                                                                        \
        struct mirror m = {.x = x, .collecting = true};                                                      \
        x->served_by = plain_ops_served_by;                                                                  \
        x->served_why = ASKED_FOR;                                                                           \
        if (x->device->is_host) {                                                                            \
            ops_ref.slot(x, OP_UNPACK arguments);                                                            \
            return;                                                                                          \
        }                                                                                                    \
        (void)(EACH(&m, OP_UNPACK arguments));                                                               \
        copy_to_host(&m);                                                                                    \
        if (!failed(x->status)) {                                                                            \
            ops_ref.slot(&m.host, EACH(&m, OP_UNPACK arguments));                                            \
        }                                                                                                    \
        copy_back(&m);                                                                                       \
    }
OP_SLOTS(PLAIN)

/* ---- the list ---- */

enum { N_OPS = OP_WATCH_N_OPS };

static struct status parse(bool plain[N_OPS], const char *list)
{
    for (const char *name = list;; name += strcspn(name, ",") + 1) {
        int n = (int)strcspn(name, ","), found = 0;
        for (int i = 0; i < N_OPS; i++) {
            bool named = strncmp(name, "all", (size_t)n) == 0 && n == 3;
            named = named || (strncmp(op_watch_name(i), name, (size_t)n) == 0 && op_watch_name(i)[n] == '\0');
            plain[i] = plain[i] || named;
            found += named;
        }
        FAIL_IF(found == 0, STATUS_USAGE,
                "--plain_ops: there is no op '%.*s'; `kiln doctor` lists the ops, and \"all\" means every op",
                n < 40 ? n : 40, name);
        if (name[n] == '\0') {
            return status_ok();
        }
    }
}

struct status plain_ops_check(const char *list)
{
    bool plain[N_OPS] = {false};
    return list == NULL ? status_ok() : parse(plain, list);
}

static void nothing(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)w, (void)x, (void)call;
}

struct status plain_ops_init(struct plain_ops *p, struct backend *b, const char *list)
{
    bool plain[N_OPS] = {false};
    int n = 0;
    if (list == NULL) {
        return status_ok();
    }
    TRY(parse(plain, list));
    p->table = *b->ops;
#define REPLACE(slot, ...)                                                                                   \
    p->table.slot = plain[n] ? plain_##slot : p->table.slot;                                                 \
    n++;
    OP_SLOTS(REPLACE)
    b->ops = &p->table;
    if (!b->device->is_host) {
        op_watch_init(&p->watch, &p->table);
        p->watch.after = nothing;
        b->ops = &p->watch.table;
    }
    log_info("computing these ops by their definition, which is slow%s: %s",
             b->device->is_host ? "" : ", on the host through copies, and no step is replayed", list);
    return status_ok();
}
