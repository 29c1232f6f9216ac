#include "task/finetune_missing.h"

#include "core/log.h"
#include "serve/packer.h"
#include "model/model_dir.h"

#include <stdlib.h>

bool finetune_find_missing(const struct finetune_options *o, struct missing *m)
{
    missing_config(m, o->config_file);
    missing_weights(m, o->init_checkpoint);
    missing_path(m, "vocab_file", o->vocab_file, "it comes with the model, so the flag may be left out");
    if (o->do_train) {
        missing_path(m, "train_file", o->train_file, "you provide it; SQuAD's is train-v1.1.json");
    }
    missing_path(m, "eval_file", o->eval_file, "you provide it: labelled data that is not used for training");
    if (o->do_predict) {
        missing_path(m, "predict_file", o->predict_file, "you provide it; SQuAD's is dev-v1.1.json");
    }
    return m->n > 0;
}

/* The vocabulary is the usual one where nothing says its size. */
static struct status create(struct model **model, const struct model_family *family, void *config,
                            const struct finetune_options *o, enum model_task task)
{
    struct model_family_sizes sizes = family->sizes(config);
    if (sizes.vocab_size == 0) {
        log_info("planned with a vocabulary of %lld pieces", (long long)family->usual_words);
        family->set_words(config, family->usual_words, family->usual_words);
    }
    if (sizes.max_length < o->max_seq_length) {
        return status_error(STATUS_USAGE,
                            "--max_seq_length %lld is more than the %lld positions of the model",
                            (long long)o->max_seq_length, (long long)sizes.max_length);
    }
    return family->create(model, config, task);
}

static struct status create_of_file(struct model **model, const struct finetune_options *o,
                                    enum model_task task)
{
    const struct model_family *family;
    void *config;
    json_t *root;
    TRY(model_family_read_config(&family, &config, &root, o->config_file));
    struct status s = create(model, family, config, o, task);
    free(config);
    json_decref(root);
    return s;
}

static struct status create_of_directory(struct model **model, const struct finetune_options *o,
                                         enum model_task task)
{
    struct model_dir m;
    TRY(model_dir_open_given(&m, o->init_checkpoint, (struct model_dir_given){.vocab_file = o->vocab_file}));
    model_dir_labels(&m)->names = NULL; /* the directory's, which is closed */
    struct status s = create(model, m.family, m.config, o, task);
    model_dir_close(&m);
    return s;
}

struct status finetune_assume_model(struct model **model, const struct finetune_options *o,
                                    enum model_task task)
{
    *model = NULL;
    if (o->config_file != NULL && !missing_is(o->config_file)) {
        return create_of_file(model, o, task);
    }
    return missing_weights_are(o->init_checkpoint) ? status_ok() : create_of_directory(model, o, task);
}

struct status finetune_assume_limits(const struct finetune_options *o, struct batch_limits *train,
                                     struct batch_limits *predict)
{
    if (o->do_train) {
        TRY(batch_check_cut(o->train_batch_size, o->gradient_accumulation_steps));
        *train =
            text_batch_limits(o->train_batch_size / o->gradient_accumulation_steps, o->max_seq_length, 0);
    }
    if (o->do_predict) {
        *predict = packer_limits(o->predict_batch_size * o->max_seq_length, o->max_seq_length);
    }
    return status_ok();
}
