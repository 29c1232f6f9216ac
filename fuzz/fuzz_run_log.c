/* Any bytes as a run's log, and the page that is drawn of it. */
#include "report/report_page.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_log log;
    if (failed(run_log_parse(&log, "run", (const char *)data, size))) {
        return 0;
    }
    struct buf page = {0};
    report_append(&page, &log, 1);
    buf_fini(&page);
    run_log_close(&log);
    return 0;
}
