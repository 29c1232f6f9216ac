/* comm_emulated: every call returns at once, with what its header says, and is counted once; errors pass as
 * they do between ranks. */
#include "dist/comm_device.h"
#include "dist/comm_emulated.h"
#include "ops/ops.h"

#include "test.h"

enum { N = 6 };

static struct exec host(void)
{
    return (struct exec){.device = &device_cpu, .layer_index = -1};
}

static void expect_untouched(const float *v, const char *what)
{
    for (int i = 0; i < N; i++) {
        EXPECT(v[i] == (float)(i + 1), "%s: element %d is %g", what, i, (double)v[i]);
    }
}

static void test_calls(void)
{
    struct comm_emulated e = {.rank = 1, .size = 3};
    struct comm control = comm_emulated_rank(&e), c = comm_emulated_tensors(&control);
    struct exec x = host();
    float v[N] = {1, 2, 3, 4, 5, 6};
    double loss = 2;
    const int64_t bounds[] = {0, 2, 4, N};
    tensor t = tensor_1d(v, DTYPE_F32, N);
    EXPECT(c.rank == 1 && c.size == 3 && c.n_local == 1 && c.local_rank == 0, "rank %d of %d", c.rank,
           c.size);
    comm_all_reduce_sum(&c, &x, t);
    expect_untouched(v, "a sum");
    comm_queue_reduce_scatter_sum(&c, &x, t, bounds);
    comm_join(&c, &x);
    expect_untouched(v, "a sum in parts");
    comm_all_gather(&c, &x, t, bounds);
    expect_untouched(v, "a gathering");
    comm_broadcast(&c, &x, t, 0);
    comm_all_reduce_max(&c, &x, t);
    expect_untouched(v, "a maximum and a broadcast");
    comm_all_reduce_sum(&c, &x, tensor_1d(&loss, DTYPE_F64, 1));
    EXPECT_OK(x.status);
    EXPECT_OK(comm_check(&c));
    EXPECT(loss == 2, "the sum of losses is %g", loss);
    EXPECT(e.tensors.n_calls == 6 && e.tensors.reduced_bytes == 2 * N * sizeof(float) &&
               e.tensors.gathered_bytes == N * sizeof(float) &&
               e.tensors.number_bytes == 2 * N * sizeof(float) + sizeof(double),
           "%lld calls, %g, %g and %g bytes", (long long)e.tensors.n_calls, e.tensors.reduced_bytes,
           e.tensors.gathered_bytes, e.tensors.number_bytes);
    EXPECT(e.numbers.n_calls == 0, "calls of tensors were counted as those between steps");
    comm_all_reduce_sum(&control, &x, tensor_1d(&loss, DTYPE_F64, 1));
    EXPECT(e.numbers.n_calls == 1 && e.tensors.n_calls == 6,
           "a call between steps was counted as one of tensors");
    comm_leave(&control, status_ok());
}

/* A message is counted, and what another rank sends is zeros; a part counts apart if it is told to. */
static void test_messages(void)
{
    struct comm_emulated e = {.rank = 5, .size = 8};
    struct comm control = comm_emulated_rank(&e), c = comm_emulated_tensors(&control), stages, alone;
    struct exec x = host();
    float v[N] = {1, 2, 3, 4, 5, 6};
    tensor t = tensor_1d(v, DTYPE_F32, N);
    x.ops = ops_cpu();
    EXPECT_OK(comm_split(&c, &stages, 1, 4, 2));
    EXPECT_OK(comm_split(&c, &alone, 5, 1, 1));
    comm_emulated_count_apart(&stages, &e.stages);
    comm_emulated_count_apart(&alone, &e.slices);
    comm_send(&stages, &x, t, 0);
    expect_untouched(v, "a message");
    comm_receive(&stages, &x, tensor_slice(t, 1, 2), 0);
    comm_all_reduce_sum(&alone, &x, t);
    EXPECT_OK(x.status);
    EXPECT(v[0] == 1 && v[1] == 0 && v[2] == 0 && v[3] == 4, "received: %g %g %g %g", (double)v[0],
           (double)v[1], (double)v[2], (double)v[3]);
    EXPECT(e.stages.message_bytes == sizeof v && e.stages.n_calls == 1 && e.slices.n_calls == 0 &&
               e.tensors.n_calls == 0,
           "%g bytes in %lld calls, and %lld elsewhere", e.stages.message_bytes, (long long)e.stages.n_calls,
           (long long)(e.slices.n_calls + e.tensors.n_calls));
    comm_part_close(&alone);
    comm_part_close(&stages);
}

/* A failed rank makes the calls, and nothing is counted. */
static void test_errors(void)
{
    struct comm_emulated e = {.rank = 0, .size = 2};
    struct comm c = comm_emulated_rank(&e);
    struct exec x = host();
    float v[N] = {0};
    EXPECT_OK(comm_agree(&c, status_ok()));
    EXPECT_ERROR(comm_agree(&c, status_error(STATUS_IO, "a disk")), STATUS_IO, "a disk");
    x.status = status_error(STATUS_DATA, "a token");
    comm_all_reduce_sum(&c, &x, tensor_1d(v, DTYPE_F32, N));
    EXPECT_ERROR(x.status, STATUS_DATA, "a token");
    EXPECT(e.numbers.n_calls == 0, "a failed call was counted");
    comm_send(&c, &x, tensor_1d(v, DTYPE_F32, N), 1);
    comm_receive(&c, &x, tensor_1d(v, DTYPE_F32, N), 1);
    EXPECT_ERROR(x.status, STATUS_DATA, "a token");
    EXPECT(e.numbers.n_calls == 0, "a failed message was counted");
}

/* No device needs a library or a way through the host's memory for it. */
static void test_device(void)
{
    struct comm_emulated e = {.rank = 3, .size = 4};
    struct comm control = comm_emulated_rank(&e);
    struct device elsewhere = device_cpu;
    struct exec x = host();
    struct comm_device d;
    elsewhere.is_host = false;
    x.device = &elsewhere;
    EXPECT_OK(comm_device_open(&d, &control, &x, &(struct comm_nccl_config){0}));
    float v[N] = {0};
    comm_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, N));
    EXPECT_OK(x.status);
    EXPECT(d.comm.rank == 3 && e.tensors.n_calls == 1 && e.numbers.n_calls == 0, "%lld calls of tensors",
           (long long)e.tensors.n_calls);
    comm_device_close(&d);
}

int main(void)
{
    test_calls();
    test_messages();
    test_errors();
    test_device();
    return 0;
}
