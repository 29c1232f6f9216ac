/* What a dry run of pre-training plans with where its inputs are not there yet. */
#include "task/pretrain_inputs.h"

#include "core/log.h"
#include "data/bert/bert_form.h"
#include "task/config_file.h"
#include "text/tokenizer_open.h"

#include <string.h>

/* Google's uncased vocabulary, of the documents' models; and where its special tokens are. */
enum { USUAL_WORDS = 30522, USUAL_PAD = 0, USUAL_CLS = 101, USUAL_SEP = 102, USUAL_MASK = 103 };

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

static struct status assume_words(struct bert_config *model, const struct pretrain_options *o)
{
    struct tokenizer t;
    int64_t n = 0;
    if (o->vocab_file != NULL && !missing_is(o->vocab_file)) {
        TRY(tokenizer_open_beside(&t, o->vocab_file));
        n = t.n;
        tokenizer_fini(&t);
    } else if (model->vocab_size == 0) {
        log_info("planned with a vocabulary of %d pieces", USUAL_WORDS);
        n = USUAL_WORDS;
    }
    model->vocab_size = model->vocab_size == 0 ? n : model->vocab_size;
    model->n_words = n > 0 ? n : model->vocab_size;
    return status_ok();
}

struct status pretrain_inputs_assume(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    *in = (struct pretrain_inputs){.assumed = true};
    struct bert_loader_config c = {
        .vocab_size = USUAL_WORDS,
        .pad_id = USUAL_PAD,
        .cls_id = USUAL_CLS,
        .sep_id = USUAL_SEP,
        .mask_id = USUAL_MASK,
        .max_seq_length = o->max_seq_length,
        .max_predictions_per_seq = o->max_predictions_per_seq,
        .train_batch_size = o->train_batch_size,
        .gradient_accumulation_steps = o->gradient_accumulation_steps,
        .masked_lm_prob = o->mask_rate[1],
        .short_seq_prob = o->short_seq_prob,
        .no_nsp = o->no_nsp,
        .n_shorter = o->n_shorter,
    };
    memcpy(c.shorter, o->shorter, sizeof c.shorter);
    TRY(bert_form_check(&c));
    in->limits = bert_form_limits(&c);
    in->train.source.n_micro = o->gradient_accumulation_steps;
    in->train.loader.config.max_seq_length = o->max_seq_length;
    if (missing_is(o->config_file)) {
        return status_ok();
    }
    TRY(config_file_read(&in->model, o->config_file));
    TRY(assume_words(&in->model, o));
    return pretrain_inputs_check_length(in, o);
}
