/* Downloads from a server on this machine that breaks off, ignores Range, lies about lengths, changes its
 * files, redirects, refuses, sends wrong bytes, falls silent and vanishes (http_server.h): the file is whole
 * or not there. */
#define _GNU_SOURCE
#include "http_server.h"
#include "test.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "fetch/download.h"
#include "fetch/http_get.h"
#include "io/sum_list.h"
#include "io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BYTES = 300000 };

static char root[FILE_PATH_BYTES], path[FILE_PATH_BYTES], part[FILE_PATH_BYTES + 16],
    from[FILE_PATH_BYTES + 16];
static unsigned char bytes[N_BYTES];
static struct digest_text sum;
static struct http_server server;

static void make_root(void)
{
    char file[FILE_PATH_BYTES + 8];
    snprintf(root, sizeof root, "/tmp/kiln_fetch_XXXXXX");
    EXPECT(mkdtemp(root) != NULL, "no directory in /tmp");
    for (size_t i = 0; i < N_BYTES; i++) {
        bytes[i] = (unsigned char)(i * 2654435761U >> 13);
    }
    snprintf(file, sizeof file, "%s/file", root);
    EXPECT_OK(file_write_atomic(file, bytes, N_BYTES));
    EXPECT_OK(sum_of_file(&sum, DIGEST_SHA256, file));
    snprintf(path, sizeof path, "%s/got/it", root);
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(from, sizeof from, "%s.part.from", path);
}

static struct download_manner manner = {.tries = 2, .retry_wait_s = 0.01, .stall_s = 1};

/* Fetches the file from a server with that habit, of which nothing but its length or checksum is known
 * before, if that. */
static struct status fetch_by(const char *habit, const char *checksum, int64_t length)
{
    char url[128];
    bool was_there;
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s%s/file", server.port, habit[0] == '\0' ? "" : "/~",
             habit);
    struct download d = {.url = url, .path = path, .bytes = length, .sum = checksum};
    return download_file(&d, &manner, &was_there);
}

static struct status fetch(enum habit habit, const char *checksum, int64_t length)
{
    return fetch_by(http_server_habit_name(habit), checksum, length);
}

static void begin_case(void)
{
    unlink(path);
    unlink(part);
    unlink(from);
    server.n_requests = 0;
}

static void expect_whole(const char *what)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == N_BYTES && memcmp(m.data, bytes, N_BYTES) == 0, "%s: other bytes (%zu)", what, m.n);
    file_map_close(&m);
    EXPECT(!file_exists(part) && !file_exists(from), "%s: left something behind", what);
}

/* Nothing has the file's name; what came is kept or not. */
static void expect_none(const char *what, bool is_kept)
{
    EXPECT(!file_exists(path), "%s: a file that is not whole has its name", what);
    EXPECT(file_exists(part) == is_kept, "%s: what came is %s", what, is_kept ? "lost" : "left");
}

static void test_success(bool with_sum)
{
    static const struct {
        enum habit habit;
        bool needs_sum;
    } cases[] = {
        {HABIT_NONE, false},         {HABIT_CUT, false},      {HABIT_NO_RANGE, false},
        {HABIT_NO_SUCH_PART, false}, {HABIT_CHUNKED, false},  {HABIT_CHUNKED_CUT, false},
        {HABIT_REDIRECT, false},     {HABIT_BUSY, false},     {HABIT_OTHER_PART, false},
        {HABIT_HANGS, false},        {HABIT_NO_LENGTH, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = http_server_habit_name(cases[i].habit);
        if (with_sum || !cases[i].needs_sum) {
            begin_case();
            struct status s = fetch(cases[i].habit, with_sum ? sum.text : NULL, with_sum ? N_BYTES : -1);
            EXPECT(!failed(s), "%s: %s", name, s.message);
            expect_whole(name);
        }
    }
}

static void test_success_without_sum(void)
{
    test_success(false);
}

static void test_success_with_sum(void)
{
    test_success(true);
}

static void test_progress(void)
{
    begin_case();
    EXPECT_OK(fetch(HABIT_CUT, sum.text, -1));
    EXPECT(server.n_requests > 5 && server.from > N_BYTES / 2, "%d requests, the last from %lld",
           server.n_requests, (long long)server.from);
}

/* Which codes of errors are asked again (RFC 9110 section 15, RFC 6585 section 4), each answered once. */
static void test_codes(void)
{
    static const struct {
        int code;
        bool is_temporary;
    } cases[] = {{400, false}, {401, false}, {403, false}, {404, false}, {407, false}, {408, true},
                 {409, false}, {410, false}, {428, false}, {429, true},  {431, false}, {500, true},
                 {501, false}, {502, true},  {503, true},  {504, true},  {505, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[16], part_of_message[16];
        snprintf(name, sizeof name, "code%d", cases[i].code);
        snprintf(part_of_message, sizeof part_of_message, "code %d", cases[i].code);
        begin_case();
        if (cases[i].is_temporary) {
            EXPECT_OK(fetch_by(name, NULL, -1));
            expect_whole(name);
        } else {
            EXPECT_ERROR(fetch_by(name, NULL, -1), STATUS_DATA, part_of_message);
            expect_none(name, false);
        }
        EXPECT(server.n_requests == 1 + cases[i].is_temporary, "%s: %d requests", name, server.n_requests);
    }
}

static void test_changed_file(void)
{
    static unsigned char changed[N_BYTES];
    char hex[65];
    struct digest d;
    struct digest_text text;
    struct file_map m;
    for (size_t i = 0; i < N_BYTES; i++) {
        changed[i] = bytes[i] ^ 0x55;
    }
    digest_init(&d, DIGEST_SHA256);
    digest_put(&d, changed, N_BYTES);
    digest_end(&d, &text);
    snprintf(hex, sizeof hex, "%s", text.text);
    static const enum habit habits[] = {HABIT_CHANGES, HABIT_CHANGES_MUTE, HABIT_CHANGES_BLIND};
    for (int i = 0; i < 3; i++) { /* the second is found by its checksum alone */
        begin_case();
        EXPECT_OK(fetch(habits[i], i == 1 ? hex : NULL, -1));
        EXPECT_OK(file_map_open(&m, path));
        EXPECT(m.n == N_BYTES && memcmp(m.data, changed, N_BYTES) == 0, "a mixture of two versions");
        file_map_close(&m);
    }
}

static void test_failure(void)
{
    const struct {
        enum habit habit;
        const char *sum;
        int64_t length;
        enum status_code code;
        const char *part;
        bool is_kept;
    } cases[] = {
        {HABIT_NEVER_ALL, NULL, -1, STATUS_IO, "gave up after 2 attempts", true},
        {HABIT_LONGER, NULL, -1, STATUS_IO, "gave up after 2 attempts", true},
        {HABIT_LONGER, NULL, N_BYTES, STATUS_DATA,
         "says that the file has 300100 bytes, but it should have 300000", false},
        {HABIT_SHORTER, sum.text, -1, STATUS_DATA, "the SHA-256 of", false},
        {HABIT_SHORTER, NULL, N_BYTES, STATUS_DATA, "says that the file has 299900 bytes", false},
        {HABIT_ENORMOUS, NULL, -1, STATUS_IO, "more bytes, but its file system has only", false},
        {HABIT_TOO_MUCH, NULL, -1, STATUS_DATA, "sends more than the", true},
        {HABIT_WRONG, sum.text, N_BYTES, STATUS_DATA, "removed ", false},
        {HABIT_NO_LENGTH, NULL, -1, STATUS_DATA, "does not say how long the file is", false},
        {HABIT_REDIRECT_LOOP, NULL, -1, STATUS_DATA, "redirects", false},
        {HABIT_REDIRECT_FILE, NULL, -1, STATUS_DATA, "does not follow the server's redirect", false},
        {HABIT_GONE, NULL, -1, STATUS_DATA, "code 404", false},
        {HABIT_CLOSED, NULL, -1, STATUS_UNAVAILABLE, "wait for more than 5 minutes", false},
        {HABIT_SILENT, NULL, -1, STATUS_IO, "gave up after 2 attempts", true},
        {HABIT_DEAF, NULL, -1, STATUS_UNAVAILABLE, "cannot be reached", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = http_server_habit_name(cases[i].habit);
        begin_case();
        struct status s = fetch(cases[i].habit, cases[i].sum, cases[i].length);
        EXPECT(s.code == cases[i].code && strstr(s.message, cases[i].part) != NULL, "%s: code %d, '%s'", name,
               s.code, s.message);
        expect_none(name, cases[i].is_kept);
    }
}

/* The note beside the partial file, as a process of another boot would have left it. */
static void change_from(const char *boot, int64_t synced)
{
    struct file_map m;
    struct buf text = {0};
    EXPECT_OK(file_map_open(&m, from));
    const unsigned char *end = m.data;
    for (int line = 0; line < 3; line++) {
        end = memchr(end, '\n', m.n - (size_t)(end - m.data));
        EXPECT(end != NULL, "the note has fewer than 5 lines");
        end++;
    }
    buf_append(&text, m.data, (size_t)(end - m.data));
    buf_printf(&text, "%s\n%lld\n", boot, (long long)synced);
    file_map_close(&m);
    EXPECT_OK(file_write_atomic(from, text.data, text.n));
    buf_fini(&text);
}

/* Another process, here another call, goes on where one broke off, and only there. */
static void test_later(void)
{
    manner.tries = 1; /* each waits for a silent server */
    begin_case();
    EXPECT(failed(fetch(HABIT_SILENT, NULL, -1)) && file_exists(part) && file_exists(from),
           "the part is lost");
    server.n_requests = 0;
    EXPECT(failed(fetch(HABIT_SILENT, NULL, -1)), "half of a half");
    EXPECT(server.from >= N_BYTES / 2, "begun anew at %lld", (long long)server.from);
    change_from("another-boot", N_BYTES / 2); /* all of it was synced when the process ended */
    EXPECT(failed(fetch(HABIT_SILENT, NULL, -1)) && server.from == N_BYTES / 2, "resumed at %lld",
           (long long)server.from);
    change_from("another-boot", 1000); /* the machine crashed, and 1000 bytes are certain */
    EXPECT(failed(fetch(HABIT_SILENT, NULL, -1)) && server.from == 1000, "resumed at %lld",
           (long long)server.from);
    EXPECT_OK(fetch(HABIT_NONE, NULL, -1)); /* another URL, so from its beginning */
    EXPECT(server.from == 0, "gone on with what another URL gave, at %lld", (long long)server.from);
    expect_whole("later");
}

/* A part of which nobody knows what it is of, and one whose note is damaged. */
static void test_strange_parts(void)
{
    begin_case();
    EXPECT_OK(file_write_atomic(part, bytes, 1000));
    EXPECT_OK(fetch(HABIT_NONE, NULL, -1));
    expect_whole("a strange part");
    begin_case();
    EXPECT_OK(file_write_atomic(part, bytes, 1000));
    EXPECT_OK(file_write_atomic(from, "x\n\n\377\n", 6));
    EXPECT_OK(fetch(HABIT_NONE, NULL, -1));
    expect_whole("a damaged note of where it is from");
}

static void test_what_is_there(void)
{
    begin_case();
    EXPECT_OK(fetch(HABIT_NONE, sum.text, N_BYTES));
    server.n_requests = 0;
    EXPECT_OK(fetch(HABIT_NONE, sum.text, N_BYTES));
    EXPECT(server.n_requests == 0, "what is there was fetched again");
    EXPECT_ERROR(fetch(HABIT_NONE, sum.text, N_BYTES + 1), STATUS_DATA, "but should have 300001; remove it");
    EXPECT_OK(file_write_atomic(path, bytes, N_BYTES - 1));
    EXPECT_ERROR(fetch(HABIT_NONE, sum.text, -1), STATUS_DATA, "; remove it to download it again");
    EXPECT(file_exists(path), "what a user has was removed");
}

static void test_limit(void)
{
    bool was_there;
    struct download_manner limited = manner;
    struct buf url = {0};
    begin_case();
    limited.most_bytes = N_BYTES - 1;
    buf_printf(&url, "http://127.0.0.1:%d/~chunked/file", server.port);
    struct download d = {.url = buf_text(&url), .path = path, .bytes = -1};
    EXPECT_ERROR(download_file(&d, &limited, &was_there), STATUS_DATA,
                 "than the 299999 bytes that --max_bytes allows");
    EXPECT(!file_exists(path), "it was kept");
    limited.most_bytes = N_BYTES;
    begin_case();
    EXPECT_OK(download_file(&d, &limited, &was_there));
    buf_fini(&url);
}

static void test_two_at_once(void)
{
    begin_case();
    int fd = open(part, O_RDWR | O_CREAT, 0666);
    EXPECT(fd >= 0 && flock(fd, LOCK_EX) == 0, "no lock");
    EXPECT_ERROR(fetch(HABIT_NONE, NULL, -1), STATUS_IO, "another process is fetching");
    EXPECT(file_exists(part), "the other's part was removed");
    close(fd);
    unlink(part);
    EXPECT(symlink("/tmp/nowhere", part) == 0, "no link");
    EXPECT_ERROR(fetch(HABIT_NONE, NULL, -1), STATUS_IO, "cannot write to");
    unlink(part);
}

static void test_proxy(void)
{
    char url[128];
    bool was_there;
    struct download_manner by_proxy = manner;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    by_proxy.proxy = url;
    struct download d = {.url = "http://nowhere.invalid/file", .path = path, .bytes = -1};
    begin_case();
    EXPECT_OK(download_file(&d, &by_proxy, &was_there));
    expect_whole("by --proxy");
    begin_case();
    setenv("no_proxy", "nowhere.invalid", 1); /* does not take back a --proxy */
    EXPECT_OK(download_file(&d, &by_proxy, &was_there));
    unsetenv("no_proxy");
    begin_case();
    setenv("http_proxy", url, 1);
    EXPECT_OK(download_file(&d, &manner, &was_there));
    expect_whole("by the environment's proxy");
    unsetenv("http_proxy");
    begin_case();
    by_proxy.proxy = "http://proxy.invalid:1";
    EXPECT_ERROR(download_file(&d, &by_proxy, &was_there), STATUS_UNAVAILABLE, "cannot be reached");
    EXPECT_ERROR(download_file(&d, &manner, &was_there), STATUS_UNAVAILABLE, "cannot be reached");
}

static void test_vanishing(void)
{
    begin_case();
    EXPECT_ERROR(fetch(HABIT_VANISH, NULL, -1), STATUS_UNAVAILABLE, "cannot be reached");
    expect_none("vanish", true);
    http_server_end(&server);
    http_server_begin(&server, root);
}

static void test_signal(void)
{
    begin_case();
    stop_install();
    raise(SIGTERM);
    EXPECT_ERROR(fetch(HABIT_SILENT, NULL, -1), STATUS_PREEMPTED, "stopped by a signal");
}

typedef void test(void);

/* Each in a process with a server of its own, all at once: most of their time is waits for silence. */
enum { N_GROUPS = 6, MOST_OF_GROUP = 9 };
static test *const groups[N_GROUPS][MOST_OF_GROUP] = {
    {test_success_without_sum},
    {test_success_with_sum},
    {test_failure},
    {test_later},
    {test_signal},
    {test_progress, test_codes, test_changed_file, test_strange_parts, test_what_is_there, test_limit,
     test_two_at_once, test_proxy, test_vanishing},
};

static void run_group(test *const *tests)
{
    make_root();
    http_server_begin(&server, root);
    for (int i = 0; i < MOST_OF_GROUP && tests[i] != NULL; i++) {
        tests[i]();
    }
    http_server_end(&server);
    EXPECT_OK(file_remove_tree(root));
}

int main(void)
{
    if (http_version() == NULL) {
        test_skip("curl",
                  "this build has no libcurl; install libcurl4-openssl-dev, and build without KILN_CURL=OFF");
    }
    static const char *const variables[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    for (int i = 0; i < 3; i++) {
        unsetenv(variables[i]);
    }
    pid_t children[N_GROUPS];
    for (int i = 0; i < N_GROUPS; i++) {
        children[i] = fork();
        EXPECT(children[i] >= 0, "no process");
        if (children[i] == 0) {
            run_group(groups[i]);
            return 0;
        }
    }
    int n_failed = 0;
    for (int i = 0; i < N_GROUPS; i++) {
        int status;
        EXPECT(waitpid(children[i], &status, 0) == children[i], "a process is lost");
        n_failed += status != 0;
    }
    EXPECT(n_failed == 0, "%d of %d groups of tests failed", n_failed, N_GROUPS);
    return 0;
}
