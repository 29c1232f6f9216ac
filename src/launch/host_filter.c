#define _GNU_SOURCE
#include "launch/host_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether a filter names each slot of the hosts of a list. */
struct named {
    const char *flag;
    const struct host_list *list;
    bool *slots; /* [list->n][HOST_MAX_SLOTS], by the index of a slot in its host */
    bool *hosts; /* [list->n]: the host occurred */
};

static struct status name_slot(struct named *m, int host, const char *text)
{
    const struct host *h = &m->list->hosts[host];
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    for (int i = 0; is_number && i < h->n_slots; i++) {
        if (h->slots[i] == number) {
            m->slots[host * HOST_MAX_SLOTS + i] = true;
            return status_ok();
        }
    }
    return status_error(STATUS_USAGE, "--%s: %s has no slot '%.40s'; it has %d, numbered %d to %d", m->flag,
                        h->name, text, h->n_slots, h->slots[0], h->slots[h->n_slots - 1]);
}

/* HOST or HOST:SLOT,SLOT; the text is cut up. */
static struct status name_host(struct named *m, char *part)
{
    char *slots = strchr(part, ':'), *rest;
    if (slots != NULL) {
        *slots++ = '\0';
    }
    int host = host_list_find(m->list, part);
    FAIL_IF(host < 0, STATUS_USAGE,
            "--%s names the host '%.80s', which is not among the hosts; it is HOST[:SLOT,...][@HOST...]",
            m->flag, part);
    FAIL_IF(m->hosts[host], STATUS_USAGE, "--%s names %s twice", m->flag, part);
    m->hosts[host] = true;
    FAIL_IF(slots != NULL && (*slots == '\0' || *slots == ',' || slots[strlen(slots) - 1] == ',' ||
                              strstr(slots, ",,") != NULL),
            STATUS_USAGE, "--%s: %s has ':' but lacks a slot; write %s:0,1", m->flag, part, part);
    for (int i = 0; slots == NULL && i < m->list->hosts[host].n_slots; i++) {
        m->slots[host * HOST_MAX_SLOTS + i] = true;
    }
    const char *word = slots == NULL ? NULL : strtok_r(slots, ",", &rest);
    for (; word != NULL; word = strtok_r(NULL, ",", &rest)) {
        TRY(name_slot(m, host, word));
    }
    return status_ok();
}

static struct status name_all(struct named *m, char *text)
{
    for (char *part = text, *next; part != NULL; part = next) {
        next = strchr(part, '@');
        if (next != NULL) {
            *next++ = '\0';
        }
        TRY(name_host(m, part));
    }
    return status_ok();
}

/* Keeps the slots of which `named` says so, and the hosts that have any left. */
static void keep(struct host_list *l, const bool *named, bool wanted)
{
    int n_hosts = 0;
    for (int i = 0; i < l->n; i++) {
        struct host *h = &l->hosts[i];
        int n = 0;
        for (int k = 0; k < h->n_slots; k++) {
            if (named[i * HOST_MAX_SLOTS + k] == wanted) {
                h->slots[n++] = h->slots[k];
            }
        }
        h->n_slots = n;
        if (n > 0) {
            l->hosts[n_hosts++] = *h;
        }
    }
    l->n = n_hosts;
}

static struct status keep_named(struct host_list *l, const char *flag, const char *text, bool wanted)
{
    struct named m = {.flag = flag,
                      .list = l,
                      .slots = calloc((size_t)l->n * HOST_MAX_SLOTS, sizeof(bool)),
                      .hosts = calloc((size_t)l->n, sizeof(bool))};
    char *copy = strdup(text);
    struct status s = m.slots == NULL || m.hosts == NULL || copy == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for --%s", flag)
                          : name_all(&m, copy);
    if (!failed(s)) {
        keep(l, m.slots, wanted);
    }
    free(m.slots);
    free(m.hosts);
    free(copy);
    return s;
}

struct status host_filter_apply(const struct host_filter *f, struct host_list *l)
{
    bool counts = f->num_nodes > 0 || f->num_gpus > 0;
    FAIL_IF(f->include != NULL && f->exclude != NULL, STATUS_USAGE,
            "--include and --exclude cannot be combined; give one of them");
    FAIL_IF(counts && (f->include != NULL || f->exclude != NULL), STATUS_USAGE,
            "--num_nodes and --num_gpus cannot be given with --include or --exclude");
    if (f->include != NULL) {
        TRY(keep_named(l, "include", f->include, true));
    } else if (f->exclude != NULL) {
        TRY(keep_named(l, "exclude", f->exclude, false));
    }
    FAIL_IF(f->num_nodes > l->n, STATUS_USAGE, "--num_nodes is %" PRId64 ", but there are %d hosts",
            f->num_nodes, l->n);
    l->n = f->num_nodes > 0 ? (int)f->num_nodes : l->n;
    for (int i = 0; f->num_gpus > 0 && i < l->n; i++) {
        FAIL_IF(f->num_gpus > l->hosts[i].n_slots, STATUS_USAGE,
                "--num_gpus is %" PRId64 ", but %s has %d slots", f->num_gpus, l->hosts[i].name,
                l->hosts[i].n_slots);
        l->hosts[i].n_slots = (int)f->num_gpus;
    }
    return l->n > 0 ? status_ok() : status_error(STATUS_USAGE, "--exclude leaves no slot to run on");
}
