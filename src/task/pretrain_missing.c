/* What a dry run of pre-training plans with where its inputs are not there yet. */
#include "task/pretrain_inputs.h"

#include "core/log.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>

bool pretrain_inputs_find_missing(const struct pretrain_options *o, struct missing *m)
{
    missing_config(m, o->config_file);
    missing_path(m, "input_dir", o->input_dir,
                 "`kiln prepare` makes it from text, `kiln pack` makes packed files from padded ones");
    missing_path(m, "eval_input_dir", o->eval_input_dir, "`kiln prepare` makes it from text");
    missing_path(m, "deepspeed_config", o->deepspeed_config,
                 "DeepSpeed's JSON; planned with the batch and precision of no file");
    missing_path(m, "vocab_file", o->vocab_file,
                 "`kiln vocab` makes one from text; Google's models have theirs beside them");
    missing_weights(m, o->init_checkpoint);
    return m->n > 0;
}

static struct status assume_words(const struct model_family *family, void *config,
                                  const struct pretrain_options *o)
{
    struct tokenizer t;
    int64_t n = 0, rows = family->sizes(config).vocab_size;
    if (o->vocab_file != NULL && !missing_is(o->vocab_file)) {
        TRY(tokenizer_open_beside(&t, o->vocab_file));
        n = t.n;
        tokenizer_fini(&t);
    } else if (rows == 0) {
        n = family->usual_words;
        log_info("planned with a vocabulary of %lld pieces", (long long)n);
    }
    rows = rows == 0 ? n : rows;
    family->set_words(config, rows, n > 0 ? n : rows);
    return status_ok();
}

static struct status assume_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    void *config;
    TRY(pretrain_inputs_read_config(&config, o));
    struct status s = assume_words(o->kind->family, config, o);
    s = failed(s) ? s : o->kind->family->create(&in->model, config, o->kind->task(o));
    free(config);
    return failed(s) ? s : pretrain_inputs_check_length(in, o);
}

struct status pretrain_inputs_assume(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    *in = (struct pretrain_inputs){.assumed = true};
    TRY(o->kind->assume(&in->limits, o));
    in->train.source.n_micro = o->gradient_accumulation_steps;
    in->train.longest = o->max_seq_length;
    return missing_is(o->config_file) ? status_ok() : assume_model(in, o);
}
