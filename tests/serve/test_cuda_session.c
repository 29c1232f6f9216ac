/* Sessions on the cuda table answer as on the cpu, to its rounding. */
#define _GNU_SOURCE
#include "gpu_tests.h"
#include "session_case.h"

#include "checkop_backend.h"

#include <stdlib.h>
#include <unistd.h>

static void compare(const char *directory, const char *model, enum model_task task,
                    const struct session_options *o, double tolerance)
{
    struct session_options host = session_defaults();
    struct session on_host, owner, on_device;
    double wanted[SESSION_CASE_NUMBERS], found[SESSION_CASE_NUMBERS];
    char path[SESSION_CASE_PATH];
    snprintf(path, sizeof path, "%s/%s", directory, model);
    EXPECT_OK(session_open(&on_host, path, task, &host));
    EXPECT_OK(session_open_model(&owner, path, o));
    EXPECT_OK(session_open_shared(&on_device, &owner, task, &(struct session_options){0}));
    int n = session_case_answer(&on_host, task, wanted);
    for (int round = 0; round < 2; round++) {
        EXPECT(session_case_answer(&on_device, task, found) == n, "%s: another number of answers", model);
        for (int i = 0; i < n; i++) {
            EXPECT_NEAR(found[i], wanted[i], tolerance);
        }
    }
    session_close(&on_device);
    session_close(&owner);
    session_close(&on_host);
}

int test_cuda_session(void)
{
    struct checkop_backend gpu = checkop_find_backend("cuda");
    struct session_options o = {.backend = {gpu.device, gpu.ops}, .dtype = DTYPE_F32};
    char directory[] = "/tmp/kiln_cuda_session_XXXXXX";
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    session_case_unpack(directory);
    compare(directory, "question_answering", MODEL_TASK_QUESTION_ANSWERING, &o, 1e-4);
    compare(directory, "masked_lm", MODEL_TASK_MASKED_LM, &o, 1e-4);
    compare(directory, "encoder", MODEL_TASK_ENCODER, &o, 1e-4);
    o.dtype = DTYPE_BF16; /* answers of equal rank may change places: only vectors are compared */
    compare(directory, "encoder", MODEL_TASK_ENCODER, &o, 3e-2);
    o.dtype = DTYPE_F16;
    compare(directory, "encoder", MODEL_TASK_ENCODER, &o, 4e-3);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
