#include "corpus/wikitext_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact definitions of the international yard and pound (1959); codes and targets of Module:Convert/data. */
static const struct wikitext_unit units[] = {
    {"km", WIKITEXT_LENGTH, 1000, 0, "kilometre", "kilometres", "km", "mi"},
    {"m", WIKITEXT_LENGTH, 1, 0, "metre", "metres", "m", "ft"},
    {"cm", WIKITEXT_LENGTH, 0.01, 0, "centimetre", "centimetres", "cm", "in"},
    {"mm", WIKITEXT_LENGTH, 0.001, 0, "millimetre", "millimetres", "mm", "in"},
    {"mi", WIKITEXT_LENGTH, 1609.344, 0, "mile", "miles", "mi", "km"},
    {"yd", WIKITEXT_LENGTH, 0.9144, 0, "yard", "yards", "yd", "m"},
    {"ft", WIKITEXT_LENGTH, 0.3048, 0, "foot", "feet", "ft", "m"},
    {"foot", WIKITEXT_LENGTH, 0.3048, 0, "foot", "foot", "ft", "m"},
    {"in", WIKITEXT_LENGTH, 0.0254, 0, "inch", "inches", "in", "mm"},
    {"nmi", WIKITEXT_LENGTH, 1852, 0, "nautical mile", "nautical miles", "nmi", "km"},
    {"km2", WIKITEXT_AREA, 1e6, 0, "square kilometre", "square kilometres", "km2", "sqmi"},
    {"m2", WIKITEXT_AREA, 1, 0, "square metre", "square metres", "m2", "sqft"},
    {"ha", WIKITEXT_AREA, 1e4, 0, "hectare", "hectares", "ha", "acre"},
    {"acre", WIKITEXT_AREA, 4046.8564224, 0, "acre", "acres", "acres", "ha"},
    {"sqmi", WIKITEXT_AREA, 2589988.110336, 0, "square mile", "square miles", "sq mi", "km2"},
    {"mi2", WIKITEXT_AREA, 2589988.110336, 0, "square mile", "square miles", "sq mi", "km2"},
    {"sqft", WIKITEXT_AREA, 0.09290304, 0, "square foot", "square feet", "sq ft", "m2"},
    {"ft2", WIKITEXT_AREA, 0.09290304, 0, "square foot", "square feet", "sq ft", "m2"},
    {"L", WIKITEXT_VOLUME, 0.001, 0, "litre", "litres", "L", "impgal"},
    {"m3", WIKITEXT_VOLUME, 1, 0, "cubic metre", "cubic metres", "m3", "cuft"},
    {"cc", WIKITEXT_VOLUME, 1e-6, 0, "cubic centimetre", "cubic centimetres", "cc", "cuin"},
    {"cuft", WIKITEXT_VOLUME, 0.028316846592, 0, "cubic foot", "cubic feet", "cu ft", "m3"},
    {"cuin", WIKITEXT_VOLUME, 1.6387064e-5, 0, "cubic inch", "cubic inches", "cu in", "cc"},
    {"USgal", WIKITEXT_VOLUME, 0.003785411784, 0, "US gallon", "US gallons", "US gal", "L"},
    {"impgal", WIKITEXT_VOLUME, 0.00454609, 0, "imperial gallon", "imperial gallons", "imp gal", "L"},
    {"kg", WIKITEXT_MASS, 1, 0, "kilogram", "kilograms", "kg", "lb"},
    {"g", WIKITEXT_MASS, 0.001, 0, "gram", "grams", "g", "oz"},
    {"mg", WIKITEXT_MASS, 1e-6, 0, "milligram", "milligrams", "mg", "gr"},
    {"t", WIKITEXT_MASS, 1000, 0, "tonne", "tonnes", "t", "LT"},
    {"lb", WIKITEXT_MASS, 0.45359237, 0, "pound", "pounds", "lb", "kg"},
    {"lbs", WIKITEXT_MASS, 0.45359237, 0, "pound", "pounds", "lb", "kg"},
    {"oz", WIKITEXT_MASS, 0.028349523125, 0, "ounce", "ounces", "oz", "g"},
    {"gr", WIKITEXT_MASS, 6.479891e-5, 0, "grain", "grains", "gr", "mg"},
    {"ST", WIKITEXT_MASS, 907.18474, 0, "short ton", "short tons", "short tons", "t"},
    {"LT", WIKITEXT_MASS, 1016.0469088, 0, "long ton", "long tons", "long tons", "t"},
    {"km/h", WIKITEXT_SPEED, 1 / 3.6, 0, "kilometre per hour", "kilometres per hour", "km/h", "mph"},
    {"mph", WIKITEXT_SPEED, 0.44704, 0, "mile per hour", "miles per hour", "mph", "km/h"},
    {"m/s", WIKITEXT_SPEED, 1, 0, "metre per second", "metres per second", "m/s", "ft/s"},
    {"ft/s", WIKITEXT_SPEED, 0.3048, 0, "foot per second", "feet per second", "ft/s", "m/s"},
    {"kn", WIKITEXT_SPEED, 1852.0 / 3600, 0, "knot", "knots", "kn", "km/h"},
    {"C", WIKITEXT_TEMPERATURE, 1, -273.15, "degree Celsius", "degrees Celsius", "\302\260C", "F"},
    {"F", WIKITEXT_TEMPERATURE, 5.0 / 9, -459.67, "degree Fahrenheit", "degrees Fahrenheit", "\302\260F",
     "C"},
    {"K", WIKITEXT_TEMPERATURE, 1, 0, "kelvin", "kelvins", "K", "C"},
    {"W", WIKITEXT_POWER, 1, 0, "watt", "watts", "W", "hp"},
    {"kW", WIKITEXT_POWER, 1000, 0, "kilowatt", "kilowatts", "kW", "hp"},
    {"MW", WIKITEXT_POWER, 1e6, 0, "megawatt", "megawatts", "MW", "hp"},
    {"hp", WIKITEXT_POWER, 745.69987158227, 0, "horsepower", "horsepower", "hp", "kW"},
    {"PS", WIKITEXT_POWER, 735.49875, 0, "metric horsepower", "metric horsepower", "PS", "kW"},
    {"J", WIKITEXT_ENERGY, 1, 0, "joule", "joules", "J", "cal"},
    {"kJ", WIKITEXT_ENERGY, 1000, 0, "kilojoule", "kilojoules", "kJ", "kcal"},
    {"cal", WIKITEXT_ENERGY, 4.184, 0, "calorie", "calories", "cal", "J"},
    {"kcal", WIKITEXT_ENERGY, 4184, 0, "kilocalorie", "kilocalories", "kcal", "kJ"},
    {"kPa", WIKITEXT_PRESSURE, 1000, 0, "kilopascal", "kilopascals", "kPa", "psi"},
    {"psi", WIKITEXT_PRESSURE, 6894.757293168, 0, "pound per square inch", "pounds per square inch", "psi",
     "kPa"},
    {"bar", WIKITEXT_PRESSURE, 1e5, 0, "bar", "bars", "bar", "kPa"},
    {"atm", WIKITEXT_PRESSURE, 101325, 0, "standard atmosphere", "standard atmospheres", "atm", "kPa"},
    {"N", WIKITEXT_FORCE, 1, 0, "newton", "newtons", "N", "lbf"},
    {"kN", WIKITEXT_FORCE, 1000, 0, "kilonewton", "kilonewtons", "kN", "lbf"},
    {"lbf", WIKITEXT_FORCE, 4.4482216152605, 0, "pound-force", "pounds-force", "lbf", "N"},
    {"cm2", WIKITEXT_AREA, 1e-4, 0, "square centimetre", "square centimetres", "cm2", "sqin"},
    {"sqin", WIKITEXT_AREA, 6.4516e-4, 0, "square inch", "square inches", "sq in", "cm2"},
    {"oilbbl", WIKITEXT_VOLUME, 0.158987294928, 0, "barrel", "barrels", "bbl", "m3"},
    {"mL", WIKITEXT_VOLUME, 1e-6, 0, "millilitre", "millilitres", "ml", "USoz"},
    {"USoz", WIKITEXT_VOLUME, 2.95735295625e-5, 0, "US fluid ounce", "US fluid ounces", "US fl oz", "mL"},
    {"st", WIKITEXT_MASS, 6.35029318, 0, "stone", "stone", "st", "kg"},
    {"fathom", WIKITEXT_LENGTH, 1.8288, 0, "fathom", "fathoms", "fathoms", "m"},
    {"/km2", WIKITEXT_DENSITY, 1e-6, 0, "per square kilometre", "per square kilometre", "/km2", "/sqmi"},
    {"PD/km2", WIKITEXT_DENSITY, 1e-6, 0, "inhabitants per square kilometre",
     "inhabitants per square kilometre", "/km2", "PD/sqmi"},
    {"/sqmi", WIKITEXT_DENSITY, 1 / 2589988.110336, 0, "per square mile", "per square mile", "/sq mi",
     "/km2"},
    {"PD/sqmi", WIKITEXT_DENSITY, 1 / 2589988.110336, 0, "inhabitants per square mile",
     "inhabitants per square mile", "/sq mi", "PD/km2"},
};

/* Other ways to write them. */
static const char *const aliases[][2] = {
    {"\302\260C", "C"},   {"\302\260F", "F"},     {"kph", "km/h"},      {"kmh", "km/h"},
    {"sqkm", "km2"},      {"sqm", "m2"},          {"feet", "ft"},       {"inch", "in"},
    {"inches", "in"},     {"miles", "mi"},        {"mile", "mi"},       {"metre", "m"},
    {"metres", "m"},      {"meter", "m"},         {"meters", "m"},      {"kilometre", "km"},
    {"kilometres", "km"}, {"kilometers", "km"},   {"acres", "acre"},    {"pound", "lb"},
    {"pounds", "lb"},     {"USg", "USgal"},       {"U.S.gal", "USgal"}, {"l", "L"},
    {"ml", "mL"},         {"kt", "kn"},           {"knot", "kn"},       {"yards", "yd"},
    {"in2", "sqin"},      {"cm3", "cc"},          {"ft3", "cuft"},      {"in3", "cuin"},
    {"bhp", "hp"},        {"pd/sqmi", "PD/sqmi"}, {"shton", "ST"},
};

static bool is(const char *text, size_t n, const char *code)
{
    return strlen(code) == n && memcmp(text, code, n) == 0;
}

const struct wikitext_unit *wikitext_units_find(const char *code, size_t n)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (is(code, n, aliases[i][0])) {
            code = aliases[i][1];
            n = strlen(code);
            break;
        }
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (is(code, n, units[i].code)) {
            return &units[i];
        }
    }
    return NULL;
}

/* ---- numbers ---- */

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

bool wikitext_units_read(struct wikitext_quantity *q, const char *text, size_t length)
{
    enum { LONGEST = 24 };
    static const char minus[] = "\342\210\222";
    char digits[LONGEST + 1];
    size_t n = 0, zeros = 0;
    int behind = -1;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (n == LONGEST) {
            return false;
        }
        if (n == 0 && length - i > 3 && memcmp(text + i, minus, 3) == 0) {
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

void wikitext_units_write(struct buf *out, double value, int decimals)
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

/* ---- conversion ---- */

double wikitext_units_convert(const struct wikitext_unit *from, const struct wikitext_unit *to, double value)
{
    return (value - from->offset) * from->scale / to->scale + to->offset;
}

int wikitext_units_decimals(const struct wikitext_unit *from, const struct wikitext_unit *to,
                            struct wikitext_quantity q)
{
    static const double fudge = 1e-14; /* Module:Convert's */
    double result = wikitext_units_convert(from, to, q.value), adjust, least;
    if (from->dimension == WIKITEXT_TEMPERATURE) {
        double kelvin = fabs((q.value - from->offset) * from->scale);
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
