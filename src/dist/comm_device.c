#include "dist/comm_device.h"

#include "core/host.h"
#include "core/log.h"
#include "dist/comm_emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Facts that ranks exchange: the chip, its machine, and why the rank cannot use NCCL ("" if it can). */
struct facts {
    char machine[64], chip[DEVICE_CHIP_BYTES], why_not[256];
    int32_t version;
};

static void find_facts(struct facts *f, struct nccl_library *library, const struct exec *x)
{
    const struct device_streams *streams = x->device->streams;
    struct status s = status_error(STATUS_UNAVAILABLE, "%s has no streams for NCCL", x->device->name);
    if (streams != NULL) {
        s = streams->chip(x->context, f->chip);
    }
    s = failed(s) ? s : nccl_library_load(library);
    /* the same for all that see the same chips, also from containers with other host names */
    snprintf(f->machine, sizeof f->machine, "%.60s", host_boot().text);
    f->version = library->version;
    snprintf(f->why_not, sizeof f->why_not, "%s", failed(s) ? s.message : "");
}

/* NCCL refuses a chip that two ranks have.  A chip's name is unique within its machine only. */
static void compare(const struct facts *all, int q, int r, const struct comm_numbers *numbers, char why[400])
{
    int number_q = comm_number(numbers, q), number_r = comm_number(numbers, r);
    char first[32], second[32];
    nccl_library_put_version(first, all[q].version);
    nccl_library_put_version(second, all[r].version);
    if (strcmp(all[q].machine, all[r].machine) == 0 && strcmp(all[q].chip, all[r].chip) == 0) {
        snprintf(why, 400, "ranks %d and %d have the same GPU, %s, which NCCL refuses", number_q, number_r,
                 all[r].chip);
    } else if (all[q].version != all[r].version) {
        snprintf(why, 400, "rank %d has NCCL %s, and rank %d %s", number_q, first, number_r, second);
    }
}

/* Why the ranks cannot use NCCL, or "". */
static void put_why_not(const struct facts *all, int size, const struct comm_numbers *numbers, char why[400])
{
    why[0] = '\0';
    for (int r = 0; r < size && why[0] == '\0'; r++) {
        if (all[r].why_not[0] != '\0') {
            snprintf(why, 400, "rank %d of %d: %s", comm_number(numbers, r), numbers->world, all[r].why_not);
        }
        for (int q = 0; q < r && why[0] == '\0'; q++) {
            compare(all, q, r, numbers, why);
        }
    }
}

static struct status open_nccl(struct comm_device *d, const struct comm *control,
                               const struct nccl_library *l, const struct exec *x,
                               const struct comm_nccl_config *config)
{
    char version[32];
    nccl_library_put_version(version, l->version);
    TRY(comm_nccl_create(&d->nccl, control, l, x, config));
    d->comm = comm_nccl_rank(d->nccl);
    if (control->rank == 0) {
        log_info("%d ranks exchange memory of %s over NCCL %s", control->size, x->device->name, version);
    }
    return status_ok();
}

static struct status open_staged(struct comm_device *d, const struct comm *control, const struct exec *x,
                                 const char *why)
{
    TRY(comm_agree(control, comm_stage_init(&d->stage, control->size)));
    d->comm.stage = &d->stage;
    if (control->rank == 0) {
        log_warning("%d ranks exchange memory of %s through host memory, which is slow: %s", control->size,
                    x->device->name, why);
    }
    return status_ok();
}

static struct status choose(struct comm_device *d, const struct comm *control, const struct exec *x,
                            const struct comm_nccl_config *config, struct facts *all)
{
    char why[400];
    struct nccl_library library = {0};
    find_facts(&all[control->rank], &library, x);
    TRY(comm_share_rows(control, all, sizeof *all));
    put_why_not(all, control->size, &control->numbers, why);
    if (config->keeps_rule) {
        snprintf(why, sizeof why, "NCCL sums in its own order, and this run needs a fixed order");
    }
    return why[0] == '\0' ? open_nccl(d, control, &library, x, config) : open_staged(d, control, x, why);
}

struct status comm_device_open(struct comm_device *d, const struct comm *control, const struct exec *x,
                               const struct comm_nccl_config *config)
{
    *d = (struct comm_device){.comm = *control};
    if (control->emulated != NULL) {
        d->comm = comm_emulated_tensors(control);
        return status_ok();
    }
    if (x->device->is_host) {
        return status_ok();
    }
    if (control->size == 1) {
        d->comm = comm_self();
        return status_ok();
    }
    struct facts *all = calloc((size_t)control->size, sizeof *all);
    struct status s = comm_agree(
        control,
        all != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for %d ranks", control->size));
    if (!failed(s) && all != NULL) {
        s = choose(d, control, x, config, all);
    }
    free(all);
    if (failed(s)) {
        comm_device_close(d);
    }
    return s;
}

void comm_device_close(struct comm_device *d)
{
    comm_nccl_destroy(d->nccl);
    comm_stage_fini(&d->stage);
    *d = (struct comm_device){0};
}
