/* What a dry run of pre-training plans with where its inputs are not there yet. */
#include "task/pretrain_inputs.h"

#include "core/integers.h"
#include "core/log.h"
#include "task/pretrain_settings.h"

#include <stdlib.h>
#include <string.h>

bool pretrain_inputs_find_missing(const struct pretrain_options *o, struct missing *m)
{
    char data[PRETRAIN_PATH_BYTES];
    const char *suffix = o->kind->data_suffix;
    snprintf(data, sizeof data, "%s%s", o->input_dir, suffix != NULL ? suffix : "");
    if (o->config == NULL) {
        missing_config(m, o->config_file);
    }
    if (!o->makes_data) {
        missing_path(m, pretrain_flags(o).data + strlen("--"), data,
                     "`kiln prepare` makes it from text, `kiln pack` makes packed files from padded ones");
        missing_path(m, "eval_input_dir", o->eval_input_dir, "`kiln prepare` makes it from text");
    }
    missing_path(m, "deepspeed_config", o->deepspeed_config,
                 "DeepSpeed's JSON; planned without its batch and precision");
    missing_path(m, "vocab_file", o->vocab_file,
                 "`kiln vocab` makes one from text; Google's models have theirs beside them");
    missing_path(m, "merge_file", o->merge_file, "the merges of the vocabulary");
    missing_weights(m, o->init_checkpoint);
    return m->n > 0 || o->makes_data;
}

static struct status assume_words(const struct model_family *family, void *config,
                                  const struct pretrain_options *o)
{
    struct tokenizer t;
    int64_t n = 0, rows = family->sizes(config).vocab_size;
    if (o->vocab_file != NULL && !missing_is(o->vocab_file) &&
        (o->merge_file == NULL || !missing_is(o->merge_file))) {
        TRY(pretrain_inputs_open_vocab(&t, o));
        n = t.n;
        tokenizer_fini(&t);
    } else if (rows == 0) {
        n = family->usual_words;
        log_info("planned with a vocabulary of %lld pieces", (long long)n);
    }
    rows = rows == 0 ? int_round_up(n, int_larger(o->vocab_multiple, 1)) : rows;
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
    return o->config == NULL && missing_is(o->config_file) ? status_ok() : assume_model(in, o);
}
