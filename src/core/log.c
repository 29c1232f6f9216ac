#include "core/log.h"

#include "core/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static enum log_level threshold = LOG_QUIET;
static char rank_prefix[24] = ""; /* "rank 1: " */

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_rank(int rank)
{
    if (rank > 0) {
        snprintf(rank_prefix, sizeof rank_prefix, "rank %d: ", rank);
        log_set_level(LOG_WARNING);
    }
}

/* Writes a text that may have names from outside: what a terminal would obey (control characters of ASCII,
 * and those that UTF-8 spells with 0xC2) is shown as an escape, but for ends of lines and tabs. */
static void put_text(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        bool is_high = p[0] == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0;
        bool is_control = (*p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7F;
        if (is_high) {
            fprintf(stderr, "\\u00%02x", *++p);
        } else if (is_control) {
            fprintf(stderr, "\\x%02x", *p);
        } else {
            putc(*p, stderr);
        }
    }
}

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
    progress_clear_line();
    flockfile(stderr);
    fputs(rank_prefix, stderr);
    fputs(prefix, stderr);
    put_text(text == NULL ? usual : text);
    fputc('\n', stderr);
    funlockfile(stderr);
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

void log_error(struct status s)
{
    if (threshold == LOG_QUIET) {
        return;
    }
    progress_clear_line();
    flockfile(stderr);
    fprintf(stderr, "%skiln: error: ", rank_prefix);
    put_text(s.message);
    fputc('\n', stderr);
    funlockfile(stderr);
}
