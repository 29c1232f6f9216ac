#include "io/torch_array.h"

#include <stdio.h>
#include <stdlib.h>

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

static struct status malformed(const char *source)
{
    return status_error(STATUS_DATA, "%s: its pickle builds a tensor from what is no array of numpy", source);
}

/* Bytes, or _codecs.encode(text, "latin1"). */
static struct status read_bytes(struct torch_array *a, struct pickle *p, const struct pickle_node *node,
                                const char *source)
{
    if (node != NULL && node->kind == PICKLE_BYTES) {
        a->data = (const unsigned char *)node->text.data;
        a->n = node->text.n;
        return status_ok();
    }
    const struct pickle_node *text =
        is_call_of(node, "_codecs", "encode") ? pickle_item(node->object.arguments, 0) : NULL;
    if (text == NULL || text->kind != PICKLE_TEXT ||
        !pickle_is_text(pickle_item(node->object.arguments, 1), "latin1") ||
        text->text.n > p->n_read - p->n_decoded) {
        return malformed(source);
    }
    if (p->decoded == NULL && (p->decoded = malloc(p->n_read)) == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the arrays of %s", source);
    }
    unsigned char *out = p->decoded + p->n_decoded;
    if (!decode(out, &a->n, (const unsigned char *)text->text.data, text->text.n)) {
        return malformed(source);
    }
    a->data = out;
    p->n_decoded += a->n;
    return status_ok();
}

/* The state of an array is (version, shape, dtype, whether it is in Fortran's order, bytes), that of a dtype
 * (3, "<", ...). */
struct status torch_array_read(struct torch_array *a, struct pickle *p, const struct pickle_node *array,
                               const char *source)
{
    *a = (struct torch_array){0};
    if (!is_call_of(array, "numpy.core.multiarray", "_reconstruct") &&
        !is_call_of(array, "numpy._core.multiarray", "_reconstruct")) {
        return malformed(source);
    }
    const struct pickle_node *state = array->object.state, *type = pickle_item(state, 2),
                             *in_fortran = pickle_item(state, 3);
    if (!is_call_of(type, "numpy", "dtype") || in_fortran == NULL || in_fortran->kind != PICKLE_BOOL ||
        in_fortran->integer != 0 || pickle_is_text(pickle_item(type->object.state, 1), ">")) {
        return malformed(source);
    }
    a->shape = pickle_item(state, 1);
    a->type = pickle_item(type->object.arguments, 0);
    return read_bytes(a, p, pickle_item(state, 4), source);
}
