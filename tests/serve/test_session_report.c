/* A session says which weights of a model it had to make up, and is silent where the files have all. */
#define _GNU_SOURCE
#include "captured_log.h"
#include "session_case.h"

static const struct {
    const char *model;
    enum model_task task;
    const char *wanted; /* in the log; NULL: nothing is logged */
} cases[] = {
    {"masked_lm", MODEL_TASK_MASKED_LM, NULL},
    {"question_answering", MODEL_TASK_QUESTION_ANSWERING, NULL},
    {"encoder", MODEL_TASK_ENCODER, NULL},
    {"masked_lm", MODEL_TASK_ENCODER, "  new         2  bert.pooler.*: not in the files"},
};

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH], text[CAPTURED_LOG_BYTES];
    struct session_options options = session_defaults();
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session s;
        snprintf(path, sizeof path, "%s/%s", directory, cases[i].model);
        struct captured_log log = captured_log_begin();
        struct status status = session_open(&s, path, cases[i].task, &options);
        captured_log_end(&log, text);
        EXPECT_OK(status);
        session_close(&s);
        bool as_wanted = cases[i].wanted == NULL ? text[0] == '\0' : strstr(text, cases[i].wanted) != NULL;
        EXPECT(as_wanted, "%s for task %d says '%s'", cases[i].model, cases[i].task, text);
    }
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
