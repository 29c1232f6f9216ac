/* wikitext_units: {{convert}}: a quantity in two units, rounded as the English Wikipedia's Module:Convert does:
 * to as many digits as the number that was given has, at least two.  Units that are not in the table are written as
 * they are. */
#include "corpus/wikitext_templates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dimension { LENGTH, AREA, VOLUME, MASS, SPEED, TEMPERATURE, POWER, ENERGY, PRESSURE, FORCE, DENSITY };

struct unit {
    const char *code;
    enum dimension dimension;
    double scale, offset;                     /* value in SI units = (value - offset) * scale */
    const char *one, *many, *symbol, *target; /* target: what it is converted to */
};

/* Exact definitions of the international yard and pound (1959); codes and targets of Module:Convert/data. */
static const struct unit units[] = {
    {"km", LENGTH, 1000, 0, "kilometre", "kilometres", "km", "mi"},
    {"m", LENGTH, 1, 0, "metre", "metres", "m", "ft"},
    {"cm", LENGTH, 0.01, 0, "centimetre", "centimetres", "cm", "in"},
    {"mm", LENGTH, 0.001, 0, "millimetre", "millimetres", "mm", "in"},
    {"mi", LENGTH, 1609.344, 0, "mile", "miles", "mi", "km"},
    {"yd", LENGTH, 0.9144, 0, "yard", "yards", "yd", "m"},
    {"ft", LENGTH, 0.3048, 0, "foot", "feet", "ft", "m"},
    {"foot", LENGTH, 0.3048, 0, "foot", "foot", "ft", "m"},
    {"in", LENGTH, 0.0254, 0, "inch", "inches", "in", "mm"},
    {"nmi", LENGTH, 1852, 0, "nautical mile", "nautical miles", "nmi", "km"},
    {"km2", AREA, 1e6, 0, "square kilometre", "square kilometres", "km2", "sqmi"},
    {"m2", AREA, 1, 0, "square metre", "square metres", "m2", "sqft"},
    {"ha", AREA, 1e4, 0, "hectare", "hectares", "ha", "acre"},
    {"acre", AREA, 4046.8564224, 0, "acre", "acres", "acres", "ha"},
    {"sqmi", AREA, 2589988.110336, 0, "square mile", "square miles", "sq mi", "km2"},
    {"mi2", AREA, 2589988.110336, 0, "square mile", "square miles", "sq mi", "km2"},
    {"sqft", AREA, 0.09290304, 0, "square foot", "square feet", "sq ft", "m2"},
    {"ft2", AREA, 0.09290304, 0, "square foot", "square feet", "sq ft", "m2"},
    {"L", VOLUME, 0.001, 0, "litre", "litres", "L", "impgal"},
    {"m3", VOLUME, 1, 0, "cubic metre", "cubic metres", "m3", "cuft"},
    {"cc", VOLUME, 1e-6, 0, "cubic centimetre", "cubic centimetres", "cc", "cuin"},
    {"cuft", VOLUME, 0.028316846592, 0, "cubic foot", "cubic feet", "cu ft", "m3"},
    {"cuin", VOLUME, 1.6387064e-5, 0, "cubic inch", "cubic inches", "cu in", "cc"},
    {"USgal", VOLUME, 0.003785411784, 0, "US gallon", "US gallons", "US gal", "L"},
    {"impgal", VOLUME, 0.00454609, 0, "imperial gallon", "imperial gallons", "imp gal", "L"},
    {"kg", MASS, 1, 0, "kilogram", "kilograms", "kg", "lb"},
    {"g", MASS, 0.001, 0, "gram", "grams", "g", "oz"},
    {"mg", MASS, 1e-6, 0, "milligram", "milligrams", "mg", "gr"},
    {"t", MASS, 1000, 0, "tonne", "tonnes", "t", "LT"},
    {"lb", MASS, 0.45359237, 0, "pound", "pounds", "lb", "kg"},
    {"lbs", MASS, 0.45359237, 0, "pound", "pounds", "lb", "kg"},
    {"oz", MASS, 0.028349523125, 0, "ounce", "ounces", "oz", "g"},
    {"gr", MASS, 6.479891e-5, 0, "grain", "grains", "gr", "mg"},
    {"ST", MASS, 907.18474, 0, "short ton", "short tons", "short tons", "t"},
    {"LT", MASS, 1016.0469088, 0, "long ton", "long tons", "long tons", "t"},
    {"km/h", SPEED, 1 / 3.6, 0, "kilometre per hour", "kilometres per hour", "km/h", "mph"},
    {"mph", SPEED, 0.44704, 0, "mile per hour", "miles per hour", "mph", "km/h"},
    {"m/s", SPEED, 1, 0, "metre per second", "metres per second", "m/s", "ft/s"},
    {"ft/s", SPEED, 0.3048, 0, "foot per second", "feet per second", "ft/s", "m/s"},
    {"kn", SPEED, 1852.0 / 3600, 0, "knot", "knots", "kn", "km/h"},
    {"C", TEMPERATURE, 1, -273.15, "degree Celsius", "degrees Celsius", "\302\260C", "F"},
    {"F", TEMPERATURE, 5.0 / 9, -459.67, "degree Fahrenheit", "degrees Fahrenheit", "\302\260F", "C"},
    {"K", TEMPERATURE, 1, 0, "kelvin", "kelvins", "K", "C"},
    {"W", POWER, 1, 0, "watt", "watts", "W", "hp"},
    {"kW", POWER, 1000, 0, "kilowatt", "kilowatts", "kW", "hp"},
    {"MW", POWER, 1e6, 0, "megawatt", "megawatts", "MW", "hp"},
    {"hp", POWER, 745.69987158227, 0, "horsepower", "horsepower", "hp", "kW"},
    {"PS", POWER, 735.49875, 0, "metric horsepower", "metric horsepower", "PS", "kW"},
    {"J", ENERGY, 1, 0, "joule", "joules", "J", "cal"},
    {"kJ", ENERGY, 1000, 0, "kilojoule", "kilojoules", "kJ", "kcal"},
    {"cal", ENERGY, 4.184, 0, "calorie", "calories", "cal", "J"},
    {"kcal", ENERGY, 4184, 0, "kilocalorie", "kilocalories", "kcal", "kJ"},
    {"kPa", PRESSURE, 1000, 0, "kilopascal", "kilopascals", "kPa", "psi"},
    {"psi", PRESSURE, 6894.757293168, 0, "pound per square inch", "pounds per square inch", "psi", "kPa"},
    {"bar", PRESSURE, 1e5, 0, "bar", "bars", "bar", "kPa"},
    {"atm", PRESSURE, 101325, 0, "standard atmosphere", "standard atmospheres", "atm", "kPa"},
    {"N", FORCE, 1, 0, "newton", "newtons", "N", "lbf"},
    {"kN", FORCE, 1000, 0, "kilonewton", "kilonewtons", "kN", "lbf"},
    {"lbf", FORCE, 4.4482216152605, 0, "pound-force", "pounds-force", "lbf", "N"},
    {"/km2", DENSITY, 1e-6, 0, "per square kilometre", "per square kilometre", "/km2", "/sqmi"},
    {"PD/km2", DENSITY, 1e-6, 0, "inhabitants per square kilometre", "inhabitants per square kilometre",
     "/km2", "PD/sqmi"},
    {"/sqmi", DENSITY, 1 / 2589988.110336, 0, "per square mile", "per square mile", "/sq mi", "/km2"},
    {"PD/sqmi", DENSITY, 1 / 2589988.110336, 0, "inhabitants per square mile", "inhabitants per square mile",
     "/sq mi", "PD/km2"},
};

static const struct unit *find_unit(struct wikitext_value code)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (wikitext_templates_equals(code, units[i].code)) {
            return &units[i];
        }
    }
    return NULL;
}

/* ---- numbers ---- */

/* Digits with commas between every three of the whole part; anything else as it is. */
void wikitext_units_group(struct buf *out, const char *digits, size_t n)
{
    size_t begin = 0, end;
    while (begin < n && (digits[begin] < '0' || digits[begin] > '9')) {
        begin++;
    }
    end = begin;
    while (end < n && digits[end] >= '0' && digits[end] <= '9') {
        end++;
    }
    bool grouped = end - begin > 3 && (end == n || digits[end] == '.');
    buf_append(out, digits, grouped ? begin : n);
    for (size_t i = begin; grouped && i < end; i++) {
        buf_append(out, ",", i > begin && (end - i) % 3 == 0);
        buf_putc(out, digits[i]);
    }
    buf_append(out, digits + end, grouped ? n - end : 0);
}

struct quantity {
    double value;
    int decimals; /* digits behind the point; minus the zeros at the end of a whole number */
};

/* A number as it is written: digits, commas, a point, a sign.  False for anything else. */
static bool read_quantity(struct quantity *q, struct wikitext_value text)
{
    enum { LONGEST = 24 };
    static const char minus[] = "\342\210\222";
    char digits[LONGEST + 1];
    size_t n = 0, zeros = 0;
    int behind = -1;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.text[i];
        if (n == LONGEST) {
            return false;
        }
        if (n == 0 && text.n - i > 3 && memcmp(text.text + i, minus, 3) == 0) {
            digits[n++] = '-';
            i += 2;
        } else if (n == 0 && (c == '-' || c == '+')) {
            digits[n++] = c;
        } else if (c >= '0' && c <= '9') {
            digits[n++] = c;
            behind += behind >= 0;
            zeros = c == '0' ? zeros + 1 : 0;
        } else if (c == '.' && behind < 0) {
            digits[n++] = c;
            behind = 0;
        } else if (c != ',' || n == 0) {
            return false;
        }
    }
    digits[n] = '\0';
    char *end;
    q->value = strtod(digits, &end);
    q->decimals = behind >= 0 ? behind : q->value == 0 ? 0 : -(int)zeros;
    return n > 0 && *end == '\0' && end != digits;
}

/* value rounded to so many digits behind the point, or before it where `decimals` is negative, with commas. */
static void write_rounded(struct buf *out, double value, int decimals)
{
    enum { MOST = 15 }; /* digits of a double */
    decimals = decimals > MOST ? MOST : decimals < -MOST ? -MOST : decimals;
    double unit = decimals < 0 ? pow(10, -decimals) : 1;
    char text[400];
    value = decimals < 0 ? floor(value / unit + 0.5) * unit : value;
    int n = snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, fabs(value));
    bool zero = strspn(text, "0.") == (size_t)n;
    buf_puts(out, value < 0 && !zero ? "\342\210\222" : "");
    wikitext_units_group(out, text, (size_t)n);
}

/* ---- {{convert}} ---- */

struct conversion {
    const struct unit *from, *to;
    bool symbols, adjective, american;
    bool has_decimals;
    int decimals; /* asked for */
};

static double to_unit(const struct conversion *c, double value)
{
    return (value - c->from->offset) * c->from->scale / c->to->scale + c->to->offset;
}

/* default_precision of Module:Convert. */
static int result_decimals(const struct conversion *c, struct quantity q)
{
    static const double fudge = 1e-14;
    double result = to_unit(c, q.value), adjust, least;
    if (c->has_decimals) {
        return c->decimals;
    }
    if (c->from->dimension == TEMPERATURE) {
        double kelvin = fabs((q.value - c->from->offset) * c->from->scale);
        adjust = 0;
        least = kelvin < 1e-8 ? 2 : 2 - floor(log10(kelvin) + fudge);
    } else if (q.value == 0 || result == 0) {
        return 0;
    } else {
        adjust = log10(fabs(q.value / result)) + log10(2);
        least = 1 - floor(log10(fabs(result)) + fudge);
    }
    return (int)fmax(floor(q.decimals + adjust), least);
}

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

static void write_name(struct buf *out, const struct conversion *c, const struct unit *unit, bool symbol,
                       bool one)
{
    const char *name = symbol ? unit->symbol : one ? unit->one : unit->many;
    bool joined = c->adjective && !symbol;
    buf_puts(out, joined ? "-" : symbol && unit->symbol[0] == '/' ? "" : " ");
    if (c->american && !symbol) {
        write_american(out, name);
    } else {
        buf_puts(out, name);
    }
}

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
                                           {"&", " & "}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (wikitext_templates_equals(value, words[i][0])) {
            return words[i][1];
        }
    }
    return NULL;
}

/* The target and the digits that were asked for: arguments `at` and the next, either of which may be left out. */
static void read_target(struct wikitext_emit *e, struct conversion *c, int at)
{
    struct wikitext_value target = wikitext_templates_argument(e, at);
    const struct unit *to = find_unit(target);
    int64_t decimals = wikitext_templates_number(target);
    if (to != NULL && to->dimension == c->from->dimension) {
        c->to = to;
        decimals = wikitext_templates_number(wikitext_templates_argument(e, at + 1));
    } else if (c->from->target != NULL) {
        c->to = find_unit((struct wikitext_value){c->from->target, strlen(c->from->target)});
    }
    c->has_decimals = decimals >= 0 && decimals <= 9;
    c->decimals = (int)decimals;
}

static void write_both(struct wikitext_emit *e, const struct conversion *c, const struct quantity *q, int n_q,
                       const struct wikitext_value *written, const char *between)
{
    struct buf *out = &e->scratch;
    bool one = n_q == 1 && (q[0].value == 1 || c->adjective);
    for (int i = 0; i < n_q; i++) {
        buf_puts(out, i > 0 ? between : "");
        wikitext_units_group(out, written[i].text, written[i].n);
    }
    write_name(out, c, c->from, c->symbols, one);
    if (c->to == NULL) {
        return;
    }
    bool either = wikitext_templates_equals(wikitext_templates_value(e, "disp"), "or");
    buf_puts(out, either ? " or " : " (");
    for (int i = 0; i < n_q; i++) {
        buf_puts(out, i > 0 ? between : "");
        write_rounded(out, to_unit(c, q[i].value), result_decimals(c, q[i]));
    }
    bool spelled =
        wikitext_templates_equals(wikitext_templates_value(e, "abbr"), "off") || (either && !c->symbols);
    write_name(out, c, c->to, !spelled, false);
    buf_puts(out, either ? "" : ")");
}

void wikitext_units_convert(struct wikitext_emit *e, bool symbols)
{
    struct wikitext_value abbreviate = wikitext_templates_value(e, "abbr");
    struct wikitext_value written[2] = {wikitext_templates_argument(e, 1), wikitext_templates_argument(e, 3)};
    const char *between = joining(wikitext_templates_argument(e, 2));
    int unit_at = between != NULL ? 4 : 2, n_q = between != NULL ? 2 : 1;
    struct quantity q[2];
    struct wikitext_value code = wikitext_templates_argument(e, unit_at);
    struct conversion c = {
        .from = find_unit(code),
        .symbols = wikitext_templates_equals(abbreviate, "on") ||
                   (symbols && !wikitext_templates_equals(abbreviate, "off")),
        .adjective = wikitext_templates_equals(wikitext_templates_value(e, "adj"), "on"),
        .american = wikitext_templates_equals(wikitext_templates_value(e, "sp"), "us"),
    };
    bool numbers = read_quantity(&q[0], written[0]) && (n_q == 1 || read_quantity(&q[1], written[1]));
    if (c.from == NULL || !numbers) { /* as it is written */
        for (int i = 0; i < n_q; i++) {
            buf_puts(&e->scratch, i > 0 ? between : "");
            wikitext_templates_put(e, written[i]);
        }
        buf_puts(&e->scratch, " ");
        wikitext_templates_put(e, code);
        return;
    }
    read_target(e, &c, unit_at + 1);
    if (c.to != NULL && wikitext_templates_equals(wikitext_templates_value(e, "disp"), "out")) {
        write_rounded(&e->scratch, to_unit(&c, q[0].value), result_decimals(&c, q[0]));
        write_name(&e->scratch, &c, c.to, c.symbols, false);
        return;
    }
    write_both(e, &c, q, n_q, written, between);
}

/* ---- {{val}} ---- */

/* {{val|6.241|0.005|e=18|u=kg}}: 6.241 +- 0.005 x 10^18 kg. */
void wikitext_units_value(struct wikitext_emit *e)
{
    static const char *const names[] = {"u", "ul"};
    struct wikitext_value number = wikitext_templates_argument(e, 1),
                          error = wikitext_templates_argument(e, 2),
                          exponent = wikitext_templates_value(e, "e"),
                          per = wikitext_templates_value(e, "up");
    wikitext_units_group(&e->scratch, number.text, number.n);
    buf_puts(&e->scratch, error.n > 0 ? "\302\261" : "");
    wikitext_templates_put(e, error);
    buf_puts(&e->scratch, exponent.n > 0 ? "\303\22710^" : "");
    wikitext_templates_put(e, exponent);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wikitext_value unit = wikitext_templates_value(e, names[i]);
        buf_puts(&e->scratch, unit.n > 0 ? " " : "");
        wikitext_templates_put(e, unit);
    }
    buf_puts(&e->scratch, per.n > 0 ? "/" : "");
    wikitext_templates_put(e, per);
}
