/* Files of chosen algorithms: what one process keeps another finds; damaged files and rows are left out;
 * concurrent processes lose no rows of one another; a run's own file goes before the shared one. */
#define _GNU_SOURCE
#include "test.h"

#include "core/hash.h"
#include "core/log.h"
#include "io/file.h"
#include "ops/cuda/choice/product_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/kiln_products_XXXXXX";

static const char *in_directory(const char *name)
{
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static struct product_choice choice_of(int form)
{
    struct product_choice c = {.form = form, .micros = 10.5 + form};
    for (int i = 0; i < PRODUCT_ALGORITHM_BYTES; i++) {
        c.algorithm[i] = (unsigned char)(i * 7 + form);
    }
    return c;
}

static void keep(struct product_cache *c, const char *key, int form)
{
    struct product_choice choice = choice_of(form);
    EXPECT_OK(product_cache_keep(c, key, &choice));
}

static void expect_form(struct product_cache *c, const char *key, int form)
{
    const struct product_choice *found = product_cache_find(c, key);
    struct product_choice wanted = choice_of(form);
    EXPECT(found != NULL, "no row of %s", key);
    EXPECT(found->form == form, "%s: form %d", key, found->form);
    EXPECT_NEAR(found->micros, wanted.micros, 1e-3);
    EXPECT(memcmp(found->algorithm, wanted.algorithm, sizeof wanted.algorithm) == 0, "%s: other bytes", key);
}

static void test_round_trip(void)
{
    struct product_cache c;
    const char *path = in_directory("deep/er/cublaslt.cache");
    product_cache_open(&c, path);
    EXPECT(product_cache_find(&c, "gpu\ta") == NULL, "an empty cache knows nothing");
    keep(&c, "gpu\tb", 2);
    keep(&c, "gpu\ta", 1);
    keep(&c, "other gpu\ta", 3);
    product_cache_write(&c);
    product_cache_close(&c);
    product_cache_open(&c, path);
    expect_form(&c, "gpu\ta", 1);
    expect_form(&c, "gpu\tb", 2);
    expect_form(&c, "other gpu\ta", 3);
    EXPECT(product_cache_count(&c, "gpu", "") == 2, "rows of one machine");
    EXPECT(product_cache_find(&c, "gpu\tc") == NULL, "a row of nobody");
    struct product_choice choice = choice_of(1);
    char longest[PRODUCT_KEY_BYTES + 8];
    memset(longest, 'x', sizeof longest);
    longest[3] = '\t';
    longest[sizeof longest - 1] = '\0';
    EXPECT_ERROR(product_cache_keep(&c, longest, &choice), STATUS_USAGE, "cannot name");
    EXPECT_ERROR(product_cache_keep(&c, "gpu\ta\nb", &choice), STATUS_USAGE, "cannot name");
    product_cache_close(&c);
}

/* What a file of these bytes has rows of. */
static int64_t rows_of(const char *bytes, size_t n)
{
    struct product_cache c;
    const char *path = in_directory("damaged.cache");
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "%s", path);
    product_cache_open(&c, path);
    int64_t rows = c.rows.n;
    product_cache_close(&c);
    return rows;
}

static void test_damage(void)
{
    struct product_cache c;
    struct file_map m;
    const char *path = in_directory("whole.cache");
    product_cache_open(&c, path);
    keep(&c, "gpu\ta", 1);
    keep(&c, "gpu\tb", 2);
    product_cache_write(&c);
    product_cache_close(&c);
    EXPECT_OK(file_map_open(&m, path));
    char *bytes = malloc(m.n);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, m.data, m.n);
    size_t n = m.n;
    file_map_close(&m);
    EXPECT(rows_of(bytes, n) == 2, "the whole file");
    for (size_t cut = 0; cut < n; cut++) {
        EXPECT(rows_of(bytes, cut) == 0, "cut at byte %zu", cut);
    }
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 4;
        EXPECT(rows_of(bytes, n) == 0, "byte %zu is another", i);
        bytes[i] ^= 4;
    }
    free(bytes);

    /* A damaged file is replaced by the next write. */
    EXPECT_OK(file_write_atomic(path, "nonsense", 8));
    product_cache_open(&c, path);
    keep(&c, "gpu\tc", 3);
    product_cache_write(&c);
    product_cache_close(&c);
    product_cache_open(&c, path);
    expect_form(&c, "gpu\tc", 3);
    product_cache_close(&c);
}

/* A file with a right checksum, as another version might write it. */
static void test_foreign_rows(void)
{
    static const char text[] = "kiln products 1\n"
                               "gpu\tshort\t1\t2.000\t00ff\n"
                               "no tabs at all\n"
                               "gpu\tform\t-1\t2.000\t%s\n"
                               "gpu\ttime\t1\tnan\t%s\n"
                               "gpu\tfine\t1\t11.500\t%s\n";
    char hex[2 * PRODUCT_ALGORITHM_BYTES + 1], file[1024];
    struct product_choice choice = choice_of(1);
    for (int i = 0; i < PRODUCT_ALGORITHM_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", choice.algorithm[i]);
    }
    int n = snprintf(file, sizeof file, text, hex, hex, hex);
    n += snprintf(file + n, sizeof file - (size_t)n, "crc32c %08x\n", hash_crc32c(0, file, (size_t)n));
    EXPECT(rows_of(file, (size_t)n) == 1, "only one row can be read");
    struct product_cache c;
    product_cache_open(&c, in_directory("damaged.cache"));
    expect_form(&c, "gpu\tfine", 1);
    product_cache_close(&c);
}

static void test_concurrent_merge(void)
{
    enum { PROCESSES = 4, ROWS = 12 };
    const char *path = in_directory("shared.cache");
    char key[64];
    for (int p = 0; p < PROCESSES; p++) {
        pid_t child = fork();
        EXPECT(child >= 0, "fork");
        if (child == 0) {
            struct product_cache c;
            product_cache_open(&c, path);
            for (int i = 0; i < ROWS; i++) {
                snprintf(key, sizeof key, "gpu\trow %d of %d", i, p);
                keep(&c, key, p);
                product_cache_write(&c);
            }
            product_cache_close(&c);
            _exit(0);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int code;
        EXPECT(wait(&code) > 0 && code == 0, "a writer failed");
    }
    struct product_cache c;
    product_cache_open(&c, path);
    EXPECT(c.rows.n == PROCESSES * ROWS, "%lld rows", (long long)c.rows.n);
    for (int p = 0; p < PROCESSES; p++) {
        snprintf(key, sizeof key, "gpu\trow %d of %d", p, p);
        expect_form(&c, key, p);
    }
    product_cache_close(&c);
}

/* Whoever was first stays, unless the row could not be used. */
static void test_first_stays(void)
{
    struct product_cache a, b;
    const char *path = in_directory("first.cache");
    product_cache_open(&a, path);
    product_cache_open(&b, path);
    keep(&a, "gpu\tx", 1);
    product_cache_write(&a);
    keep(&b, "gpu\tx", 2);
    product_cache_write(&b);
    product_cache_close(&a);
    product_cache_close(&b);
    product_cache_open(&a, path);
    expect_form(&a, "gpu\tx", 1);
    keep(&a, "gpu\tx", 3);
    product_cache_write(&a);
    product_cache_close(&a);
    product_cache_open(&a, path);
    expect_form(&a, "gpu\tx", 3);
    product_cache_close(&a);
}

static void test_run_goes_first(void)
{
    struct product_cache c;
    const char *shared = in_directory("s.cache"), *run = in_directory("run.cache");
    product_cache_open(&c, shared);
    keep(&c, "gpu\tused", 1);
    keep(&c, "gpu\tunused", 2);
    product_cache_write(&c);
    product_cache_close(&c);

    product_cache_open(&c, shared);
    product_cache_follow(&c, run);
    expect_form(&c, "gpu\tused", 1);
    product_cache_write(&c);
    product_cache_close(&c);

    product_cache_open(&c, shared); /* somebody else finds another winner */
    keep(&c, "gpu\tused", 3);
    product_cache_write(&c);
    product_cache_close(&c);
    product_cache_open(&c, shared);
    expect_form(&c, "gpu\tused", 3);
    product_cache_follow(&c, run);
    expect_form(&c, "gpu\tused", 1);
    expect_form(&c, "gpu\tunused", 2);
    product_cache_close(&c);

    product_cache_open(&c, ""); /* the shared file is gone */
    product_cache_follow(&c, run);
    expect_form(&c, "gpu\tused", 1);
    EXPECT(c.rows.n == 1, "the run never used the other");
    product_cache_close(&c);
}

static void test_no_place(void)
{
    struct product_cache c;
    product_cache_open(&c, in_directory("s.cache/no/directory"));
    keep(&c, "gpu\ta", 1);
    product_cache_write(&c);
    expect_form(&c, "gpu\ta", 1);
    EXPECT(c.shared_path[0] == '\0', "it is left alone");
    product_cache_close(&c);
    char path[PRODUCT_PATH_BYTES];
    setenv("XDG_CACHE_HOME", "/somewhere", 1);
    product_cache_shared_path(path);
    EXPECT(strcmp(path, "/somewhere/kiln/cublaslt.cache") == 0, "%s", path);
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/home/x", 1);
    product_cache_shared_path(path);
    EXPECT(strcmp(path, "/home/x/.cache/kiln/cublaslt.cache") == 0, "%s", path);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    product_cache_shared_path(path);
    EXPECT(path[0] == '\0', "%s", path);
}

static void expect_only_form(struct product_cache *c, const char *key, int form)
{
    const struct product_choice *found = product_cache_find(c, key);
    EXPECT(found != NULL && found->form == form, "%s: form %d", key, found == NULL ? -1 : found->form);
}

/* What the process says to standard error while product_cache_tell_of_machine looks at `c`. */
static void told_of_machine(char text[1000], const struct product_cache *c, const char *machine)
{
    const char *path = in_directory("told");
    int before = dup(2);
    EXPECT(before >= 0 && freopen(path, "w+", stderr) != NULL, "%s", path);
    log_set_level(LOG_WARNING);
    product_cache_tell_of_machine(c, machine, "ckpt_7");
    log_set_level(LOG_QUIET);
    rewind(stderr);
    size_t n = fread(text, 1, 999, stderr);
    text[n] = '\0';
    EXPECT(dup2(before, 2) >= 0, "stderr");
}

/* What a run used goes with its checkpoint, before what any file says, and from there into the next one. */
static void test_travels(void)
{
    struct product_cache c;
    const char *shared = in_directory("travels.cache");
    char *text, *again, told[1000];
    size_t n, n_again;
    product_cache_open(&c, shared);
    EXPECT_OK(product_cache_text_of_run(&c, &text, &n));
    EXPECT(text == NULL && n == 0, "nothing was chosen");
    keep(&c, "gpu\ta", 1);
    keep(&c, "gpu\tb", 2);
    EXPECT_OK(product_cache_text_of_run(&c, &text, &n));
    product_cache_close(&c);

    product_cache_open(&c, shared); /* another hour chose otherwise */
    keep(&c, "gpu\ta", 3);
    keep(&c, "gpu\tc", 3);
    product_cache_write(&c);
    product_cache_close(&c);

    product_cache_open(&c, shared);
    product_cache_follow(&c, in_directory("travels_run.cache"));
    product_cache_take(&c, text, n, "ckpt_7");
    EXPECT_OK(product_cache_text_of_run(&c, &again, &n_again));
    EXPECT(n == n_again && memcmp(text, again, n) == 0, "a checkpoint right after resuming has other rows");
    expect_only_form(&c, "gpu\ta", 1);
    expect_only_form(&c, "gpu\tb", 2);
    expect_only_form(&c, "gpu\tc", 3);
    told_of_machine(told, &c, "gpu");
    EXPECT(told[0] == '\0', "%s", told);
    told_of_machine(told, &c, "gp");
    EXPECT(strstr(told, "ckpt_7: its algorithms were chosen on gpu, but this is gp; kiln times them again") !=
               NULL,
           "%s", told);
    product_cache_write(&c);
    product_cache_close(&c);
    product_cache_open(&c, "");
    product_cache_follow(&c, in_directory("travels_run.cache"));
    expect_only_form(&c, "gpu\ta", 1);
    expect_only_form(&c, "gpu\tb", 2);
    text[n / 2] ^= 1; /* a checkpoint's checksums tell of this before; else nothing of it is used */
    product_cache_take(&c, text, n, "ckpt_7");
    expect_only_form(&c, "gpu\ta", 1);
    EXPECT(c.rows.n == 3, "%lld rows", (long long)c.rows.n);
    product_cache_close(&c);
    free(text);
    free(again);
}

/* A process that was stopped while it held the lock does not stop others. */
static void test_held_lock(void)
{
    struct product_cache c;
    char lock[PRODUCT_PATH_BYTES];
    snprintf(lock, sizeof lock, "%s.lock", in_directory("held.cache"));
    int fd = open(lock, O_RDWR | O_CREAT, 0666);
    EXPECT(fd >= 0 && flock(fd, LOCK_EX) == 0, "%s", lock);
    product_cache_open(&c, in_directory("held.cache"));
    keep(&c, "gpu\ta", 1);
    product_cache_write(&c);
    EXPECT(c.shared_path[0] == '\0', "the cache was written without its lock");
    product_cache_close(&c);
    close(fd);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    test_round_trip();
    test_damage();
    test_foreign_rows();
    test_concurrent_merge();
    test_first_stays();
    test_run_goes_first();
    test_held_lock();
    test_no_place();
    test_travels();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
