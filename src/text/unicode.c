#include "text/unicode.h"

#include "core/status.h"

#include <stddef.h>
#include <string.h>
#include <utf8proc.h>

static bool is_cjk(uint32_t c)
{
    /* The ranges of the BERT authors; later extensions of Unicode are not in them. */
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static enum unicode_class base_class(uint32_t c)
{
    if (is_cjk(c)) {
        return UNICODE_CJK;
    }
    if (c == '\t' || c == '\n' || c == '\r') {
        return UNICODE_SPACE;
    }
    if (c == 0 || c == UNICODE_REPLACEMENT) {
        return UNICODE_REMOVED;
    }
    if (c < 0x80 && strchr("$+<=>^`|~", (int)c) != NULL) {
        return UNICODE_PUNCTUATION; /* symbols to Unicode, punctuation to C */
    }
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return UNICODE_SPACE;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return UNICODE_REMOVED;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return UNICODE_PUNCTUATION;
    case UTF8PROC_CATEGORY_MN: return UNICODE_MARK;
    default: return UNICODE_OTHER;
    }
}

static const struct unicode_class_override *find_override(uint32_t c)
{
    int low = 0;
    int high = unicode_n_class_overrides;
    while (low < high) {
        int middle = (low + high) / 2;
        if (unicode_class_overrides[middle].last < c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool inside = low < unicode_n_class_overrides && unicode_class_overrides[low].first <= c;
    return inside ? &unicode_class_overrides[low] : NULL;
}

enum unicode_class unicode_class(uint32_t c)
{
    const struct unicode_class_override *o = find_override(c);
    return o != NULL ? o->class : base_class(c);
}

bool unicode_is_white(uint32_t c)
{
    switch (c) {
    case ' ':
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000: return true;
    default: return (c >= '\t' && c <= '\r') || (c >= 0x2000 && c <= 0x200A);
    }
}

bool unicode_is_number(uint32_t c)
{
    if (c < 0x80) {
        return c >= '0' && c <= '9';
    }
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
           category == UTF8PROC_CATEGORY_NO;
}

int unicode_combining_class(uint32_t c)
{
    const struct unicode_class_override *o = find_override(c);
    return o != NULL ? o->combining_class : utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

int unicode_decompose(uint32_t out[UNICODE_DECOMPOSITION_MAX], uint32_t c)
{
    out[0] = c;
    for (int i = 0; i < unicode_n_wholes; i++) {
        if (unicode_wholes[i] == c) {
            return 1;
        }
    }
    utf8proc_int32_t parts[UNICODE_DECOMPOSITION_MAX];
    int boundary_class = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, parts, UNICODE_DECOMPOSITION_MAX,
                                                 UTF8PROC_DECOMPOSE, &boundary_class);
    CHECK(n >= 1 && n <= UNICODE_DECOMPOSITION_MAX, "U+%04X decomposes to %td code points", (unsigned)c,
          (ptrdiff_t)n);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        out[i] = (uint32_t)parts[i];
    }
    return (int)n;
}

uint32_t unicode_lower(uint32_t c)
{
    for (int i = 0; i < unicode_n_lower_overrides; i++) {
        const struct unicode_lower_override *o = &unicode_lower_overrides[i];
        if (c >= o->first && c <= o->last) {
            return (uint32_t)((int32_t)c + o->shift);
        }
    }
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}
