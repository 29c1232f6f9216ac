/* signals: kept from a thread while it must not be interrupted. */
#ifndef KILN_CORE_SIGNALS_H
#define KILN_CORE_SIGNALS_H

#include <signal.h>

/* Keeps signals from the calling thread, but those that it causes itself (SIGSEGV and the like); what was kept
 * before goes to `before`, for signals_restore.  They are delivered then, or to another thread. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

#endif
