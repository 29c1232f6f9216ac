/* torch_array: tensors that were pickled as arrays of numpy have the array's bytes, given as text or as
 * bytes; what is no such array, or another one than it says, is refused. (tests/cli/test_import_commands.sh
 * has a whole checkpoint.) */
#include "test.h"

#include "fixture_pickle.h"
#include "io/torch_tensors.h"

static const unsigned char two_floats[] = {1, 2, 0x80, 0x3f, 3, 4, 0xc0, 0xbf};
#define AS_TEXT "\x01\x02\xc2\x80?\x03\x04\xc3\x80\xc2\xbf"

struct pickled_array {
    const char *text, *code, *endian, *encoding, *type;
    int64_t dims[2];
    bool in_fortran;
};

static const struct pickled_array good = {AS_TEXT, "f4", "<", "latin1", "float32", {2, 1}, false};

static void put_array(struct buf *b, const struct pickled_array *a, bool as_bytes)
{
    buf_puts(b, "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK");
    buf_append(b, "\0\x85", 2);
    pickle_text(b, "b");
    buf_puts(b, "tR(K\x01");
    pickle_integers(b, a->dims, 2);
    buf_puts(b, "cnumpy\ndtype\n(");
    pickle_text(b, a->code);
    buf_puts(b, "\x89\x88tR(K\x03");
    pickle_text(b, a->endian);
    buf_puts(b, a->in_fortran ? "tb\x88" : "tb\x89");
    if (as_bytes) {
        buf_puts(b, "C\x08"); /* SHORT_BINBYTES */
        buf_append(b, two_floats, sizeof two_floats);
    } else {
        buf_puts(b, "c_codecs\nencode\n(");
        pickle_text(b, a->text);
        pickle_text(b, a->encoding);
        buf_puts(b, "tR");
    }
    buf_puts(b, "tb");
}

static struct status bind(struct pickle *p, struct buf *b, const struct pickled_array *a, bool as_bytes)
{
    size_t n;
    const struct pickle_allowed *allowed = torch_tensors_allowed(&n);
    buf_puts(b, "\x80\x02"
                "ctorch._utils\n_rebuild_device_tensor_from_numpy\n(");
    put_array(b, a, as_bytes);
    buf_printf(b, "ctorch\n%s\n", a->type);
    pickle_text(b, "hpu:0");
    buf_puts(b, "\x89tR.");
    EXPECT_OK(buf_status(b));
    EXPECT_OK(pickle_parse(p, b->data, b->n, allowed, n, "file"));
    return torch_tensors_bind(p, NULL, 0, "file");
}

static void arrays_are_tensors(void)
{
    for (int as_bytes = 0; as_bytes < 2; as_bytes++) {
        struct pickle p;
        struct buf b = {0};
        EXPECT_OK(bind(&p, &b, &good, as_bytes));
        EXPECT(p.root->kind == PICKLE_TENSOR, "no tensor");
        const struct stored_tensor *t = p.root->tensor;
        EXPECT(t->dtype == DTYPE_F32 && t->n_dims == 2 && t->dims[0] == 2 && t->dims[1] == 1, "shape");
        EXPECT(t->bytes == sizeof two_floats && memcmp(t->data, two_floats, t->bytes) == 0, "bytes");
        pickle_close(&p);
        buf_fini(&b);
    }
}

static void others_are_refused(void)
{
    struct pickled_array wrong[] = {good, good, good, good, good, good, good, good};
    wrong[0].text = AS_TEXT "\xc4\x80"; /* a character that is no byte */
    wrong[1].text = AS_TEXT "\xc2";     /* half of one */
    wrong[2].dims[0] = 3;               /* more than there are */
    wrong[3].dims[0] = INT64_MAX;       /* more than can be */
    wrong[4].code = "f8";               /* another type than torch's */
    wrong[5].endian = ">";              /* the other order of bytes */
    wrong[6].encoding = "utf-8";        /* of characters */
    wrong[7].in_fortran = true;         /* of numbers */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pickle p;
        struct buf b = {0};
        EXPECT_ERROR(bind(&p, &b, &wrong[i], false), STATUS_DATA, "file: its pickle builds a tensor from");
        pickle_close(&p);
        buf_fini(&b);
    }
}

int main(void)
{
    arrays_are_tensors();
    others_are_refused();
    return 0;
}
