/* checkop: one program that tests, gradient-checks and times every op of a backend.
 *
 *   checkop cpu fp32 [OP]        against ref on fp64 copies of the same rounded inputs; 1, 2 and 3 threads
 *   checkop cpu bf16 [OP]        give the same bits; nothing is written between rows; the plan accepts the
 *   checkop cuda fp16 [OP]       call and its workspace is enough
 *   checkop cpu-avx2 fp32 [OP]   the same for the kernels of one instruction set (ops/cpu/cpu_isa.h)
 *   checkop cpu-each fp32 [OP]   the same for every instruction set of this processor, against one run of ref
 *   checkop ref-gradients [OP]   every backward of ref against central differences of its forward, in fp64
 *   checkop bench fp32 [OP]      times, GF/s and GB/s at the sizes of BERT; FLOPs and bytes are the plan's
 *   checkop ops                  the names of the ops that have cases
 *
 * --large takes cases with the columns, heads and words of BERT-Large instead, whose products and attention
 * are held against the cpu's in fp32, where another device is tested; --seconds=N gives each case that long;
 * --one-in=N takes one in N of the cases of each op, from the last on.
 * A case that fails is printed and the next one runs, in another process (case_workers.h); for debuggers and
 * sanitizers, --one-process ends at the first.
 *
 * A slot of struct ops without a case fails the test.  Cases that do not apply to a device and dtype are left
 * out; the last line names the ops that were not tested for that, and an OP that was asked for fails. */
#include "case_workers.h"
#include "checkop_cases.h"
#include "checkop_run.h"
#include "test.h"

#include <stddef.h>

/* Every slot of the table has a case among these shapes. */
static void expect_all_slots(const struct checkop_shape *shapes, int n)
{
    for (size_t slot = offsetof(struct ops, fill); slot < sizeof(struct ops);
         slot += sizeof(void (*)(void))) {
        bool found = false;
        for (int i = 0; i < n && !found; i++) {
            struct checkop_case c;
            checkop_make(&c, &shapes[i]);
            found = c.slot == slot;
        }
        EXPECT(found, "the slot at offset %zu of struct ops has no case", slot);
    }
}

static enum dtype parse_dtype(const char *name)
{
    enum dtype t = DTYPE_F32;
    while (t <= DTYPE_F16 && strcmp(name, dtype_name(t)) != 0) {
        t++;
    }
    EXPECT(t <= DTYPE_F16, "no dtype %s: fp32, bf16 or fp16", name);
    return t;
}

enum mode { MODE_TEST, MODE_GRADIENTS, MODE_BENCH };

/* What was asked for. */
struct request {
    enum mode mode;
    const char *backend, *dtype, *op; /* op: NULL, or the only one */
    const struct checkop_shape *shapes;
    int n;
    bool large, one_process;
    int seconds; /* of one case; 0: no limit */
    int one_in;  /* how many cases of an op that apply there are to one that runs */
};

/* Whether case i, which applies, is one of those that run: the last of its op is. */
static bool takes_turn(const struct request *q, int i)
{
    int n_behind = 0;
    for (int k = i + 1; k < q->n; k++) {
        struct checkop_case c;
        if (strcmp(q->shapes[k].op, q->shapes[i].op) == 0) {
            checkop_make(&c, &q->shapes[k]);
            n_behind += checkop_applies(&c, parse_dtype(q->dtype));
        }
    }
    return n_behind % q->one_in == 0;
}

static void run_case(const struct request *q, int i)
{
    struct checkop_case c;
    checkop_make(&c, &q->shapes[i]);
    if (q->mode == MODE_GRADIENTS) {
        checkop_test_gradients(&c);
    } else if (q->mode == MODE_BENCH) {
        checkop_bench(&c, parse_dtype(q->dtype));
    } else if (!checkop_applies(&c, parse_dtype(q->dtype))) {
        printf("%-72s not on this device in this dtype\n", c.title);
    } else if (!takes_turn(q, i)) {
        printf("%-72s not among the cases asked for\n", c.title);
    } else {
        checkop_test(&c, parse_dtype(q->dtype));
    }
}

static bool is_wanted(const struct request *q, int i)
{
    return q->op == NULL || strcmp(q->op, q->shapes[i].op) == 0;
}

static bool is_first_of_op(const struct request *q, int i)
{
    for (int k = 0; k < i; k++) {
        if (strcmp(q->shapes[k].op, q->shapes[i].op) == 0) {
            return false;
        }
    }
    return true;
}

/* How many cases of an op run here; *n_left_out grows by the others. */
static int count_of_op(const struct request *q, const char *op, int *n_left_out)
{
    int n_run = 0;
    for (int i = 0; i < q->n; i++) {
        if (strcmp(op, q->shapes[i].op) == 0) {
            struct checkop_case c;
            checkop_make(&c, &q->shapes[i]);
            bool runs =
                q->mode != MODE_TEST || (checkop_applies(&c, parse_dtype(q->dtype)) && takes_turn(q, i));
            n_run += runs;
            *n_left_out += !runs;
        }
    }
    return n_run;
}

/* An op without a case that applies was not tested; that is a failure where it was asked for. */
static void report(const struct request *q)
{
    char untested[1024] = "";
    int n_run = 0, n_left_out = 0, n_tested = 0, n_untested = 0;
    for (int i = 0; i < q->n; i++) {
        if (is_wanted(q, i) && is_first_of_op(q, i)) {
            int n = count_of_op(q, q->shapes[i].op, &n_left_out);
            size_t used = strlen(untested);
            n_run += n;
            n_tested += n > 0;
            n_untested += n == 0;
            snprintf(untested + used, sizeof untested - used, "%s%s",
                     n > 0       ? ""
                     : used == 0 ? ": "
                                 : ", ",
                     n > 0 ? "" : q->shapes[i].op);
        }
    }
    printf("%d cases of %d ops, %d cases left out, %d ops not tested%s\n", n_run, n_tested, n_left_out,
           n_untested, untested);
    EXPECT(n_run > 0, "no case of %s applies to this device in this dtype", q->op == NULL ? "any op" : q->op);
}

/* In a process of its own: a device is opened here. */
static void run_cases(void *context, int first)
{
    const struct request *q = context;
    if (q->mode != MODE_GRADIENTS) {
        checkop_find_tested(q->mode == MODE_BENCH ? "cpu" : q->backend);
    }
    for (int i = first; i < q->n; i++) {
        if (is_wanted(q, i)) {
            case_workers_begin(i);
            run_case(q, i);
        }
    }
    if (first <= q->n) {
        case_workers_begin(q->n);
        report(q);
    }
}

static const char *title_of(void *context, int i)
{
    static struct checkop_case c;
    const struct request *q = context;
    if (i == q->n) {
        return "whether every op was tested";
    }
    checkop_make(&c, &q->shapes[i]);
    return c.title;
}

/* Each op's name once, in the order of the shapes. */
static int list_ops(const struct request *q)
{
    for (int i = 0; i < q->n; i++) {
        if (is_first_of_op(q, i)) {
            puts(q->shapes[i].op);
        }
    }
    return 0;
}

static int count_cases(const struct request *q)
{
    int n = 0;
    for (int i = 0; i < q->n; i++) {
        n += is_wanted(q, i);
    }
    EXPECT(n > 0, "no case of %s", q->op);
    return n;
}

static struct request parse_request(int argc, char **argv)
{
    struct request q = {.one_in = 1};
    const char *words[3] = {NULL};
    int n_words = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--large") == 0) {
            q.large = true;
        } else if (strcmp(argv[i], "--one-process") == 0) {
            q.one_process = true;
        } else if (strncmp(argv[i], "--seconds=", 10) == 0) {
            q.seconds = atoi(argv[i] + 10);
        } else if (strncmp(argv[i], "--one-in=", 9) == 0) {
            q.one_in = atoi(argv[i] + 9);
            EXPECT(q.one_in > 0, "%s: wanted at least 1", argv[i]);
        } else {
            EXPECT(n_words < 3, "one op at a time: %s", argv[i]);
            words[n_words++] = argv[i];
        }
    }
    EXPECT(n_words > 0,
           "usage: checkop [--large] [--seconds=N] [--one-in=N] [--one-process] BACKEND DTYPE [OP], "
           "checkop [--large] ops, "
           "checkop ref-gradients [OP], checkop bench DTYPE [OP]");
    q.backend = words[0];
    q.mode = strcmp(words[0], "ref-gradients") == 0 ? MODE_GRADIENTS
             : strcmp(words[0], "bench") == 0       ? MODE_BENCH
                                                    : MODE_TEST;
    q.dtype = words[1];
    q.op = q.mode == MODE_GRADIENTS ? words[1] : words[2];
    q.shapes = q.mode == MODE_GRADIENTS ? checkop_gradient_shapes(&q.n)
               : q.mode == MODE_BENCH   ? checkop_bench_shapes(&q.n)
               : q.large                ? checkop_large_shapes(&q.n)
                                        : checkop_test_shapes(&q.n);
    return q;
}

int main(int argc, char **argv)
{
    struct request q = parse_request(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was found is there, however the rest ends */
    if (strcmp(q.backend, "ops") == 0) {
        return list_ops(&q);
    }
    EXPECT(q.mode == MODE_GRADIENTS || q.dtype != NULL, "checkop %s needs a dtype: fp32, bf16 or fp16",
           q.backend);
    if (q.mode == MODE_TEST && q.op == NULL && !q.large) {
        expect_all_slots(q.shapes, q.n);
    }
    int n = count_cases(&q);
    if (q.one_process) {
        run_cases(&q, 0);
        return 0;
    }
    int n_failed = case_workers_run(&(struct case_workers){run_cases, title_of, &q, q.seconds});
    if (n_failed > 0) {
        printf("%d of %d cases failed\n", n_failed, n);
    }
    return n_failed > 0;
}
