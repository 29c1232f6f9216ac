/* clock: time. Durations and deadlines use the monotonic clock; the wall clock only labels logs. */
#ifndef KILN_CORE_CLOCK_H
#define KILN_CORE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back. */
int64_t clock_ns(void);
double clock_wall_s(void); /* seconds since 1970 */
double clock_since_s(int64_t start_ns);

#endif
