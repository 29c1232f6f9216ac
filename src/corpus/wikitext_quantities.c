/* wikitext_quantities: {{convert}}, a quantity in two units, and numbers as they are written.  A quantity
 * that cannot be converted is written as it is.
 * Source: the English Wikipedia's Module:Convert and Module:Convert/data. */
#include "core/integers.h"
#include "corpus/text_line.h"
#include "corpus/wikitext_templates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *codes;      /* "km|kilometre": the ways to write it */
    const char *dimension;  /* the unit of the SI */
    double scale, offset;   /* value in the SI's unit = (value - offset) * scale */
    const char *one, *many; /* name in singular and plural; `many` NULL: it is as `one` */
    const char *symbol;
    const char *target; /* the code of the unit that it is converted to if none is named */
};

/* Exact definitions of the international yard and pound (1959); codes and targets of Module:Convert/data. */
/* clang-format off */
static const struct unit units[] = {
    {"km|kilometre|kilometres|kilometers", "m", 1000, 0, "kilometre", "kilometres", "km", "mi"},
    {"m|metre|metres|meter|meters", "m", 1, 0, "metre", "metres", "m", "ft"},
    {"cm", "m", 0.01, 0, "centimetre", "centimetres", "cm", "in"},
    {"mm", "m", 0.001, 0, "millimetre", "millimetres", "mm", "in"},
    {"mi|miles|mile", "m", 1609.344, 0, "mile", "miles", "mi", "km"},
    {"yd|yards", "m", 0.9144, 0, "yard", "yards", "yd", "m"},
    {"ft|feet", "m", 0.3048, 0, "foot", "feet", "ft", "m"},
    {"foot", "m", 0.3048, 0, "foot", NULL, "ft", "m"},
    {"in|inch|inches", "m", 0.0254, 0, "inch", "inches", "in", "mm"},
    {"nmi", "m", 1852, 0, "nautical mile", "nautical miles", "nmi", "km"},
    {"fathom", "m", 1.8288, 0, "fathom", "fathoms", "fathoms", "m"},
    {"km2|sqkm", "m2", 1e6, 0, "square kilometre", "square kilometres", "km2", "sqmi"},
    {"m2|sqm", "m2", 1, 0, "square metre", "square metres", "m2", "sqft"},
    {"ha", "m2", 1e4, 0, "hectare", "hectares", "ha", "acre"},
    {"acre|acres", "m2", 4046.8564224, 0, "acre", "acres", "acres", "ha"},
    {"sqmi|mi2", "m2", 2589988.110336, 0, "square mile", "square miles", "sq mi", "km2"},
    {"sqft|ft2", "m2", 0.09290304, 0, "square foot", "square feet", "sq ft", "m2"},
    {"cm2", "m2", 1e-4, 0, "square centimetre", "square centimetres", "cm2", "sqin"},
    {"sqin|in2", "m2", 6.4516e-4, 0, "square inch", "square inches", "sq in", "cm2"},
    {"L|l", "m3", 0.001, 0, "litre", "litres", "L", "impgal"},
    {"m3", "m3", 1, 0, "cubic metre", "cubic metres", "m3", "cuft"},
    {"cc|cm3", "m3", 1e-6, 0, "cubic centimetre", "cubic centimetres", "cc", "cuin"},
    {"cuft|ft3", "m3", 0.028316846592, 0, "cubic foot", "cubic feet", "cu ft", "m3"},
    {"cuin|in3", "m3", 1.6387064e-5, 0, "cubic inch", "cubic inches", "cu in", "cc"},
    {"USgal|USg|U.S.gal", "m3", 0.003785411784, 0, "US gallon", "US gallons", "US gal", "L"},
    {"impgal", "m3", 0.00454609, 0, "imperial gallon", "imperial gallons", "imp gal", "L"},
    {"oilbbl", "m3", 0.158987294928, 0, "barrel", "barrels", "bbl", "m3"},
    {"mL|ml", "m3", 1e-6, 0, "millilitre", "millilitres", "ml", "USoz"},
    {"USoz", "m3", 2.95735295625e-5, 0, "US fluid ounce", "US fluid ounces", "US fl oz", "mL"},
    {"kg", "kg", 1, 0, "kilogram", "kilograms", "kg", "lb"},
    {"g", "kg", 0.001, 0, "gram", "grams", "g", "oz"},
    {"mg", "kg", 1e-6, 0, "milligram", "milligrams", "mg", "gr"},
    {"t", "kg", 1000, 0, "tonne", "tonnes", "t", "LT"},
    {"lb|pound|pounds|lbs", "kg", 0.45359237, 0, "pound", "pounds", "lb", "kg"},
    {"oz", "kg", 0.028349523125, 0, "ounce", "ounces", "oz", "g"},
    {"gr", "kg", 6.479891e-5, 0, "grain", "grains", "gr", "mg"},
    {"ST|shton", "kg", 907.18474, 0, "short ton", "short tons", "short tons", "t"},
    {"LT", "kg", 1016.0469088, 0, "long ton", "long tons", "long tons", "t"},
    {"st", "kg", 6.35029318, 0, "stone", NULL, "st", "kg"},
    {"km/h|kph|kmh", "m/s", 1 / 3.6, 0, "kilometre per hour", "kilometres per hour", "km/h", "mph"},
    {"mph", "m/s", 0.44704, 0, "mile per hour", "miles per hour", "mph", "km/h"},
    {"m/s", "m/s", 1, 0, "metre per second", "metres per second", "m/s", "ft/s"},
    {"ft/s", "m/s", 0.3048, 0, "foot per second", "feet per second", "ft/s", "m/s"},
    {"kn|kt|knot", "m/s", 1852.0 / 3600, 0, "knot", "knots", "kn", "km/h"},
    {"C|°C", "K", 1, -273.15, "degree Celsius", "degrees Celsius", "°C", "F"},
    {"F|°F", "K", 5.0 / 9, -459.67, "degree Fahrenheit", "degrees Fahrenheit", "°F", "C"},
    {"K", "K", 1, 0, "kelvin", "kelvins", "K", "C"},
    {"W", "W", 1, 0, "watt", "watts", "W", "hp"},
    {"kW", "W", 1000, 0, "kilowatt", "kilowatts", "kW", "hp"},
    {"MW", "W", 1e6, 0, "megawatt", "megawatts", "MW", "hp"},
    {"hp|bhp", "W", 745.69987158227, 0, "horsepower", NULL, "hp", "kW"},
    {"PS", "W", 735.49875, 0, "metric horsepower", NULL, "PS", "kW"},
    {"J", "J", 1, 0, "joule", "joules", "J", "cal"},
    {"kJ", "J", 1000, 0, "kilojoule", "kilojoules", "kJ", "kcal"},
    {"cal", "J", 4.184, 0, "calorie", "calories", "cal", "J"},
    {"kcal", "J", 4184, 0, "kilocalorie", "kilocalories", "kcal", "kJ"},
    {"kPa", "Pa", 1000, 0, "kilopascal", "kilopascals", "kPa", "psi"},
    {"psi", "Pa", 6894.757293168, 0, "pound per square inch", "pounds per square inch", "psi", "kPa"},
    {"bar", "Pa", 1e5, 0, "bar", "bars", "bar", "kPa"},
    {"atm", "Pa", 101325, 0, "standard atmosphere", "standard atmospheres", "atm", "kPa"},
    {"N", "N", 1, 0, "newton", "newtons", "N", "lbf"},
    {"kN", "N", 1000, 0, "kilonewton", "kilonewtons", "kN", "lbf"},
    {"lbf", "N", 4.4482216152605, 0, "pound-force", "pounds-force", "lbf", "N"},
    {"/km2", "/m2", 1e-6, 0, "per square kilometre", NULL, "/km2", "/sqmi"},
    {"/sqmi", "/m2", 1 / 2589988.110336, 0, "per square mile", NULL, "/sq mi", "/km2"},
    {"PD/km2", "/m2", 1e-6, 0, "inhabitants per square kilometre", NULL, "/km2", "PD/sqmi"},
    {"PD/sqmi|pd/sqmi", "/m2", 1 / 2589988.110336, 0, "inhabitants per square mile", NULL, "/sq mi",
     "PD/km2"},
};
/* clang-format on */

/* A number, and its digits after the point; minus the zeros at the end of an integer. */
struct quantity {
    double value;
    int decimals;
    struct wikitext_value written;
    struct wikitext_value before; /* text between the previous number and this one */
};

enum { MOST_VALUES = 4 }; /* {{convert|1|x|2|x|3|m}} */

struct conversion {
    const struct unit *from, *to;
    struct wikitext_value power; /* " million", or nothing */
    struct quantity values[MOST_VALUES];
    int n;
    const struct unit *part; /* {{convert|5|ft|11|in}}: the inches */
    struct wikitext_value written_part;
    bool symbols, spelled, adjective, american, flipped;
    bool has_decimals;
    int decimals;                 /* asked for */
    int64_t digits;               /* digits of the result in all, if asked for; else -1 */
    struct wikitext_value middle; /* adj=mid: text after the unit */
};

static const char minus[] = "\342\210\222";

static bool option_is(const struct wikitext_emit *e, const char *key, const char *value)
{
    return wikitext_values_equal(wikitext_values_find(e, key), value);
}

/* ---- numbers ---- */

void wikitext_quantities_group(struct buf *out, const char *digits, size_t n)
{
    size_t begin = 0, end;
    while (begin < n && !text_line_is_one_of(digits[begin], "0123456789")) {
        begin++;
    }
    for (end = begin; end < n && text_line_is_one_of(digits[end], "0123456789");) {
        end++;
    }
    bool grouped = end == n || digits[end] == '.';
    for (size_t i = 0; i < n; i++) {
        buf_append(out, ",", grouped && i > begin && i < end && (end - i) % 3 == 0);
        buf_putc(out, digits[i]);
    }
}

/* Reads digits, commas, a point and a sign; false for anything else. */
static bool read_number(struct quantity *q, struct wikitext_value written)
{
    enum { LONGEST = 24 };
    char digits[LONGEST + 1], *end;
    bool has_minus = written.n > strlen(minus) && memcmp(written.text, minus, strlen(minus)) == 0;
    size_t n = 0, at = has_minus ? strlen(minus) : 0;
    if (has_minus) {
        digits[n++] = '-';
    }
    for (; at < written.n && n < LONGEST; at++) {
        if (!text_line_is_one_of(written.text[at], n > 0 ? "+-.,0123456789" : "+-.0123456789")) {
            return false;
        }
        digits[n] = written.text[at];
        n += written.text[at] != ',';
    }
    digits[n] = '\0';
    q->value = strtod(digits, &end);
    q->written = written;
    const char *point = strchr(digits, '.');
    size_t nonzero = n;
    while (nonzero > 0 && digits[nonzero - 1] == '0') {
        nonzero--;
    }
    q->decimals = point != NULL ? (int)strlen(point + 1) : q->value == 0 ? 0 : -(int)(n - nonzero);
    return n > 0 && at == written.n && *end == '\0';
}

/* Writes the value rounded to `decimals` digits after the point, or before it where `decimals` is
 * negative. */
static void write_number(struct buf *out, double value, int decimals)
{
    enum { MOST = 15 }; /* digits of a double */
    char text[400];
    decimals = (int)int_larger(-MOST, int_smaller(decimals, MOST));
    double unit = decimals < 0 ? pow(10, -decimals) : 1;
    value = decimals < 0 ? floor(value / unit + 0.5) * unit : value;
    int n = snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, fabs(value));
    buf_puts(out, value < 0 && strspn(text, "0.") < (size_t)n ? minus : "");
    wikitext_quantities_group(out, text, (size_t)n);
}

/* ---- reading ---- */

static const struct unit *find_unit(struct wikitext_value code)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (wikitext_values_look_up(units[i].codes, code).text != NULL) {
            return &units[i];
        }
    }
    return NULL;
}

/* A unit, with a power of ten before it: "e6km2". */
static const struct unit *read_unit(struct wikitext_value code, struct wikitext_value *power)
{
    struct wikitext_value name;
    for (const char *at = "e3= thousand|e6= million|e9= billion|e12= trillion";
         wikitext_values_entry(&at, &name, power);) {
        if (code.n > name.n && memcmp(code.text, name.text, name.n) == 0) {
            return find_unit((struct wikitext_value){code.text + name.n, code.n - name.n});
        }
    }
    return find_unit(code);
}

/* {{convert|5|to|6|km}}: the values and what joins them; *numbers: whether all are numbers.  Returns which
 * argument is the unit. */
static int read_values(const struct wikitext_emit *e, struct conversion *c, bool *numbers)
{
    static const char joining[] =
        "-=–|–=–|to= to |and= and |or= or |by= by |x= by |+/-= ± |±= ± |to(-)= to |&= & |,=, ";
    struct wikitext_value before = {"", 0};
    int at = 1;
    for (*numbers = true; before.text != NULL && c->n < MOST_VALUES; at += 2) {
        struct quantity *q = &c->values[c->n++];
        q->before = before;
        q->written = wikitext_values_argument(e, at);
        *numbers = read_number(q, q->written) && *numbers;
        before = wikitext_values_look_up(joining, wikitext_values_argument(e, at + 1));
    }
    return at - 1;
}

/* {{convert|5|ft|11|in|m}}: five feet are 60 inches more.  Returns the number of the next argument. */
static int read_part(const struct wikitext_emit *e, struct conversion *c, int at)
{
    struct wikitext_value power;
    const struct unit *part = read_unit(wikitext_values_argument(e, at + 1), &power);
    struct quantity q, *whole = &c->values[0];
    bool is_part = c->n == 1 && part != NULL && strcmp(part->dimension, c->from->dimension) == 0 &&
                   part->scale < c->from->scale && read_number(&q, wikitext_values_argument(e, at));
    if (!is_part) {
        return at;
    }
    c->part = part;
    c->written_part = q.written;
    whole->value = whole->value * (c->from->scale / part->scale) + q.value;
    whole->decimals = q.decimals > 0 ? q.decimals : 0;
    return at + 2;
}

/* The target and the digits that were asked for: arguments `at` and the next, either of which may be left
 * out. */
static void read_target(const struct wikitext_emit *e, struct conversion *c, int at)
{
    struct wikitext_value power;
    struct quantity decimals;
    c->to = read_unit(wikitext_values_argument(e, at), &power);
    if (c->to != NULL && strcmp(c->to->dimension, c->from->dimension) == 0) {
        at++;
    } else {
        c->to = find_unit((struct wikitext_value){c->from->target, strlen(c->from->target)});
    }
    c->has_decimals = read_number(&decimals, wikitext_values_argument(e, at)) && decimals.decimals <= 0 &&
                      fabs(decimals.value) <= 9;
    c->decimals = c->has_decimals ? (int)decimals.value : 0;
    if (option_is(e, "adj", "mid")) {
        c->middle = wikitext_values_argument(e, at + c->has_decimals);
    }
}

/* ---- writing ---- */

/* Writes a unit after its number; with sp=us, "metre" is "meter". */
static void write_unit(struct buf *out, const struct conversion *c, const struct unit *unit, bool symbol,
                       bool one)
{
    const char *name = symbol ? unit->symbol : one || unit->many == NULL ? unit->one : unit->many;
    const char *metre = c->american && !symbol ? strstr(name, "tre") : NULL;
    buf_append(out, c->power.text, c->power.n);
    buf_puts(out, c->adjective && !symbol ? "-" : symbol && unit->symbol[0] == '/' ? "" : " ");
    if (metre != NULL) {
        buf_printf(out, "%.*ster", (int)(metre - name), name);
        name = metre + strlen("tre");
    }
    buf_puts(out, name);
}

static void write_given(struct buf *out, const struct conversion *c, bool symbols)
{
    for (int i = 0; i < c->n; i++) {
        struct wikitext_value written = c->values[i].written;
        bool has_minus = written.n > 0 && written.text[0] == '-';
        buf_append(out, c->values[i].before.text, c->values[i].before.n);
        buf_puts(out, has_minus ? minus : "");
        wikitext_quantities_group(out, written.text + has_minus, written.n - has_minus);
    }
    bool one = c->adjective || (c->n == 1 && wikitext_values_equal(c->values[0].written, "1"));
    write_unit(out, c, c->from, symbols, one);
    if (c->part != NULL) {
        buf_puts(out, c->adjective ? "-" : " ");
        wikitext_quantities_group(out, c->written_part.text, c->written_part.n);
        write_unit(out, c, c->part, symbols, c->adjective || wikitext_values_equal(c->written_part, "1"));
    }
}

static double convert(const struct unit *from, const struct unit *to, double value)
{
    return (value - from->offset) * from->scale / to->scale + to->offset;
}

/* Digits to which a result is rounded if it is not said: the same number as the given number has, at least
 * two in all; of temperatures, three of the kelvins.  It is default_precision of Module:Convert. */
static int result_decimals(const struct conversion *c, const struct unit *from, const struct quantity *q)
{
    static const double fudge = 1e-14; /* Module:Convert's */
    double result = fabs(convert(from, c->to, q->value));
    if (c->has_decimals) {
        return c->decimals;
    }
    if (c->digits > 0 && result > 0) {
        return (int)c->digits - 1 - (int)floor(log10(result));
    }
    if (c->part != NULL && strcmp(from->dimension, "m") == 0) { /* subunit_more_precision of Module:Convert */
        return q->decimals + (int)fmax(floor(log10(c->to->scale) + 2 + log10(2)), 0);
    }
    if (strcmp(from->dimension, "K") == 0) {
        double kelvin = fabs((q->value - from->offset) * from->scale);
        return (int)fmax(q->decimals, kelvin < 1e-8 ? 2 : 2 - floor(log10(kelvin) + fudge));
    }
    if (q->value == 0 || result == 0) {
        return 0;
    }
    double adjust = log10(fabs(q->value) / result) + log10(2);
    return (int)fmax(floor(q->decimals + adjust), 1 - floor(log10(result) + fudge));
}

/* Writes the result.  All values are rounded as the one with the most digits. */
static void write_result(struct buf *out, const struct conversion *c, bool symbols)
{
    const struct unit *from = c->part != NULL ? c->part : c->from;
    int64_t decimals = result_decimals(c, from, &c->values[0]);
    for (int i = 1; i < c->n; i++) {
        decimals = int_larger(decimals, result_decimals(c, from, &c->values[i]));
    }
    for (int i = 0; i < c->n; i++) {
        buf_append(out, c->values[i].before.text, c->values[i].before.n);
        write_number(out, convert(from, c->to, c->values[i].value), (int)decimals);
    }
    write_unit(out, c, c->to, symbols, c->adjective);
}

/* The quantity in both units, or in the target's. */
static void write_both(struct wikitext_emit *e, const struct conversion *c)
{
    struct buf *out = &e->scratch;
    bool either = option_is(e, "disp", "or"), hidden = option_is(e, "disp", "out");
    (c->flipped || hidden ? write_result : write_given)(out, c, c->symbols);
    wikitext_values_put(e, c->middle);
    if (!hidden) {
        buf_puts(out, either ? " or " : " (");
        (c->flipped ? write_given : write_result)(out, c, !c->spelled && (c->symbols || !either));
        buf_puts(out, either ? "" : ")");
    }
}

void wikitext_quantities_convert(struct wikitext_emit *e, const struct wikitext_template *t)
{
    bool symbols = t->text.n > 0 || !wikitext_values_are_english(e), numbers;
    struct conversion c = {
        .spelled = option_is(e, "abbr", "off"),
        .adjective = option_is(e, "adj", "on") || option_is(e, "adj", "mid"),
        .american = option_is(e, "sp", "us"),
        .flipped = option_is(e, "order", "flip") || option_is(e, "disp", "flip"),
        .digits = wikitext_values_number(wikitext_values_find(e, "sigfig")),
        .middle = {"", 0},
    };
    int at = read_values(e, &c, &numbers);
    struct wikitext_value code = wikitext_values_argument(e, at);
    c.from = read_unit(code, &c.power);
    if (c.from == NULL || !numbers) { /* not converted: written as it is */
        for (int i = 0; i < c.n; i++) {
            wikitext_values_put(e, c.values[i].before);
            wikitext_values_put(e, c.values[i].written);
        }
        buf_puts(&e->scratch, " ");
        wikitext_values_put(e, code);
        return;
    }
    bool temperature = strcmp(c.from->dimension, "K") == 0;
    c.symbols = (!c.spelled && (symbols || temperature)) || option_is(e, "abbr", "on");
    read_target(e, &c, read_part(e, &c, at + 1));
    write_both(e, &c);
}
