/* kiln tag: the command line of task/tag.h. */
#include "cmd/commands.h"
#include "cmd/finetune_flags.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "task/tag.h"

#include <stddef.h>

struct tag_args {
    struct tag_options run;
    struct launcher_flags launcher;
    struct option_given given;
};

#define AT(field)   offsetof(struct tag_args, run.run.run.field)
#define TUNE(field) offsetof(struct tag_args, run.run.field)
#define OWN(field)  offsetof(struct tag_args, run.field)

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    FINETUNE_PLACE_ROWS("write the fine-tuned model, predictions.conll and log.jsonl into this directory"),
    OPTION_STRING_ROW("train_file", TUNE(train_file), NULL, "FILE",
                      "train on the words and labels of this file: CoNLL columns, or JSON lines if its name "
                      "ends in .json or .jsonl"),
    FINETUNE_PREDICT_ROWS("label the sentences of this file, in the same form"),
    OPTION_STRING_ROW("text_column_name", OWN(text_column_name), NULL, "NAME",
                      "column of the words: a key in JSON lines (default: tokens or words), a number from 1 "
                      "in CoNLL, or a name in CoNLL-U"),
    OPTION_STRING_ROW("text_column", OWN(text_column_name), NULL, "NAME", "the same as --text_column_name"),
    OPTION_STRING_ROW("label_column_name", OWN(label_column_name), NULL, "NAME",
                      "column of the labels; default: labels, ner_tags or tags in JSON lines, the last "
                      "column in CoNLL, UPOS in CoNLL-U"),
    OPTION_STRING_ROW("label_column", OWN(label_column_name), NULL, "NAME",
                      "the same as --label_column_name"),
    FINETUNE_MODEL_ROWS,
    FINETUNE_DO_ROWS("label --predict_file", "score the entities as seqeval does; implies --do_predict"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(max_seq_length), "128", 5, 65536,
                   "maximum number of tokens of a sentence; a longer one is split"),
    OPTION_FLAG_ROW("do_lower_case", TUNE(do_lower_case),
                    "lower-case text and strip accents; implied by an uncased model"),
    OPTION_GROUP_ROW("training"),
    FINETUNE_TRAINING_ROWS,
    OPTION_REAL_ROW("weight_decay", OWN(weight_decay), "0", 0, 10, "weight decay of matrices in AdamW"),
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of sentences in a batch; sentences are sorted by length"),
    FINETUNE_LOG_ROWS,
    OPTION_GROUP_ROW("flags of the replaced scripts"),
    OPTION_ROWS_OF(settings_launcher, offsetof(struct tag_args, launcher)),
    {0},
};

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct tag_args *a = args;
    (void)n_positional, (void)positional;
    return finetune_command_run(&command_tag, &tag_task, args, &a->launcher, false);
}

const struct command command_tag = {
    .name = "tag",
    .summary = "fine-tune a model to label the words of sentences, such as names, and label them",
    .details = "The fine-tuned model goes to OUTPUT_DIR/model, for `transformers` too.  The first piece of a "
               "word has its label.  A fine-tuned model keeps its labels; a new classifier takes the labels "
               "of --train_file, sorted.",
    .positional_usage = "",
    .options = options,
    .usual = "init_checkpoint|output_dir|train_file|predict_file|text_column|label_column|do_train|"
             "do_predict|do_eval|max_seq_length|do_lower_case|train_batch_size|"
             "gradient_accumulation_steps|learning_rate|num_train_epochs|eval_file|"
             "early_stopping_patience|seed|seeds|autocast|device|num_steps_per_checkpoint|"
             "resume_from_checkpoint|overwrite_output_dir|predict_batch_size|log_freq|dry-run",
    .given = offsetof(struct tag_args, given),
    .args_bytes = sizeof(struct tag_args),
    .run = run,
    .of_ranks = true,
};
