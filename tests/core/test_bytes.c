/* The checked reader: little-endian fields, nothing past the end, failure that sticks, sums and products that
 * do not wrap. */
#include "test.h"

#include "core/bytes.h"

static void test_fields(void)
{
    static const unsigned char bytes[] = {0x01, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 0xf0, 0xde, 0xbc,
                                          0x9a, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff, 0xfe,
                                          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x2a};
    struct span s = bytes_span(bytes, sizeof bytes);
    EXPECT(bytes_read_u8(&s) == 1, "u8");
    EXPECT(bytes_read_u16(&s) == 0x1234, "u16");
    EXPECT(bytes_read_u32(&s) == 0x12345678, "u32");
    EXPECT(bytes_read_u64(&s) == 0x123456789abcdef0, "u64");
    EXPECT(bytes_read_i32(&s) == -1, "i32");
    EXPECT(bytes_read_i64(&s) == -2, "i64");
    EXPECT(bytes_left(&s) == 1 && !s.failed, "%zu left", bytes_left(&s));
    EXPECT(*bytes_take(&s, 1) == 0x2a && bytes_left(&s) == 0 && !s.failed, "the last byte");
}

static void test_end(void)
{
    static const unsigned char bytes[7] = {1, 2, 3, 4, 5, 6, 7};
    struct span s = bytes_span(bytes, sizeof bytes);
    EXPECT(bytes_read_u64(&s) == 0 && s.failed, "a u64 from 7 bytes");
    EXPECT(bytes_read_u8(&s) == 0 && s.failed, "failure must stick");
    s = bytes_span(bytes, sizeof bytes);
    EXPECT(bytes_take_items(&s, UINT64_MAX / 8 + 2, 8) == NULL && s.failed, "a product that wraps to 8");
    s = bytes_span(bytes, sizeof bytes);
    EXPECT(bytes_take(&s, SIZE_MAX) == NULL && s.failed, "more than there is");
    s = bytes_span(bytes, sizeof bytes);
    EXPECT(bytes_take_items(&s, 2, 3) == bytes && bytes_left(&s) == 1, "6 of 7 bytes");
    EXPECT(bytes_take_items(&s, 1, 2) == NULL && s.failed, "2 of 1 byte");
    s = bytes_span(NULL, 0);
    EXPECT(bytes_read_u8(&s) == 0 && s.failed, "nothing to read");
}

static void test_varints(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t value;
        bool fails;
    } cases[] = {
        {"\0", 1, 0, false},
        {"\x7f", 1, 127, false},
        {"\x80\x01", 2, 128, false},
        {"\xac\x02", 2, 300, false}, /* the example of Protocol Buffers' own page */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX, false},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 0, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, 0, true},
        {"\x80", 1, 0, true},
        {"", 0, 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span s = bytes_span(cases[i].bytes, cases[i].n);
        uint64_t value = bytes_read_varint(&s);
        EXPECT(value == cases[i].value && s.failed == cases[i].fails, "case %zu", i);
        EXPECT(s.failed || bytes_left(&s) == 0, "case %zu: %zu left", i, bytes_left(&s));
    }
}

static void test_arithmetic(void)
{
    uint64_t r;
    EXPECT(bytes_add(UINT64_MAX - 1, 1, &r) && r == UINT64_MAX, "largest sum");
    EXPECT(!bytes_add(UINT64_MAX, 1, &r), "sum that wraps");
    EXPECT(bytes_multiply(UINT64_MAX / 3, 3, &r) && r == UINT64_MAX / 3 * 3, "largest product");
    EXPECT(!bytes_multiply(UINT64_MAX / 3 + 1, 3, &r), "product that wraps");
}

static void test_store(void)
{
    unsigned char room[9];
    bytes_store_u64(room + 1, 0x0102030405060708);
    EXPECT(room[1] == 8 && room[8] == 1 && bytes_load_u64(room + 1) == 0x0102030405060708, "u64");
    bytes_store_u32(room + 1, 0xdeadbeef);
    EXPECT(room[1] == 0xef && bytes_load_u32(room + 1) == 0xdeadbeef, "u32");
    bytes_store_u16(room + 1, 0xcafe);
    EXPECT(room[1] == 0xfe && bytes_load_u16(room + 1) == 0xcafe, "u16");
}

int main(void)
{
    test_fields();
    test_end();
    test_varints();
    test_arithmetic();
    test_store();
    return 0;
}
