#include "io/pickle.h"

#include "core/bytes.h"
#include "io/pickle_opcodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_PROTOCOL = 2, MAX_PROTOCOL = 5, POINTER_BYTES = sizeof(struct pickle_node *) };

/* A growing array of nodes. */
struct pointers {
    struct pickle_node **items;
    size_t n, capacity;
};

/* Failure is sticky: afterwards pops return `nothing`, and the loop ends. */
struct machine {
    struct pickle *pickle;
    struct span in;
    const struct pickle_allowed *allowed; /* [n_allowed] */
    size_t n_allowed;
    const char *source;
    struct pointers stack;
    struct pointers memo; /* [n], NULL for unused indexes */
    size_t n_memoized;    /* entries in use: the next index of MEMOIZE */
    size_t *marks;        /* [n_marks] stack heights */
    size_t n_marks, marks_capacity;
    struct pickle_node **last_object; /* link for the next object */
    struct pickle_node **last_persistent;
    struct pickle_node nothing;
    struct status status;
    bool stopped;
};

__attribute__((format(printf, 2, 3))) static void fail(struct machine *m, const char *format, ...)
{
    if (!failed(m->status)) {
        char message[sizeof m->status.message];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        m->status = status_error(STATUS_DATA, "%s: %s", m->source, message);
    }
}

static void fail_for_memory(struct machine *m)
{
    if (!failed(m->status)) {
        m->status = status_error(STATUS_MEMORY, "out of memory for the contents of %s", m->source);
    }
}

static void fail_for_limit(struct machine *m)
{
    fail(m, "the objects in its pickle need more memory than the limit of %d MiB", PICKLE_MAX_BYTES >> 20);
}

/* Makes space for `n` items of `item_bytes` in the array that `array` points to; false, and failed, if it
 * cannot. */
static bool reserve(struct machine *m, void *array, size_t *capacity, size_t n, size_t item_bytes)
{
    if (n <= *capacity) {
        return true;
    }
    size_t wanted = n > *capacity * 2 ? n : *capacity * 2;
    wanted = wanted < 64 ? 64 : wanted;
    if (wanted > PICKLE_MAX_BYTES / item_bytes) {
        fail_for_limit(m);
        return false;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, wanted * item_bytes);
    if (grown == NULL) {
        fail_for_memory(m);
        return false;
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

static struct pickle_node *make(struct machine *m, enum pickle_kind kind)
{
    struct pickle_node *node = bump_take(&m->pickle->memory, sizeof *node);
    if (node == NULL) {
        if (m->pickle->memory.exceeded) {
            fail_for_limit(m);
        } else {
            fail_for_memory(m);
        }
        m->nothing = (struct pickle_node){0};
        return &m->nothing;
    }
    node->kind = kind;
    return node;
}

static void push(struct machine *m, struct pickle_node *node)
{
    if (reserve(m, &m->stack.items, &m->stack.capacity, m->stack.n + 1, POINTER_BYTES)) {
        m->stack.items[m->stack.n++] = node;
    }
}

/* Items below the newest mark must not be popped. */
static size_t stack_floor(const struct machine *m)
{
    return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

static struct pickle_node *top(struct machine *m)
{
    if (m->stack.n <= stack_floor(m)) {
        fail(m, "its pickle takes more from its stack than it put there");
        m->nothing = (struct pickle_node){0};
        return &m->nothing;
    }
    return m->stack.items[m->stack.n - 1];
}

static struct pickle_node *pop(struct machine *m)
{
    struct pickle_node *node = top(m);
    m->stack.n -= node != &m->nothing;
    return node;
}

/* Pops the newest mark and the items above it, which stay valid until the next push. */
static struct pickle_node **pop_marked(struct machine *m, size_t *n)
{
    *n = 0;
    if (m->n_marks == 0) {
        fail(m, "its pickle pops a mark that it never set");
        return NULL;
    }
    size_t first = m->marks[--m->n_marks];
    *n = m->stack.n - first;
    m->stack.n = first;
    return m->stack.items == NULL ? NULL : m->stack.items + first;
}

static void append(struct machine *m, struct pickle_node *list, struct pickle_node **items, size_t n)
{
    if (n == 0 || failed(m->status)) {
        return;
    }
    if (list->list.n + n > list->list.capacity) {
        size_t capacity = list->list.n + (n > list->list.n ? n : list->list.n);
        struct pickle_node **grown = bump_take(&m->pickle->memory, capacity * POINTER_BYTES);
        if (grown == NULL) {
            make(m, PICKLE_NONE); /* fails again, and reports why */
            return;
        }
        if (list->list.n > 0) {
            memcpy(grown, list->list.items, list->list.n * POINTER_BYTES);
        }
        list->list.items = grown;
        list->list.capacity = capacity;
    }
    memcpy(list->list.items + list->list.n, items, n * POINTER_BYTES);
    list->list.n += n;
}

static void push_list(struct machine *m, enum pickle_kind kind, struct pickle_node **items, size_t n)
{
    struct pickle_node *list = make(m, kind);
    append(m, list, items, n);
    push(m, list);
}

static void op_constant(struct machine *m, int op)
{
    struct pickle_node *node = make(m, op == NONE ? PICKLE_NONE : PICKLE_BOOL);
    node->integer = op == NEWTRUE;
    push(m, node);
}

static void op_integer(struct machine *m, int op)
{
    struct pickle_node *node = make(m, PICKLE_INT);
    node->integer = op == BININT    ? bytes_read_i32(&m->in)
                    : op == BININT1 ? bytes_read_u8(&m->in)
                                    : bytes_read_u16(&m->in);
    push(m, node);
}

/* Two's complement, little-endian, of any length; length 0 is 0. */
static void op_long(struct machine *m, int op)
{
    size_t n = op == LONG1 ? bytes_read_u8(&m->in) : bytes_read_u32(&m->in);
    const unsigned char *p = bytes_take(&m->in, n);
    if (p == NULL) {
        return;
    }
    struct pickle_node *node = make(m, n > sizeof(int64_t) ? PICKLE_LONG : PICKLE_INT);
    if (node->kind == PICKLE_LONG) {
        node->text.data = (const char *)p;
        node->text.n = n;
    } else {
        unsigned char wide[sizeof(int64_t)];
        memset(wide, n > 0 && p[n - 1] >= 0x80 ? 0xff : 0, sizeof wide);
        memcpy(wide, p, n);
        node->integer = (int64_t)bytes_load_u64(wide);
    }
    push(m, node);
}

static void op_float(struct machine *m, int op)
{
    (void)op;
    const unsigned char *p = bytes_take(&m->in, sizeof(double));
    struct pickle_node *node = make(m, PICKLE_FLOAT);
    unsigned char reversed[sizeof(double)]; /* the only big-endian numbers of a pickle */
    for (size_t i = 0; p != NULL && i < sizeof reversed; i++) {
        reversed[i] = p[sizeof reversed - 1 - i];
    }
    if (p != NULL) {
        memcpy(&node->real, reversed, sizeof reversed);
    }
    push(m, node);
}

static void op_text(struct machine *m, int op)
{
    const bool is_bytes = op == BINBYTES || op == SHORT_BINBYTES || op == BINBYTES8 || op == BYTEARRAY8;
    uint64_t n;
    switch (op) {
    case SHORT_BINSTRING:
    case SHORT_BINBYTES:
    case SHORT_BINUNICODE: n = bytes_read_u8(&m->in); break;
    case BINSTRING:
    case BINUNICODE:
    case BINBYTES: n = bytes_read_u32(&m->in); break;
    default: n = bytes_read_u64(&m->in);
    }
    struct pickle_node *node = make(m, is_bytes ? PICKLE_BYTES : PICKLE_TEXT);
    node->text.data = (const char *)bytes_take_items(&m->in, n, 1);
    node->text.n = node->text.data == NULL ? 0 : (size_t)n;
    push(m, node);
}

static void op_empty(struct machine *m, int op)
{
    push_list(m, op == EMPTY_DICT ? PICKLE_DICT : op == EMPTY_TUPLE ? PICKLE_TUPLE : PICKLE_LIST, NULL, 0);
}

static void op_mark(struct machine *m, int op)
{
    (void)op;
    if (reserve(m, &m->marks, &m->marks_capacity, m->n_marks + 1, sizeof *m->marks)) {
        m->marks[m->n_marks++] = m->stack.n;
    }
}

static void op_marked(struct machine *m, int op)
{
    size_t n;
    struct pickle_node **items = pop_marked(m, &n);
    if (op == DICT && n % 2 != 0) {
        fail(m, "its pickle gives a dict a key without a value");
    } else if (op != POP_MARK) {
        push_list(m, op == DICT ? PICKLE_DICT : op == LIST ? PICKLE_LIST : PICKLE_TUPLE, items, n);
    }
}

static void op_tuple(struct machine *m, int op)
{
    struct pickle_node *items[3] = {NULL};
    size_t n = (size_t)(op - TUPLE1 + 1);
    for (size_t i = n; i > 0; i--) {
        items[i - 1] = pop(m);
    }
    push_list(m, PICKLE_TUPLE, items, n);
}

/* Objects whose class derives from list or dict get items too; those are dropped. */
static void add_items(struct machine *m, enum pickle_kind kind, struct pickle_node **items, size_t n)
{
    struct pickle_node *list = top(m);
    if (kind == PICKLE_DICT && n % 2 != 0) {
        fail(m, "its pickle gives a dict a key without a value");
    } else if (list->kind == kind) {
        append(m, list, items, n);
    } else if (list->kind != PICKLE_OBJECT) {
        fail(m, "its pickle adds items to something that is not a %s", kind == PICKLE_DICT ? "dict" : "list");
    }
}

static void op_add(struct machine *m, int op)
{
    size_t n;
    struct pickle_node *pair[2] = {NULL};
    if (op == APPEND) {
        pair[0] = pop(m);
        add_items(m, PICKLE_LIST, pair, 1);
    } else if (op == SETITEM) {
        pair[1] = pop(m);
        pair[0] = pop(m);
        add_items(m, PICKLE_DICT, pair, 2);
    } else {
        struct pickle_node **items = pop_marked(m, &n);
        add_items(m, op == SETITEMS ? PICKLE_DICT : PICKLE_LIST, items, n);
    }
}

static void op_stack(struct machine *m, int op)
{
    if (op == DUP) {
        push(m, top(m));
    } else if (m->n_marks > 0 && m->stack.n == stack_floor(m)) {
        m->n_marks--;
    } else {
        pop(m);
    }
}

/* Picklers number memo entries from 0 up, so an index is never larger than the bytes read so far: this limits
 * memory. */
static void op_put(struct machine *m, int op)
{
    size_t index = op == BINPUT        ? bytes_read_u8(&m->in)
                   : op == LONG_BINPUT ? bytes_read_u32(&m->in)
                                       : m->n_memoized;
    if (index > m->in.at) {
        fail(m, "its pickle writes memo entry %zu out of order, which no pickler does", index);
        return;
    }
    if (reserve(m, &m->memo.items, &m->memo.capacity, index + 1, POINTER_BYTES)) {
        for (; m->memo.n <= index; m->memo.n++) {
            m->memo.items[m->memo.n] = NULL;
        }
        m->n_memoized += m->memo.items[index] == NULL;
        m->memo.items[index] = top(m);
    }
}

static void op_get(struct machine *m, int op)
{
    size_t index = op == BINGET ? bytes_read_u8(&m->in) : bytes_read_u32(&m->in);
    if (index >= m->memo.n || m->memo.items[index] == NULL) {
        fail(m, "its pickle reads memo entry %zu, which it never wrote", index);
        return;
    }
    push(m, m->memo.items[index]);
}

/* Whether `text` matches a pattern, which may begin or end with "*". */
static bool matches(const char *pattern, const char *text)
{
    size_t n = strlen(pattern);
    size_t length = strlen(text);
    if (pattern[0] == '*') {
        return length >= n - 1 && strcmp(text + length - (n - 1), pattern + 1) == 0;
    }
    return pattern[n - 1] == '*' ? strncmp(pattern, text, n - 1) == 0 : strcmp(pattern, text) == 0;
}

static const struct pickle_allowed *find_allowed(const struct machine *m, const char *module,
                                                 const char *name)
{
    for (size_t i = 0; i < m->n_allowed; i++) {
        if (matches(m->allowed[i].module, module) && matches(m->allowed[i].name, name)) {
            return &m->allowed[i];
        }
    }
    return NULL;
}

/* Copies a module or name and makes it printable, so that messages can show it. */
static bool copy_name(char out[PICKLE_NAME_BYTES], const void *text, size_t n)
{
    if (text == NULL || n == 0 || n >= PICKLE_NAME_BYTES) {
        return false;
    }
    memcpy(out, text, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (out[i] <= ' ' || out[i] > '~') {
            out[i] = '?'; /* no allowed name has one */
        }
    }
    return true;
}

static void push_name(struct machine *m, const char *module, const char *name)
{
    const struct pickle_allowed *row = find_allowed(m, module, name);
    if (row == NULL) {
        fail(m, "the pickle asks for %.100s.%.100s, which kiln does not run", module, name);
        return;
    }
    char whole[2 * PICKLE_NAME_BYTES];
    int n = snprintf(whole, sizeof whole, "%s.%s", module, name);
    struct pickle_node *node = make(m, PICKLE_NAME);
    node->meaning = row->meaning;
    node->text.use = row->use;
    node->text.data = bump_copy(&m->pickle->memory, whole, (size_t)n);
    node->text.n = node->text.data == NULL ? 0 : (size_t)n;
    push(m, node);
}

/* The bytes before the next newline, which is skipped; NULL if it is too far. */
static const void *take_line(struct span *s, size_t *n)
{
    size_t most = bytes_left(s) < PICKLE_NAME_BYTES ? bytes_left(s) : PICKLE_NAME_BYTES;
    const unsigned char *begin = s->data + s->at;
    const unsigned char *end = most == 0 ? NULL : memchr(begin, '\n', most);
    *n = end == NULL ? 0 : (size_t)(end - begin);
    return end == NULL ? NULL : bytes_take(s, *n + 1);
}

static void op_name(struct machine *m, int op)
{
    char module[PICKLE_NAME_BYTES], name[PICKLE_NAME_BYTES];
    bool complete;
    if (op == GLOBAL) {
        size_t n;
        const void *line = take_line(&m->in, &n);
        complete = copy_name(module, line, n);
        line = take_line(&m->in, &n);
        complete = copy_name(name, line, n) && complete;
    } else {
        const struct pickle_node *last = pop(m);
        const struct pickle_node *first = pop(m);
        complete = first->kind == PICKLE_TEXT && last->kind == PICKLE_TEXT &&
                   copy_name(module, first->text.data, first->text.n) &&
                   copy_name(name, last->text.data, last->text.n);
    }
    if (complete) {
        push_name(m, module, name);
    } else {
        fail(m, "its pickle asks for a malformed name");
    }
}

/* collections.OrderedDict(...): empty, or with a list of pairs, as Python 2 pickled it. */
static void push_dict(struct machine *m, const struct pickle_node *arguments)
{
    struct pickle_node *dict = make(m, PICKLE_DICT);
    const struct pickle_node *pairs = pickle_item(arguments, 0);
    if (pairs != NULL && pairs->kind == PICKLE_DICT) {
        append(m, dict, pairs->list.items, pairs->list.n);
    }
    for (size_t i = 0; pickle_item(pairs, i) != NULL && !failed(m->status); i++) {
        const struct pickle_node *pair = pickle_item(pairs, i);
        if ((pair->kind != PICKLE_TUPLE && pair->kind != PICKLE_LIST) || pair->list.n != 2) {
            fail(m, "its pickle makes a dict from items that are not pairs");
            return;
        }
        append(m, dict, pair->list.items, 2);
    }
    push(m, dict);
}

/* Python would call a function or create an instance here. */
static void op_call(struct machine *m, int op)
{
    if (op == NEWOBJ_EX) {
        pop(m); /* keyword arguments; nothing that kiln reads has any */
    }
    const struct pickle_node *arguments = pop(m);
    const struct pickle_node *name = pop(m);
    if (failed(m->status)) {
        return;
    }
    if (name->kind != PICKLE_NAME || arguments->kind != PICKLE_TUPLE) {
        fail(m, "its pickle calls something that is not a name, or with arguments that are not a tuple");
        return;
    }
    if (name->text.use == PICKLE_MAKE_DICT) {
        push_dict(m, arguments);
        return;
    }
    struct pickle_node *object = make(m, PICKLE_OBJECT);
    if (object == &m->nothing) {
        return;
    }
    object->meaning = name->meaning;
    object->object.name = name;
    object->object.arguments = arguments;
    *m->last_object = object;
    m->last_object = &object->object.next;
    push(m, object);
}

/* Attributes of a dict, such as `_metadata` of a state_dict, are dropped. */
static void op_build(struct machine *m, int op)
{
    (void)op;
    const struct pickle_node *state = pop(m);
    struct pickle_node *object = top(m);
    if (object->kind == PICKLE_OBJECT) {
        object->object.state = state;
    } else if (object->kind != PICKLE_DICT) {
        fail(m, "its pickle sets the state of something that is not an object");
    }
}

static void op_persistent(struct machine *m, int op)
{
    (void)op;
    const struct pickle_node *id = pop(m);
    struct pickle_node *node = make(m, PICKLE_PERSISTENT);
    if (node == &m->nothing) {
        return;
    }
    node->persistent.id = id;
    *m->last_persistent = node;
    m->last_persistent = &node->persistent.next;
    push(m, node);
}

static void op_frame(struct machine *m, int op)
{
    if (op == FRAME) {
        bytes_take(&m->in, sizeof(uint64_t)); /* a hint for buffered readers */
        return;
    }
    int protocol = bytes_read_u8(&m->in);
    if (!m->in.failed && (protocol < MIN_PROTOCOL || protocol > MAX_PROTOCOL)) {
        fail(m, "its pickle has protocol %d; kiln reads %d to %d", protocol, MIN_PROTOCOL, MAX_PROTOCOL);
    }
}

static void op_stop(struct machine *m, int op)
{
    (void)op;
    m->pickle->root = pop(m);
    m->stopped = true;
}

static void (*const operations[256])(struct machine *m, int op) = {
    [PROTO] = op_frame,
    [FRAME] = op_frame,
    [STOP] = op_stop,
    [NONE] = op_constant,
    [NEWTRUE] = op_constant,
    [NEWFALSE] = op_constant,
    [BININT] = op_integer,
    [BININT1] = op_integer,
    [BININT2] = op_integer,
    [LONG1] = op_long,
    [LONG4] = op_long,
    [BINFLOAT] = op_float,
    [BINSTRING] = op_text,
    [SHORT_BINSTRING] = op_text,
    [BINUNICODE] = op_text,
    [SHORT_BINUNICODE] = op_text,
    [BINUNICODE8] = op_text,
    [BINBYTES] = op_text,
    [SHORT_BINBYTES] = op_text,
    [BINBYTES8] = op_text,
    [BYTEARRAY8] = op_text,
    [EMPTY_DICT] = op_empty,
    [EMPTY_LIST] = op_empty,
    [EMPTY_SET] = op_empty,
    [EMPTY_TUPLE] = op_empty,
    [MARK] = op_mark,
    [TUPLE] = op_marked,
    [LIST] = op_marked,
    [DICT] = op_marked,
    [FROZENSET] = op_marked,
    [POP_MARK] = op_marked,
    [TUPLE1] = op_tuple,
    [TUPLE2] = op_tuple,
    [TUPLE3] = op_tuple,
    [APPEND] = op_add,
    [APPENDS] = op_add,
    [ADDITEMS] = op_add,
    [SETITEM] = op_add,
    [SETITEMS] = op_add,
    [POP] = op_stack,
    [DUP] = op_stack,
    [BINPUT] = op_put,
    [LONG_BINPUT] = op_put,
    [MEMOIZE] = op_put,
    [BINGET] = op_get,
    [LONG_BINGET] = op_get,
    [GLOBAL] = op_name,
    [STACK_GLOBAL] = op_name,
    [REDUCE] = op_call,
    [NEWOBJ] = op_call,
    [NEWOBJ_EX] = op_call,
    [BUILD] = op_build,
    [BINPERSID] = op_persistent,
};

static void run(struct machine *m)
{
    while (!m->stopped && !failed(m->status)) {
        int op = bytes_read_u8(&m->in);
        if (m->in.failed) {
            fail(m, "its pickle is cut short");
        } else if (operations[op] == NULL) {
            fail(m, "its pickle has the opcode 0x%02x at byte %zu, which no checkpoint needs", (unsigned)op,
                 m->in.at - 1);
        } else {
            operations[op](m, op);
            if (m->in.failed) {
                fail(m, "its pickle is cut short");
            }
        }
    }
}

struct status pickle_parse(struct pickle *p, const void *bytes, size_t n,
                           const struct pickle_allowed *allowed, size_t n_allowed, const char *source)
{
    *p = (struct pickle){.memory = bump_with_limit(PICKLE_MAX_BYTES)};
    struct machine m = {.pickle = p,
                        .in = bytes_span(bytes, n),
                        .allowed = allowed,
                        .n_allowed = n_allowed,
                        .source = source,
                        .last_object = &p->objects,
                        .last_persistent = &p->persistents,
                        .status = status_ok()};
    run(&m);
    p->n_read = m.in.at;
    free(m.stack.items);
    free(m.memo.items);
    free(m.marks);
    if (failed(m.status)) {
        pickle_close(p);
    }
    return m.status;
}

void pickle_close(struct pickle *p)
{
    bump_fini(&p->memory);
    free(p->decoded);
    *p = (struct pickle){0};
}

bool pickle_is_text(const struct pickle_node *node, const char *text)
{
    return node != NULL && (node->kind == PICKLE_TEXT || node->kind == PICKLE_NAME) &&
           node->text.n == strlen(text) && memcmp(node->text.data, text, node->text.n) == 0;
}

/* The last place of a key, one after it; 0: it has none.  `text` is NULL for a key that is an int. */
static size_t place_after(const struct pickle_node *dict, const char *text, int64_t integer)
{
    size_t i = dict != NULL && dict->kind == PICKLE_DICT ? dict->list.n / 2 : 0;
    for (; i > 0; i--) {
        const struct pickle_node *key = dict->list.items[2 * i - 2];
        if (text != NULL ? pickle_is_text(key, text) : key->kind == PICKLE_INT && key->integer == integer) {
            break;
        }
    }
    return i;
}

const struct pickle_node *pickle_find_integer(const struct pickle_node *dict, int64_t key)
{
    size_t i = place_after(dict, NULL, key);
    return i == 0 ? NULL : dict->list.items[2 * i - 1];
}

const struct pickle_node *pickle_find(const struct pickle_node *dict, const char *key)
{
    size_t i = place_after(dict, key, 0);
    return i == 0 ? NULL : dict->list.items[2 * i - 1];
}

const struct pickle_node *pickle_item(const struct pickle_node *list, size_t i)
{
    bool has_items = list != NULL && (list->kind == PICKLE_TUPLE || list->kind == PICKLE_LIST);
    return has_items && i < list->list.n ? list->list.items[i] : NULL;
}
