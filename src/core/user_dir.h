/* user_dir: where kiln keeps its per-user files. */
#ifndef KILN_CORE_USER_DIR_H
#define KILN_CORE_USER_DIR_H

#include <stddef.h>

/* "$XDG_CACHE_HOME/kiln/NAME", or "~/.cache/kiln/NAME" without that variable (XDG base directory
 * specification 0.8); "" if neither is an absolute path or `n` is too small.  Creates nothing. */
void user_dir_cache(char *path, size_t n, const char *name);

#endif
