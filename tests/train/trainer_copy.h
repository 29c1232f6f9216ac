/* trainer_copy: what a trainer holds on its device, for comparing it. */
#ifndef KILN_TESTS_TRAINER_COPY_H
#define KILN_TESTS_TRAINER_COPY_H

#include "dev/host_view.h"
#include "train/trainer.h"

#include "../test.h"

/* The weights, or both moments, on the host: free() them. */
static void *copy_of(struct trainer *t, tensor flat)
{
    struct host_view v;
    EXPECT_OK(host_view_open(&v, &t->x, flat));
    void *copy = malloc(tensor_bytes(flat));
    EXPECT(copy != NULL, "out of memory");
    memcpy(copy, v.host.data, tensor_bytes(flat));
    host_view_close(&v);
    return copy;
}

#endif
