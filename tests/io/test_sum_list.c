/* Lists of checksums: every form in which they are published, and names that would lead elsewhere. */
#include "test.h"

#include "io/sum_list.h"
#include "io/file.h"

#include <unistd.h>

#define MD5    "981b29407e0affa3b1b156f72073b945"
#define SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char path[64] = "/tmp/kiln_sums_XXXXXX";

static struct status read_text(struct sum_list *list, const char *text)
{
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
    return sum_list_read(list, path);
}

static void expect_sum(const struct sum_list *list, const char *name, const char *sum)
{
    const char *found = sum_list_find(list, name);
    EXPECT(found != NULL && strcmp(found, sum) == 0, "%s: %s", name, found == NULL ? "none" : found);
}

static void test_forms(void)
{
    struct sum_list list;
    EXPECT_OK(read_text(&list, "# comment\n" MD5 "  a.txt\r\n\n" SHA256 " *b.bin\nc_part_1.txt.gz\t" SHA256
                               "\n" MD5 "  enwiki-20241101-pages-articles.xml.bz2\n"));
    EXPECT(list.n == 4, "%zu files", list.n);
    expect_sum(&list, "a.txt", MD5);
    expect_sum(&list, "b.bin", SHA256);
    expect_sum(&list, "c_part_1.txt.gz", SHA256);
    expect_sum(&list, "enwiki-latest-pages-articles.xml.bz2", MD5);
    EXPECT(sum_list_find(&list, "enwiki-latest-pages-articles.xml") == NULL, "half a name");
    EXPECT(sum_list_find(&list, "dewiki-latest-pages-articles.xml.bz2") == NULL, "another language");
    EXPECT(sum_list_find(&list, "a.tx") == NULL, "half a name");
    sum_list_fini(&list);
    EXPECT_OK(read_text(&list, ""));
    EXPECT(list.n == 0 && sum_list_find(&list, "a") == NULL, "a list of nothing");
    sum_list_fini(&list);
}

static void test_refused(void)
{
    static const char *const lines[] = {
        "<html>no list</html>\n", MD5 "\n",      MD5 "  ../a\n", MD5 "  a/b\n",
        MD5 "  .hidden\n",        MD5 "  -rf\n", "12  a\n",      "a b\n",
    };
    struct sum_list list;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        EXPECT_ERROR(read_text(&list, lines[i]), STATUS_DATA, "line 1");
    }
    EXPECT_OK(file_write_atomic(path, "a\0b", 3));
    EXPECT_ERROR(sum_list_read(&list, path), STATUS_DATA, "is not a list of checksums");
}

static void test_files(void)
{
    EXPECT_OK(file_write_atomic(path, "abc", 3));
    EXPECT_OK(sum_check_file(path, SHA256));
    EXPECT_OK(sum_check_file(path, "900150983CD24FB0D6963F7D28E17F72"));
    EXPECT_ERROR(sum_check_file(path, MD5), STATUS_DATA,
                 "is 900150983cd24fb0d6963f7d28e17f72, but should be " MD5);
}

int main(void)
{
    int fd = mkstemp(path);
    EXPECT(fd >= 0, "no file in /tmp");
    close(fd);
    test_forms();
    test_refused();
    test_files();
    unlink(path);
    return 0;
}
