/* pickle: trees are what Python would have made, and whatever a pickle asks for that is not allowed, or is
 * wrong with it, is refused by name, in bounded time and memory; nothing is run. */
#include "test.h"

#include "core/buf.h"
#include "io/pickle.h"
#include "io/torch_optimizer.h"

static const struct pickle_allowed allowed[] = {
    {"collections", "OrderedDict", PICKLE_MAKE_DICT, 0},
    {"torch", "*Storage", PICKLE_KEEP_OBJECT, 1},
    {"deepspeed.*", "*", PICKLE_KEEP_OBJECT, 2},
    {"argparse", "Namespace", PICKLE_KEEP_OBJECT, 3},
};

static struct status parse(struct pickle *p, const void *bytes, size_t n)
{
    return pickle_parse(p, bytes, n, allowed, sizeof allowed / sizeof *allowed, "file.pt");
}

#define PICKLE(text) (text), sizeof(text) - 1

/* pickle.dumps({"a": [1, -2, 2.5, None, True, (3,), 300, 70000], "b": OrderedDict(c="x"), 7: b"yz",
 * "d": 1 << 80, "e": -(1 << 40)}, 4), with Python 3.11 */
static const char golden[] =
    "\x80\x04\x95}\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
    "a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88K\x03\x85\x94M,\x01Jp"
    "\x11\x01\x00"
    "e\x8c\x01"
    "b\x94\x8c\x0b"
    "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01"
    "c\x94\x8c\x01x\x94sK\x07"
    "C\x02yz\x94\x8c\x01"
    "d\x94\x8a\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x8c\x01"
    "e\x94\x8a\x06\x00\x00\x00\x00\x00\xffu.";

static void test_golden(void)
{
    struct pickle p;
    EXPECT_OK(parse(&p, PICKLE(golden)));
    EXPECT(p.n_read == sizeof golden - 1 && p.root->kind == PICKLE_DICT && p.root->list.n == 10, "the dict");
    const struct pickle_node *a = pickle_find(p.root, "a");
    EXPECT(a != NULL && a->kind == PICKLE_LIST && a->list.n == 8, "a");
    EXPECT(pickle_item(a, 0)->integer == 1 && pickle_item(a, 1)->integer == -2, "ints");
    EXPECT(pickle_item(a, 2)->kind == PICKLE_FLOAT && pickle_item(a, 2)->real == 2.5, "float");
    EXPECT(pickle_item(a, 3)->kind == PICKLE_NONE, "none");
    EXPECT(pickle_item(a, 4)->kind == PICKLE_BOOL && pickle_item(a, 4)->integer == 1, "true");
    EXPECT(pickle_item(pickle_item(a, 5), 0)->integer == 3, "tuple");
    EXPECT(pickle_item(a, 6)->integer == 300 && pickle_item(a, 7)->integer == 70000, "longer ints");
    EXPECT(pickle_item(a, 8) == NULL, "there is no ninth item");
    EXPECT(pickle_is_text(pickle_find(pickle_find(p.root, "b"), "c"), "x"), "b.c");
    EXPECT(p.root->list.items[5]->kind == PICKLE_BYTES &&
               memcmp(p.root->list.items[5]->text.data, "yz", 2) == 0,
           "7");
    EXPECT(pickle_find(p.root, "d")->kind == PICKLE_LONG && pickle_find(p.root, "d")->text.n == 11, "d");
    EXPECT(pickle_find(p.root, "e")->integer == -(INT64_C(1) << 40), "e");
    EXPECT(pickle_find(p.root, "f") == NULL && pickle_find(a, "a") == NULL && pickle_find(NULL, "a") == NULL,
           "f");
    pickle_close(&p);
}

/* Objects tell what was asked for; one key twice is the last, as in Python. */
static void test_objects(void)
{
    struct pickle p;
    static const char two_and_rest[] =
        "\x80\x02(cargparse\nNamespace\n)\x81}X\x04\0\0\0seedK\x2asbcdeepspeed.x\nY\nK\x01\x85R}("
        "X\1\0\0\0kK\1X\1\0\0"
        "\0kK\2uU\3idsQt.rest";
    EXPECT_OK(parse(&p, PICKLE(two_and_rest)));
    EXPECT(p.root->kind == PICKLE_TUPLE && p.root->list.n == 4, "%zu", p.root->list.n);
    EXPECT(strcmp(two_and_rest + p.n_read, "rest") == 0, "%zu read", p.n_read);
    const struct pickle_node *space = pickle_item(p.root, 0);
    const struct pickle_node *y = pickle_item(p.root, 1);
    EXPECT(space->kind == PICKLE_OBJECT && space->meaning == 3, "namespace");
    EXPECT(pickle_is_text(space->object.name, "argparse.Namespace"), "its name");
    EXPECT(pickle_find(space->object.state, "seed")->integer == 42, "its state");
    EXPECT(y->meaning == 2 && pickle_item(y->object.arguments, 0)->integer == 1 && y->object.state == NULL,
           "Y(1)");
    EXPECT(p.objects == space && space->object.next == y && y->object.next == NULL,
           "in the order of their making");
    EXPECT(pickle_find(pickle_item(p.root, 2), "k")->integer == 2, "the last of two");
    EXPECT(p.persistents == pickle_item(p.root, 3) && pickle_is_text(p.persistents->persistent.id, "ids"),
           "persistent");
    pickle_close(&p);
    EXPECT_OK(parse(&p, PICKLE("\x80\x02"
                               "ccollections\nOrderedDict\n](]X\1\0\0\0aaK\1ae\x85R.")));
    EXPECT(pickle_find(p.root, "a")->integer == 1, "pairs, as Python 2 wrote them");
    pickle_close(&p);
}

/* What pickles of attackers, and damaged ones, ask for.  Long because it is a list. */
static void test_refused(void)
{
#define NAME_300                                                                                             \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    static const struct {
        const char *bytes;
        size_t n;
        const char *part; /* of the message */
    } cases[] = {
        /* What would be run. */
        {PICKLE("\x80\x02"
                "cposix\nsystem\nX\2\0\0\0id\x85R."),
         "file.pt: the pickle asks for posix.system, which kiln does not run"},
        {PICKLE("cos\nsystem\n(S'id'\ntR."), "asks for os.system"},
        {PICKLE("\x80\x02"
                "cbuiltins\neval\nX\1\0\0\0001\x85R."),
         "asks for builtins.eval"},
        {PICKLE("\x80\x02"
                "c__builtin__\nexec\n."),
         "asks for __builtin__.exec"},
        {PICKLE("\x80\x04\x8c\2os\x8c\6system\x93."), "asks for os.system"},
        {PICKLE("\x80\x04\x8c\2nt\x8c\6system\x93."), "asks for nt.system"},
        {PICKLE("\x80\x02"
                "csubprocess\nPopen\n."),
         "asks for subprocess.Popen"},
        {PICKLE("\x80\x02"
                "ctorch\nload\n."),
         "asks for torch.load"},
        {PICKLE("\x80\x02"
                "cdeepspeed\nos.system\n."),
         "asks for deepspeed.os.system"},
        {PICKLE("\x80\x02"
                "c\x1b[2J\nx\n."),
         "asks for ?[2J.x"},
        {PICKLE("\x80\x04\x8c\3o\0s\x8c\1x\x93."), "asks for o?s.x"},
        {PICKLE("\x80\x02"
                "c" NAME_300 "\nx\n."),
         "a malformed name"},
        {PICKLE("\x80\x02"
                "cos"),
         "a malformed name"},
        {PICKLE("\x80\x02"
                "c\nx\n."),
         "a malformed name"},
        {PICKLE("\x80\x02K\1K\2\x93."), "a malformed name"},
        /* Opcodes that no checkpoint needs, the text forms of protocol 0 among them. */
        {PICKLE("(iposix\nsystem\n."), "opcode 0x69 at byte 1"},
        {PICKLE("\x80\x02(cargparse\nNamespace\no."), "opcode 0x6f"},
        {PICKLE("I1\n."), "opcode 0x49"},
        {PICKLE("\x80\x02\x82\1."), "opcode 0x82"},
        {PICKLE("\x80\x05\x97."), "opcode 0x97"},
        {PICKLE("\x80\x09N."), "protocol 9"},
        /* Lengths that the file does not have. */
        {PICKLE(""), "cut short"},
        {PICKLE("\x80"), "cut short"},
        {PICKLE("\x80\x02X\xff\xff\xff\xff"), "cut short"},
        {PICKLE("\x80\x02\x8b\xff\xff\xff\x7fx."), "cut short"},
        {PICKLE("\x80\x02\x8b\xff\xff\xff\xffx."), "cut short"},
        {PICKLE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."), "cut short"},
        {PICKLE("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."), "cut short"},
        {PICKLE("\x80\x02G\0\0."), "cut short"},
        {PICKLE("\x80\x02N"), "cut short"},
        /* Stacks, marks and numbers that are not there. */
        {PICKLE("\x80\x02."), "more from its stack"},
        {PICKLE("\x80\x02\x85."), "more from its stack"},
        {PICKLE("\x80\x02N(\x86."), "more from its stack"},
        {PICKLE("\x80\x02N(0000."), "more from its stack"},
        {PICKLE("\x80\x02q\0N."), "more from its stack"},
        {PICKLE("\x80\x02t."), "a mark that it never set"},
        {PICKLE("\x80\x02]Ne."), "a mark that it never set"},
        {PICKLE("\x80\x02h\1."), "memo entry 1, which it never wrote"},
        {PICKLE("\x80\x02Nr\xff\xff\xff\xff."), "out of order"},
        {PICKLE("\x80\x02N\x94j\1\0\0\0."), "memo entry 1, which"},
        /* Things that are used as what they are not. */
        {PICKLE("\x80\x02}(Nu."), "a key without a value"},
        {PICKLE("\x80\x02(Nd."), "a key without a value"},
        {PICKLE("\x80\x02NNa."), "not a list"},
        {PICKLE("\x80\x02]NNs."), "not a dict"},
        {PICKLE("\x80\x02NNb."), "not an object"},
        {PICKLE("\x80\x02N)R."), "something that is not a name"},
        {PICKLE("\x80\x02"
                "cargparse\nNamespace\n]R."),
         "arguments that are not a tuple"},
        {PICKLE("\x80\x02"
                "ccollections\nOrderedDict\n]NaR."),
         "arguments that are not a tuple"},
        {PICKLE("\x80\x02"
                "ccollections\nOrderedDict\n]Na\x85R."),
         "not pairs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pickle p;
        EXPECT_ERROR(parse(&p, cases[i].bytes, cases[i].n), STATUS_DATA, cases[i].part);
        EXPECT(p.root == NULL, "case %zu leaves something", i);
    }
}

/* Only lists and tuples have a length; what is not there has none. */
static void test_lengths(void)
{
    static const struct {
        enum pickle_kind kind;
        size_t wanted;
    } cases[] = {{PICKLE_LIST, 3}, {PICKLE_TUPLE, 3}, {PICKLE_DICT, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pickle_node node = {.kind = cases[i].kind, .list = {.n = 3}};
        EXPECT(torch_optimizer_length(&node) == cases[i].wanted, "case %zu has %zu items", i,
               torch_optimizer_length(&node));
    }
    EXPECT(torch_optimizer_length(NULL) == 0, "nothing has items");
}

static void repeat(struct buf *b, const char *bytes, size_t n, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        buf_append(b, bytes, n);
    }
}

/* What is deep or long is no harm in itself; what would fill the memory is refused. */
static void test_bounds(void)
{
    struct pickle p;
    struct buf b = {0};
    repeat(&b, "]", 1, 200000);
    repeat(&b, "a", 1, 199999);
    buf_putc(&b, '.');
    EXPECT_OK(parse(&p, b.data, b.n));
    pickle_close(&p);
    buf_clear(&b);
    repeat(&b, "(", 1, 100000);
    EXPECT_ERROR(parse(&p, b.data, b.n), STATUS_DATA, "cut short");
    buf_clear(&b);
    repeat(&b, "N", 1, 6000000);
    EXPECT_ERROR(parse(&p, b.data, b.n), STATUS_DATA, "more memory than the limit of 256 MiB");
    buf_clear(&b);
    buf_puts(&b, "]q");
    buf_putc(&b, '\0');
    for (int i = 0; i < 40; i++) { /* 256 times the list before: 256 to the power of 40 in 21 KB */
        buf_puts(&b, "](");
        repeat(&b, "h\0", 2, 256);
        buf_puts(&b, "eq");
        buf_putc(&b, '\0');
    }
    buf_putc(&b, '.');
    EXPECT_OK(parse(&p, b.data, b.n));
    EXPECT(p.memory.used < 4 << 20, "%zu bytes", p.memory.used);
    pickle_close(&p);
    buf_clear(&b);
    buf_append(&b, "\x8b\0\0\x20\0", 5); /* an int of 2 MiB stays where it is */
    repeat(&b, "x", 1, 0x200000);
    buf_putc(&b, '.');
    EXPECT_OK(parse(&p, b.data, b.n));
    EXPECT(p.root->kind == PICKLE_LONG && p.root->text.n == 0x200000 && p.memory.used < 1 << 16,
           "a long int");
    pickle_close(&p);
    EXPECT_OK(parse(&p, PICKLE("\x80\x02]q\0h\0a.")));
    EXPECT(pickle_item(p.root, 0) == p.root, "a list in itself");
    pickle_close(&p);
    buf_fini(&b);
}

int main(void)
{
    test_golden();
    test_objects();
    test_refused();
    test_bounds();
    test_lengths();
    return 0;
}
