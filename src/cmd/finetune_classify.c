/* kiln classify: the command line of task/classify.h. */
#include "cmd/commands.h"
#include "cmd/finetune_flags.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "task/classify.h"

#include <stddef.h>

struct classify_args {
    struct classify_options run;
    struct launcher_flags launcher;
    struct option_given given;
};

#define AT(field)   offsetof(struct classify_args, run.run.run.field)
#define TUNE(field) offsetof(struct classify_args, run.run.field)
#define OWN(field)  offsetof(struct classify_args, run.field)

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    FINETUNE_PLACE_ROWS("write the fine-tuned model, predictions.jsonl and log.jsonl into this directory"),
    OPTION_STRING_ROW(
        "train_file", TUNE(train_file), NULL, "FILE",
        "train on the texts and labels of this file: .csv, .tsv or, for JSON lines, .json or .jsonl"),
    FINETUNE_PREDICT_ROWS("classify the texts of this file, in the same form"),
    OPTION_STRING_ROW("text_column_name", OWN(text_column_name), NULL, "NAME",
                      "column of the text, by name or number; default: sentence, text or another usual name, "
                      "or the first of a pair of GLUE's"),
    OPTION_STRING_ROW("text_column", OWN(text_column_name), NULL, "NAME", "the same as --text_column_name"),
    OPTION_STRING_ROW("text_pair_column_name", OWN(text_pair_column_name), NULL, "NAME",
                      "column of the second text of pairs; default: sentence2 or another of GLUE's"),
    OPTION_STRING_ROW("label_column_name", OWN(label_column_name), NULL, "NAME",
                      "column of the label, by name or number; default: label, labels or another usual name"),
    OPTION_STRING_ROW("label_column", OWN(label_column_name), NULL, "NAME",
                      "the same as --label_column_name"),
    OPTION_FLAG_ROW("no_header", OWN(no_header),
                    "read the first line of a .csv or .tsv as a row; columns are then called 1, 2, ..."),
    OPTION_STRING_ROW(
        "label_separator", OWN(label_separator), NULL, "CHARACTER",
        "split several labels of a text at this character; default: a comma; JSON lists need none"),
    OPTION_STRING_ROW("problem_type", OWN(problem_type), "auto", "NAME",
                      "kind of labels: single_label_classification, multi_label_classification or "
                      "regression; auto: the kind in the model's config.json; for a new classifier lists "
                      "mean several labels, numbers with a decimal point regression, all else one label"),
    FINETUNE_MODEL_ROWS,
    FINETUNE_DO_ROWS("classify --predict_file",
                     "score the predictions by GLUE's metrics; implies --do_predict"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(max_seq_length), "128", 5, 65536,
                   "maximum number of tokens of a text or pair; a longer text, or the longer text of a pair, "
                   "is cut at its end"),
    OPTION_FLAG_ROW("do_lower_case", TUNE(do_lower_case),
                    "lower-case text and strip accents; implied by an uncased model"),
    OPTION_GROUP_ROW("training"),
    FINETUNE_TRAINING_ROWS,
    OPTION_REAL_ROW("weight_decay", OWN(weight_decay), "0", 0, 10, "weight decay of matrices in AdamW"),
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of texts in a batch; texts are sorted by length"),
    FINETUNE_LOG_ROWS,
    OPTION_GROUP_ROW("flags of the replaced scripts"),
    OPTION_ROWS_OF(settings_launcher, offsetof(struct classify_args, launcher)),
    {0},
};

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct classify_args *a = args;
    (void)n_positional, (void)positional;
    return finetune_command_run(&command_classify, &classify_task, args, &a->launcher, false);
}

const struct command command_classify = {
    .name = "classify",
    .summary = "fine-tune a model on labelled texts or pairs of texts, and classify texts",
    .details =
        "The fine-tuned model goes to OUTPUT_DIR/model, for `transformers` too.  A fine-tuned model keeps "
        "its labels; a new classifier takes the labels of --train_file, sorted, numbers by value.",
    .positional_usage = "",
    .options = options,
    .usual = "init_checkpoint|output_dir|train_file|predict_file|text_column|label_column|problem_type|"
             "do_train|do_predict|do_eval|max_seq_length|do_lower_case|train_batch_size|"
             "gradient_accumulation_steps|learning_rate|num_train_epochs|eval_file|"
             "early_stopping_patience|seed|seeds|autocast|device|num_steps_per_checkpoint|"
             "resume_from_checkpoint|overwrite_output_dir|predict_batch_size|log_freq|dry-run",
    .given = offsetof(struct classify_args, given),
    .args_bytes = sizeof(struct classify_args),
    .run = run,
    .of_ranks = true,
};
