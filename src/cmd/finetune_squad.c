/* kiln squad: the command line of train/squad.h. */
#include "cmd/commands.h"
#include "cmd/launcher_flags.h"
#include "cmd/precision_flags.h"
#include "cmd/replaced_flags.h"
#include "cmd/run_log_flags.h"
#include "train/squad.h"

#include <stddef.h>

struct squad_args {
    struct squad_options run;
    struct launcher_flags launcher;
};

#define AT(field) offsetof(struct squad_args, run.field)

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    OPTION_REQUIRED_ROW("init_checkpoint", AT(init_checkpoint), "DIR",
                        "the model to start from: a checkpoint, or a directory as `transformers` writes it"),
    OPTION_REQUIRED_ROW(
        "output_dir", AT(output_dir), "DIR",
        "where the fine-tuned model, predictions.json, nbest_predictions.json and log.jsonl are written"),
    OPTION_STRING_ROW("train_file", AT(train_file), NULL, "FILE", "SQuAD-format questions to train on"),
    OPTION_STRING_ROW("predict_file", AT(predict_file), NULL, "FILE", "SQuAD-format questions to answer"),
    OPTION_STRING_ROW("config_file", AT(config_file), NULL, "FILE",
                      "checked against the model's own config.json, which is used"),
    OPTION_STRING_ROW("vocab_file", AT(vocab_file), NULL, "FILE",
                      "checked against the model's own vocabulary, which is used"),
    OPTION_STRING_ROW("bert_model", AT(bert_model), "bert", "NAME", "part of the name of the feature cache"),
    OPTION_FLAG_ROW("do_train", AT(do_train), "fine-tune on --train_file"),
    OPTION_FLAG_ROW("do_predict", AT(do_predict), "answer --predict_file"),
    OPTION_FLAG_ROW("do_eval", AT(do_eval), "score the predictions: exact match and F1"),
    OPTION_STRING_ROW("eval_script", AT(eval_script), NULL, "FILE",
                      "score with this Python script instead of the built-in metric"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(max_seq_length), "384", 5, 65536,
                   "tokens of question and window together"),
    OPTION_INT_ROW("doc_stride", AT(doc_stride), "128", 1, 65536, "tokens from one window to the next"),
    OPTION_INT_ROW("max_query_length", AT(max_query_length), "64", 1, 65536, "longer questions are cut"),
    OPTION_FLAG_ROW("do_lower_case", AT(do_lower_case),
                    "lower case and strip accents; implied by an uncased model"),
    OPTION_FLAG_ROW("version_2_with_negative", AT(version_2_with_negative),
                    "SQuAD v2: questions may have no answer"),
    OPTION_STRING_ROW("cache_dir", AT(cache_dir), NULL, "DIR",
                      "where training features are cached; beside --train_file without it"),
    OPTION_FLAG_ROW("skip_cache", AT(skip_cache), "write no cache; an existing one is read"),
    OPTION_GROUP_ROW("training"),
    OPTION_INT_ROW("train_batch_size", AT(train_batch_size), "32", 1, 1e6, "features of an optimizer step"),
    OPTION_INT_ROW("gradient_accumulation_steps", AT(gradient_accumulation_steps), "1", 1, 1e6,
                   "micro-batches of an optimizer step; must divide --train_batch_size"),
    OPTION_REAL_ROW("learning_rate", AT(learning_rate), "5e-5", 0, 100,
                    "rate at the end of the warm-up; it falls to 0 on a line"),
    OPTION_REAL_ROW("warmup_proportion", AT(warmup_proportion), "0.1", 0, 1,
                    "part of the steps in which the rate rises"),
    OPTION_REAL_ROW("num_train_epochs", AT(num_train_epochs), "3.0", 0, 1e6,
                    "times through the features; whole ones"),
    OPTION_REAL_ROW("max_steps", AT(max_steps), "-1.0", -1, 1e12, "steps in place of epochs"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "of the new head, data order and dropout"),
    PRECISION_ROWS,
    LOSS_SCALE_ROW,
    OPTION_CHOICE_ROW("device", AT(device), "auto", "auto|cpu|cuda",
                      "where to compute; auto is the cpu, since cuda has not been tested on a GPU yet"),
    OPTION_FLAG_ROW("skip_checkpoint", AT(skip_checkpoint),
                    "save neither checkpoints nor the fine-tuned model"),
    OPTION_INT_ROW("num_steps_per_checkpoint", AT(num_steps_per_checkpoint), "1000", 0, 1e12,
                   "steps between checkpoints to resume from; 0: only when stopped"),
    OPTION_FLAG_ROW("resume_from_checkpoint", AT(resume_from_checkpoint),
                    "go on from the newest valid checkpoint of --output_dir, to the bit"),
    OPTION_FLAG_ROW("allow_other_data", AT(allow_other_data),
                    "resume although --train_file is not what the checkpoint was trained on"),
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", AT(predict_batch_size), "8", 1, 1e6,
                   "features at once, sorted by length"),
    OPTION_INT_ROW("n_best_size", AT(n_best_size), "20", 1, 1000, "answers in nbest_predictions.json"),
    OPTION_INT_ROW("max_answer_length", AT(max_answer_length), "30", 1, 65536, "longest answer in tokens"),
    OPTION_REAL_ROW("null_score_diff_threshold", AT(null_score_diff_threshold), "0.0", -1e6, 1e6,
                    "v2: no answer if its score is higher than the best answer's by more than this"),
    OPTION_GROUP_ROW("logs"),
    OPTION_INT_ROW("log_freq", AT(log_freq), "50", 1, 1e9, "steps between log lines"),
    OPTION_INT_ROW("throughput_warmup_steps", AT(throughput_warmup_steps), "0", 0, 1e9,
                   "steps that training_sequences_per_second leaves out"),
    RUN_LOG_ROWS,
    OPTION_FLAG_ROW("disable-progress-bar", AT(disable_progress_bar), "no live line on a terminal"),
    OPTION_FLAG_ROW("dry_run", AT(dry_run),
                    "check everything, say what would be computed and in how much memory, touch nothing"),
    LAUNCHER_FLAG_ROWS(offsetof(struct squad_args, launcher)),
    REPLACED_FLAG_ROWS,
    OPTION_IGNORED_ROW("use_fused_adam", "AdamW is always fused"),
    OPTION_IGNORED_ROW("use_hpu_graphs", "a GPU's work is always captured, the cpu's never"),
    OPTION_IGNORED_ROW("verbose_logging", "warnings are never left out"),
    OPTION_REFUSED_ROW("per_param_grad_clipping", "gradients are clipped at their global norm; leave it out"),
    {0},
};

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct squad_args *a = args;
    struct squad_options o = a->run;
    TRY(launcher_check_alone(&a->launcher));
    json_t *flags = option_values(&command_squad, args);
    o.flags = flags;
    struct status s = squad_run(&o);
    json_decref(flags);
    return s;
}

const struct command command_squad = {
    .name = "squad",
    .summary = "fine-tune BERT on questions whose answers are in a text, and answer them",
    .details = "Takes the flags of run_squad.py.  The fine-tuned model goes to OUTPUT_DIR/model, for `kiln "
               "ask` and for "
               "`transformers`.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct squad_args),
    .run = run,
};
