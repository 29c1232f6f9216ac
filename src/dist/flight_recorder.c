#include "dist/flight_recorder.h"

#include "core/clock.h"
#include "core/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flight *flight_recorder_at(struct flight_recorder *r, int64_t number)
{
    return &r->flights[(number - 1) % FLIGHT_RECORDS];
}

struct flight *flight_recorder_add(struct flight_recorder *r, const struct comm_call *call)
{
    struct flight *f = flight_recorder_at(r, ++r->n);
    *f = (struct flight){.number = r->n, .call = *call, .given_ns = clock_ns()};
    return f;
}

static json_t *time_of(int64_t ns)
{
    return ns == 0 ? json_null() : json_real(clock_wall_s() - clock_since_s(ns));
}

/* NULL if memory runs out. */
static json_t *flight_to_json(const struct flight *f)
{
    static const char *const states[] = {"given", "started", "ended", "given up"};
    const struct comm_call *c = &f->call;
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:i, s:s, s:o, s:o, s:o}", "number", (json_int_t)f->number,
                     "kind", comm_call_name(c->kind), "dtype", dtype_name(c->dtype), "elements",
                     (json_int_t)c->count, "bytes", (json_int_t)c->count * (json_int_t)dtype_bytes(c->dtype),
                     "root", c->root, "state", states[f->state], "given_s", time_of(f->given_ns), "started_s",
                     time_of(f->started_ns), "ended_s", time_of(f->ended_ns));
}

static char *to_text(const struct flight_recorder *r, int rank, int n_ranks, struct status why)
{
    json_t *flights = json_array();
    int64_t n = r->n < FLIGHT_RECORDS ? r->n : FLIGHT_RECORDS;
    for (int64_t i = r->n - n; i < r->n; i++) {
        json_array_append_new(flights, flight_to_json(&r->flights[i % FLIGHT_RECORDS]));
    }
    json_t *all = json_pack("{s:i, s:i, s:o, s:o}", "rank", rank, "ranks", n_ranks, "error",
                            json_text(why.message), "collectives", flights);
    char *text = all == NULL ? NULL : json_to_text(all);
    json_decref(all);
    return text;
}

struct status flight_recorder_write(const struct flight_recorder *r, const char *path, int rank, int n_ranks,
                                    struct status why)
{
    char *text = to_text(r, rank, n_ranks, why);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory to write %s", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
                  0666); /* a pipe must not hold a rank that ends */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = file != NULL && fputs(text, file) >= 0;
    bool closed = file != NULL && fclose(file) == 0;
    free(text);
    return written && closed ? status_ok()
                             : status_error(STATUS_IO, "%s cannot be written: %s", path, strerror(errno));
}
