#include "report/memory_use.h"

#include "dev/host_memory.h"

#include <stdio.h>

void memory_use_ask(struct memory_use *m)
{
    struct memory_amount *h = &m->host, *d = &m->of_device;
    h->used = host_memory_taken();
    h->peak = host_memory_peak();
    h->peak = h->peak > h->used ? h->peak : h->used;
    h->limit = h->used + host_memory_free();
    if (!m->device->is_host) {
        size_t left = m->device->free_bytes();
        d->used = m->free_before > left ? m->free_before - left : 0;
        d->peak = d->used > d->peak ? d->used : d->peak;
        d->limit = m->free_before;
    }
}

static void put(json_t *fields, const struct memory_amount *a, const char *used, const char *peak,
                const char *limit)
{
    json_object_set_new(fields, used, json_integer((json_int_t)a->used));
    json_object_set_new(fields, peak, json_integer((json_int_t)a->peak));
    json_object_set_new(fields, limit, json_integer((json_int_t)a->limit));
}

void memory_use_put(json_t *fields, const struct memory_use *m)
{
    put(fields, &m->host, "memory_bytes", "memory_peak_bytes", "memory_limit_bytes");
    if (!m->device->is_host) {
        put(fields, &m->of_device, "device_memory_bytes", "device_memory_peak_bytes",
            "device_memory_limit_bytes");
    }
}

static int amount_text(char *text, size_t size, const struct memory_amount *a)
{
    return snprintf(text, size, "%.3f GiB, at most %.3f GiB (%.1f %% of %.1f GiB)", (double)a->used / 0x1p30,
                    (double)a->peak / 0x1p30, 100.0 * (double)a->peak / (double)(a->limit > 0 ? a->limit : 1),
                    (double)a->limit / 0x1p30);
}

void memory_use_text(char text[MEMORY_USE_TEXT], const struct memory_use *m)
{
    if (m->device->is_host) {
        amount_text(text, MEMORY_USE_TEXT, &m->host);
        return;
    }
    int n = snprintf(text, MEMORY_USE_TEXT, "%s ", m->device->name);
    n += amount_text(text + n, MEMORY_USE_TEXT - (size_t)n, &m->of_device);
    n += snprintf(text + n, MEMORY_USE_TEXT - (size_t)n, "; host ");
    amount_text(text + n, MEMORY_USE_TEXT - (size_t)n, &m->host);
}
