#include "model/load_report.h"

#include "core/log.h"

#include <stdio.h>

enum { LOAD_TEXT_BYTES = 80 };

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
        log_info("  ignored %5d  %s and others like it: not part of any %s that kiln knows", n, r->other,
                 r->family->name);
    } else if (part == NAMES_BUFFER) {
        log_info("  ignored %5d  constants, not weights", n);
    } else if (part == NAMES_STATE) {
        log_info("  ignored %5d  state of the run that saved them, not weights", n);
    } else {
        log_info("  ignored %5d  %s*: %s has none", n, r->family->parts[part], class_name);
    }
}

void load_report_add_new(struct load_report *r, const struct param *p, tensor values)
{
    r->n[LOAD_NEW][names_hf_part(r->family, p->name)]++;
    if (r->n_added == LOAD_MOST_LISTED) {
        return;
    }
    struct load_new *added = &r->added[r->n_added++];
    *added = (struct load_new){.param = *p};
    for (int64_t i = 0; !tensor_is_null(values) && i < tensor_count(values) && !added->is_drawn; i++) {
        added->is_drawn = tensor_get(values, i) != 0;
    }
}

/* Describes the values of a new parameter. */
static void describe(char text[LOAD_TEXT_BYTES], const struct load_new *n)
{
    enum param_init init = n->is_drawn ? n->param.init : PARAM_INIT_ZERO;
    switch (init) {
    case PARAM_INIT_ZERO: snprintf(text, LOAD_TEXT_BYTES, "zeros"); break;
    case PARAM_INIT_ONE: snprintf(text, LOAD_TEXT_BYTES, "ones"); break;
    case PARAM_INIT_NORMAL:
        snprintf(text, LOAD_TEXT_BYTES, "drawn from the seed, normal with a deviation of %g",
                 n->param.init_scale);
        break;
    case PARAM_INIT_UNIFORM:
        snprintf(text, LOAD_TEXT_BYTES, "drawn from the seed, uniform up to %g", n->param.init_scale);
        break;
    default: snprintf(text, LOAD_TEXT_BYTES, "computed"); break;
    }
}

static void print_new(const struct load_report *r, enum names_part part)
{
    log_info("  new     %5d  %s*: not in the files", r->n[LOAD_NEW][part], r->family->parts[part]);
    for (int i = 0; i < r->n_added; i++) {
        const struct param *p = &r->added[i].param;
        char values[LOAD_TEXT_BYTES], shape[LOAD_TEXT_BYTES];
        if (names_hf_part(r->family, p->name) == part) {
            describe(values, &r->added[i]);
            snprintf(shape, sizeof shape, p->n_dims == 1 ? "[%lld]" : "[%lld, %lld]", (long long)p->dims[0],
                     (long long)p->dims[1]);
            log_info("                 %s %s: %s", p->name, shape, values);
        }
    }
}

void load_report_print(const struct load_report *r, const char *path)
{
    log_info("weights of %s, read as %s", path, r->family->class_of(r->task));
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (r->n[LOAD_LOADED][p] > 0) {
            log_info("  loaded  %5d  %s*", r->n[LOAD_LOADED][p], r->family->parts[p]);
        }
    }
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        if (r->n[LOAD_NEW][p] > 0) {
            print_new(r, (enum names_part)p);
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
