#include "cmd/standard_streams.h"

#include "text/encoding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct status standard_streams_open(void)
{
    /* standard input and output with the wrong direction, so that using them fails */
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        int opened = open("/dev/null", modes[fd]); /* gets the lowest free number: fd */
        FAIL_IF(opened != fd, STATUS_IO, "descriptor %d is closed, and cannot be opened on /dev/null: %s", fd,
                opened < 0 ? strerror(errno) : "it got another number");
    }
    return status_ok();
}

static struct status lost(bool has_reason)
{
    return status_error(STATUS_IO, "writing to standard output failed%s%s", has_reason ? ": " : "",
                        has_reason ? strerror(errno) : "");
}

struct status standard_streams_flush(void)
{
    bool lost_before = ferror(stdout) != 0;
    bool lost_now = fflush(stdout) != 0;
    return lost_before || lost_now ? lost(lost_now) : status_ok();
}

struct status standard_streams_put(struct buf *text)
{
    struct status s = buf_status(text);
    fwrite(buf_text(text), 1, failed(s) ? 0 : text->n, stdout);
    buf_fini(text);
    return failed(s) ? s : standard_streams_flush();
}

struct status standard_streams_put_json(json_t *line)
{
    struct buf text = {0};
    struct status s = json_append_line(&text, line, 9);
    text.failed = text.failed || failed(s);
    return standard_streams_put(&text);
}

struct status standard_streams_check_input(void)
{
    if (feof(stdin)) {
        return status_ok();
    }
    return errno == ENOMEM ? status_error(STATUS_MEMORY, "out of memory for a line of standard input")
                           : status_error(STATUS_IO, "reading standard input failed: %s", strerror(errno));
}

struct status standard_streams_check_line(const char *line, size_t n, int64_t number)
{
    return encoding_check_utf8(line, n, "standard input", number, "convert it first (iconv -t UTF-8)");
}

struct status standard_streams_check_argument(const char *text, int number)
{
    char source[32];
    snprintf(source, sizeof source, "argument %d", number);
    return encoding_check_utf8(text, strlen(text), source, 1, "give it in UTF-8");
}

struct status standard_streams_close(void)
{
    struct status s = standard_streams_flush();
    bool lost_at_close = fclose(stdout) != 0;
    return failed(s) || !lost_at_close ? s : lost(true);
}
