#include "task/finetune_missing.h"

#include "core/log.h"
#include "data/sorted_batches.h"
#include "model/bert_family.h"
#include "task/config_file.h"

enum { USUAL_WORDS = 30522 }; /* Google's uncased vocabulary, of the documents' models */

bool finetune_find_missing(const struct finetune_options *o, struct missing *m)
{
    missing_config(m, o->config_file);
    missing_weights(m, o->init_checkpoint);
    missing_path(m, "vocab_file", o->vocab_file, "it comes with the model, and may be left out");
    if (o->do_train) {
        missing_path(m, "train_file", o->train_file, "yours to bring: SQuAD's is train-v1.1.json");
    }
    missing_path(m, "eval_file", o->eval_file, "yours to bring: labelled data that is not trained on");
    if (o->do_predict) {
        missing_path(m, "predict_file", o->predict_file, "yours to bring: SQuAD's is dev-v1.1.json");
    }
    return m->n > 0;
}

struct status finetune_assume_model(struct bert_config *model, const struct finetune_options *o)
{
    *model = (struct bert_config){0};
    if (o->config_file != NULL && !missing_is(o->config_file)) {
        TRY(config_file_read(model, o->config_file));
    } else if (!missing_weights_are(o->init_checkpoint)) {
        struct model_dir m;
        TRY(model_dir_open_given(&m, o->init_checkpoint, (struct model_dir_given){NULL, o->vocab_file}));
        *model = *bert_family_config(&m);
        model->labels = NULL; /* the directory's */
        model_dir_close(&m);
    } else {
        return status_ok();
    }
    if (model->vocab_size == 0) {
        log_info("planned with a vocabulary of %d pieces", USUAL_WORDS);
        model->vocab_size = USUAL_WORDS;
    }
    if (model->max_position_embeddings < o->max_seq_length) {
        return status_error(STATUS_USAGE,
                            "--max_seq_length %lld is more than the %lld positions of the model",
                            (long long)o->max_seq_length, (long long)model->max_position_embeddings);
    }
    return status_ok();
}

struct status finetune_assume_limits(const struct finetune_options *o, struct batch_limits *train,
                                     struct batch_limits *predict)
{
    if (o->do_train) {
        TRY(batch_check_cut(o->train_batch_size, o->gradient_accumulation_steps));
        *train =
            bert_batch_limits(o->train_batch_size / o->gradient_accumulation_steps, o->max_seq_length, 0);
    }
    if (o->do_predict) {
        *predict = sorted_batches_limits(o->predict_batch_size, o->max_seq_length);
    }
    return status_ok();
}
