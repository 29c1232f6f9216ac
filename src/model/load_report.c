#include "model/load_report.h"

#include "core/log.h"

#include <stdio.h>

bool load_report_is_plain(const struct load_report *r)
{
    int n = r->n[LOAD_IGNORED][NAMES_OTHER];
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        n += r->n[LOAD_NEW][p];
    }
    return n == 0;
}

static void print_ignored(const struct load_report *r, enum names_part part)
{
    int n = r->n[LOAD_IGNORED][part];
    const char *class_name = r->family->class_of(r->task);
    if (part == NAMES_OTHER) {
        log_info("  ignored %5d  %s and others like it: no part of any %s that kiln knows", n, r->other,
                 r->family->name);
    } else if (part == NAMES_BUFFER) {
        log_info("  ignored %5d  constants, no weights", n);
    } else if (part == NAMES_STATE) {
        log_info("  ignored %5d  state of the run that saved them, no weights", n);
    } else {
        log_info("  ignored %5d  %s: %s has none", n, r->family->patterns[part], class_name);
    }
}

void load_report_print(const struct load_report *r, const char *path)
{
    log_info("weights of %s, read as %s", path, r->family->class_of(r->task));
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (r->n[LOAD_LOADED][p] > 0) {
            log_info("  loaded  %5d  %s", r->n[LOAD_LOADED][p], r->family->patterns[p]);
        }
    }
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (r->n[LOAD_NEW][p] > 0) {
            log_info("  new     %5d  %s: not in the files, drawn from the seed", r->n[LOAD_NEW][p],
                     r->family->patterns[p]);
        }
    }
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (r->n[LOAD_IGNORED][p] > 0) {
            print_ignored(r, (enum names_part)p);
        }
    }
    if (r->n_rows > r->n_words) {
        log_info("  words   %5lld  of %lld rows of embeddings; the rows after them are never predicted",
                 (long long)r->n_words, (long long)r->n_rows);
    }
    if (r->n_tied > 0) {
        log_info("  ignored %5d  %s: the same as the tensors they are tied to", r->n_tied,
                 r->family->tied_pattern);
    }
}
