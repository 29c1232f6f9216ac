/* watch: `GET /watch` and `GET /watch/NAME`, the streams of runs that are watched. */
#include "service/endpoints.h"
#include "service/service.h"
#include "service/watched_runs.h"

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

const struct endpoint watch_endpoints[] = {
    {"GET", "/watch", &dialect_openai, follow_all, false},
    {"GET", "/watch/", &dialect_openai, follow_one, false},
    {0},
};
