/* emulated_graphs: recordings of emulated kernels and products: what is given while one is made is kept with
 * its arguments, as a stream that is captured does, and done when it is replayed. */
#ifndef KILN_TESTS_EMULATED_GRAPHS_H
#define KILN_TESTS_EMULATED_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void emulated_record_begin(void);
void *emulated_record_end(void);
void emulated_replay(const void *graph);
void emulated_forget(void *graph);

bool emulated_is_recording(void);

/* While recording: what is given from `begins` to its end is a piece of work beside (dev/queue.h), and where
 * all pieces but the last `n_left` are waited for.  Replays take turns: pieces are done at once, and as late
 * as they may be. */
void emulated_record_beside(bool begins);
void emulated_record_join(int n_left);

/* While recording: a call with a copy of its arguments. */
void emulated_record(void (*call)(const void *arguments), const void *arguments, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
