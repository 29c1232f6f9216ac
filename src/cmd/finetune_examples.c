/* kiln squad, kiln classify, kiln tag and kiln embed-train: the command lines of task/example_task.h. */
#include "cmd/commands.h"
#include "cmd/label_texts.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "serve/tag_text.h"
#include "serve/zero_shot.h"
#include "task/example_task.h"

#include <stddef.h>

struct example_args {
    struct example_options run;
    struct launcher_flags launcher;
    struct option_given given;
    struct label_texts_flags label; /* classify and tag, of texts on the command line */
};

#define AT(field)   offsetof(struct example_args, run.run.run.field)
#define TUNE(field) offsetof(struct example_args, run.run.field)
#define OWN(field)  offsetof(struct example_args, run.field)
#define SAY(field)  offsetof(struct example_args, label.field)

/* ---- rows that the commands share ---- */

#define FINETUNE_INIT_ROWS                                                                                   \
    OPTION_REQUIRED_ROW(                                                                                     \
        "init_checkpoint", AT(init_checkpoint), "PATH",                                                      \
        "start from this model: a checkpoint, an output directory, a directory as `transformers` writes "    \
        "it, a file of PyTorch, or the prefix of a TensorFlow checkpoint")
#define FINETUNE_PLACE_ROWS(output_help)                                                                     \
    FINETUNE_INIT_ROWS, OPTION_REQUIRED_ROW("output_dir", AT(common.output_dir), "DIR", output_help),        \
        ENCODING_ROW(TUNE(encoding), "the files of text")

/* Of the commands that label texts of the command line too. */
#define LABEL_PLACE_ROWS(output_help)                                                                        \
    FINETUNE_INIT_ROWS,                                                                                      \
        OPTION_STRING_ROW("output_dir", AT(common.output_dir), NULL, "DIR",                                  \
                          output_help "; without it, TEXT... or lines of standard input are labelled"),      \
        ENCODING_ROW(TUNE(encoding), "the files of text"),                                                   \
        OPTION_FLAG_ROW("json", SAY(json),                                                                   \
                        "without --output_dir, print a JSON array for each text, as `kiln serve` answers"),  \
        OPTION_CHOICE_ROW("dtype", SAY(dtype), NULL, SESSION_DTYPES,                                         \
                          "without --output_dir, " SESSION_DTYPE_HELP)

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
        OPTION_STRING_ROW("config_file", AT(common.config_file), NULL, "FILE",                               \
                          "config.json for a model that has none; if it has one, both must agree"),          \
        OPTION_STRING_ROW("vocab_file", AT(vocabulary.vocab_file), NULL, "FILE",                             \
                          "vocab.txt for a model that has none; if it has one, both must agree")

#define FINETUNE_TRAINING_ROWS                                                                               \
    OPTION_INT_ROW("train_batch_size", AT(batch.train_batch_size), "32", 1, 1e6,                             \
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
        RUN_LOG_ROWS, PROGRESS_BAR_ROW(AT(common.disable_progress_bar)), DRY_RUN_OF_TRAINING_ROW

#define EXAMPLE_END_ROWS                                                                                     \
    FINETUNE_LOG_ROWS, OPTION_GROUP_ROW("flags of the replaced scripts"),                                    \
        OPTION_ROWS_OF(settings_launcher, offsetof(struct example_args, launcher))

/* Columns of a table. */
#define TEXT_COLUMN_ROWS(help)                                                                               \
    OPTION_STRING_ROW("text_column_name", OWN(text_column_name), NULL, "NAME", help),                        \
        OPTION_SAME_ROW("text_column", "text_column_name", "the same as --text_column_name")
#define TEXT_PAIR_COLUMN_ROW(help)                                                                           \
    OPTION_STRING_ROW("text_pair_column_name", OWN(text_pair_column_name), NULL, "NAME", help)
#define LABEL_COLUMN_ROWS(help)                                                                              \
    OPTION_STRING_ROW("label_column_name", OWN(label_column_name), NULL, "NAME", help),                      \
        OPTION_SAME_ROW("label_column", "label_column_name", "the same as --label_column_name")
#define NO_HEADER_ROW                                                                                        \
    OPTION_FLAG_ROW("no_header", OWN(no_header),                                                             \
                    "read the first line of a .csv or .tsv as a row; columns are then called 1, 2, ...")

#define LOWER_CASE_ROW                                                                                       \
    OPTION_FLAG_ROW("do_lower_case", AT(vocabulary.do_lower_case),                                           \
                    "lower-case text and strip accents; implied by an uncased model")
#define WEIGHT_DECAY_ROW                                                                                     \
    OPTION_REAL_ROW("weight_decay", OWN(weight_decay), "0", 0, 10, "weight decay of matrices in AdamW")

/* Parts that all commands have: the end of the short help, and fields. */
#define USUAL_FLAGS                                                                                          \
    "do_train|do_predict|do_eval|max_seq_length|do_lower_case|train_batch_size|"                             \
    "gradient_accumulation_steps|learning_rate|num_train_epochs|eval_file|early_stopping_patience|seed|"     \
    "seeds|autocast|device|num_steps_per_checkpoint|resume_from_checkpoint|overwrite_output_dir|"            \
    "predict_batch_size|log_freq|dry-run"
#define EXAMPLE_COMMAND                                                                                      \
    .given = offsetof(struct example_args, given), .args_bytes = sizeof(struct example_args), .of_ranks = true

/* The function that runs a task. */
#define RUN_OF(TASK, REPLACES)                                                                               \
    static struct status run_##TASK(const void *args, int n_positional, const char *const *positional) {     \
        const struct example_args *a = args;                                                                 \
        (void)n_positional, (void)positional;                                                                \
        return finetune_command_run(&command_##TASK, &TASK##_task, args, &a->launcher, REPLACES);            \
    }

/* Whether the arguments ask to label texts of the command line, with a model alone. */
static bool labels_texts(const struct finetune_options *o)
{
    return o->run.common.output_dir == NULL && o->train_file == NULL && o->predict_file == NULL &&
           !o->do_train && !o->do_predict && !o->do_eval;
}

static struct status check_place(const struct command *c, const struct finetune_options *o, int n_texts)
{
    FAIL_IF(
        n_texts > 0, STATUS_USAGE,
        "texts on the command line are labelled by a model alone: leave out --output_dir, --train_file and "
        "--predict_file");
    FAIL_IF(o->run.common.output_dir == NULL, STATUS_USAGE, "kiln %s needs --output_dir DIR for files",
            c->name);
    return status_ok();
}

static struct session_flags session_of(const struct finetune_options *o, const char *dtype)
{
    const struct precision_flags *p = &o->run.precision;
    return (struct session_flags){.model = o->run.init_checkpoint,
                                  .given.vocab_file = o->run.vocabulary.vocab_file,
                                  .device = o->run.device,
                                  .dtype = dtype != NULL ? dtype
                                           : p->fp16     ? "fp16"
                                           : p->autocast ? "bf16"
                                                         : "fp32",
                                  .common.dry_run = o->run.common.dry_run};
}

/* The function that runs a task, or labels texts. */
#define LABEL_RUN_OF(TASK)                                                                                   \
    static struct status run_##TASK(const void *args, int n_positional, const char *const *positional) {     \
        const struct example_args *a = args;                                                                 \
        const struct session_flags session = session_of(&a->run.run, a->label.dtype);                        \
        if (labels_texts(&a->run.run)) {                                                                     \
            return label_texts_##TASK(&session, &a->label, n_positional, positional);                        \
        }                                                                                                    \
        TRY(check_place(&command_##TASK, &a->run.run, n_positional));                                        \
        return finetune_command_run(&command_##TASK, &TASK##_task, args, &a->launcher, false);               \
    }

/* ---- kiln squad ---- */

/* run_squad.py keeps the features of a --train_file in a file next to it. */
#define NO_CACHE "features are computed in each run, in seconds; there is no cache"

static const struct option squad_options[] = {
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
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "384", 5, 65536,
                   "maximum number of tokens of a question and its window together"),
    OPTION_INT_ROW("doc_stride", OWN(doc_stride), "128", 1, 65536,
                   "number of tokens from one window to the next"),
    OPTION_INT_ROW("max_query_length", OWN(max_query_length), "64", 1, 65536,
                   "maximum number of tokens of a question; a longer one is cut"),
    LOWER_CASE_ROW,
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
    OPTION_ROWS_OF(settings_launcher, offsetof(struct example_args, launcher)),
    {0},
};

RUN_OF(squad, true)

const struct command command_squad = {
    .name = "squad",
    .summary = "fine-tune a model to find answers in a text, and answer questions",
    .details = "Takes the flags of run_squad.py.  The fine-tuned model goes to OUTPUT_DIR/model, for `kiln "
               "ask` and for `transformers`.",
    .options = squad_options,
    .usual = "init_checkpoint|output_dir|train_file|predict_file|version_2_with_negative|" USUAL_FLAGS,
    .run = run_squad,
    EXAMPLE_COMMAND,
};

/* ---- kiln classify ---- */

static const struct option classify_options[] = {
    OPTION_GROUP_ROW("input and output"),
    LABEL_PLACE_ROWS("write the fine-tuned model, predictions.jsonl and log.jsonl into this directory"),
    OPTION_FLAG_ROW("pairs", SAY(pairs), "without --output_dir, texts are pairs with a tab between the two"),
    OPTION_STRING_ROW("labels", SAY(labels), NULL, "LIST",
                      "without --output_dir, choose from these labels, separated by commas, by a model of "
                      "entailment (NLI): zero-shot classification"),
    OPTION_STRING_ROW("hypothesis_template", SAY(hypothesis_template), ZERO_SHOT_TEMPLATE, "TEXT",
                      "what a text with a label of --labels entails"),
    OPTION_FLAG_ROW("multi_label", SAY(multi_label), "score each of --labels alone: several may hold"),
    OPTION_STRING_ROW(
        "train_file", TUNE(train_file), NULL, "FILE",
        "train on the texts and labels of this file: .csv, .tsv or, for JSON lines, .json or .jsonl"),
    FINETUNE_PREDICT_ROWS("classify the texts of this file, in the same form"),
    TEXT_COLUMN_ROWS("column of the text, by name or number; default: sentence, text or another usual name, "
                     "or the first of a pair of GLUE's"),
    TEXT_PAIR_COLUMN_ROW("column of the second text of pairs; default: sentence2 or another of GLUE's"),
    LABEL_COLUMN_ROWS("column of the label, by name or number; default: label, labels or another usual name"),
    NO_HEADER_ROW,
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
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "128", 5, 65536,
                   "maximum number of tokens of a text or pair; a longer text, or the longer text of a pair, "
                   "is cut at its end"),
    LOWER_CASE_ROW,
    OPTION_GROUP_ROW("training"),
    FINETUNE_TRAINING_ROWS,
    WEIGHT_DECAY_ROW,
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of texts in a batch; texts are sorted by length"),
    EXAMPLE_END_ROWS,
    {0},
};

LABEL_RUN_OF(classify)

const struct command command_classify = {
    .name = "classify",
    .summary = "fine-tune a model on labelled texts or pairs of texts, and classify texts",
    .details = "With --model alone, texts are arguments or lines of standard input, and each becomes a line: "
               "its label "
               "and score.  With --train_file the fine-tuned model goes to OUTPUT_DIR/model, for "
               "`transformers` too.  "
               "A fine-tuned model keeps "
               "its labels; a new classifier takes the labels of --train_file, sorted, numbers by value.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = classify_options,
    .usual = "init_checkpoint|output_dir|json|pairs|labels|train_file|predict_file|text_column|label_column|"
             "problem_"
             "type|" USUAL_FLAGS,
    .run = run_classify,
    EXAMPLE_COMMAND,
};

/* ---- kiln tag ---- */

static const struct option tag_options[] = {
    OPTION_GROUP_ROW("input and output"),
    LABEL_PLACE_ROWS("write the fine-tuned model, predictions.conll and log.jsonl into this directory"),
    OPTION_CHOICE_ROW("aggregation_strategy", SAY(strategy), "simple", TAG_STRATEGIES,
                      "without --output_dir, make entities of tokens in this way of transformers"),
    OPTION_INT_ROW("stride", SAY(stride), "-1", -1, 65536,
                   "without --output_dir, a text that is longer than the model reads is read in windows that "
                   "have so many tokens in common; -1: a quarter of a window"),
    OPTION_STRING_ROW("train_file", TUNE(train_file), NULL, "FILE",
                      "train on the words and labels of this file: CoNLL columns, or JSON lines if its name "
                      "ends in .json or .jsonl; a label may be a number"),
    FINETUNE_PREDICT_ROWS("label the sentences of this file, in the same form"),
    TEXT_COLUMN_ROWS("column of the words: a key in JSON lines (default: tokens or words), a number from 1 "
                     "in CoNLL, or a name in CoNLL-U"),
    LABEL_COLUMN_ROWS("column of the labels; default: labels, ner_tags or tags in JSON lines, the last "
                      "column in CoNLL, UPOS in CoNLL-U"),
    OPTION_STRING_ROW("problem_type", OWN(problem_type), "auto", "NAME",
                      "kind of labels: single_label_classification or regression; auto: the kind in the "
                      "model's config.json; for a new classifier numbers with a decimal point mean "
                      "regression, all else one label"),
    FINETUNE_MODEL_ROWS,
    FINETUNE_DO_ROWS("label --predict_file", "score the entities as seqeval does, or the numbers by their "
                                             "correlation; implies --do_predict"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "128", 5, 65536,
                   "maximum number of tokens of a sentence; a longer one is split"),
    LOWER_CASE_ROW,
    OPTION_GROUP_ROW("training"),
    FINETUNE_TRAINING_ROWS,
    WEIGHT_DECAY_ROW,
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of sentences in a batch; sentences are sorted by length"),
    EXAMPLE_END_ROWS,
    {0},
};

LABEL_RUN_OF(tag)

const struct command command_tag = {
    .name = "tag",
    .summary = "fine-tune a model to label the words of sentences, such as names, and label them",
    .details =
        "With --model alone, texts are arguments or lines of standard input, and what their words name "
        "is printed.  With --train_file the fine-tuned model goes to OUTPUT_DIR/model, for "
        "`transformers` too.  The first piece of a "
        "word has its label.  A fine-tuned model keeps its labels; a new classifier takes the labels "
        "of --train_file, sorted.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = tag_options,
    .usual = "init_checkpoint|output_dir|json|train_file|predict_file|text_column|label_column|" USUAL_FLAGS,
    .run = run_tag,
    EXAMPLE_COMMAND,
};

/* ---- kiln embed-train ---- */

static const struct option embed_train_options[] = {
    OPTION_GROUP_ROW("input and output"),
    FINETUNE_PLACE_ROWS("write the fine-tuned model, predictions.jsonl and log.jsonl into this directory"),
    OPTION_STRING_ROW(
        "train_file", TUNE(train_file), NULL, "FILE",
        "train on the pairs of texts of this file: .csv, .tsv or, for JSON lines, .json or .jsonl"),
    FINETUNE_PREDICT_ROWS("compare the pairs of this file, in the same form"),
    TEXT_COLUMN_ROWS("column of the first text, by name or number; default: sentence1 or another of GLUE's"),
    TEXT_PAIR_COLUMN_ROW("column of the second text; default: sentence2 or another of GLUE's"),
    LABEL_COLUMN_ROWS(
        "column of the pairs' scores, by name or number; default: label, score or another usual "
        "name"),
    NO_HEADER_ROW,
    FINETUNE_MODEL_ROWS,
    FINETUNE_DO_ROWS("compare the pairs of --predict_file",
                     "score the cosines by their correlation with the scores; implies --do_predict"),
    OPTION_GROUP_ROW("text"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "128", 5, 65536,
                   "maximum number of tokens of a text; a longer one is cut at its end"),
    OPTION_CHOICE_ROW("pooling", OWN(pooling), "mean", "mean|cls",
                      "make the vector of a text of all its tokens, or of the first"),
    LOWER_CASE_ROW,
    OPTION_GROUP_ROW("training"),
    OPTION_CHOICE_ROW(
        "loss", OWN(loss), "auto", "auto|in_batch_negatives|cosent",
        "in_batch_negatives: the second texts of the other pairs of --train_batch_size, of all "
        "ranks, are wrong answers; cosent: cosines are in the order of the scores; auto: cosent "
        "where there are scores"),
    OPTION_REAL_ROW("scale", OWN(scale), "20", 1e-3, 1e6, "multiply cosines by this in the loss"),
    FINETUNE_TRAINING_ROWS,
    WEIGHT_DECAY_ROW,
    OPTION_GROUP_ROW("prediction"),
    OPTION_INT_ROW("predict_batch_size", TUNE(predict_batch_size), "8", 1, 1e6,
                   "number of texts in a batch; texts are sorted by length"),
    EXAMPLE_END_ROWS,
    {0},
};

RUN_OF(embed_train, false)

const struct command command_embed_train = {
    .name = "embed-train",
    .summary = "fine-tune a model on pairs of texts, so that its vectors tell which are alike",
    .details =
        "Learns as MultipleNegativesRankingLoss and CoSENTLoss of sentence-transformers do; the batch is "
        "--train_batch_size times the ranks, whatever --gradient_accumulation_steps.  The fine-tuned "
        "model goes to OUTPUT_DIR/model, for `kiln embed`, `kiln serve` and sentence-transformers.",
    .options = embed_train_options,
    .usual =
        "init_checkpoint|output_dir|train_file|predict_file|text_column|text_pair_column_name|label_column|"
        "loss|scale|pooling|" USUAL_FLAGS,
    .run = run_embed_train,
    EXAMPLE_COMMAND,
};
