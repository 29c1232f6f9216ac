/* What a model's tokenizer lacks is said by whoever asks for it, and stops nothing else. */
#define _GNU_SOURCE
#include "session_case.h"

static struct fill_result result;

static void expect_filled(struct session *s)
{
    EXPECT_OK(fill_mask(s, session_case_masked, strlen(session_case_masked), 3, &result));
    EXPECT(result.n_masks == 2, "%lld masks", (long long)result.n_masks);
    fill_result_fini(&result);
}

static void a_mask_is_wanted_where_one_is_filled(const char *path)
{
    struct session_options options = session_defaults();
    struct session owner, s;
    EXPECT_OK(session_open_model(&owner, path, &options));
    EXPECT_OK(session_open_shared(&s, &owner, MODEL_TASK_MASKED_LM, &(struct session_options){0}));
    expect_filled(&s);
    owner.dir.tokenizer.special[SPECIAL_MASK] = -1;
    EXPECT_ERROR(fill_mask(&s, session_case_masked, strlen(session_case_masked), 3, &result), STATUS_DATA,
                 "has no mask token, which filling a [MASK] needs");
    session_close(&s);
    EXPECT_OK(session_open_shared(&s, &owner, MODEL_TASK_ENCODER, &(struct session_options){0}));
    session_close(&s);
    owner.dir.tokenizer.frame.given = false;
    owner.dir.tokenizer.special[SPECIAL_SEPARATOR] = -1;
    EXPECT_ERROR(session_open_shared(&s, &owner, MODEL_TASK_ENCODER, &(struct session_options){0}),
                 STATUS_DATA, "has no separator token, which the input of the model needs");
    session_close(&owner);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/masked_lm", directory);
    a_mask_is_wanted_where_one_is_filled(path);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
