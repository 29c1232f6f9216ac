#include "corpus/wikitext_quantities.h"

#include "corpus/wikitext_units.h"
#include "corpus/wikitext_values.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 4 }; /* {{convert|1|x|2|x|3|m}} */

struct conversion {
    const struct wikitext_unit *from, *to;
    const char *power; /* " million", or "" */
    struct wikitext_value written[MOST_VALUES];
    struct wikitext_quantity values[MOST_VALUES];
    const char *between[MOST_VALUES]; /* in front of a value */
    int n;
    bool symbols, spelled, adjective, american, flipped;
    bool has_decimals;
    int decimals;                     /* asked for */
    int64_t digits;                   /* of the result in all, asked for; -1 */
    const struct wikitext_unit *part; /* {{convert|5|ft|11|in}}: the inches */
    struct wikitext_value middle;     /* adj=mid: what follows the unit */
};

static bool option_is(const struct wikitext_emit *e, const char *key, const char *value)
{
    return wikitext_values_equal(wikitext_values_find(e, key), value);
}

/* ---- reading ---- */

/* The words that join two quantities: {{convert|5|to|6|km}}. */
static const char *joining(struct wikitext_value value)
{
    static const char *const words[][2] = {{"-", "\342\200\223"},
                                           {"\342\200\223", "\342\200\223"},
                                           {"to", " to "},
                                           {"and", " and "},
                                           {"or", " or "},
                                           {"by", " by "},
                                           {"x", " by "},
                                           {"+/-", " \302\261 "},
                                           {"\302\261", " \302\261 "},
                                           {"to(-)", " to "},
                                           {"&", " & "},
                                           {",", ", "}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (wikitext_values_equal(value, words[i][0])) {
            return words[i][1];
        }
    }
    return NULL;
}

/* A unit, with a power of ten before it: "e6km2". */
static const struct wikitext_unit *read_unit(struct wikitext_value code, const char **power)
{
    static const char *const powers[][2] = {
        {"e3", " thousand"}, {"e6", " million"}, {"e9", " billion"}, {"e12", " trillion"}};
    *power = "";
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        size_t n = strlen(powers[i][0]);
        if (code.n > n && memcmp(code.text, powers[i][0], n) == 0) {
            *power = powers[i][1];
            return wikitext_units_find(code.text + n, code.n - n);
        }
    }
    return wikitext_units_find(code.text, code.n);
}

/* The values and what is between them; returns the number of the argument behind them. */
static int read_values(const struct wikitext_emit *e, struct conversion *c)
{
    int at = 1;
    c->between[0] = "";
    for (;;) {
        c->written[c->n++] = wikitext_values_argument(e, at++);
        const char *between = joining(wikitext_values_argument(e, at));
        if (between == NULL || c->n == MOST_VALUES) {
            return at;
        }
        c->between[c->n] = between;
        at++;
    }
}

/* A whole number with a sign; false for anything else. */
static bool read_decimals(struct wikitext_value value, int *decimals)
{
    bool minus = value.n > 1 && value.text[0] == '-';
    int64_t number = wikitext_values_number((struct wikitext_value){value.text + minus, value.n - minus});
    if (number < 0 || number > 9) {
        return false;
    }
    *decimals = (int)(minus ? -number : number);
    return true;
}

/* {{convert|5|ft|11|in|m}}: five feet are 60 inches more.  Returns the number of the argument behind. */
static int read_part(const struct wikitext_emit *e, struct conversion *c, int at)
{
    struct wikitext_value written = wikitext_values_argument(e, at);
    const char *power;
    const struct wikitext_unit *part = read_unit(wikitext_values_argument(e, at + 1), &power);
    struct wikitext_quantity q;
    bool is_part = c->n == 1 && part != NULL && part->dimension == c->from->dimension &&
                   part->scale < c->from->scale && wikitext_units_read(&q, written.text, written.n);
    if (!is_part) {
        return at;
    }
    c->part = part;
    c->written[1] = written;
    c->values[0].value = c->values[0].value * (c->from->scale / part->scale) + q.value;
    c->values[0].decimals = q.decimals > 0 ? q.decimals : 0;
    return at + 2;
}

/* The target and the digits that were asked for: arguments `at` and the next, either of which may be left
 * out. */
static void read_target(const struct wikitext_emit *e, struct conversion *c, int at)
{
    const char *power;
    struct wikitext_value target = wikitext_values_argument(e, at);
    const struct wikitext_unit *to = read_unit(target, &power);
    if (to != NULL && to->dimension == c->from->dimension) {
        c->to = to;
        at++;
    } else {
        c->to = wikitext_units_find(c->from->target, strlen(c->from->target));
    }
    c->has_decimals = read_decimals(wikitext_values_argument(e, at), &c->decimals);
    at += c->has_decimals;
    if (option_is(e, "adj", "mid")) {
        c->middle = wikitext_values_argument(e, at);
    }
}

/* ---- writing ---- */

/* "metre" becomes "meter". */
static void write_american(struct buf *out, const char *name)
{
    const char *end = strstr(name, "tre");
    if (end == NULL) {
        buf_puts(out, name);
        return;
    }
    buf_append(out, name, (size_t)(end - name));
    buf_puts(out, "ter");
    buf_puts(out, end + 3);
}

static void write_name(struct buf *out, const struct conversion *c, const struct wikitext_unit *unit,
                       bool symbol, bool one)
{
    const char *name = symbol ? unit->symbol : one ? unit->one : unit->many;
    buf_puts(out, c->power);
    buf_puts(out, c->adjective && !symbol ? "-" : symbol && unit->symbol[0] == '/' ? "" : " ");
    if (c->american && !symbol) {
        write_american(out, name);
    } else {
        buf_puts(out, name);
    }
}

static void write_given(struct buf *out, const struct conversion *c, bool symbols)
{
    for (int i = 0; i < c->n; i++) {
        bool minus = c->written[i].n > 0 && c->written[i].text[0] == '-';
        buf_puts(out, c->between[i]);
        buf_puts(out, minus ? "\342\210\222" : "");
        wikitext_units_group(out, c->written[i].text + minus, c->written[i].n - minus);
    }
    bool one = c->adjective || (c->n == 1 && wikitext_values_equal(c->written[0], "1"));
    write_name(out, c, c->from, symbols, one);
    if (c->part != NULL) {
        buf_puts(out, c->adjective ? "-" : " ");
        wikitext_units_group(out, c->written[1].text, c->written[1].n);
        write_name(out, c, c->part, symbols, c->adjective || wikitext_values_equal(c->written[1], "1"));
    }
}

static int result_decimals(const struct conversion *c, const struct wikitext_unit *from,
                           struct wikitext_quantity q)
{
    if (c->has_decimals) {
        return c->decimals;
    }
    double result = fabs(wikitext_units_convert(from, c->to, q.value));
    if (c->digits > 0 && result > 0) {
        return (int)c->digits - 1 - (int)floor(log10(result));
    }
    if (c->part != NULL &&
        from->dimension == WIKITEXT_LENGTH) { /* subunit_more_precision of Module:Convert */
        return q.decimals + (int)fmax(floor(log10(c->to->scale) + 2 + log10(2)), 0);
    }
    return wikitext_units_decimals(from, c->to, q);
}

/* All values are rounded alike, as the one with the most digits. */
static void write_result(struct buf *out, const struct conversion *c, bool symbols)
{
    const struct wikitext_unit *from = c->part != NULL ? c->part : c->from;
    int decimals = result_decimals(c, from, c->values[0]);
    for (int i = 1; i < c->n; i++) {
        int more = result_decimals(c, from, c->values[i]);
        decimals = more > decimals ? more : decimals;
    }
    for (int i = 0; i < c->n; i++) {
        buf_puts(out, c->between[i]);
        wikitext_units_write(out, wikitext_units_convert(from, c->to, c->values[i].value), decimals);
    }
    write_name(out, c, c->to, symbols, c->adjective);
}

static void write_both(struct wikitext_emit *e, const struct conversion *c)
{
    struct buf *out = &e->scratch;
    bool either = option_is(e, "disp", "or"), hidden = option_is(e, "disp", "out");
    bool symbols_second = !c->spelled && (c->symbols || !either);
    if (c->flipped || hidden) {
        write_result(out, c, c->symbols);
    } else {
        write_given(out, c, c->symbols);
    }
    wikitext_values_put(e, c->middle);
    if (!hidden) {
        buf_puts(out, either ? " or " : " (");
        if (c->flipped) {
            write_given(out, c, symbols_second);
        } else {
            write_result(out, c, symbols_second);
        }
        buf_puts(out, either ? "" : ")");
    }
}

/* A quantity that cannot be converted. */
static void write_as_it_is(struct wikitext_emit *e, const struct conversion *c, struct wikitext_value code)
{
    for (int i = 0; i < c->n; i++) {
        buf_puts(&e->scratch, c->between[i]);
        wikitext_values_put(e, c->written[i]);
    }
    buf_puts(&e->scratch, " ");
    wikitext_values_put(e, code);
}

void wikitext_quantities_convert(struct wikitext_emit *e, bool symbols)
{
    struct conversion c = {
        .symbols = (symbols && !option_is(e, "abbr", "off")) || option_is(e, "abbr", "on"),
        .spelled = option_is(e, "abbr", "off"),
        .adjective = option_is(e, "adj", "on") || option_is(e, "adj", "mid"),
        .american = option_is(e, "sp", "us"),
        .flipped = option_is(e, "order", "flip") || option_is(e, "disp", "flip"),
        .digits = wikitext_values_number(wikitext_values_find(e, "sigfig")),
        .middle = {"", 0},
    };
    int at = read_values(e, &c);
    struct wikitext_value code = wikitext_values_argument(e, at);
    c.from = read_unit(code, &c.power);
    bool numbers = true;
    for (int i = 0; i < c.n; i++) {
        numbers = numbers && wikitext_units_read(&c.values[i], c.written[i].text, c.written[i].n);
    }
    if (c.from == NULL || !numbers) {
        write_as_it_is(e, &c, code);
        return;
    }
    c.symbols = c.symbols || (c.from->dimension == WIKITEXT_TEMPERATURE && !c.spelled);
    read_target(e, &c, read_part(e, &c, at + 1));
    write_both(e, &c);
}

/* {{val|6.241|0.005|e=18|u=kg}}: 6.241 +- 0.005 x 10^18 kg. */
void wikitext_quantities_value(struct wikitext_emit *e)
{
    static const char *const names[] = {"u", "ul"};
    struct wikitext_value number = wikitext_values_argument(e, 1), error = wikitext_values_argument(e, 2),
                          exponent = wikitext_values_find(e, "e"), per = wikitext_values_find(e, "up");
    wikitext_units_group(&e->scratch, number.text, number.n);
    buf_puts(&e->scratch, error.n > 0 ? "\302\261" : "");
    wikitext_values_put(e, error);
    buf_puts(&e->scratch, exponent.n > 0 ? "\303\22710^" : "");
    wikitext_values_put(e, exponent);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wikitext_value unit = wikitext_values_find(e, names[i]);
        buf_puts(&e->scratch, unit.n > 0 ? " " : "");
        wikitext_values_put(e, unit);
    }
    buf_puts(&e->scratch, per.n > 0 ? "/" : "");
    wikitext_values_put(e, per);
}
