/* Unpacking: archives made here, byte by byte, good and hostile.  Nothing is ever written outside the
 * archive's own place. */
#define _GNU_SOURCE
#include "test.h"

#include "core/buf.h"
#include "core/bytes.h"
#include "fetch/unpack.h"
#include "io/file.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[64], archive[128], target[128];

static void test_names(void)
{
    static const char *const refused[] = {"",     "/etc/passwd", "..",   "../x", "a/../../x",
                                          "a/..", "a\\..\\x",    "a\nb", "C:\\x"};
    static const struct {
        const char *path, *name;
    } kept[] = {
        {"a/b", "a/b"},     {"top/a", "a"}, {"top/", ""},
        {"./top/a", "a"},   {"top", ""},    {"topmost/a", "topmost/a"},
        {"..a/b", "..a/b"}, {"a..", "a.."}, {"top/top/a", "top/a"},
    };
    const char *name;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        EXPECT(!unpack_name(&name, refused[i], "top"), "'%s' is taken", refused[i]);
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        EXPECT(unpack_name(&name, kept[i].path, "top") && strcmp(name, kept[i].name) == 0, "'%s' is '%s'",
               kept[i].path, name);
    }
}

static void test_targets(void)
{
    static const struct {
        const char *archive, *target;
        enum unpack_kind kind;
    } cases[] = {
        {"d/a.zip", "d/a", UNPACK_DIRECTORY}, {"d/a.tar.gz", "d/a", UNPACK_DIRECTORY},
        {"a.xml.bz2", "a.xml", UNPACK_FILE},  {"a.txt.gz", "a.txt", UNPACK_FILE},
        {"a.json", "", UNPACK_NONE},          {"d/.zip", "", UNPACK_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char got[FILE_PATH_BYTES] = "";
        EXPECT(unpack_target(got, cases[i].archive) == cases[i].kind && strcmp(got, cases[i].target) == 0,
               "%s: %s", cases[i].archive, got);
    }
}

/* ---- a zip without compression (APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.16) ---- */

struct file {
    const char *name, *text;
    uint32_t mode; /* 0: a file */
};

static void put_u16(struct buf *b, unsigned x)
{
    buf_putc(b, (char)x);
    buf_putc(b, (char)(x >> 8));
}

static void put_u32(struct buf *b, uint32_t x)
{
    put_u16(b, x & 0xFFFF);
    put_u16(b, x >> 16);
}

static uint32_t crc32_of(const char *text)
{
    uint32_t crc = ~0U;
    for (; *text != '\0'; text++) {
        crc ^= (unsigned char)*text;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0xEDB88320U & (0U - (crc & 1U)));
        }
    }
    return ~crc;
}

/* What the local header and the central directory share: from the version that is needed on to the length of
 * extras. */
static void put_common(struct buf *b, const struct file *f)
{
    put_u16(b, 20);
    put_u16(b, 0);
    put_u16(b, 0);
    put_u32(b, 0x21);
    put_u32(b, crc32_of(f->text));
    put_u32(b, (uint32_t)strlen(f->text));
    put_u32(b, (uint32_t)strlen(f->text));
    put_u16(b, (unsigned)strlen(f->name));
    put_u16(b, 0);
}

static void write_zip(const struct file *files)
{
    struct buf b = {0}, directory = {0};
    unsigned n = 0;
    for (const struct file *f = files; f->name != NULL; f++, n++) {
        put_u32(&directory, 0x02014B50);
        put_u16(&directory, 3 << 8 | 20); /* made on Unix: attributes are st_mode */
        put_common(&directory, f);
        put_u16(&directory, 0);
        put_u16(&directory, 0);
        put_u16(&directory, 0);
        put_u32(&directory, (f->mode == 0 ? (uint32_t)S_IFREG | 0644 : f->mode) << 16);
        put_u32(&directory, (uint32_t)b.n);
        buf_puts(&directory, f->name);
        put_u32(&b, 0x04034B50);
        put_common(&b, f);
        buf_puts(&b, f->name);
        buf_puts(&b, f->text);
    }
    size_t at = b.n;
    buf_append(&b, buf_text(&directory), directory.n);
    put_u32(&b, 0x06054B50);
    put_u32(&b, 0);
    put_u16(&b, n);
    put_u16(&b, n);
    put_u32(&b, (uint32_t)directory.n);
    put_u32(&b, (uint32_t)at);
    put_u16(&b, 0);
    EXPECT_OK(buf_status(&b));
    EXPECT_OK(file_write_atomic(archive, b.data, b.n));
    buf_fini(&b);
    buf_fini(&directory);
}

static struct status unpack(const struct file *files, const struct unpack_sum *sums)
{
    write_zip(files);
    return unpack_archive(target, UNPACK_DIRECTORY, archive, sums);
}

static void expect_text(const char *name, const char *text)
{
    char path[256];
    struct file_map m;
    snprintf(path, sizeof path, "%s/%s", target, name);
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == strlen(text) && (m.n == 0 || memcmp(m.data, text, m.n) == 0), "%s has other bytes", path);
    file_map_close(&m);
}

/* SHA-256 of "abc" (FIPS 180-4's example) */
static const struct unpack_sum right[] = {
    {"vocab.txt", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}, {0}};
static const struct unpack_sum wrong[] = {
    {"vocab.txt", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ae"}, {0}};
static const struct unpack_sum missing[] = {
    {"config.json", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}, {0}};

static void test_zip(void)
{
    static const struct file in_folder[] = {
        {"bert/", "", S_IFDIR | 0755}, {"bert/vocab.txt", "abc", 0}, {"bert/deep/er/x", "", 0}, {0}};
    static const struct file loose[] = {{"vocab.txt", "abc", 0}, {"other/x", "y", 0}, {0}};
    EXPECT_OK(unpack(in_folder, right));
    expect_text("vocab.txt", "abc");
    expect_text("deep/er/x", "");
    EXPECT_ERROR(unpack(in_folder, right), STATUS_USAGE, "already exists");
    EXPECT_OK(unpack_check(target, right));
    EXPECT_ERROR(unpack_check(target, wrong), STATUS_DATA, "the SHA-256 of");
    EXPECT_OK(file_remove_tree(target));
    EXPECT_OK(unpack(loose, NULL));
    expect_text("other/x", "y");
    EXPECT_OK(file_remove_tree(target));
}

static void expect_refused(const struct file *files, const struct unpack_sum *sums, const char *why)
{
    EXPECT_ERROR(unpack(files, sums), STATUS_DATA, why);
    EXPECT(!file_exists(target), "%s: a part of it is in its place", why);
    char outside[128];
    snprintf(outside, sizeof outside, "%s/evil", root);
    EXPECT(!file_exists(outside) && !file_exists("/tmp/kiln_evil"), "%s: written outside", why);
}

static void test_hostile_zip(void)
{
    static const struct file up[] = {{"good", "a", 0}, {"../evil", "b", 0}, {0}};
    static const struct file absolute[] = {{"/tmp/kiln_evil", "b", 0}, {0}};
    static const struct file link[] = {{"x", "/tmp", S_IFLNK | 0777}, {"x/kiln_evil", "b", 0}, {0}};
    static const struct file twice[] = {{"a", "1", 0}, {"bert/a", "2", 0}, {0}};
    static const struct file file_as_folder[] = {{"a", "1", 0}, {"a/b", "2", 0}, {0}};
    static const struct file own_name[] = {{"bert", "1", 0}, {0}};
    static const struct file good[] = {{"vocab.txt", "abc", 0}, {0}};
    expect_refused(up, NULL, "leads out of the target");
    expect_refused(absolute, NULL, "leads out of the target");
    expect_refused(link, NULL, "neither a file nor a directory");
    expect_refused(twice, NULL, "the same name twice");
    expect_refused(own_name, NULL, "name of its own directory");
    EXPECT(failed(unpack(file_as_folder, NULL)) && !file_exists(target), "a file that is a folder too");
    expect_refused(good, wrong, "the SHA-256 of");
    expect_refused(good, missing, "is missing");
}

/* Every length of a good archive but its own, and every byte changed: an error or the right bytes, and never
 * a crash. */
static void test_damage(void)
{
    static const struct file good[] = {{"bert/vocab.txt", "abc", 0}, {0}};
    struct file_map m;
    struct buf b = {0};
    write_zip(good);
    EXPECT_OK(file_map_open(&m, archive));
    buf_append(&b, m.data, m.n);
    file_map_close(&m);
    for (size_t n = 0; n < b.n; n++) {
        EXPECT_OK(file_write_atomic(archive, b.data, n));
        struct status s = unpack_archive(target, UNPACK_DIRECTORY, archive, right);
        EXPECT(failed(s) == !file_exists(target), "%zu bytes: %s", n, s.message);
        EXPECT_OK(file_exists(target) ? file_remove_tree(target) : status_ok());
        b.data[n] ^= 0x21;
        EXPECT_OK(file_write_atomic(archive, b.data, b.n));
        b.data[n] ^= 0x21;
        s = unpack_archive(target, UNPACK_DIRECTORY, archive, right);
        EXPECT(failed(s) == !file_exists(target), "byte %zu: %s", n, s.message);
        EXPECT_OK(file_exists(target) ? file_remove_tree(target) : status_ok());
    }
    EXPECT_OK(file_write_atomic(archive, "no archive", 10));
    EXPECT_ERROR(unpack_archive(target, UNPACK_DIRECTORY, archive, NULL), STATUS_DATA,
                 "damaged, or its format does not match");
    EXPECT_ERROR(unpack_archive(target, UNPACK_FILE, archive, NULL), STATUS_DATA, "is not compressed");
    buf_fini(&b);
}

int main(void)
{
    test_names();
    test_targets();
    if (unpack_version() == NULL) {
        test_skip("curl",
                  "this build has no libarchive; install libarchive-dev, and build without KILN_ARCHIVE=OFF");
    }
    snprintf(root, sizeof root, "/tmp/kiln_unpack_XXXXXX");
    EXPECT(mkdtemp(root) != NULL, "no directory in /tmp");
    snprintf(archive, sizeof archive, "%s/bert.zip", root);
    snprintf(target, sizeof target, "%s/bert", root);
    test_zip();
    test_hostile_zip();
    test_damage();
    EXPECT_OK(file_remove_tree(root));
    return 0;
}
