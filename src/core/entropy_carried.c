/* entropy_carried: in programs and wheels that are carried to other machines (KILN_CARRIED), the function for
 * which the static libexpat would need glibc 2.36. */
#include "core/entropy.h"

#include <string.h>

void arc4random_buf(void *bytes, size_t n);

/* Random bytes, with which expat seeds its hash tables; 0 from Linux before 3.17, without getrandom. */
void arc4random_buf(void *bytes, size_t n)
{
    if (!entropy_draw(bytes, n)) {
        memset(bytes, 0, n);
    }
}
