/* A log whose disk is full for a while loses whole records only, counts them, and goes on.  The disk is a
 * limit of the file's size. */
#include "test.h"

#include "io/record_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static const char path[] = "test_record_log.txt";

static void limit(rlim_t bytes)
{
    struct rlimit l = {bytes, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_FSIZE, &l) == 0, "a limit");
}

static void expect_text(const char *wanted)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == strlen(wanted) && memcmp(m.data, wanted, m.n) == 0, "%.*s", (int)m.n, (const char *)m.data);
    file_map_close(&m);
}

int main(void)
{
    struct record_log l;
    signal(SIGXFSZ, SIG_IGN);
    unlink(path);
    EXPECT_OK(record_log_open(&l, path, true));
    EXPECT(record_log_append(&l, "one\n", 4) == 0, "nothing was lost");
    limit(10); /* six bytes are left: of a longer record a part is written, and taken back */
    EXPECT(record_log_append(&l, "a long record\n", 14) == 0 && l.n_lost == 1, "lost %d", (int)l.n_lost);
    EXPECT(record_log_append(&l, "another long one\n", 17) == 0 && l.n_lost == 2, "lost %d", (int)l.n_lost);
    expect_text("one\n");
    EXPECT(record_log_append(&l, "two\n", 4) == 2, "two were lost");
    limit(RLIM_INFINITY);
    EXPECT(record_log_append(&l, "three\n", 6) == 0, "counted twice");
    record_log_close(&l);
    EXPECT(record_log_append(&l, "four\n", 5) == 0, "a closed log");
    expect_text("one\ntwo\nthree\n");

    EXPECT_OK(record_log_open(&l, "/dev/full", true)); /* a device: nothing can be taken back */
    EXPECT(record_log_append(&l, "one\n", 4) == 0 && l.n_lost == 1, "a full device took it");
    record_log_close(&l);
    EXPECT_ERROR(record_log_open(&l, "/proc/none/log", true), STATUS_IO, "/proc/none");
    unlink(path);
    printf("test_record_log: records are whole, and a log goes on\n");
    return 0;
}
