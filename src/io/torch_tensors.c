#include "io/torch_tensors.h"

#include "core/array.h"
#include "core/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The meaning of a call of an allowed name. */
enum meaning {
    MEANS_UNKNOWN,        /* an object that kiln does not interpret */
    MEANS_TENSOR,         /* (storage, first, sizes, strides, ...) */
    MEANS_TENSOR_OF_TYPE, /* (storage, first, sizes, strides, requires_grad, hooks, dtype, ...) */
    MEANS_FIRST,          /* (tensor, ...): a parameter, or a tensor of another device */
    MEANS_SUBCLASS,       /* (function, type, arguments, state): a tensor with attributes */
    MEANS_SIZE,           /* (tuple) */
    MEANS_ARRAY,          /* (array of numpy, dtype, device, requires_grad): a tensor */
};

static const struct pickle_allowed allowed[] = {
    {"collections", "OrderedDict", PICKLE_MAKE_DICT, 0},
    {"collections", "defaultdict", PICKLE_MAKE_DICT, 0},
    {"torch._utils", "_rebuild_tensor", PICKLE_KEEP_OBJECT, MEANS_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", PICKLE_KEEP_OBJECT, MEANS_TENSOR},
    {"torch._utils", "_rebuild_tensor_v3", PICKLE_KEEP_OBJECT, MEANS_TENSOR_OF_TYPE},
    {"torch._utils", "_rebuild_parameter", PICKLE_KEEP_OBJECT, MEANS_FIRST},
    {"torch._utils", "_rebuild_parameter_with_state", PICKLE_KEEP_OBJECT, MEANS_FIRST},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", PICKLE_KEEP_OBJECT, MEANS_FIRST},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", PICKLE_KEEP_OBJECT, MEANS_ARRAY},
    {"torch._tensor", "_rebuild_from_type*", PICKLE_KEEP_OBJECT, MEANS_SUBCLASS},
    {"torch", "Size", PICKLE_KEEP_OBJECT, MEANS_SIZE},
    {"torch", "*Storage", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.cuda", "*Storage", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.storage", "*Storage", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "Tensor", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch._tensor", "Tensor", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.nn.parameter", "Parameter", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "device", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "float*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* dtypes */
    {"torch", "bfloat16", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "int*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "uint*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "bool", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch", "complex*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    /* Saved with the tensors: arguments of the run, position in the data, loss scales, random states. */
    {"argparse", "Namespace", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"_codecs", "encode", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"numpy", "dtype", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"numpy", "ndarray", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"numpy.core.multiarray", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"numpy._core.multiarray", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.utils.data*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* ckpt_N.pt holds its DataLoader */
    {"__main__", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},          /* and the script's own data set */
    {"deepspeed.*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},       /* loss scalers, fragments, ZeRO stage */
    {"torch.optim*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* optimizers and schedules saved as objects */
    {"torch.amp*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.cuda.amp*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"torch.torch_version", "TorchVersion", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"apex.*", "*", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* loss scalers */
    {"types", "SimpleNamespace", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"pathlib", "PosixPath", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"__builtin__", "set", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* builtins in Python 2, and in protocol 2 */
    {"__builtin__", "dict", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"__builtin__", "list", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"__builtin__", "int", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"builtins", "set", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"builtins", "dict", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"builtins", "list", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"builtins", "int", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
    {"builtins", "range", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN}, /* sampler of a DataLoader */
    {"__builtin__", "xrange", PICKLE_KEEP_OBJECT, MEANS_UNKNOWN},
};

#define NO_TYPE "has a dtype that kiln does not support"

static const struct torch_dtype {
    const char *name;    /* torch.NAME */
    const char *storage; /* torch.STORAGEStorage, if there is one */
    size_t bytes;
    enum dtype dtype;
    const char *unreadable;
} dtypes[] = {
    {"float32", "Float", 4, DTYPE_F32, NULL},
    {"float16", "Half", 2, DTYPE_F16, NULL},
    {"bfloat16", "BFloat16", 2, DTYPE_BF16, NULL},
    {"float64", "Double", 8, DTYPE_F64, NULL},
    {"int64", "Long", 8, DTYPE_I64, NULL},
    {"int32", "Int", 4, DTYPE_I32, NULL},
    {"uint8", "Byte", 1, DTYPE_U8, NULL},
    {"uint8", "Untyped", 1, DTYPE_U8, NULL},
    {"bool", "Bool", 1, DTYPE_U8, NULL},
    {"float8_e4m3fn", NULL, 1, DTYPE_E4M3, NULL},
    {"float8_e5m2", NULL, 1, DTYPE_E5M2, NULL},
    {"int8", "Char", 1, DTYPE_U8, NO_TYPE},
    {"int16", "Short", 2, DTYPE_U8, NO_TYPE},
    {"uint16", NULL, 2, DTYPE_U8, NO_TYPE},
    {"uint32", NULL, 4, DTYPE_U8, NO_TYPE},
    {"uint64", NULL, 8, DTYPE_U8, NO_TYPE},
    {"complex64", "ComplexFloat", 8, DTYPE_U8, NO_TYPE},
    {"complex128", "ComplexDouble", 16, DTYPE_U8, NO_TYPE},
};

enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

const struct pickle_allowed *torch_tensors_allowed(size_t *n)
{
    *n = sizeof allowed / sizeof *allowed;
    return allowed;
}

int torch_tensors_compare_keys(const void *a, const void *b)
{
    const struct torch_storage *x = a;
    const struct torch_storage *y = b;
    size_t shorter = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    int order = shorter == 0 ? 0 : memcmp(x->key, y->key, shorter);
    return order != 0 ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

/* The dtype of a storage class such as torch.FloatStorage; NULL if it is unknown. */
static const struct torch_dtype *storage_dtype(const struct pickle_node *class)
{
    static const char ending[] = "Storage";
    if (class == NULL || class->kind != PICKLE_NAME) {
        return NULL;
    }
    const char *name = strrchr(class->text.data, '.') + 1; /* a name always has a dot: module.name */
    name += name[0] == '_';                                /* torch.storage._UntypedStorage, before 2.0 */
    for (int i = 0; i < N_DTYPES; i++) {
        size_t n = dtypes[i].storage == NULL ? 0 : strlen(dtypes[i].storage);
        if (n > 0 && strncmp(name, dtypes[i].storage, n) == 0 && strcmp(name + n, ending) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}

static const struct torch_dtype *named_dtype(const struct pickle_node *name)
{
    for (int i = 0; i < N_DTYPES; i++) {
        char whole[32];
        snprintf(whole, sizeof whole, "torch.%s", dtypes[i].name);
        if (name != NULL && name->kind == PICKLE_NAME && pickle_is_text(name, whole)) {
            return &dtypes[i];
        }
    }
    return NULL;
}

/* ("storage", class, key, device, number of elements); before 1.6 also a view, which is None since 0.4. */
struct status torch_tensors_storage(struct torch_storage *storage, const struct pickle_node *persistent,
                                    const char *source)
{
    const struct pickle_node *id = persistent->persistent.id;
    const struct torch_dtype *dtype = storage_dtype(pickle_item(id, 1));
    const struct pickle_node *key = pickle_item(id, 2);
    const struct pickle_node *count = pickle_item(id, 4);
    const struct pickle_node *view = pickle_item(id, 5);
    uint64_t bytes;
    FAIL_IF(!pickle_is_text(pickle_item(id, 0), "storage") || key == NULL || key->kind != PICKLE_TEXT ||
                count == NULL || count->kind != PICKLE_INT || count->integer < 0 ||
                (view != NULL && view->kind != PICKLE_NONE),
            STATUS_DATA, "%s: its pickle refers to something outside it that is not a tensor's storage",
            source);
    if (dtype == NULL) {
        const struct pickle_node *class = pickle_item(id, 1);
        bool has_name = class != NULL && class->kind == PICKLE_NAME;
        return status_error(STATUS_DATA, "%s: its pickle has a storage of the unknown class %.80s", source,
                            has_name ? class->text.data : "");
    }
    FAIL_IF(!bytes_multiply((uint64_t)count->integer, dtype->bytes, &bytes) || bytes > INT64_MAX, STATUS_DATA,
            "%s: its pickle has a storage of %lld elements, which no file can hold", source,
            (long long)count->integer);
    *storage = (struct torch_storage){
        .key = key->text.data, .key_bytes = key->text.n, .n = (size_t)bytes, .n_elements = count->integer};
    return status_ok();
}

/* Inputs for making tensors from the arguments of calls. */
struct making {
    struct pickle *pickle;
    const struct torch_storage *storages; /* [n_storages] */
    size_t n_storages;
    const char *source;
};

static struct status malformed(const struct making *m)
{
    return status_error(STATUS_DATA, "%s: its pickle builds a tensor from arguments that are not a tensor's",
                        m->source);
}

static struct status read_dims(const struct making *m, int64_t *dims, int *n, const struct pickle_node *tuple)
{
    if (tuple == NULL || tuple->kind != PICKLE_TUPLE) {
        return malformed(m);
    }
    FAIL_IF(tuple->list.n > STORED_MAX_DIMS, STATUS_DATA,
            "%s: its pickle has a tensor of %zu dims; the limit is %d", m->source, tuple->list.n,
            STORED_MAX_DIMS);
    *n = (int)tuple->list.n;
    for (int i = 0; i < *n; i++) {
        const struct pickle_node *dim = tuple->list.items[i];
        if (dim->kind != PICKLE_INT) {
            return malformed(m);
        }
        dims[i] = dim->integer;
    }
    return status_ok();
}

/* The storage that a tensor is a view of, and its dtype. */
static struct status find_storage(const struct making *m, const struct torch_storage **found,
                                  const struct torch_dtype **dtype, const struct pickle_node *persistent)
{
    struct torch_storage wanted;
    if (persistent == NULL || persistent->kind != PICKLE_PERSISTENT) {
        return malformed(m);
    }
    TRY(torch_tensors_storage(&wanted, persistent, m->source));
    *dtype = storage_dtype(pickle_item(persistent->persistent.id, 1));
    *found = m->n_storages == 0
                 ? NULL
                 : bsearch(&wanted, m->storages, m->n_storages, sizeof wanted, torch_tensors_compare_keys);
    int shown = wanted.key_bytes < 40 ? (int)wanted.key_bytes : 40;
    if (!stored_tensor_name_is_printable(wanted.key, wanted.key_bytes)) {
        return malformed(m);
    }
    FAIL_IF(*found == NULL, STATUS_DATA,
            "%s: its pickle refers to the storage %.*s, which the file does not hold", m->source, shown,
            wanted.key);
    FAIL_IF((*found)->n != wanted.n, STATUS_DATA,
            "%s: its storage %.*s has %zu bytes, but its pickle says %zu (is the file cut short?)", m->source,
            shown, wanted.key, (*found)->n, wanted.n);
    return status_ok();
}

static struct status make_tensor(const struct making *m, struct pickle_node *node,
                                 const struct pickle_node *arguments, bool has_type)
{
    const struct torch_storage *storage = NULL;
    const struct torch_dtype *dtype = NULL;
    const struct pickle_node *first = pickle_item(arguments, 1);
    const struct pickle_node *flags =
        pickle_item(arguments, has_type ? 7 : 6); /* such as {"neg": True} for a negated view */
    int n_strides = 0;
    struct stored_tensor *t = bump_take(&m->pickle->memory, sizeof *t);
    if (t == NULL) {
        return bump_status(&m->pickle->memory, m->source);
    }
    TRY(find_storage(m, &storage, &dtype, pickle_item(arguments, 0)));
    dtype = has_type ? named_dtype(pickle_item(arguments, 6)) : dtype;
    TRY(read_dims(m, t->dims, &t->n_dims, pickle_item(arguments, 2)));
    TRY(read_dims(m, t->strides, &n_strides, pickle_item(arguments, 3)));
    if (dtype == NULL || first == NULL || first->kind != PICKLE_INT || n_strides != t->n_dims) {
        return malformed(m);
    }
    t->name = "";
    t->dtype = dtype->dtype;
    t->dtype_label = dtype->name;
    bool has_flags = flags != NULL && flags->kind == PICKLE_DICT && flags->list.n > 0;
    t->unreadable = has_flags ? "is stored conjugated or negated" : dtype->unreadable;
    if (!stored_tensor_place(t, dtype->bytes, first->integer, storage->data, storage->n)) {
        int shown = storage->key_bytes < 40 ? (int)storage->key_bytes : 40;
        return status_error(STATUS_DATA,
                            "%s: a tensor of %d dims is not inside its storage %.*s of %zu bytes", m->source,
                            t->n_dims, shown, storage->key, storage->n);
    }
    *node = (struct pickle_node){.kind = PICKLE_TENSOR, .tensor = t};
    return status_ok();
}

/* numpy's codes of the types that it has too. */
static bool is_type_of(const struct torch_dtype *dtype, const struct pickle_node *code)
{
    static const char *const codes[][2] = {{"f4", "float32"}, {"f2", "float16"}, {"f8", "float64"},
                                           {"i8", "int64"},   {"i4", "int32"},   {"u1", "uint8"},
                                           {"b1", "bool"}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i][1], dtype->name) == 0) {
            return code != NULL && pickle_is_text(code, codes[i][0]);
        }
    }
    return false;
}

/* ---- arrays of numpy ----
 *
 * PyTorch, until 2.5, pickled tensors of devices that it knows no storage of, such as Gaudi's "hpu", in the
 * form of arrays (torch._utils._rebuild_device_tensor_from_numpy).  Protocol 2 has no bytes, so an array's
 * are text, one character a byte.  They are decoded into memory of the pickle, of no more bytes than it has.
 */

struct torch_array {
    const struct pickle_node *shape; /* a tuple, of what is not looked at */
    const struct pickle_node *type;  /* text: "f4" */
    const unsigned char *data;       /* [n], in C's order, little-endian */
    size_t n;
};

static bool is_call_of(const struct pickle_node *object, const char *module, const char *name)
{
    char whole[PICKLE_NAME_BYTES];
    snprintf(whole, sizeof whole, "%s.%s", module, name);
    return object != NULL && object->kind == PICKLE_OBJECT && pickle_is_text(object->object.name, whole);
}

/* The characters U+0000 to U+00FF of n bytes of UTF-8; false: there are others. */
static bool decode(unsigned char *out, size_t *n_out, const unsigned char *text, size_t n)
{
    size_t at = 0;
    *n_out = 0;
    while (at < n) {
        bool is_one = text[at] < 0x80;
        if (!is_one && (at + 1 == n || (text[at] & 0xFE) != 0xC2 || (text[at + 1] & 0xC0) != 0x80)) {
            return false;
        }
        out[(*n_out)++] = is_one ? text[at] : (unsigned char)(text[at] << 6 | (text[at + 1] & 0x3F));
        at += is_one ? 1 : 2;
    }
    return true;
}

static struct status malformed_array(const char *source)
{
    return status_error(STATUS_DATA, "%s: its pickle builds a tensor from what is no array of numpy", source);
}

/* Bytes, or _codecs.encode(text, "latin1"). */
static struct status read_bytes(struct torch_array *a, struct pickle *p, const struct pickle_node *node,
                                const char *source)
{
    if (node == NULL) {
        return malformed_array(source);
    }
    if (node->kind == PICKLE_BYTES) {
        a->data = (const unsigned char *)node->text.data;
        a->n = node->text.n;
        return status_ok();
    }
    const struct pickle_node *text =
        is_call_of(node, "_codecs", "encode") ? pickle_item(node->object.arguments, 0) : NULL;
    if (text == NULL || text->kind != PICKLE_TEXT ||
        !pickle_is_text(pickle_item(node->object.arguments, 1), "latin1") ||
        text->text.n > p->n_read - p->n_decoded) {
        return malformed_array(source);
    }
    FAIL_IF(p->decoded == NULL && (p->decoded = malloc(p->n_read)) == NULL, STATUS_MEMORY,
            "out of memory for the arrays of %s", source);
    unsigned char *out = p->decoded + p->n_decoded;
    if (!decode(out, &a->n, (const unsigned char *)text->text.data, text->text.n)) {
        return malformed_array(source);
    }
    a->data = out;
    p->n_decoded += a->n;
    return status_ok();
}

/* The state of an array is (version, shape, dtype, whether it is in Fortran's order, bytes), that of a dtype
 * (3, "<", ...). */
static struct status read_array(struct torch_array *a, struct pickle *p, const struct pickle_node *array,
                                const char *source)
{
    *a = (struct torch_array){0};
    if (!is_call_of(array, "numpy.core.multiarray", "_reconstruct") &&
        !is_call_of(array, "numpy._core.multiarray", "_reconstruct")) {
        return malformed_array(source);
    }
    const struct pickle_node *state = array->object.state, *type = pickle_item(state, 2),
                             *in_fortran = pickle_item(state, 3);
    if (!is_call_of(type, "numpy", "dtype") || in_fortran == NULL || in_fortran->kind != PICKLE_BOOL ||
        in_fortran->integer != 0 || pickle_is_text(pickle_item(type->object.state, 1), ">")) {
        return malformed_array(source);
    }
    a->shape = pickle_item(state, 1);
    a->type = pickle_item(type->object.arguments, 0);
    return read_bytes(a, p, pickle_item(state, 4), source);
}

static struct status make_of_array(const struct making *m, struct pickle_node *node,
                                   const struct pickle_node *arguments)
{
    const struct torch_dtype *dtype = named_dtype(pickle_item(arguments, 1));
    struct stored_tensor *t = bump_take(&m->pickle->memory, sizeof *t);
    struct torch_array array;
    if (t == NULL) {
        return bump_status(&m->pickle->memory, m->source);
    }
    TRY(read_array(&array, m->pickle, pickle_item(arguments, 0), m->source));
    TRY(read_dims(m, t->dims, &t->n_dims, array.shape));
    if (dtype == NULL || !is_type_of(dtype, array.type) || !stored_tensor_make_dense(t, dtype->bytes) ||
        t->bytes != array.n) {
        return malformed(m);
    }
    t->name = "";
    t->dtype = dtype->dtype;
    t->dtype_label = dtype->name;
    t->data = t->storage = array.data;
    t->storage_bytes = array.n;
    *node = (struct pickle_node){.kind = PICKLE_TENSOR, .tensor = t};
    return status_ok();
}

/* Turns an object into the tensor or the tuple that it represents. */
static struct status bind(const struct making *m, struct pickle_node *object)
{
    int meaning = object->meaning;
    const struct pickle_node *arguments = object->object.arguments;
    const struct pickle_node *first = pickle_item(arguments, 0);
    if (meaning == MEANS_SUBCLASS) {
        if (first == NULL || first->kind != PICKLE_NAME || first->meaning == MEANS_SUBCLASS) {
            return malformed(m);
        }
        meaning = first->meaning;
        arguments = pickle_item(arguments, 2);
        first = pickle_item(arguments, 0);
    }
    switch (meaning) {
    case MEANS_TENSOR: return make_tensor(m, object, arguments, false);
    case MEANS_TENSOR_OF_TYPE: return make_tensor(m, object, arguments, true);
    case MEANS_ARRAY: return make_of_array(m, object, arguments);
    case MEANS_FIRST:
    case MEANS_SIZE:
        if (first == NULL || first->kind != (meaning == MEANS_SIZE ? PICKLE_TUPLE : PICKLE_TENSOR)) {
            return malformed(m);
        }
        *object = *first;
        return status_ok();
    default: return status_ok();
    }
}

struct status torch_tensors_bind(struct pickle *p, const struct torch_storage *storages, size_t n_storages,
                                 const char *source)
{
    const struct making m = {p, storages, n_storages, source};
    for (struct pickle_node *object = p->objects, *next; object != NULL; object = next) {
        next = object->object.next;
        TRY(bind(&m, object));
    }
    p->objects = NULL; /* the list is broken: tensors have no `next` */
    return status_ok();
}

/* Limits of the walk.  Nodes may be shared, so a small pickle can have an exponential number of paths;
 * entering a node costs more steps than skipping one. */
enum { MAX_DEPTH = 32, MAX_STEPS = 1 << 24, STEPS_OF_A_PART = 16 };

struct walk {
    struct stored_tensor *tensors; /* [n] */
    int n;
    size_t capacity;
    struct pickle *pickle;
    const char *source;
    int64_t n_steps;
    size_t path_bytes;
    char path[TORCH_NAME_BYTES];
};

static struct status add_tensor(struct walk *w, const struct stored_tensor *t)
{
    FAIL_IF(w->n == TORCH_MAX_TENSORS, STATUS_DATA, "%s has more than %d tensors", w->source,
            TORCH_MAX_TENSORS);
    FAIL_IF(!ARRAY_RESERVE(w->tensors, w->capacity, w->n + 1), STATUS_MEMORY,
            "out of memory for the list of tensors of %s", w->source);
    w->tensors[w->n] = *t;
    w->tensors[w->n].name =
        w->path_bytes == 0 ? "tensor" : bump_copy(&w->pickle->memory, w->path, w->path_bytes);
    if (w->tensors[w->n].name == NULL) {
        return bump_status(&w->pickle->memory, w->source);
    }
    w->n++;
    return status_ok();
}

/* Appends a key or index to the path; a key that is neither text nor an int is named by its position,
 * "#2". */
static struct status enter(struct walk *w, const struct pickle_node *key, size_t place)
{
    char number[32];
    const char *part = number;
    size_t n;
    if (key != NULL && key->kind == PICKLE_TEXT) {
        part = key->text.data;
        n = key->text.n;
    } else {
        bool is_number = key != NULL && key->kind == PICKLE_INT;
        n = (size_t)snprintf(number, sizeof number,
                             is_number     ? "%lld"
                             : key == NULL ? "%lld"
                                           : "#%lld",
                             is_number ? (long long)key->integer : (long long)place);
    }
    FAIL_IF(n + 2 > sizeof w->path - w->path_bytes, STATUS_DATA,
            "%s: its pickle has a path of names of more than %d bytes", w->source, TORCH_NAME_BYTES - 1);
    if (w->path_bytes > 0) {
        w->path[w->path_bytes++] = '.';
    }
    memcpy(w->path + w->path_bytes, part, n);
    w->path_bytes += n;
    return status_ok();
}

/* Recursive, to at most MAX_DEPTH. */
static struct status walk(struct walk *w, const struct pickle_node *node, int depth)
{
    const bool is_dict = node->kind == PICKLE_DICT;
    const bool has_items = is_dict || node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE;
    w->n_steps += STEPS_OF_A_PART + (has_items ? (int64_t)node->list.n : 0);
    FAIL_IF(depth > MAX_DEPTH, STATUS_DATA,
            "%s: its pickle nests objects more than %d deep, which no checkpoint does", w->source, MAX_DEPTH);
    FAIL_IF(w->n_steps > MAX_STEPS, STATUS_DATA,
            "%s: its pickle repeats its parts, so that there are more paths to them than the "
            "limit of %d steps allows",
            w->source, MAX_STEPS);
    if (node->kind == PICKLE_TENSOR) {
        FAIL_IF(w->path_bytes > 0 && !stored_tensor_name_is_printable(w->path, w->path_bytes), STATUS_DATA,
                "%s: a tensor's name has control characters", w->source);
        return add_tensor(w, node->tensor);
    }
    const size_t before = w->path_bytes;
    for (size_t i = 0; has_items && i < node->list.n; i += is_dict ? 2 : 1) {
        const struct pickle_node *item = node->list.items[i + is_dict];
        if (item->kind == PICKLE_TENSOR || item->kind == PICKLE_DICT || item->kind == PICKLE_LIST ||
            item->kind == PICKLE_TUPLE) {
            TRY(enter(w, is_dict ? node->list.items[i] : NULL, is_dict ? i / 2 : i));
            TRY(walk(w, item, depth + 1));
            w->path_bytes = before;
        }
    }
    return status_ok();
}

struct status torch_tensors_list(struct stored_tensor **tensors, int *n, struct pickle *p, const char *source)
{
    struct walk w = {.pickle = p, .source = source};
    struct status s = walk(&w, p->root, 0);
    if (!failed(s)) {
        s = stored_tensor_check_names(w.tensors, w.n, source);
    }
    if (failed(s)) {
        free(w.tensors);
        w.tensors = NULL;
        w.n = 0;
    }
    *tensors = w.tensors;
    *n = w.n;
    return s;
}
