/* slow_work: says which work a program is in when that takes long, so that nobody takes it for dead: one
 * line for each phase of a start that lasts longer than SLOW_WORK_SECONDS, from a thread of its own, since
 * the work itself has no place to look at a clock. */
#ifndef KILN_CORE_SLOW_WORK_H
#define KILN_CORE_SLOW_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLOW_WORK_SECONDS = 2 };

/* Zeroed before its first phase. */
struct slow_work {
    int64_t after_ns; /* a phase that lasts longer is reported; 0: SLOW_WORK_SECONDS */
    bool has_thread, ends;
    bool told;       /* the phase was reported */
    char phase[160]; /* "": none */
    int64_t since_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* The work that begins now, as in "still ... after 2 s"; NULL: none that anyone waits for.  Without a thread
 * nothing is reported. */
void slow_work_phase(struct slow_work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the phase and the thread; safe on a zeroed struct. */
void slow_work_end(struct slow_work *w);

#endif
