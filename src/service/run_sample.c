#include "service/run_sample.h"

#include "model/checkpoint.h"
#include "serve/generate.h"

#include <stdlib.h>
#include <string.h>

int64_t run_sample_newest(const char *directory)
{
    struct checkpoint_steps list = {0};
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    int64_t step = failed(s) || list.n == 0 ? -1 : list.steps[0];
    free(list.steps);
    return step;
}

/* One prompt, and who asks for it. */
struct sample {
    struct generation g;
    bool is_given;
    bool (*is_wanted)(void *self);
    void *self;
};

static struct status next(void *self, bool may_wait, struct generation **g)
{
    struct sample *s = self;
    (void)may_wait;
    *g = s->is_given ? NULL : &s->g;
    s->is_given = true;
    return status_ok();
}

static struct status told(void *self, struct generation *g)
{
    const struct sample *s = self;
    (void)g;
    return s->is_wanted(s->self) ? status_ok() : status_error(STATUS_PREEMPTED, "nobody waits for the text");
}

enum { NEW_TOKENS = 64 };

/* Continues the prompt by NEW_TOKENS, or by fewer that fit a short window. */
static struct status continue_prompt(struct buf *text, struct session *of, struct sample *s,
                                     const char *prompt)
{
    struct generate_options o = {.max_new_tokens = 1,
                                 .choice = {.temperature = 0.8, .top_p = 0.95, .repetition_penalty = 1},
                                 .seed = 1};
    const struct generation_source source = {.next = next, .told = told, .self = s};
    TRY(generation_init(&s->g, of, &of->scratch, prompt, strlen(prompt), &o, 1));
    int64_t room = of->max_length - (int64_t)s->g.n_prompt;
    o.max_new_tokens = room < NEW_TOKENS ? room : NEW_TOKENS;
    TRY(generate(of, &source, NULL));
    TRY(s->g.status);
    buf_append(text, buf_text(&s->g.text), s->g.text.n);
    return buf_status(text);
}

struct status run_sample_make(struct buf *text, const char *directory, int64_t step,
                              const struct session_options *o, const char *prompt,
                              bool (*is_wanted)(void *self), void *self)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct session session;
    struct session_options of = *o;
    of.n_prompts = 1;
    of.cache_bytes = 0;
    TRY(checkpoint_path(path, "%s/ckpt_%lld", directory, (long long)step));
    TRY(session_open(&session, path, MODEL_TASK_CAUSAL_LM, &of));
    struct sample s = {.is_wanted = is_wanted, .self = self};
    struct status status = continue_prompt(text, &session, &s, prompt);
    generation_fini(&s.g);
    session_close(&session);
    return status;
}
