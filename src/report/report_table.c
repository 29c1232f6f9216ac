#include "report/report_table.h"

#include "report/report_chart.h"

#include <math.h>

static void append_text(struct buf *b, const char *before, const json_t *text, const char *after)
{
    if (json_is_string(text) && json_string_length(text) > 0) {
        buf_puts(b, before);
        html_append(b, json_string_value(text));
        buf_puts(b, after);
    }
}

static double row_sum(const json_t *row)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(row); i++) {
        sum += (double)json_integer_value(json_array_get(row, i)); /* 0 of what is no integer */
    }
    return sum;
}

static void append_cell(struct buf *b, const json_t *value, double shade)
{
    if (json_is_string(value)) {
        buf_puts(b, "<td>");
        html_append(b, json_string_value(value));
    } else if (json_is_integer(value) && shade > 0) {
        buf_printf(b, "<td class=\"n\" style=\"--shade:%.3f\">%" JSON_INTEGER_FORMAT, shade,
                   json_integer_value(value));
    } else if (json_is_integer(value)) {
        buf_printf(b, "<td class=\"n\">%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value) && isfinite(json_real_value(value))) {
        buf_printf(b, "<td class=\"n\">%s", number_text(json_real_value(value)).text);
    } else {
        buf_puts(b, "<td>");
    }
    buf_puts(b, "</td>");
}

static void append_row(struct buf *b, const json_t *row, bool shaded)
{
    double sum = shaded ? row_sum(row) : 0;
    buf_puts(b, "<tr>");
    for (size_t i = 0; i < json_array_size(row); i++) {
        const json_t *value = json_array_get(row, i);
        append_cell(b, value, sum > 0 ? (double)json_integer_value(value) / sum : 0);
    }
    buf_puts(b, "</tr>\n");
}

void report_table_append(struct buf *b, const json_t *table)
{
    const json_t *title = json_object_get(table, "title"), *columns = json_object_get(table, "columns"),
                 *rows = json_object_get(table, "rows");
    bool shaded = json_is_true(json_object_get(table, "shaded"));
    if (!json_is_string(title) || !json_is_array(columns) || !json_is_array(rows)) {
        return;
    }
    append_text(b, "<section><h2>", title, "</h2>\n");
    append_text(b, "<p class=\"note\">", json_object_get(table, "note"), "</p>\n");
    buf_printf(b, "<div class=\"scroll box\"><table class=\"data%s\">\n<thead><tr>", shaded ? " shaded" : "");
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const char *name = json_string_value(json_array_get(columns, i));
        buf_puts(b, "<th title=\"");
        html_append(b, name == NULL ? "" : name);
        buf_puts(b, "\">");
        html_append(b, name == NULL ? "" : name);
        buf_puts(b, "</th>");
    }
    buf_puts(b, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        append_row(b, json_array_get(rows, i), shaded);
    }
    buf_puts(b, "</tbody></table></div></section>\n");
}
