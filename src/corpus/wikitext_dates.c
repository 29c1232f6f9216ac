#include "corpus/wikitext_dates.h"

#include "corpus/wikitext_values.h"

#include <inttypes.h>

enum { N_MONTHS = 12 };

static const char *const months[N_MONTHS] = {"January",   "February", "March",    "April",
                                             "May",       "June",     "July",     "August",
                                             "September", "October",  "November", "December"};

static const char *month_name(struct wikitext_value value)
{
    int64_t number = wikitext_values_number(value);
    return number >= 1 && number <= N_MONTHS ? months[number - 1] : NULL;
}

static bool is_yes(struct wikitext_value value)
{
    return value.n > 0 && (value.text[0] == 'y' || value.text[0] == 'Y' || value.text[0] == '1');
}

/* "14 March 1879" or "March 14, 1879", from the arguments first, first + 1 and first + 2; what is missing is
 * left out. */
static void write_date(struct wikitext_emit *e, int first, bool day_first)
{
    struct buf *out = &e->scratch;
    struct wikitext_value year = wikitext_values_argument(e, first),
                          day = wikitext_values_argument(e, first + 2);
    const char *month = month_name(wikitext_values_argument(e, first + 1));
    int64_t day_number = wikitext_values_number(day);
    bool has_day = month != NULL && day_number >= 1 && day_number <= 31;
    if (has_day && day_first) {
        buf_printf(out, "%" PRId64 " %s ", day_number, month);
    } else if (has_day) {
        buf_printf(out, "%s %" PRId64 ", ", month, day_number);
    } else if (month != NULL) {
        buf_printf(out, "%s ", month);
    }
    wikitext_values_put(e, year);
}

/* Birthdays passed between the dates that begin at arguments 1 and 4; -1 if they are not all numbers. */
static int64_t age_at_death(const struct wikitext_emit *e)
{
    int64_t n[6];
    for (int i = 0; i < 6; i++) {
        n[i] = wikitext_values_number(wikitext_values_argument(e, i + 1));
        if (n[i] < 0) {
            return -1;
        }
    }
    bool before_birthday = n[1] < n[4] || (n[1] == n[4] && n[2] < n[5]);
    return n[0] - n[3] - before_birthday;
}

void wikitext_dates_date(struct wikitext_emit *e, bool death)
{
    struct wikitext_value year = wikitext_values_argument(e, 1);
    if (wikitext_values_number(year) < 0) { /* written out */
        wikitext_values_put(e, year);
        return;
    }
    write_date(e, 1, is_yes(wikitext_values_find(e, "df")));
    int64_t age = death ? age_at_death(e) : -1;
    if (age >= 0) {
        buf_printf(&e->scratch, " (aged %" PRId64 ")", age);
    }
}

/* {{as of|2010|3|lc=y}}. */
void wikitext_dates_as_of(struct wikitext_emit *e)
{
    struct wikitext_value alternative = wikitext_values_find(e, "alt"), us = wikitext_values_find(e, "df");
    if (alternative.n > 0) {
        wikitext_values_put(e, alternative);
        return;
    }
    bool lower = is_yes(wikitext_values_find(e, "lc")), since = is_yes(wikitext_values_find(e, "since"));
    bool bare = is_yes(wikitext_values_find(e, "bare"));
    if (!bare) {
        buf_puts(&e->scratch, since ? (lower ? "since " : "Since ") : lower ? "as of " : "As of ");
    }
    write_date(e, 1, !wikitext_values_equal(us, "US") && !wikitext_values_equal(us, "us"));
    wikitext_values_put(e, wikitext_values_find(e, "post"));
}

/* {{OldStyleDate|February 2|1905|January 20}}. */
void wikitext_dates_old_style(struct wikitext_emit *e)
{
    struct wikitext_value old = wikitext_values_argument(e, 3);
    wikitext_values_put(e, wikitext_values_argument(e, 1));
    if (old.n > 0) {
        buf_puts(&e->scratch, " [O.S. ");
        wikitext_values_put(e, old);
        buf_puts(&e->scratch, "]");
    }
    buf_puts(&e->scratch, " ");
    wikitext_values_put(e, wikitext_values_argument(e, 2));
}
