#include "service/call_cut.h"

#include <string.h>

bool call_cut(struct call *c, const json_t *o, enum text_cut *cut)
{
    bool truncates = true;
    const char *direction = "right";
    if (!call_bool(c, o, "truncate", &truncates) || !call_string(c, o, "truncation_direction", &direction)) {
        return false;
    }
    bool from_left = strcmp(direction, "left") == 0 || strcmp(direction, "Left") == 0;
    if (!from_left && strcmp(direction, "right") != 0 && strcmp(direction, "Right") != 0) {
        call_fail_value(c, "truncation_direction",
                        "\"truncation_direction\" is \"%.40s\", but must be \"left\" or \"right\"",
                        direction);
        return false;
    }
    *cut = !truncates ? TEXT_CUT_NOTHING : from_left ? TEXT_CUT_BEGINNING : TEXT_CUT_END;
    return true;
}
