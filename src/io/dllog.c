#include "io/dllog.h"

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The fewest digits that read back the same, plain between 1e-4 and 1e16. */
void dllog_append_real(struct buf *b, double value)
{
    char digits[32];
    int precision = 0;
    do {
        snprintf(digits, sizeof digits, "%.*e", precision, value);
    } while (strtod(digits, NULL) != value && ++precision < 17);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = precision > exponent ? precision - exponent : 0;
        buf_printf(b, "%.*f%s", decimals, value, decimals == 0 ? ".0" : "");
    } else {
        buf_puts(b, digits);
    }
}

/* Python's repr of a string: in '...', in "..." if that saves escaping. */
static void append_repr(struct buf *b, const char *text)
{
    char quote = strchr(text, '\'') != NULL && strchr(text, '"') == NULL ? '"' : '\'';
    buf_putc(b, quote);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n') {
            buf_puts(b, "\\n");
        } else if (c < ' ' || c == 0x7f) {
            buf_printf(b, "\\x%02x", c);
        } else {
            buf_puts(b, c == (unsigned char)quote || c == '\\' ? "\\" : "");
            buf_putc(b, (char)c);
        }
    }
    buf_putc(b, quote);
}

static void append_list(struct buf *b, const json_t *list)
{
    size_t i;
    const json_t *item;
    buf_putc(b, '[');
    json_array_foreach(list, i, item)
    {
        buf_puts(b, i == 0 ? "" : ", ");
        dllog_append_python(b, item, true);
    }
    buf_putc(b, ']');
}

/* A value as Python's str() shows it; with `repr` strings are quoted, as inside lists. */
void dllog_append_python(struct buf *b, const json_t *value, bool repr)
{
    switch (json_typeof(value)) {
    case JSON_REAL: dllog_append_real(b, json_real_value(value)); break;
    case JSON_INTEGER: buf_printf(b, "%" PRId64, (int64_t)json_integer_value(value)); break;
    case JSON_TRUE: buf_puts(b, "True"); break;
    case JSON_FALSE: buf_puts(b, "False"); break;
    case JSON_NULL: buf_puts(b, "None"); break;
    case JSON_ARRAY: append_list(b, value); break;
    case JSON_OBJECT: dllog_append_namespace(b, value); break;
    case JSON_STRING:
        if (repr) {
            append_repr(b, json_string_value(value));
        } else {
            buf_puts(b, json_string_value(value));
        }
        break;
    }
}

void dllog_append_namespace(struct buf *b, const json_t *object)
{
    const char *key, *separator = "";
    json_t *value;
    buf_puts(b, "Namespace(");
    json_object_foreach((json_t *)object, key, value)
    {
        buf_printf(b, "%s%s=", separator, key);
        dllog_append_python(b, value, true);
        separator = ", ";
    }
    buf_putc(b, ')');
}

/* Reals in the file are spelt as Python's json.dumps does, which is repr; the rest is jansson's. */
static void append_json(struct buf *b, const json_t *value)
{
    if (json_is_real(value)) {
        dllog_append_real(b, json_real_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    b->failed |= text == NULL;
    if (text != NULL) {
        buf_puts(b, text);
    }
    free(text);
}

/* Local time, "2026-11-20 10:28:00.123456". */
static void append_date(struct buf *b, double wall_s)
{
    struct tm local;
    char text[32];
    int64_t us = (int64_t)llround(wall_s * 1e6);
    time_t seconds = (time_t)(us / 1000000);
    if (localtime_r(&seconds, &local) == NULL) {
        local = (struct tm){0};
    }
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    buf_printf(b, "%s.%06d", text, (int)(us % 1000000));
}

void dllog_append_line(struct buf *b, double wall_s, double start_s, struct dllog_step step,
                       const json_t *data)
{
    const char *key, *separator = "";
    json_t *value;
    buf_printf(b, "DLLL {\"timestamp\": \"%.6f\", \"datetime\": \"", wall_s);
    append_date(b, wall_s);
    buf_printf(b, "\", \"elapsedtime\": \"%.6f\", \"type\": \"LOG\", \"step\": ", wall_s - start_s);
    switch (step.form) {
    case DLLOG_PARAMETER: buf_puts(b, "\"PARAMETER\""); break;
    case DLLOG_ITERATION: buf_printf(b, "[%" PRId64 ", %" PRId64 "]", step.epoch, step.step); break;
    case DLLOG_SUMMARY: buf_puts(b, "[]"); break;
    }
    buf_puts(b, ", \"data\": {");
    json_object_foreach((json_t *)data, key, value)
    {
        buf_printf(b, "%s\"%s\": ", separator, key);
        append_json(b, value);
        separator = ", ";
    }
    buf_puts(b, "}}");
}

void dllog_append_printed(struct buf *b, double wall_s, struct dllog_step step, const json_t *data)
{
    const char *key, *separator = "";
    json_t *value;
    buf_puts(b, "DLL ");
    append_date(b, wall_s);
    buf_puts(b, " - ");
    switch (step.form) {
    case DLLOG_PARAMETER: buf_puts(b, "PARAMETER"); break;
    case DLLOG_ITERATION:
        buf_printf(b, "Training Epoch: %" PRId64 " Training Iteration: %" PRId64 " ", step.epoch, step.step);
        break;
    case DLLOG_SUMMARY: break;
    }
    buf_putc(b, ' ');
    json_object_foreach((json_t *)data, key, value) /* dllogger ends with " unit" */
    {
        buf_printf(b, "%s%s : ", separator, key);
        dllog_append_python(b, value, false);
        buf_putc(b, ' ');
        separator = " ";
    }
}

static struct status make_parent(const char *path)
{
    char parent[1024];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent) {
        return status_ok();
    }
    *slash = '\0';
    return file_make_directories(parent);
}

struct status dllog_open(struct dllog *d, const char *path, bool append, bool print)
{
    *d = (struct dllog){.print = print, .start_s = clock_wall_s()};
    if (path == NULL) {
        return status_ok();
    }
    TRY(make_parent(path));
    return record_log_open(&d->log, path, append);
}

void dllog_close(struct dllog *d)
{
    record_log_close(&d->log);
}

void dllog_print(const char *line)
{
    log_result("%s", line);
}

void dllog_put(struct buf *line)
{
    if (!line->failed) {
        dllog_print(buf_text(line));
    }
    buf_fini(line);
}

void dllog_warn(struct status s)
{
    if (failed(s)) {
        log_warning("%s; training continues without this log", s.message);
    }
}

struct status dllog_write(struct dllog *d, struct dllog_step step, const json_t *data)
{
    double now = clock_wall_s();
    struct buf b = {0};
    struct status s = status_ok();
    if (d->print) {
        dllog_append_printed(&b, now, step, data);
        dllog_print(buf_text(&b));
        buf_clear(&b);
    }
    if (d->log.file != NULL) {
        dllog_append_line(&b, now, d->start_s, step, data);
        buf_putc(&b, '\n');
        s = buf_status(&b);
        if (!failed(s)) {
            record_log_append(&d->log, b.data, b.n);
        }
    }
    buf_fini(&b);
    return s;
}
