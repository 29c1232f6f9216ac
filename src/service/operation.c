/* operation: what supervisors ask: whether the server lives and may be sent work, and its counts; and the
 * streams of runs that are watched. */
#include "service/endpoints.h"
#include "service/service.h"
#include "service/watched_runs.h"

#include <string.h>

static void reply_status(struct call *c, const char *state)
{
    call_reply(c, json_pack("{s:s}", "status", state));
}

static void answer_live(struct call *c)
{
    reply_status(c, "ok");
}

/* A full queue is no reason to send work elsewhere for good, and none to restart. */
static void answer_ready(struct call *c)
{
    if (c->models == NULL || c->drains) {
        http_add_header(c->x, "Retry-After", "5");
        call_fail(c, 503, NULL, c->drains ? "the server is ending" : "the model is being loaded");
    } else {
        reply_status(c, "ok");
    }
}

static void answer_metrics(struct call *c)
{
    struct buf text = {0};
    struct service *s = c->service;
    struct text_engine_load load = {0};
    if (c->models != NULL) {
        load = text_engine_load(c->models->engine);
    }
    service_metrics_write(&text, &s->metrics, &load,
                          s->server == NULL ? 0 : http_server_exchanges(s->server));
    call_reply_text(c, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

/* ---- runs ---- */

/* A stream lasts for hours, in which the models may be loaded again: it holds none. */
static void follow(struct call *c, int run)
{
    service_release(c->service, c->models);
    c->models = NULL;
    watched_runs_follow(c->service->watched, run, c);
}

static void follow_all(struct call *c)
{
    if (c->service->options.watch.n_runs > 0) {
        follow(c, -1);
    } else {
        call_fail(c, 404, NULL, "no run is watched: kiln serve --watch DIR");
    }
}

static void follow_one(struct call *c)
{
    int run = watched_runs_find(c->service->watched, c->rest);
    if (run >= 0) {
        follow(c, run);
    } else {
        call_fail(c, 404, NULL, "no run is watched as %.200s: --watch NAME=DIR", c->rest);
    }
}

const struct endpoint operation_endpoints[] = {
    {"GET", "/health/live", &dialect_tei, answer_live, .is_open = true},
    {"GET", "/health/ready", &dialect_tei, answer_ready, .is_open = true},
    {"GET", "/metrics", &dialect_tei, answer_metrics, .is_open = true},
    {"GET", "/watch", &dialect_openai, follow_all, .is_open = false},
    {"GET", "/watch/", &dialect_openai, follow_one, .is_open = false},
    {0},
};
