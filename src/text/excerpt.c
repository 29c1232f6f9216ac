#include "text/excerpt.h"

void excerpt_append(struct buf *out, const char *text, size_t n, size_t most)
{
    size_t shown = n < most ? n : most;
    while (shown < n && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80) {
        shown--;
    }
    for (size_t i = 0; i < shown; i++) {
        buf_putc(out, (unsigned char)text[i] < ' ' || text[i] == 0x7F ? ' ' : text[i]);
    }
    buf_puts(out, shown < n ? "..." : "");
}
