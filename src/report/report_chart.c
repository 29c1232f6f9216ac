#include "report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The plot's own units; the page stretches them. */
enum { WIDTH = 1000, HEIGHT = 300 };

/* The number of columns of each style: few enough to see the trend in noise. */
enum { MAX_COLUMNS = 1000 };
static const int n_columns[] = {
    [CHART_LINE] = 120, [CHART_EXACT] = 1000, [CHART_DOTS] = 250, [CHART_FLOOR] = 250, [CHART_COUNTS] = 250};

/* Rows of one phase that fall into one column. */
struct column {
    double step, mean, low, high;
    int64_t n;
    int phase;
};

struct axis {
    double from, to, tick;
    bool log; /* from and to are then powers of ten's exponents */
};

void html_append(struct buf *b, const char *bytes)
{
    json_t *utf8 = json_text(bytes);
    b->failed |= utf8 == NULL;
    for (const char *text = utf8 == NULL ? "" : json_string_value(utf8); *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '&': buf_puts(b, "&amp;"); break;
        case '<': buf_puts(b, "&lt;"); break;
        case '>': buf_puts(b, "&gt;"); break;
        case '"': buf_puts(b, "&quot;"); break;
        case '\'': buf_puts(b, "&#39;"); break;
        default: buf_putc(b, c < ' ' || c == 0x7f ? '?' : (char)c);
        }
    }
    json_decref(utf8);
}

struct number_text number_text(double value)
{
    struct number_text t;
    double size = fabs(value);
    if (size >= 1e6) {
        snprintf(t.text, sizeof t.text, "%.4gM", value / 1e6);
    } else if (size >= 1e4) {
        snprintf(t.text, sizeof t.text, "%.4gk", value / 1e3);
    } else if (size >= 1e-3 || size == 0) {
        snprintf(t.text, sizeof t.text, "%.4g", value);
    } else {
        snprintf(t.text, sizeof t.text, "%.3g", value);
        char *exponent = strstr(t.text, "e-0");
        if (exponent != NULL) { /* "1e-5", not "1e-05" */
            memmove(exponent + 2, exponent + 3, strlen(exponent + 2));
        }
    }
    return t;
}

/* A tick distance, 1, 2 or 5 times a power of ten, of which about `n` fit in `range`. */
static double tick_of(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw)));
    double times = raw / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/* The mean and the extremes of each column's rows, without empty columns.  Returns how many: at most one more
 * than the columns, since phase 2 begins a new one. */
static size_t columns_of(struct column columns[MAX_COLUMNS + 1], const struct chart_curve *curve,
                         int64_t last_step)
{
    size_t n = 0;
    bool turned = false;
    int64_t at = -1, limit = n_columns[curve->style];
    double width = (double)(last_step < 1 ? 1 : last_step) / (double)limit;
    for (size_t i = 0; i < curve->rows->n; i++) {
        const struct run_row *row = &curve->rows->rows[i];
        double value = (double)row->values[curve->column];
        int64_t place = (int64_t)((double)row->step / width);
        place = place >= limit ? limit - 1 : place;
        if (!isfinite(value)) {
            continue;
        }
        bool turns = !turned && n > 0 && row->phase != columns[n - 1].phase;
        turned |= turns;
        if (n == 0 || place != at || turns) {
            columns[n++] = (struct column){.low = value, .high = value, .phase = row->phase};
            at = place;
        }
        struct column *c = &columns[n - 1];
        c->n++;
        c->step += ((double)row->step - c->step) / (double)c->n;
        c->mean += (value - c->mean) / (double)c->n;
        c->low = fmin(c->low, value);
        c->high = fmax(c->high, value);
    }
    return n;
}

/* Widens an axis to full ticks. */
static void round_axis(struct axis *a, int n_ticks)
{
    if (a->to - a->from < 1e-12 * fmax(fabs(a->from), fabs(a->to)) || a->to == a->from) {
        double room = a->from == 0 ? 1 : 0.1 * fabs(a->from);
        a->from -= room;
        a->to += room;
    }
    a->tick = tick_of(a->to - a->from, n_ticks);
    a->from = a->tick * floor(a->from / a->tick + 1e-9);
    a->to = a->tick * ceil(a->to / a->tick - 1e-9);
}

/* False if there is nothing to show. */
static bool value_axis(struct axis *a, const struct chart *c)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < c->n_curves; i++) {
        struct column columns[MAX_COLUMNS + 1];
        size_t n = columns_of(columns, &c->curves[i], c->last_step);
        for (size_t k = 0; k < n; k++) {
            low = fmin(low, columns[k].low);
            high = fmax(high, columns[k].high);
        }
    }
    if (!(low <= high)) {
        return false;
    }
    *a = (struct axis){.from = low, .to = high};
    if (c->log_if_wide && low > 0 && high / low > 100) {
        *a = (struct axis){.from = floor(log10(low)), .to = ceil(log10(high)), .log = true};
        a->tick = ceil((a->to - a->from) / 5);
        return true;
    }
    a->from = c->from_zero && low > 0 ? 0 : low;
    round_axis(a, 4);
    a->from = low >= 0 && a->from < 0 ? 0 : a->from;
    return true;
}

static double x_of(const struct chart *c, double step)
{
    return WIDTH * step / (double)(c->last_step < 1 ? 1 : c->last_step);
}

static double y_of(const struct axis *a, double value)
{
    double v = a->log ? log10(value) : value;
    return HEIGHT * (a->to - v) / (a->to - a->from);
}

static void append_place(struct buf *b, const struct chart *c, const struct axis *a, double step,
                         double value)
{
    buf_printf(b, " %.5g %.5g", x_of(c, step), y_of(a, value));
}

static void append_band(struct buf *b, const struct chart *c, const struct axis *a,
                        const struct column *columns, size_t n, int color)
{
    buf_printf(b, "<path class=\"r%d band\" d=\"M", color);
    for (size_t k = 0; k < n; k++) {
        append_place(b, c, a, columns[k].step, columns[k].high);
    }
    for (size_t k = n; k-- > 0;) {
        append_place(b, c, a, columns[k].step, columns[k].low);
    }
    buf_puts(b, "z\"/>\n");
}

static void append_dots(struct buf *b, const struct chart *c, const struct axis *a,
                        const struct column *columns, size_t n, int color)
{
    buf_printf(b, "<path class=\"r%d dots\" d=\"", color);
    for (size_t k = 0; k < n; k++) {
        buf_putc(b, 'M');
        append_place(b, c, a, columns[k].step, columns[k].mean);
        buf_puts(b, "h0");
    }
    buf_puts(b, "\"/>\n");
}

static bool is_baseline(const struct chart_curve *curve)
{
    return curve->style == CHART_FLOOR || curve->style == CHART_COUNTS;
}

static bool is_constant(const struct column *columns, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (columns[k].low < columns[0].high || columns[k].high > columns[0].low) {
            return false;
        }
    }
    return true;
}

/* A line for each phase, over its band; dots if there are few values. */
static void append_curve(struct buf *b, const struct chart *c, const struct axis *a,
                         const struct chart_curve *curve)
{
    static const char *const classes[] = {[CHART_LINE] = "line",
                                          [CHART_EXACT] = "line",
                                          [CHART_DOTS] = "heldout",
                                          [CHART_FLOOR] = "floor",
                                          [CHART_COUNTS] = "counts"};
    enum { MAX_DOTS = 60 };
    struct column columns[MAX_COLUMNS + 1];
    size_t n = columns_of(columns, curve, c->last_step);
    bool merged = false;
    for (size_t k = 0; k < n; k++) {
        merged |= columns[k].n > 1;
    }
    if (n == 0) {
        return;
    }
    if (merged && curve->style == CHART_LINE) {
        append_band(b, c, a, columns, n, curve->color);
    }
    buf_printf(b, "<path class=\"r%d %s\" data-run=\"", curve->color, classes[curve->style]);
    html_append(b, curve->run);
    buf_printf(b, "\" data-what=\"%s\" d=\"", curve->label);
    bool is_level = is_baseline(curve) && is_constant(columns, n);
    if (is_level) { /* it holds at every step, whenever it was measured */
        buf_puts(b, "M");
        append_place(b, c, a, 0, columns[0].mean);
        append_place(b, c, a, (double)c->last_step, columns[0].mean);
    }
    for (size_t k = 0; k < n && !is_level; k++) {
        buf_puts(b, k == 0 || columns[k].phase != columns[k - 1].phase ? "M" : "");
        append_place(b, c, a, columns[k].step, columns[k].mean);
    }
    buf_puts(b, "\"/>\n");
    if ((n == 1 && !is_level) || (n <= MAX_DOTS && curve->style == CHART_DOTS)) {
        append_dots(b, c, a, columns, n, curve->color);
    }
}

/* The ticks of an axis: lines in the plot, and labels next to it. */
static void append_ticks(struct buf *lines, struct buf *labels, const struct chart *c, const struct axis *y)
{
    for (int i = 0; y->from + i * y->tick <= y->to + y->tick / 2; i++) {
        double v = y->from + i * y->tick;
        double place = y_of(y, y->log ? pow(10, v) : v);
        double value = y->log ? pow(10, v) : fabs(v) < y->tick / 2 ? 0 : v;
        buf_printf(lines, "M0 %.5gH%d", place, WIDTH);
        buf_printf(labels, "<span class=\"y\" style=\"top:%.4g%%\">%s</span>", 100 * place / HEIGHT,
                   number_text(value).text);
    }
    double tick = tick_of((double)(c->last_step < 1 ? 1 : c->last_step), 4);
    tick = tick < 1 ? 1 : tick;
    for (int i = 0; i * tick <= (double)c->last_step; i++) {
        double place = x_of(c, i * tick);
        buf_printf(lines, "M%.5g 0V%d", place, HEIGHT);
        buf_printf(labels, "<span class=\"x\" style=\"left:%.4g%%\">%s</span>", 100 * place / WIDTH,
                   number_text(i * tick).text);
    }
}

/* The grid, the marks and the curves. */
static void append_curves(struct buf *b, const struct chart *c, const struct axis *y, const char *grid)
{
    buf_printf(b, "<path class=\"grid\" d=\"%s\"/>\n", grid);
    for (size_t i = 0; i < c->n_marks; i++) {
        buf_printf(b, "<path class=\"mark\" d=\"M%.5g 0V%d\"/>\n", x_of(c, (double)c->marks[i]), HEIGHT);
    }
    for (size_t i = 0; i < c->n_curves; i++) {
        append_curve(b, c, y, &c->curves[i]);
    }
}

static void append_svg(struct buf *b, const struct chart *c, const struct axis *y, const char *grid)
{
    buf_printf(b,
               "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\" "
               "data-last=\"%lld\" data-from=\"%.9g\" data-to=\"%.9g\" data-log=\"%d\">\n",
               WIDTH, HEIGHT, c->title, (long long)(c->last_step < 1 ? 1 : c->last_step), y->from, y->to,
               y->log);
    append_curves(b, c, y, grid);
    buf_puts(b, "</svg>");
}

/* Instead of a plot, if no curve has two values: each as a number. */
static bool append_numbers(struct buf *b, const struct chart *c)
{
    struct buf numbers = {0};
    bool single = true;
    for (size_t i = 0; i < c->n_curves && single; i++) {
        const struct chart_curve *curve = &c->curves[i];
        struct column columns[MAX_COLUMNS + 1];
        size_t n = columns_of(columns, curve, c->last_step);
        single = n < 2 && (n == 0 || columns[0].n == 1);
        if (n == 1) {
            buf_printf(&numbers,
                       "<p class=\"one\"><i class=\"r%d swatch\"></i>%s <small>%s, step %s</small></p>\n",
                       curve->color, number_text(columns[0].mean).text, curve->label,
                       number_text(columns[0].step).text);
        }
    }
    if (single) {
        buf_append(b, numbers.data, numbers.n);
    }
    b->failed |= numbers.failed;
    buf_fini(&numbers);
    return single;
}

void chart_append(struct buf *b, const struct chart *c)
{
    struct axis y;
    struct buf lines = {0}, labels = {0};
    if (!value_axis(&y, c)) {
        return;
    }
    buf_printf(b, "<figure><figcaption>%s <small>%s</small></figcaption>\n", c->title, c->unit);
    if (!append_numbers(b, c)) {
        append_ticks(&lines, &labels, c, &y);
        buf_puts(b, "<div class=\"plot\">");
        append_svg(b, c, &y, buf_text(&lines));
        buf_printf(b, "%s</div>", buf_text(&labels));
    }
    buf_puts(b, "</figure>\n");
    b->failed |= lines.failed || labels.failed;
    buf_fini(&lines);
    buf_fini(&labels);
}

/* ---- figures of one SVG ---- */

/* A figure's place for title and ticks, around the plot. */
enum {
    LEFT = 90,
    TOP = 50,
    FIGURE_WIDTH = WIDTH + LEFT + 40,
    FIGURE_HEIGHT = HEIGHT + TOP + 50,
    NAMES_HEIGHT = 30
};

void chart_figures_begin(struct buf *b, int n_figures, int n_runs)
{
    static const char *const colors[] = {"0072b2", "d55e00", "009e73", "b3578f",
                                         "b58500", "3fa0d0", "444444", "8a6d3b"};
    buf_printf(b,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"18\">\n<style>path{fill:none;stroke-width:2;"
               "stroke-linejoin:round}.grid{stroke:#e3e5ea;stroke-width:1}.mark{stroke:#888899;"
               "stroke-dasharray:4 6}.band{opacity:.2}.heldout{stroke-width:3}.dots{stroke-width:8;"
               "stroke-linecap:round}.floor{stroke-dasharray:12 8}.counts{stroke-dasharray:3 7}",
               FIGURE_WIDTH, n_figures * FIGURE_HEIGHT + NAMES_HEIGHT * n_runs);
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++) {
        buf_printf(b, ".r%zu{stroke:#%s}.r%zu.band{fill:#%s;stroke:none}text.r%zu{fill:#%s;stroke:none}", i,
                   colors[i], i, colors[i], i, colors[i]);
    }
    buf_printf(
        b,
        "</style>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">thin: training; thick: held-out; dashed: "
        "word frequencies; dotted: n-grams</text>\n",
        LEFT + WIDTH, NAMES_HEIGHT - 8);
}

void chart_figures_name(struct buf *b, const char *run, int color)
{
    buf_printf(b, "<text class=\"r%d\" x=\"%d\" y=\"%d\">", color, LEFT, NAMES_HEIGHT * (color + 1) - 8);
    html_append(b, run);
    buf_puts(b, "</text>\n");
}

static void append_tick_texts(struct buf *b, const struct chart *c, const struct axis *y)
{
    for (int i = 0; y->from + i * y->tick <= y->to + y->tick / 2; i++) {
        double v = y->from + i * y->tick, value = y->log ? pow(10, v) : fabs(v) < y->tick / 2 ? 0 : v;
        buf_printf(b, "<text x=\"-8\" y=\"%.5g\" text-anchor=\"end\">%s</text>\n",
                   y_of(y, y->log ? pow(10, v) : v) + 6, number_text(value).text);
    }
    double tick = fmax(1, tick_of((double)(c->last_step < 1 ? 1 : c->last_step), 4));
    for (int i = 0; i * tick <= (double)c->last_step; i++) {
        buf_printf(b, "<text x=\"%.5g\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x_of(c, i * tick),
                   HEIGHT + 24, number_text(i * tick).text);
    }
}

bool chart_append_figure(struct buf *b, const struct chart *c, int number)
{
    struct axis y;
    struct buf lines = {0}, labels = {0};
    if (!value_axis(&y, c)) {
        return false;
    }
    append_ticks(&lines, &labels, c, &y);
    int n_runs = 0;
    for (size_t i = 0; i < c->n_curves; i++) {
        n_runs = c->curves[i].color >= n_runs ? c->curves[i].color + 1 : n_runs;
    }
    buf_printf(b, "<g transform=\"translate(%d %d)\">\n<text y=\"-16\" font-weight=\"bold\">%s</text>\n",
               LEFT, number * FIGURE_HEIGHT + TOP + NAMES_HEIGHT * n_runs, c->title);
    buf_printf(b, "<text x=\"%d\" y=\"-16\" text-anchor=\"end\">%s</text>\n", WIDTH, c->unit);
    buf_printf(b, "<svg width=\"%d\" height=\"%d\" overflow=\"visible\">", WIDTH, HEIGHT);
    append_curves(b, c, &y, buf_text(&lines));
    buf_puts(b, "</svg>\n");
    append_tick_texts(b, c, &y);
    buf_puts(b, "</g>\n");
    b->failed |= lines.failed || labels.failed;
    buf_fini(&lines);
    buf_fini(&labels);
    return true;
}

/* ---- tables ---- */

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

/* A sentence needs a wide column, and its lines may break. */
static const char *long_class(const char *text)
{
    enum { LONG_BYTES = 24 };
    return text != NULL && strlen(text) > LONG_BYTES ? " class=\"long\"" : "";
}

static void append_cell(struct buf *b, const json_t *value, double shade)
{
    if (json_is_string(value)) {
        buf_printf(b, "<td%s>", long_class(json_string_value(value)));
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
        buf_printf(b, "<th%s title=\"", long_class(name));
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
