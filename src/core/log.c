#include "core/log.h"

#include "core/progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

static enum log_level threshold = LOG_QUIET;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the sink, and its calls */
static struct log_sink sink;
static char rank_prefix[24] = ""; /* "rank 1: " */

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_sink(const struct log_sink *new_sink)
{
    pthread_mutex_lock(&sink_lock);
    sink = new_sink == NULL ? (struct log_sink){0} : *new_sink;
    pthread_mutex_unlock(&sink_lock);
}

void log_set_rank(int rank)
{
    if (rank > 0) {
        snprintf(rank_prefix, sizeof rank_prefix, "rank %d: ", rank);
        log_set_level(LOG_WARNING);
    }
}

void log_append_text(struct buf *b, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        bool is_high = p[0] == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0;
        bool is_control = (*p < ' ' && *p != '\t') || *p == 0x7F;
        if (is_high) {
            buf_printf(b, "\\u00%02x", *++p);
        } else if (is_control) {
            buf_printf(b, "\\x%02x", *p);
        } else {
            buf_putc(b, (char)*p);
        }
    }
}

void log_put_text(FILE *file, const char *text)
{
    struct buf escaped = {0};
    log_append_text(&escaped, text);
    fputs(escaped.failed ? text : buf_text(&escaped), file);
    buf_fini(&escaped);
}

bool log_has_sink(void)
{
    pthread_mutex_lock(&sink_lock);
    bool has = sink.line != NULL;
    pthread_mutex_unlock(&sink_lock);
    return has;
}

bool log_to_sink(enum log_level level, const char *text)
{
    pthread_mutex_lock(&sink_lock);
    bool taken = sink.line != NULL;
    if (taken) {
        sink.line(sink.self, level, text);
    }
    pthread_mutex_unlock(&sink_lock);
    return taken;
}

void log_event(const char *json)
{
    pthread_mutex_lock(&sink_lock);
    if (sink.event != NULL) {
        sink.event(sink.self, json);
    }
    pthread_mutex_unlock(&sink_lock);
}

/* Writes a line by one write, so that lines of several ranks do not run into each other. */
static void put_line(FILE *file, const char *prefix, const char *text)
{
    struct buf line = {0};
    buf_printf(&line, "%s%s", rank_prefix, prefix);
    log_append_text(&line, text);
    buf_putc(&line, '\n');
    progress_clear_line();
    if (line.failed) {
        fprintf(file, "%s%s%s\n", rank_prefix, prefix, text);
    } else {
        fwrite(buf_text(&line), 1, line.n, file);
    }
    fflush(file);
    buf_fini(&line);
}

/* Results have no level, and so LOG_QUIET. */
static void write_line(enum log_level level, const char *prefix, const char *format, va_list args)
{
    char usual[1024], *text = usual;
    va_list again;
    if (level > threshold) {
        return;
    }
    va_copy(again, args);
    int n = vsnprintf(usual, sizeof usual, format, args);
    if (n >= (int)sizeof usual && (text = malloc((size_t)n + 1)) != NULL) {
        vsnprintf(text, (size_t)n + 1, format, again);
    }
    va_end(again);
    text = text == NULL ? usual : text;
    if (!log_to_sink(level == LOG_QUIET ? LOG_INFO : level, text)) {
        put_line(level == LOG_QUIET ? stdout : stderr, prefix, text);
    }
    if (text != usual) {
        free(text);
    }
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_INFO, "", format, args);
    va_end(args);
}

void log_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_WARNING, "warning: ", format, args);
    va_end(args);
}

void log_result(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_QUIET, "", format, args);
    va_end(args);
}

void log_error(struct status s)
{
    if (threshold != LOG_QUIET) {
        put_line(stderr, "kiln: error: ", s.message);
    }
}
