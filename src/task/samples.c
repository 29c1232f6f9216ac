#include "task/samples.h"

#include "core/log.h"
#include "task/together.h"
#include "text/utf8.h"

#include <string.h>

struct status samples_check(const struct pretrain_options *o)
{
    const struct option_words *prompts = &o->sample_prompts;
    const char *must_have = o->kind->sample.must_have;
    FAIL_IF(prompts->n > 0 && mesh_cuts_model(rank_options_mesh(&o->run.ranks).shape), STATUS_USAGE,
            "--sample_prompts needs all layers on a rank: leave it out, or tensor and pipeline parallelism");
    for (int i = 0; must_have != NULL && i < prompts->n; i++) {
        FAIL_IF(strstr(prompts->of[i], must_have) == NULL, STATUS_USAGE,
                "--sample_prompts: \"%.80s\" has no %s to fill", prompts->of[i], must_have);
    }
    return status_ok();
}

static struct status draw_one(struct pretrain_run *r, struct session *s, const char *prompt)
{
    struct buf text = {0}, repaired = {0};
    struct status status = r->options->kind->sample.draw(&text, s, prompt, (uint64_t)r->options->run.seed);
    if (!failed(status)) {
        utf8_repair(&repaired, buf_text(&text), text.n); /* the last character may be cut */
        status = buf_status(&repaired);
    }
    if (!failed(status)) {
        metrics_sample(&r->run.metrics, r->run.loop.state.step, prompt, buf_text(&repaired), repaired.n);
    }
    buf_fini(&text);
    buf_fini(&repaired);
    return status;
}

static struct status draw_all(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    const struct session_weights weights = {&r->run.trainer.net, o->kind->family, r->in.config,
                                            &r->in.tokenizer};
    struct session_options options = session_defaults();
    struct session s;
    options.n_prompts = 1;
    TRY(session_open_weights(&s, &weights, o->kind->sample.task, &options));
    struct status status = status_ok();
    for (int i = 0; i < o->sample_prompts.n && !failed(status); i++) {
        status = draw_one(r, &s, o->sample_prompts.of[i]);
    }
    session_close(&s);
    return status;
}

void samples_draw(struct pretrain_run *r)
{
    if (r->options->sample_prompts.n > 0 && together_is_first(&r->run.loop.ranks.world)) {
        struct status s = draw_all(r);
        if (failed(s)) {
            log_warning("no samples: %s", s.message);
        }
    }
}
