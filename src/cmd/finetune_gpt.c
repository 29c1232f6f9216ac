/* kiln finetune-gpt: the command line of task/gpt/gpt_finetune.h, with the names that run_clm.py of
 * `transformers` has, where it has them. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "task/gpt/gpt_finetune.h"
#include "optim/optimizer.h"

#include <stddef.h>

struct finetune_gpt_args {
    struct gpt_finetune_options tune;
    struct launcher_flags launcher;
    struct option_given given;
};

#define AT(field)       offsetof(struct finetune_gpt_args, tune.run.run.field)
#define PRETRAIN(field) offsetof(struct finetune_gpt_args, tune.run.field)
#define OWN(field)      offsetof(struct finetune_gpt_args, tune.field)

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    OPTION_REQUIRED_ROW(
        "init_checkpoint", AT(init_checkpoint), "PATH",
        "start from this decoder: a directory as `transformers` writes it, a checkpoint or "
        "run of kiln, or another program's file with config.json and the tokenizer beside it"),
    MODEL_ROW,
    OPTION_SAME_ROW("model_name_or_path", "init_checkpoint",
                    "the same as --init_checkpoint; nothing is downloaded"),
    OPTION_REQUIRED_LIST_ROW(
        "train_file", OWN(train_files), "PATH...",
        "train on these files and folders: text (.txt, .md), or lines of JSON (.jsonl) with a "
        "\"text\", a \"prompt\" and its \"completion\", or \"messages\" each, also compressed; or on the "
        "prefix of a .bin and .idx from `kiln prepare --format gpt`"),
    OPTION_LIST_ROW("validation_file", OWN(validation_files), "PATH...",
                    "measure the perplexity of these, in the same forms; default: a part of --train_file"),
    OPTION_SAME_ROW("eval_file", "validation_file", "the same as --validation_file"),
    OPTION_INT_ROW(
        "validation_split_percentage", OWN(validation_percent), "5", 1, 99,
        "percent of --train_file that is held out where there is no --validation_file: its end, or "
        "examples drawn from all"),
    OPTION_STRING_ROW("text_field", OWN(text_field), NULL, "KEY",
                      "key of the text in a line of JSON; default: text"),
    OPTION_STRING_ROW(
        "chat_template", AT(vocabulary.chat_template), NULL, "FILE",
        "template (Jinja) that makes a text of \"messages\", which the model keeps; default: the "
        "model's own"),
    OPTION_REQUIRED_ROW("output_dir", AT(common.output_dir), "DIR",
                        "write the model into DIR/model, and checkpoints, log.jsonl and report.html here"),
    OPTION_STRING_ROW("vocab_file", AT(vocabulary.vocab_file), NULL, "FILE",
                      "tokenizer.json or vocab.json of a model that has none beside it"),
    NO_PARSE_SPECIAL_ROW(OWN(no_parse_special_tokens)),
    OPTION_GROUP_ROW("training"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "0", 0, 65536,
                   "number of tokens of a sample; 0: the model's positions, 1024 at most"),
    OPTION_SAME_ROW("block_size", "max_seq_length", "the same as --max_seq_length"),
    OPTION_INT_ROW("train_batch_size", AT(batch.train_batch_size), "8", 1, 1e6,
                   "number of samples in an optimizer step, per rank"),
    ACCUMULATION_ROW,
    OPTION_REAL_ROW("num_train_epochs", OWN(n_epochs), "3.0", 0, 1e6, "number of passes through the text"),
    OPTION_INT_ROW("max_steps", AT(max_steps), "-1", -1, 1e12,
                   "number of steps, instead of --num_train_epochs; -1 and 0: off"),
    OPTION_REAL_ROW("learning_rate", AT(learning_rate), "5e-5", 0, 100,
                    "learning rate at the end of the warm-up; small models take more, up to 1e-3"),
    OPTION_REAL_ROW("warmup_proportion", AT(warmup_proportion), "0", 0, 1,
                    "fraction of the steps in which the learning rate rises from 0"),
    OPTION_CHOICE_ROW("lr_schedule", PRETRAIN(schedule), "linear", "linear|constant",
                      "choose the rate after the warm-up: it falls to 0, or stays"),
    OPTIMIZER_ROW(PRETRAIN(optimizer)),
    OPTION_REAL_ROW("weight_decay", PRETRAIN(update.weight_decay), "0", 0, 10,
                    "weight decay of matrices and embeddings"),
    CLIPPING_ROW,
    ADAM_BETA_ROWS("decay of the first moment"),
    ADAM_EPS_ROW("1e-8"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "seed of data order and dropout"),
    OPTION_ROWS_OF(settings_precision, AT(precision)),
    LOSS_SCALE_ROW,
    RECOMPUTATION_ROW,
    DEVICE_ROW(AT(device)),
    OPTION_GROUP_ROW("checkpoints and resumption"),
    RESUME_ROW,
    OTHER_DATA_ROW("--train_file is not what"),
    OPTION_INT_ROW("num_steps_per_checkpoint", AT(num_steps_per_checkpoint), "1000", 0, 1e12,
                   "number of steps between checkpoints to resume from; 0: off, only at the end"),
    OPTION_INT_ROW("keep_checkpoints", AT(keep_checkpoints), "1", 0, 1e6,
                   "keep the last N; 0: off, keep all"),
    OPTION_GROUP_ROW("logs and evaluation"),
    OPTION_INT_ROW("eval_steps", AT(eval_steps), "0", 0, 1e12,
                   "number of steps between evaluations on held-out text; 0: off, only before and after"),
    OPTION_INT_ROW("eval_samples", PRETRAIN(eval_samples), "128", 1, 1e9,
                   "number of held-out samples in an evaluation"),
    NGRAM_ROW(OWN(gpt.ngram_tokens), ""),
    OPTION_ROWS_OF(settings_early_stopping, AT(early)),
    OPTION_INT_ROW("log_freq", AT(log_freq), "10", 1, 1e9, LOG_FREQ_HELP),
    RUN_LOG_ROWS,
    PROGRESS_BAR_ROW(AT(common.disable_progress_bar)),
    DRY_RUN_OF_TRAINING_ROW,
    OPTION_ROWS_OF(settings_ranks, AT(ranks)),
    OPTION_GROUP_ROW("flags of the replaced scripts"),
    OPTION_ROWS_OF(settings_launcher, offsetof(struct finetune_gpt_args, launcher)),
    {0},
};

static struct status train(const struct train_command *t, void *args)
{
    struct finetune_gpt_args *a = args;
    json_t *flags;
    TRY(train_command_flags(&flags, t, a));
    a->tune.run.loss_norm = "global";
    struct status s = gpt_finetune_run(&a->tune);
    json_decref(flags);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct finetune_gpt_args *a = args;
    return train_command_run(&(struct train_command){.command = &command_finetune_gpt,
                                                     .launcher = &a->launcher,
                                                     .log_freq = "log_freq",
                                                     .train = train},
                             args);
}

const struct command command_finetune_gpt = {
    .name = "finetune-gpt",
    .summary = "fine-tune a decoder (GPT-2, BLOOM, Llama) on your text, or on prompts and answers",
    .details =
        "Takes a model with its tokenizer and text, or examples of what to answer, trains, and prints the "
        "perplexity of what was held out before and after. Of \"prompt\" and \"completion\" the completion "
        "alone "
        "has a loss, with the end of the text after it; of \"messages\", as OpenAI has them, what the "
        "assistant "
        "says: what the chat template marks by {% generation %}, or else what a message adds to the prompt "
        "that "
        "asks for it. With --dry_run it says what would be trained. The model goes to OUTPUT_DIR/model, for "
        "`transformers` too. Rate, schedule "
        "and "
        "optimizer are those of run_clm.py of `transformers` unless flags say others; dropout is that of the "
        "model's config.json. Ctrl-C, SIGTERM or SIGHUP saves and ends with exit code 75; the same command "
        "with "
        "--resume_from_checkpoint continues as if it had never stopped.",
    .options = options,
    .usual = "init_checkpoint|train_file|validation_file|validation_split_percentage|text_field|chat_"
             "template|output_dir|max_seq_length|"
             "train_batch_size|gradient_accumulation_steps|num_train_epochs|max_steps|learning_rate|"
             "warmup_proportion|optimizer|seed|autocast|checkpoint_activations|device|resume_from_checkpoint|"
             "num_steps_per_checkpoint|eval_steps|eval_samples|early_stopping_patience|log_freq|dry-run",
    .args_bytes = sizeof(struct finetune_gpt_args),
    .given = offsetof(struct finetune_gpt_args, given),
    .run = run,
    .of_ranks = true,
};
