/* Sessions on a device whose memory the host cannot read answer with the bits of the cpu: questions, words
 * for [MASK] and vectors, with weights of their own and over those of a model that several sessions share,
 * each in a context of its own. */
#define _GNU_SOURCE
#include "fenced_device.h"

#include "session_case.h"

#include <unistd.h>

static char directory[64];

static void expect_answers(struct session *s, enum model_task task, const double *wanted, int n)
{
    double found[SESSION_CASE_NUMBERS];
    EXPECT(session_case_answer(s, task, found) == n && memcmp(found, wanted, (size_t)n * sizeof *found) == 0,
           "task %d answers otherwise", (int)task);
}

static bool any_open(void)
{
    bool any = false;
    for (int i = 0; i < FENCED_CONTEXTS; i++) {
        any |= fenced.contexts[i].open;
    }
    return any;
}

static void compare(const char *model, enum model_task task, enum dtype dtype)
{
    struct session_options host = session_defaults(), device = host;
    struct session plain, alone, owner, shared[2];
    char path[SESSION_CASE_PATH];
    double wanted[SESSION_CASE_NUMBERS];
    snprintf(path, sizeof path, "%s/%s", directory, model);
    host.dtype = device.dtype = dtype;
    device.backend = (struct backend){&device_fenced, &ops_fenced};

    EXPECT_OK(session_open(&plain, path, task, &host));
    int n = session_case_answer(&plain, task, wanted);
    session_close(&plain);

    EXPECT_OK(session_open(&alone, path, task, &device));
    expect_answers(&alone, task, wanted, n);
    session_close(&alone);

    EXPECT_OK(session_open_model(&owner, path, &device));
    EXPECT(fenced_context_of(owner.net.x.context)->n_waiting == 0,
           "the weights may not be there when others read them");
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(session_open_shared(&shared[i], &owner, task, &(struct session_options){0}));
        EXPECT(shared[i].net.x.context != owner.net.x.context, "one context for two");
    }
    EXPECT(shared[0].net.x.context != shared[1].net.x.context, "one context for two");
    for (int i = 0; i < 4; i++) {
        expect_answers(&shared[i % 2], task, wanted, n);
    }
    session_close(&shared[0]);
    expect_answers(&shared[1], task, wanted, n);
    session_close(&shared[1]);
    session_close(&owner);
    EXPECT(!any_open(), "a context is still open");
}

static void names_are_checked(void)
{
    struct session_options o;
    EXPECT_OK(session_options_find(&o, "auto", "bf16"));
    EXPECT(o.backend.device == &device_cpu && o.dtype == DTYPE_BF16, "other options");
    EXPECT_ERROR(session_options_find(&o, "tpu", "fp32"), STATUS_USAGE, "tpu");
    EXPECT_ERROR(session_options_find(&o, "cpu", "int4"), STATUS_USAGE, "int4");
    EXPECT_ERROR(session_options_find(&o, "cpu", "fp16"), STATUS_USAGE, "does not compute in fp16");
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_session_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    session_case_unpack(directory);
    for (int i = 0; i < 2; i++) {
        enum dtype dtype = i == 0 ? DTYPE_F32 : DTYPE_BF16;
        compare("question_answering", MODEL_TASK_QUESTION_ANSWERING, dtype);
        compare("pretraining", MODEL_TASK_MASKED_LM, dtype);
        compare("masked_lm", MODEL_TASK_MASKED_LM, dtype);
        compare("encoder", MODEL_TASK_ENCODER, dtype);
    }
    names_are_checked();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
