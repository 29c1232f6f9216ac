/* kiln squad: the command line of task/squad.h. */
#include "cmd/commands.h"
#include "cmd/finetune_flags.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "task/squad.h"

#include <stddef.h>

struct squad_args {
    struct squad_options run;
    struct launcher_flags launcher;
    struct option_given given;
};

#define AT(field)   offsetof(struct squad_args, run.run.run.field)
#define TUNE(field) offsetof(struct squad_args, run.run.field)
#define OWN(field)  offsetof(struct squad_args, run.field)

/* run_squad.py keeps the features of a --train_file in a file beside it. */
#define NO_CACHE "features are computed in each run, in seconds; there is no cache"

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    FINETUNE_PLACE_ROWS("write the fine-tuned model, predictions.json, nbest_predictions.json and log.jsonl "
                        "into this directory"),
    OPTION_STRING_ROW("train_file", TUNE(train_file), NULL, "FILE",
                      "train on the questions of this file, in SQuAD's format"),
    OPTION_STRING_ROW("predict_file", TUNE(predict_file), NULL, "FILE",
                      "answer the questions of this file, in SQuAD's format"),
    FINETUNE_MODEL_ROWS,
    OPTION_IGNORED_VALUE_ROW("bert_model", "NAME", "the model is --init_checkpoint"),
    FINETUNE_DO_ROWS("answer --predict_file", "score the predictions: exact match and F1"),
    OPTION_STRING_ROW("eval_script", OWN(eval_script), NULL, "FILE",
                      "score with this Python script instead of the built-in metric: it prints "
                      "\"exact_match\" and \"f1\" as JSON"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(max_seq_length), "384", 5, 65536,
                   "maximum number of tokens of a question and its window together"),
    OPTION_INT_ROW("doc_stride", OWN(doc_stride), "128", 1, 65536,
                   "number of tokens from one window to the next"),
    OPTION_INT_ROW("max_query_length", OWN(max_query_length), "64", 1, 65536,
                   "maximum number of tokens of a question; a longer one is cut"),
    OPTION_FLAG_ROW("do_lower_case", TUNE(do_lower_case),
                    "lower-case text and strip accents; implied by an uncased model"),
    OPTION_FLAG_ROW("version_2_with_negative", OWN(version_2_with_negative),
                    "allow questions without an answer, as in SQuAD v2"),
    OPTION_IGNORED_VALUE_ROW("cache_dir", "DIR", NO_CACHE),
    OPTION_IGNORED_ROW("skip_cache", NO_CACHE),
    OPTION_GROUP_ROW("training"),
    FINETUNE_TRAINING_ROWS,
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of features in a batch; features are sorted by length"),
    OPTION_INT_ROW("n_best_size", OWN(n_best_size), "20", 1, 1000,
                   "number of answers to each question in nbest_predictions.json"),
    OPTION_INT_ROW("max_answer_length", OWN(max_answer_length), "30", 1, 65536,
                   "maximum number of tokens of an answer"),
    OPTION_REAL_ROW("null_score_diff_threshold", OWN(null_score_diff_threshold), "0.0", -1e6, 1e6,
                    "v2: give no answer if the score of none exceeds the best answer's by more than this"),
    FINETUNE_LOG_ROWS,
    OPTION_ROWS_OF(settings_replaced, AT(device)),
    OPTION_IGNORED_ROW("use_fused_adam", "AdamW is always fused"),
    OPTION_IGNORED_ROW("use_hpu_graphs", "a GPU's work is always captured, the cpu's never"),
    OPTION_IGNORED_ROW("verbose_logging", "warnings are never left out"),
    OPTION_REFUSED_ROW("per_param_grad_clipping", "gradients are clipped at their global norm; leave it out"),
    OPTION_ROWS_OF(settings_launcher, offsetof(struct squad_args, launcher)),
    {0},
};

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct squad_args *a = args;
    (void)n_positional, (void)positional;
    return finetune_command_run(&command_squad, &squad_task, args, &a->launcher, true);
}

const struct command command_squad = {
    .name = "squad",
    .summary = "fine-tune a model to find answers in a text, and answer questions",
    .details = "Takes the flags of run_squad.py.  The fine-tuned model goes to OUTPUT_DIR/model, for `kiln "
               "ask` and for `transformers`.",
    .positional_usage = "",
    .options = options,
    .usual = "init_checkpoint|output_dir|train_file|predict_file|version_2_with_negative|do_train|"
             "do_predict|do_eval|max_seq_length|do_lower_case|train_batch_size|"
             "gradient_accumulation_steps|learning_rate|num_train_epochs|eval_file|"
             "early_stopping_patience|seed|seeds|autocast|device|num_steps_per_checkpoint|"
             "resume_from_checkpoint|overwrite_output_dir|predict_batch_size|log_freq|dry-run",
    .given = offsetof(struct squad_args, given),
    .args_bytes = sizeof(struct squad_args),
    .run = run,
    .of_ranks = true,
};
