#include "cmd/replaced_environment.h"

#include "core/buf.h"
#include "core/log.h"

#include <string.h>

extern char **environ; /* environ(7) */

/* Variables of Gaudi's software and of PyTorch, by the beginnings of their names, and the single ones that
 * the documents set.  RANK, WORLD_SIZE and their kin do have a meaning (core/launcher.h). */
static const char *const prefixes[] = {"PT_",
                                       "HCCL_",
                                       "HCL_",
                                       "HABANA_",
                                       "TORCH_",
                                       "LD_PRELOAD=",
                                       "MASTER_ADDR=",
                                       "MASTER_PORT=",
                                       "EXPERIMENTAL_WEIGHT_SHARING=",
                                       "ENABLE_EXPERIMENTAL_FLAGS=",
                                       "TENSORS_KEEP_ALLOCATED="};

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

void replaced_environment_tell(void)
{
    struct buf names = {0};
    for (char **v = environ; *v != NULL; v++) {
        if (is_replaced(*v)) {
            buf_printf(&names, "%s%.*s", names.n == 0 ? "" : ", ", (int)strcspn(*v, "="), *v);
        }
    }
    if (names.n > 0 && !failed(buf_status(&names))) {
        log_info("environment variables without a meaning here: %s", buf_text(&names));
    }
    buf_fini(&names);
}
