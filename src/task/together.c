#include "task/together.h"

#include <inttypes.h>

enum { MOST_BESIDE = 2 };

/* Numbers that ranks exchange are in the host's memory, whatever device trains. */
static struct exec host_exec(void)
{
    return (struct exec){.device = &device_cpu, .layer_index = -1};
}

bool together_is_first(const struct comm *world)
{
    return world->rank == 0 || world->emulated != NULL;
}

struct status together_sum(const struct comm *world, struct status so_far, double *numbers, int64_t n)
{
    struct exec x = host_exec();
    x.status = so_far;
    if (world->size > 1) {
        comm_all_reduce_sum(world, &x, tensor_1d(numbers, DTYPE_F64, n));
    }
    return x.status;
}

struct status together_any(const struct comm *world, bool mine, bool *any)
{
    return together_any_beside(world, status_ok(), mine, any, NULL, 0);
}

/* The sum with zeros is exact. */
struct status together_any_beside(const struct comm *world, struct status so_far, bool mine, bool *any,
                                  double *of_first, int n)
{
    double numbers[1 + MOST_BESIDE] = {mine};
    CHECK(n <= MOST_BESIDE, "%d numbers", n);
    for (int i = 0; i < n; i++) {
        numbers[1 + i] = together_is_first(world) ? of_first[i] : 0;
    }
    TRY(together_sum(world, so_far, numbers, 1 + n));
    for (int i = 0; i < n; i++) {
        of_first[i] = numbers[1 + i];
    }
    *any = numbers[0] > 0;
    return status_ok();
}

struct status together_largest(const struct comm *world, double mine, double *largest)
{
    struct exec x = host_exec();
    float number = (float)mine;
    *largest = mine;
    if (world->size > 1) {
        comm_all_reduce_max(world, &x, tensor_1d(&number, DTYPE_F32, 1));
        *largest = number;
    }
    return x.status;
}

/* Counts are exact: far below 2^53. */
struct status together_count(const struct comm *world, struct batch_step *part, bool lacks, bool *any_lacks,
                             double *of_first)
{
    enum { FIRST = 3 + BATCH_MOST_FIELDS };
    double numbers[FIRST + 1] = {lacks};
    if (!lacks) {
        numbers[1] = (double)part->n_tokens;
        numbers[2] = (double)part->n_sequences;
        for (int i = 0; i < BATCH_MOST_FIELDS; i++) {
            numbers[3 + i] = (double)part->n_labels[i];
        }
    }
    numbers[FIRST] = together_is_first(world) ? *of_first : 0;
    TRY(together_sum(world, status_ok(), numbers, FIRST + 1));
    *any_lacks = numbers[0] > 0;
    part->n_tokens = (int64_t)numbers[1];
    part->n_sequences = (int64_t)numbers[2];
    for (int i = 0; i < BATCH_MOST_FIELDS; i++) {
        part->n_labels[i] = (int64_t)numbers[3 + i];
    }
    *of_first = numbers[FIRST];
    return status_ok();
}

struct status together_same(const struct comm *world, int64_t mine, const char *what)
{
    struct exec x = host_exec();
    double first = (double)mine;
    if (world->size == 1) {
        return status_ok();
    }
    comm_broadcast(world, &x, tensor_1d(&first, DTYPE_F64, 1), 0);
    TRY(x.status);
    return comm_agree(world, (int64_t)first == mine
                                 ? status_ok()
                                 : status_error(STATUS_DATA,
                                                "%s is %" PRId64 " here, and %" PRId64
                                                " on rank 0: ranks must see the same files",
                                                what, mine, (int64_t)first));
}
