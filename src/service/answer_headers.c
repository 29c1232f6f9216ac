#include "service/answer_headers.h"

#include "core/clock.h"

#include <stdio.h>

static void add(struct call *c, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    http_add_header(c->x, name, text);
}

void answer_headers_add(struct call *c)
{
    struct call_times times = call_times(c);
    int64_t total_ms = (clock_ns() - http_began_ns(c->x)) / 1000000;
    http_add_header(c->x, "x-compute-type", c->model->model.net.config.device->name);
    add(c, "x-compute-time", total_ms);
    add(c, "x-compute-characters", c->n_characters);
    add(c, "x-compute-tokens", c->n_tokens);
    add(c, "x-total-time", total_ms);
    add(c, "x-tokenization-time", (int64_t)(times.encode_s * 1e3));
    add(c, "x-queue-time", (int64_t)(times.queue_s * 1e3));
    add(c, "x-inference-time", (int64_t)(times.compute_s * 1e3));
    if (c->n_cut > 0) {
        add(c, "kiln-truncated", c->n_cut);
    }
}
