/* emulated_counts: what was launched on the emulated device, in order, and which memory of the device each
 * launch has touched in pieces of 16 bytes, as kernels that memory bounds do: each piece counts once as read
 * and once as written, however often it is met, for what is met again comes from the caches. */
#ifndef KILN_TESTS_EMULATED_COUNTS_H
#define KILN_TESTS_EMULATED_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulated_count {
    const char *kernel; /* as it stands in the launch, without what is between < and > */
    double bytes;
    bool early; /* LAUNCH_EARLY */
};

/* From here on launches are counted, and until the end of the counting, which says how many there were at
 * most `most`. */
void emulated_counts_begin(void);
int emulated_counts_end(struct emulated_count *counts, int most);

/* Told by the emulator. */
void emulated_counts_launch(const char *kernel);
void emulated_counts_early(void);
void emulated_counts_done(void);
void emulated_counts_bytes(double bytes);

extern bool emulated_is_counting;
void emulated_counts_touch(const void *p, bool written);

static inline void emulated_touch(const void *p, bool written)
{
    if (emulated_is_counting) {
        emulated_counts_touch(p, written);
    }
}

#ifdef __cplusplus
}
#endif

#endif
