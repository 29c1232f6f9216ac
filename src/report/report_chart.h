/* report_chart: a chart of a report as HTML: curves as SVG paths that stretch with the page, ticks as text
 * that does not.
 *
 * However long a run was, a curve has one point for each column of its style.  A column with several rows
 * shows their mean, over a band from the least to the greatest of them. */
#ifndef KILN_REPORT_REPORT_CHART_H
#define KILN_REPORT_REPORT_CHART_H

#include "core/buf.h"
#include "core/json.h"
#include "report/run_log.h"

enum chart_style {
    CHART_LINE,   /* training, with its band */
    CHART_EXACT,  /* training, for values without noise */
    CHART_DOTS,   /* evaluations */
    CHART_FLOOR,  /* the baseline, dashed */
    CHART_COUNTS, /* a better baseline, dotted */
};

struct chart_curve {
    const char *run;   /* name of the run; escaped here */
    const char *label; /* content of the curve: "training" */
    int color;         /* class r0, r1, ... */
    enum chart_style style;
    const struct run_rows *rows;
    enum run_column column;
};

struct chart {
    const char *title, *unit;
    bool from_zero;   /* the axis begins at 0 */
    bool log_if_wide; /* powers of ten if the values span more than two */
    const struct chart_curve *curves;
    size_t n_curves;
    int64_t last_step;    /* end of the horizontal axis, which begins at 0 */
    const int64_t *marks; /* steps at which phases begin */
    size_t n_marks;
};

/* Appends the chart as <figure>, numbers instead of a plot if no curve has two values, or nothing if none has
 * any. */
void chart_append(struct buf *b, const struct chart *c);

/* The same as figure number `number` of one SVG for papers, with its ticks and no style sheet; false: no
 * curve has a value.  Before the figures go the beginning of the SVG, for so many, and the names of the runs,
 * by their colours; after them its end. */
bool chart_append_figure(struct buf *b, const struct chart *c, int number);
void chart_figures_begin(struct buf *b, int n_figures, int n_runs);
void chart_figures_name(struct buf *b, const char *run, int color);

/* Text as HTML's character data or attribute value; control characters become '?'. */
void html_append(struct buf *b, const char *bytes);

/* A number as people read it: "0.0002", "1,234", "12.3k". */
struct number_text {
    char text[32];
};
struct number_text number_text(double value);

/* Appends a table, as an event of the log has it: {"title": text, "note": text, "columns": [text], "rows":
 * [[text or number]], "shaded": bool}, where "note" and "shaded" may be missing; one of another form is not
 * drawn.  All text is escaped.  Integers are shown in full; in a shaded table, an integer has the more colour
 * the larger its part of its row's sum is. */
void report_table_append(struct buf *b, const json_t *table);

#endif
