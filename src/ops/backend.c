#include "ops/backend.h"

#include "core/host.h"
#include "core/shared_library.h"
#include "ops/library_search.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char LIBRARY[] = "libkiln_cuda.so";

enum { PATH_BYTES = 1100, GPU_BYTES = 200, WHY_BYTES = 400 };

/* The result of the one search for a GPU. */
static struct {
    struct status status;
    const struct backend_entry *entry;
    const struct device *device;
    char gpu[GPU_BYTES];
} found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Sends the library's log lines to the program's log. */
static void write_line(enum log_level level, const char *line)
{
    if (level == LOG_WARNING) {
        log_warning("%s", line);
    } else {
        log_info("%s", line);
    }
}

static struct status open_library(void)
{
    char why[WHY_BYTES], path[PATH_BYTES];
    shared_library_of_kiln(path, sizeof path, LIBRARY);
    void *library = library_search_open(path, why, sizeof why);
    FAIL_IF(library == NULL, STATUS_UNAVAILABLE, "no CUDA: %s%s", why,
            strncmp(why, LIBRARY, sizeof LIBRARY - 1) == 0 ? " (`make` builds it where nvcc is installed)"
                                                           : "");
    const struct backend_entry *e = dlsym(library, "kiln_cuda_entry");
    FAIL_IF(e == NULL || strcmp(e->version, KILN_VERSION) != 0 || e->entry_bytes != sizeof *e ||
                e->device_bytes != sizeof(struct device) || e->exec_bytes != sizeof(struct exec) ||
                e->ops_bytes != sizeof(struct ops) || e->tensor_bytes != sizeof(tensor),
            STATUS_UNAVAILABLE, "%s belongs to another version of kiln; build both together", LIBRARY);
    e->log_to(write_line);
    TRY(e->probe(&found.device, found.gpu, sizeof found.gpu));
    found.entry = e;
    return status_ok();
}

static void open_once(void)
{
    found.status = open_library();
}

struct status backend_describe_gpu(char *text, size_t n)
{
    pthread_once(&once, open_once);
    snprintf(text, n, "%s", found.gpu);
    return found.status;
}

void backend_describe_choices(char *text, size_t n)
{
    pthread_once(&once, open_once);
    text[0] = '\0';
    if (found.entry != NULL) {
        found.entry->describe(text, n);
    }
}

struct status backend_find(struct backend *b, const char *name)
{
    TRY(ops_cpu_check());
    *b = (struct backend){&device_cpu, ops_cpu()};
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0) {
        return status_ok();
    }
    FAIL_IF(strcmp(name, "cuda") != 0, STATUS_USAGE, "unknown device %.40s: use auto, cpu or cuda", name);
    pthread_once(&once, open_once);
    if (failed(found.status)) {
        return status_context(found.status, "--device cuda");
    }
    *b = (struct backend){found.device, found.entry->ops};
    return status_ok();
}

const char *backend_visible(const char *root)
{
    static const struct {
        const char *path, *what;
    } drivers[] = {
        {"/dev/nvidiactl", "an NVIDIA GPU"},
        {"/dev/hl0", "a Gaudi"},
        {"/dev/accel/accel0", "an accelerator"},
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        int n = snprintf(path, sizeof path, "%s%s", root, drivers[i].path);
        if (n < PATH_BYTES && access(path, F_OK) == 0) {
            return drivers[i].what;
        }
    }
    return NULL;
}

void backend_announce(const struct backend *b, const char *name)
{
    const char *visible = backend_visible("");
    bool is_auto = strcmp(name, "auto") == 0;
    if (is_auto && visible != NULL) {
        log_warning("computing on the %s: --device auto means cpu, since cuda has not been tested on a GPU "
                    "yet; this machine has %s: --device cuda uses NVIDIA GPUs, and kiln supports no others",
                    b->device->name, visible);
    } else {
        log_info("computing on the %s%s", b->device->name, is_auto ? ": --device auto means cpu" : "");
    }
}

void backend_describe(struct buf *text, const struct backend *b)
{
    if (!b->device->is_host) {
        buf_printf(text, "device     %s: %s\n", b->device->name,
                   found.gpu[0] != '\0' ? found.gpu : "a device that no name selects");
        return;
    }
    buf_printf(text, "device     %s: %s, %d threads, kernels for %s\n", b->device->name, host_cpu_name().text,
               omp_get_max_threads(), ops_cpu_isa());
    for (int i = 0; ops_cpu_library(i) != NULL; i++) {
        buf_printf(text, "products   %s\n", ops_cpu_library(i));
    }
}
