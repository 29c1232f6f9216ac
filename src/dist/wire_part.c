#include "dist/wire_part.h"

static int rank_of(const struct wire_part *p, int r)
{
    CHECK(r != WIRE_ANY, "a message from any rank of a part");
    return p->first + r * p->stride;
}

static struct status send(void *state, struct wire_op *op, int to, int tag, const void *bytes, size_t n)
{
    const struct wire_part *p = state;
    return p->whole.type->send(p->whole.state, op, rank_of(p, to), p->first_tag + tag, bytes, n);
}

static struct status receive(void *state, struct wire_op *op, int from, int tag, void *bytes, size_t n)
{
    const struct wire_part *p = state;
    return p->whole.type->receive(p->whole.state, op, rank_of(p, from), p->first_tag + tag, bytes, n);
}

static struct status test(void *state, struct wire_op *op)
{
    const struct wire_part *p = state;
    return p->whole.type->test(p->whole.state, op);
}

static void drop(void *state, struct wire_op *op)
{
    const struct wire_part *p = state;
    p->whole.type->drop(p->whole.state, op);
}

static void close(void *state, bool in_peace)
{
    (void)state, (void)in_peace;
}

static const struct wire_type type = {
    .name = "a part", .send = send, .receive = receive, .test = test, .drop = drop, .close = close};

struct wire wire_part_open(struct wire_part *p, int n, int index, int number)
{
    struct wire w = p->whole;
    CHECK(number > 0 && number < WIRE_PARTS_MOST, "part %d of a world", number);
    p->first_tag = number * WIRE_TAGS;
    w.type = &type;
    w.rank = index;
    w.size = n;
    w.state = p;
    return w;
}
