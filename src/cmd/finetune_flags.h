/* finetune_flags: the flags that `kiln squad`, `kiln classify` and `kiln tag` share, for their option tables;
 * AT(field) is the field's offset, in the command's own struct, of its struct finetune_options. */
#ifndef KILN_CMD_FINETUNE_FLAGS_H
#define KILN_CMD_FINETUNE_FLAGS_H

#include "cmd/settings.h"

#define FINETUNE_PLACE_ROWS(output_help)                                                                     \
    OPTION_REQUIRED_ROW(                                                                                     \
        "init_checkpoint", AT(init_checkpoint), "PATH",                                                      \
        "start from this model: a checkpoint, an output directory, a directory as `transformers` writes "    \
        "it, a file of PyTorch, or the prefix of a TensorFlow checkpoint"),                                  \
        OPTION_REQUIRED_ROW("output_dir", AT(output_dir), "DIR", output_help),                               \
        ENCODING_ROW(TUNE(encoding), "the files of text")

/* Flags with the names that scripts of `transformers` have. */
#define FINETUNE_PREDICT_ROWS(predict_help)                                                                  \
    OPTION_STRING_ROW("predict_file", TUNE(predict_file), NULL, "FILE", predict_help),                       \
        OPTION_SAME_ROW("validation_file", "predict_file", "the same as --predict_file"),                    \
        OPTION_SAME_ROW("test_file", "predict_file", "the same as --predict_file")

#define FINETUNE_DO_ROWS(predict_help, eval_help)                                                            \
    OPTION_FLAG_ROW("do_train", TUNE(do_train), "fine-tune on --train_file"),                                \
        OPTION_FLAG_ROW("do_predict", TUNE(do_predict), predict_help),                                       \
        OPTION_FLAG_ROW("do_eval", TUNE(do_eval), eval_help)

#define FINETUNE_MODEL_ROWS                                                                                  \
    MODEL_ROW,                                                                                               \
        OPTION_STRING_ROW("config_file", AT(config_file), NULL, "FILE",                                      \
                          "config.json for a model that has none; if it has one, both must agree"),          \
        OPTION_STRING_ROW("vocab_file", AT(vocab_file), NULL, "FILE",                                        \
                          "vocab.txt for a model that has none; if it has one, both must agree")

#define FINETUNE_TRAINING_ROWS                                                                               \
    OPTION_INT_ROW("train_batch_size", AT(train_batch_size), "32", 1, 1e6,                                   \
                   "number of sequences in an optimizer step, per rank"),                                    \
        ACCUMULATION_ROW,                                                                                    \
        OPTION_REAL_ROW("learning_rate", AT(learning_rate), "5e-5", 0, 100,                                  \
                        "learning rate at the end of the warm-up; then it falls linearly to 0"),             \
        OPTION_REAL_ROW("warmup_proportion", AT(warmup_proportion), "0.1", 0, 1,                             \
                        "fraction of the steps in which the learning rate rises"),                           \
        OPTION_STRING_ROW("freeze", TUNE(freeze), NULL, "LIST",                                              \
                          "do not train these parameters, separated by commas: embeddings, layers as 3 or "  \
                          "0-5, names of parameters, or patterns of names with *"),                          \
        OPTION_REAL_ROW("layerwise_lr_decay", TUNE(layerwise_lr_decay), "1", 1e-6, 1,                        \
                        "multiply the rate of layer l of L by X^(L - l); embeddings are layer -1, and "      \
                        "the head keeps the full rate"),                                                     \
        OPTION_REAL_ROW("num_train_epochs", TUNE(num_train_epochs), "3.0", 0, 1e6,                           \
                        "number of passes through --train_file; a whole number"),                            \
        OPTION_REAL_ROW("max_steps", TUNE(max_steps), "-1.0", -1, 1e12,                                      \
                        "number of steps, instead of --num_train_epochs; -1: off"),                          \
        OPTION_STRING_ROW("eval_file", TUNE(eval_file), NULL, "FILE",                                        \
                          "compute the loss of this labelled data during training"),                         \
        OPTION_INT_ROW(                                                                                      \
            "eval_steps", AT(eval_steps), "0", 0, 1e12,                                                      \
            "number of steps between evaluations on --eval_file; 0: off, only at the end of each epoch"),    \
        OPTION_ROWS_OF(settings_early_stopping, AT(early)),                                                  \
        OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647,                                                \
                       "seed of the new head, data order and dropout"),                                      \
        OPTION_INT_ROW("seeds", TUNE(seeds), NULL, 1, 1000,                                                  \
                       "number of runs, with the seeds --seed, --seed + 1, ..., each in OUTPUT_DIR/seed_S; " \
                       "their scores are printed as a table and written to seeds.json"),                     \
        OPTION_ROWS_OF(settings_precision, AT(precision)), LOSS_SCALE_ROW, DEVICE_ROW(AT(device)),           \
        OPTION_FLAG_ROW("skip_checkpoint", AT(skip_checkpoint),                                              \
                        "save neither checkpoints nor the fine-tuned model"),                                \
        OPTION_INT_ROW("num_steps_per_checkpoint", AT(num_steps_per_checkpoint), "1000", 0, 1e12,            \
                       "number of steps between checkpoints to resume from; 0: off, only when stopped"),     \
        RESUME_ROW,                                                                                          \
        OPTION_FLAG_ROW(                                                                                     \
            "overwrite_output_dir", TUNE(overwrite_output_dir),                                              \
            "train although --output_dir has a fine-tuned model or predictions, and replace them"),          \
        OTHER_DATA_ROW("--train_file is not what")

#define FINETUNE_LOG_ROWS                                                                                    \
    OPTION_ROWS_OF(settings_ranks, AT(ranks)), OPTION_GROUP_ROW("logs"),                                     \
        OPTION_INT_ROW("log_freq", AT(log_freq), "50", 1, 1e9, LOG_FREQ_HELP),                               \
        OPTION_INT_ROW("throughput_warmup_steps", TUNE(throughput_warmup_steps), "0", 0, 1e9,                \
                       "number of first steps that training_sequences_per_second does not count"),           \
        RUN_LOG_ROWS, PROGRESS_BAR_ROW(AT(disable_progress_bar)), DRY_RUN_OF_TRAINING_ROW

#endif
