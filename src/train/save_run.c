#include "train/save_run.h"

#include "core/log.h"
#include "text/tokenizer_config.h"
#include "train/checkpoint.h"

struct status save_run_checkpoint(const struct trainer *t, const struct save_run *s)
{
    const struct bert_config *model = &t->config.model;
    struct tokenizer_config text = {s->lower_case, model->max_position_embeddings};
    json_t *config = bert_config_to_json(model, bert_task_class(t->config.task));
    json_t *tokenizer = tokenizer_config_to_json(&text);
    struct checkpoint_contents contents = {
        .params = &t->params,
        .master = t->master,
        .exp_avg = t->exp_avg,
        .exp_avg_sq = t->exp_avg_sq,
        .config = config,
        .tokenizer = tokenizer,
        .state = s->state,
        .vocab = s->vocab->text,
        .vocab_bytes = s->vocab->text_bytes,
        .vocab_hash = s->vocab->hash,
        .step = s->step,
        .phase_end = s->phase_end,
    };
    struct status status = config == NULL || tokenizer == NULL || s->state == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for a checkpoint")
                               : checkpoint_save(s->directory, &contents);
    json_decref(config);
    json_decref(tokenizer);
    if (!failed(status)) {
        log_info("saved %s/ckpt_%lld", s->directory, (long long)s->step);
        status = checkpoint_dir_prune(s->directory, s->step, s->keep_last);
    }
    return status;
}
