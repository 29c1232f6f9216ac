/* status: how every function outside the ops says that the world (a file, a flag, a device) was wrong.
 *
 * A status is a struct, so `return 3;` does not compile and a result cannot be mistaken for a count.  The
 * message says what, where, which value, which limit and what to do.  Bugs of kiln itself are caught by
 * CHECKs, which abort. */
#ifndef KILN_CORE_STATUS_H
#define KILN_CORE_STATUS_H

#include <stdbool.h>

/* Also the exit codes of the program (docs/exit_codes.md): a supervisor restarts on 74, 75 and signals, never
 * on 1 and 64 to 69. */
enum status_code {
    STATUS_OK = 0,
    STATUS_DIFFERENT = 1,      /* the compared files or values differ: the exit status of cmp(1) */
    STATUS_USAGE = 64,         /* a flag or a configuration is wrong */
    STATUS_DATA = 65,          /* an input file is missing, damaged or does not fit */
    STATUS_NO_CHECKPOINT = 66, /* nothing usable to resume from */
    STATUS_UNAVAILABLE = 69, /* something that is needed is not there: a network, a server, a part of kiln */
    STATUS_INTERNAL = 70,    /* a library failed in a way that kiln does not expect */
    STATUS_MEMORY = 71,      /* not enough memory */
    STATUS_IO = 74,          /* reading or writing failed: disk full, I/O error, directory in use */
    STATUS_PREEMPTED = 75,   /* asked to stop; the state is saved, start again to continue */
    STATUS_NUMERIC = 99, /* a weight, the loss, a gradient or an answer is not finite, or spikes do not end */
};

struct status {
    enum status_code code;
    char message[508];
};

/* The status of success. */
struct status status_ok(void);

/* An error with a printf-formatted message: lower case, no full stop, no newline. */
struct status status_error(enum status_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the error `inner` with `format...: ` in front of its message; OK stays OK. */
struct status status_context(struct status inner, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool failed(struct status s)
{
    return s.code != STATUS_OK;
}

/* Returns the error of `call` to the caller, if it has one. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        struct status try_status = (call);                                                                   \
        if (failed(try_status)) {                                                                            \
            return try_status;                                                                               \
        }                                                                                                    \
    } while (0)

/* Returns an error with a printf-formatted message to the caller, if `wrong`. */
#define FAIL_IF(wrong, code, ...)                                                                            \
    do {                                                                                                     \
        if (wrong) {                                                                                         \
            return status_error(code, __VA_ARGS__);                                                          \
        }                                                                                                    \
    } while (0)

/* Aborts with file, line and a printf-formatted message unless `condition` holds: for bugs of kiln itself. */
#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                                       \
        }                                                                                                    \
    } while (0)

/* Prints the place and the message, and aborts; called by CHECK. */
_Noreturn void check_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
