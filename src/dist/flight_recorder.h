/* flight_recorder: the last collectives of a rank, and how far each has come, for whoever asks after a hang
 * which rank was where: each rank writes its own, and they are compared. */
#ifndef KILN_DIST_FLIGHT_RECORDER_H
#define KILN_DIST_FLIGHT_RECORDER_H

#include "dist/comm_call.h"

enum { FLIGHT_RECORDS = 64 };

/* Given up: it had not ended when the communicator was. */
enum flight_state { FLIGHT_GIVEN, FLIGHT_STARTED, FLIGHT_ENDED, FLIGHT_GIVEN_UP };

/* Record of one collective.  Times are core/clock.h's; 0: not yet.  Start and end have the time when they
 * were first seen. */
struct flight {
    int64_t number; /* number of the collective, from 1 */
    struct comm_call call;
    enum flight_state state;
    int64_t given_ns, started_ns, ended_ns;
};

struct flight_recorder {
    int64_t n; /* recorded so far; a new one takes the place of that FLIGHT_RECORDS before */
    struct flight flights[FLIGHT_RECORDS];
};

/* Adds a record, with the next number; and finds the record of a number. */
struct flight *flight_recorder_add(struct flight_recorder *r, const struct comm_call *call);
struct flight *flight_recorder_at(struct flight_recorder *r, int64_t number);

/* {"rank": 0, "ranks": 2, "error": "...", "collectives": [{"number": 7, "kind": "a sum", "dtype": "fp32",
 * "elements": 512, "bytes": 2048, "root": 0, "state": "ended", "given_s": ..., "started_s": ..., "ended_s":
 * ...}]}, the oldest first.  Seconds are since 1970; null: not yet.  STATUS_IO, STATUS_MEMORY. */
struct status flight_recorder_write(const struct flight_recorder *r, const char *path, int rank, int n_ranks,
                                    struct status why);

#endif
