/* all_reduce: how long a sum over ranks takes, kiln's and MPI's own in turn, in the same run.  Start it by
 * mpirun: `mpirun -n 2 build/tests/all_reduce`, and with KILN_COMM_WINDOW=0 for messages.  Prints the best of
 * 21 rounds; of kiln's times the agreement before each sum is a part. */
#include "core/clock.h"
#include "dist/world.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BYTES = 64 << 20, ROUNDS = 21, BOUNDS_MOST = 65 };

static double best(const double *v)
{
    double least = v[0];
    for (int i = 1; i < ROUNDS; i++) {
        least = v[i] < least ? v[i] : least;
    }
    return least;
}

/* Seconds of one sum, as the mean of `times`. */
static double time_ours(const struct comm *world, struct exec *x, float *v, int64_t n, int times)
{
    comm_agree(world, status_ok());
    int64_t start = clock_ns();
    for (int i = 0; i < times; i++) {
        comm_all_reduce_sum(world, x, tensor_1d(v, DTYPE_F32, n));
    }
    return clock_since_s(start) / times;
}

/* The same of a sum that leaves each rank its part. */
static double time_parts(const struct comm *world, struct exec *x, float *v, int64_t n, int times)
{
    int64_t bounds[BOUNDS_MOST] = {0};
    for (int r = 1; r <= world->size && r < BOUNDS_MOST; r++) {
        bounds[r] = n * r / world->size;
    }
    comm_agree(world, status_ok());
    int64_t start = clock_ns();
    for (int i = 0; i < times; i++) {
        comm_queue_reduce_scatter_sum(world, x, tensor_1d(v, DTYPE_F32, n), bounds);
        comm_join(world, x);
    }
    return clock_since_s(start) / times;
}

static double time_mpi(const struct comm *world, float *v, int64_t n, int times)
{
    comm_agree(world, status_ok());
    int64_t start = clock_ns();
    for (int i = 0; i < times; i++) {
        MPI_Allreduce(MPI_IN_PLACE, v, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    return clock_since_s(start) / times;
}

static struct status measure(const struct comm *world)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    float *v = calloc(1, MOST_BYTES);
    if (v == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %d bytes", MOST_BYTES);
    }
    for (int64_t bytes = 4; bytes <= MOST_BYTES && !failed(x.status); bytes *= 16) {
        double ours[ROUNDS], mpi[ROUNDS], parts[ROUNDS];
        int times = bytes < 1 << 16 ? 200 : bytes < 1 << 22 ? 20 : 1;
        for (int i = 0; i < ROUNDS; i++) {
            ours[i] = time_ours(world, &x, v, bytes / 4, times);
            parts[i] = time_parts(world, &x, v, bytes / 4, times);
            mpi[i] = time_mpi(world, v, bytes / 4, times);
        }
        if (world->rank == 0) {
            double a = best(ours), b = best(mpi), p = best(parts);
            printf("%2d ranks %9lld bytes: kiln %10.1f us %6.2f GB/s, in parts %10.1f us, MPI_Allreduce "
                   "%10.1f us %6.2f GB/s, "
                   "%.2f times\n",
                   world->size, (long long)bytes, a * 1e6, (double)bytes / a * 1e-9, p * 1e6, b * 1e6,
                   (double)bytes / b * 1e-9, b / a);
        }
    }
    free(v);
    return x.status;
}

int main(void)
{
    struct comm world;
    struct status s = world_open(&world);
    if (!failed(s) && (world.size == 1 || world.size >= BOUNDS_MOST)) {
        s = status_error(STATUS_USAGE, "start it by mpirun -n 2, of at most %d", BOUNDS_MOST - 1);
    }
    s = failed(s) ? s : measure(&world);
    if (failed(s)) {
        fprintf(stderr, "%s\n", s.message);
    }
    world_close(&world, s);
    return (int)s.code;
}
