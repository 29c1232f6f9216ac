/* kiln pretrain: the command line of task/pretrain.h. */
#include "cmd/commands.h"
#include "cmd/pretrain_variant.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"
#include "core/integers.h"
#include "model/model_family.h"
#include "model/modernbert/modernbert_family.h"
#include "nn/decoder/decoder_config.h"
#include "task/gpt/gpt_pretrain.h"
#include "optim/optimizer.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define AT(field)       offsetof(struct pretrain_args, run.run.field)
#define PRETRAIN(field) offsetof(struct pretrain_args, run.field)
#define BERT(field)     offsetof(struct pretrain_args, bert.field)
#define GPT(field)      offsetof(struct pretrain_args, gpt.field)
#define OWN(field)      offsetof(struct pretrain_args, field)

_Static_assert(PRETRAIN(update.beta2) == PRETRAIN(update.beta1) + sizeof(double), "--betas stores both");

static const struct option options[] = {
    OPTION_GROUP_ROW("input and output"),
    OPTION_REQUIRED_ROW(
        "input_dir", PRETRAIN(input_dir), "DIR",
        "token store or HDF5 files made by `kiln prepare`, or .hdf5 files of the replaced scripts"),
    OPTION_REQUIRED_ROW(
        "config_file", AT(common.config_file), "FILE",
        "model configuration (JSON, Hugging Face's keys), or the name of one in configs/, such as mini"),
    OPTION_REQUIRED_ROW("output_dir", AT(common.output_dir), "DIR",
                        "write checkpoints and log.jsonl into this directory"),
    OPTION_STRING_ROW("init_checkpoint", AT(init_checkpoint), NULL, "PATH",
                      "start at step 0 from the weights of this model or checkpoint: kiln's, a "
                      "directory as `transformers` writes it, a file of PyTorch, or the prefix of a "
                      "TensorFlow checkpoint"),
    MODEL_ROW,
    OPTION_STRING_ROW(
        "vocab_file", AT(vocabulary.vocab_file), NULL, "FILE",
        "vocab.txt or tokenizer.json of the data; default: the one in --input_dir, or beside it"),
    OPTION_STRING_ROW(
        "eval_input_dir", PRETRAIN(eval_input_dir), NULL, "DIR",
        "token store or .hdf5 files to evaluate on, instead of the held-out part of --input_dir"),
    OPTION_BOOL_ROW("enable_packed_data_mode", BERT(enable_packed_data_mode), "True",
                    "allow packed .hdf5 files; the files say whether they are packed"),
    OPTION_GROUP_ROW("training"),
    OPTION_CHOICE_ROW("arch", OWN(arch), NULL, "modernbert",
                      "architecture of a model with the sizes of a --config_file of BERT's: modernbert has "
                      "layers without biases, rotary positions and windows, and a gate of two thirds of the "
                      "feed-forward's columns. By default --config_file says it"),
    OPTION_CHOICE_ROW("recipe", OWN(recipe), NULL, PRETRAIN_RECIPES,
                      "set flags that go together, and print them; flags on the command line take precedence "
                      "(docs/howto/train_your_own.md)"),
    OPTION_INT_ROW("max_seq_length", AT(batch.max_seq_length), "128", 5, 65536,
                   "maximum number of tokens in a sequence, [CLS] and [SEP] included"),
    OPTION_INT_ROW("max_predictions_per_seq", BERT(max_predictions_per_seq), "20", 1, 65536,
                   "maximum number of masked positions in a sequence"),
    OPTION_INT_ROW("train_batch_size", AT(batch.train_batch_size), "32", 1, 1e9,
                   "number of sequences in an optimizer step, per rank"),
    ACCUMULATION_ROW,
    OPTION_INT_ROW("max_steps", AT(max_steps), "1000", 1, 1e12,
                   "number of optimizer steps in this phase: the length of the schedule, and the last "
                   "step"),
    OPTION_INT_ROW("steps_this_run", PRETRAIN(steps_this_run), "-1", -1, 1e12,
                   "stop after step N of the phase; -1: after --max_steps"),
    OPTION_REAL_ROW("total_training_time", PRETRAIN(total_training_time), "0", 0, 1e9,
                    "number of seconds for the whole run, instead of --max_steps: schedules follow the "
                    "clock, and the rate reaches 0 at its end; a resumed run has the seconds that are left "
                    "(Izsak et al. 2021, arXiv:2104.07705); 0: off"),
    OPTION_REAL_ROW("learning_rate", AT(learning_rate), "5e-5", 0, 100,
                    "learning rate at the end of the warm-up; of a decoder 1e-3"),
    OPTION_REAL_ROW("warmup_proportion", AT(warmup_proportion), "0.01", 0, 1,
                    "fraction of max_steps in which the learning rate rises from 0"),
    OPTION_INT_ROW(
        "warmup_tokens", AT(warmup_tokens), "0", 0, 1e15,
        "number of tokens in which the learning rate rises from 0, instead of --warmup_proportion; 0: off"),
    OPTION_CHOICE_ROW("lr_schedule", PRETRAIN(schedule), "poly", "poly|poly_constant|linear|constant",
                      "choose the rate after the warm-up. poly: (1 - p)^degree; poly_constant: constant for "
                      "--constant_proportion, then poly; linear: to 0, as a decoder has it; constant"),
    OPTION_REAL_ROW("scheduler_degree", PRETRAIN(scheduler_degree), "0.5", 0, 10,
                    "degree of the poly schedules; 1 with --deepspeed"),
    OPTION_REAL_ROW("constant_proportion", PRETRAIN(constant_proportion), "0", 0, 1,
                    "fraction of max_steps in which the rate of poly_constant stays"),
    OPTION_MEANS_ROW("use_lr_scheduler", PRETRAIN(schedule), "poly_constant",
                     "the same as --lr_schedule poly_constant"),
    OPTION_CHOICE_ROW("optimizer", PRETRAIN(optimizer), "lamb", OPTIMIZER_ALL_NAMES,
                      "update weights with this optimizer; of a decoder adamw, with --adam_beta2 0.95, "
                      "--adam_eps 1e-8 and --weight_decay 0.1; names of the replaced scripts work too"),
    OPTION_REAL_ROW("weight_decay", PRETRAIN(update.weight_decay), "0.01", 0, 10,
                    "weight decay of matrices and embeddings; biases and LayerNorms have none"),
    CLIPPING_ROW,
    ADAM_BETA_ROWS("decay of the first moment; momentum of sgd"),
    OPTION_PAIR_ROW("betas", PRETRAIN(update.beta1), 0, 0.999999,
                    "the same as --adam_beta1 and --adam_beta2"),
    ADAM_EPS_ROW("1e-6"),
    OPTION_CHOICE_ROW(
        "loss_norm", PRETRAIN(loss_norm), "global", "global|micro",
        "divide losses by the counts of the global batch, or take the mean of each micro-batch's mean"),
    OPTION_RANGE_ROW(
        "mask_rate", BERT(mask_rate), "0.15", 0, 1,
        "fraction of the tokens of a token store that is predicted; 0.3:0.15 moves on a line from one to the "
        "other over the run (Ankner et al. 2024, arXiv:2305.15096), and held-out text uses the last"),
    OPTION_SAME_ROW("masked_lm_prob", "mask_rate", "the same as --mask_rate"),
    OPTION_REAL_ROW(
        "mask_keep_rate", BERT(mask_keep_rate), "0.1", 0, 0.9,
        "fraction of the predicted tokens that stay unchanged; a tenth become random tokens, the rest [MASK] "
        "(Devlin et al. 2018, arXiv:1810.04805; Wettig et al. 2023, arXiv:2202.08005, compare others)"),
    OPTION_FLAG_ROW(
        "even_masks", BERT(even_masks),
        "let tokens take turns over the epochs, so that each is predicted about once in 1 / rate epochs, "
        "instead of new draws (after Zheng et al. 2020, arXiv:2010.06040); needs a token store"),
    OPTION_FLAG_ROW("whole_word_masks", BERT(whole_word_masks),
                    "mask all pieces of a word, or none of them; needs a token store"),
    OPTION_FLAG_ROW("no_nsp", BERT(no_nsp),
                    "train on masked words alone: a sequence is one segment of a document, and the "
                    "model has neither a pooler nor a head for next sentences; needs a token store"),
    OPTION_FLAG_ROW(
        "sinusoidal_positions", BERT(sinusoidal_positions),
        "begin a new model's position embeddings as sinusoids (Vaswani et al. 2017, arXiv:1706.03762), "
        "not as random numbers, and train them without weight decay: short runs learn to use positions "
        "sooner"),
    OPTION_FLAG_ROW("shifted_positions", BERT(shifted_positions),
                    "begin every second sequence at a random position instead of 0, so that positions beyond "
                    "--max_seq_length are trained too, and the model can read longer text later (Kiyono et "
                    "al. 2021, arXiv:2109.05644); needs a token store"),
    OPTION_FLAG_ROW("ppmi_embeddings", PRETRAIN(ppmi_embeddings),
                    "begin a new model's word embeddings as vectors of each word's neighbours in the token "
                    "store, by singular values of positive pointwise mutual information (Levy & Goldberg "
                    "2014), not as random numbers; takes seconds of --total_training_time"),
    OPTION_REAL_ROW("short_seq_prob", BERT(short_seq_prob), "0.1", 0, 1,
                    "fraction of sequences to cut to a random length"),
    OPTION_FLAG_ROW("megatron_order", GPT(megatron_order),
                    "take a decoder's samples in the order of Megatron-LM's index files, which follows "
                    "from --seed and --max_steps"),
    OPTION_STRING_ROW("data_cache_path", GPT(data_cache_path), NULL, "DIR",
                      "with --megatron_order, read Megatron-LM's index files in this directory, not in "
                      "OUTPUT_DIR/index, and write those that are missing"),
    OPTION_FLAG_ROW("disable_random_sampler", AT(batch.in_order),
                    "take samples in the order in which they lie in the store or in their file"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "seed of weights, data order, masks and dropout"),
    OPTION_ROWS_OF(settings_precision, AT(precision)),
    LOSS_SCALE_ROW,
    OPTION_REAL_ROW("init_loss_scale", AT(loss_scale.first), "1048576", 1, 1e10,
                    "first value of the loss scale, which an overflow halves and 2000 steps without one "
                    "double"),
    RECOMPUTATION_ROW,
    RECOMPUTATION_INTERVAL_ROW(PRETRAIN(checkpoint_activations_interval)),
    DEVICE_ROW(AT(device)),
    OPTION_GROUP_ROW("with DeepSpeed's JSON"),
    OPTION_FLAG_ROW(
        "deepspeed", OWN(deepspeed),
        "take batch, precision and more from --deepspeed_config, as the script for BERT-1.5B does"),
    OPTION_STRING_ROW("deepspeed_config", PRETRAIN(deepspeed_config), NULL, "FILE",
                      "read DeepSpeed's settings from this JSON; needs --deepspeed"),
    DEEPSCALE_ROWS,
    OPTION_FLAG_ROW("use_ds_lamb_bias_correction", PRETRAIN(update.corrects_steps),
                    "correct the bias of the moments in the learning rate; needs --optimizer nvlamb_exp"),
    OPTION_GROUP_ROW("phases, checkpoints and resumption"),
    OPTION_FLAG_ROW(
        "phase2", PRETRAIN(phase2),
        "train phase 2: steps, schedule and optimizer counter restart; weights and moments are kept"),
    OPTION_INT_ROW("phase1_end_step", PRETRAIN(phase1_end_step), "7038", 0, 1e12,
                   "number of the last step of phase 1"),
    OPTION_FLAG_ROW("resume_from_checkpoint", AT(resume_from_checkpoint),
                    "resume from the newest valid checkpoint of --output_dir: kiln's, with the same "
                    "bits, or another program's"),
    OTHER_DATA_ROW("--input_dir does not hold what"),
    OPTION_INT_ROW("resume_step", PRETRAIN(resume_step), "-1", -1, 1e12,
                   "resume from ckpt_N instead of the newest; -1: the newest"),
    OPTION_INT_ROW("num_steps_per_checkpoint", AT(num_steps_per_checkpoint), "100", 0, 1e12,
                   "number of steps between checkpoints; 0: off, only at the end"),
    OPTION_INT_ROW("keep_checkpoints", AT(keep_checkpoints), "3", 0, 1e6,
                   "keep the last N checkpoints, and every end of a phase; 0: off, keep all"),
    OPTION_FLAG_ROW("skip_checkpoint", AT(skip_checkpoint), "write no checkpoints"),
    OPTION_GROUP_ROW("logs and evaluation"),
    OPTION_INT_ROW("eval_steps", AT(eval_steps), "500", 0, 1e12,
                   "number of steps between evaluations on the held-out text; 0: off"),
    OPTION_ROWS_OF(settings_early_stopping, AT(early)),
    OPTION_INT_ROW("eval_samples", PRETRAIN(eval_samples), "512", 1, 1e9,
                   "number of held-out sequences in an evaluation"),
    NGRAM_ROW(GPT(ngram_tokens), "of a decoder, "),
    OPTION_WORDS_ROW("sample_prompts", PRETRAIN(sample_prompts), "TEXT...",
                     "at each evaluation, log and show in the report how the model continues these texts, or "
                     "fills their [MASK]; needs the vocabulary"),
    OPTION_INT_ROW("log_freq", AT(log_freq), "1", 1, 1e9, LOG_FREQ_HELP),
    RUN_LOG_ROWS,
    PROGRESS_BAR_ROW(AT(common.disable_progress_bar)),
    DRY_RUN_OF_TRAINING_ROW,
    OPTION_ROWS_OF(settings_health, AT(health)),
    OPTION_ROWS_OF(settings_ranks, AT(ranks)),
    OPTION_ROWS_OF(settings_mesh, OWN(mesh)),
    OPTION_BOOL_ROW("use_zero_optimizer", OWN(use_zero_optimizer), "False", "the same as --zero_stage 1"),
    OPTION_FLAG_ROW("balance_tokens", PRETRAIN(balance_tokens),
                    "deal the sequences of a step out to the ranks by length, so that all have as many "
                    "sequences and nearly as many tokens; sums take another order; needs a token store"),
    OPTION_ROWS_OF(settings_emulation, PRETRAIN(emulation)),
    OPTION_ROWS_OF(settings_replaced, AT(device)),
    OPTION_IGNORED_ROW("do_train", "training is what this command does"),
    OPTION_IGNORED_VALUE_ROW("bert_model", "NAME", "--config_file says what the model is"),
    OPTION_IGNORED_VALUE_ROW("num_train_epochs", "X", "--max_steps says how long"),
    OPTION_IGNORED_ROW("allreduce_post_accumulation", "gradients are always reduced once a step"),
    OPTION_IGNORED_ROW("allreduce_post_accumulation_fp16", "gradients are always fp32"),
    OPTION_IGNORED_ROW("use_fused_lamb", "LAMB is always fused"),
    OPTION_IGNORED_VALUE_ROW("use_hpu_graphs", "BOOL", "a GPU's work is always captured, the cpu's never"),
    OPTION_IGNORED_VALUE_ROW("avg_seq_per_pack", "X", "sequences are counted"),
    OPTION_IGNORED_ROW("use_jit_trace", "everything is compiled already"),
    OPTION_IGNORED_ROW("run_loss_in_fp32", "losses are always computed in fp32"),
    OPTION_IGNORED_ROW("allow_loss_in_bit16", "losses are always computed in fp32"),
    OPTION_IGNORED_ROW("deepspeed_mpi", "mpirun and srun are recognized without it"),
    OPTION_ROWS_OF(settings_launcher, offsetof(struct pretrain_args, launcher)),
    {0},
};

/* Room for the predictions follows the rate, if only that was given. */
static void find_mask_flags(struct pretrain_args *a)
{
    const char *flag =
        option_first_given(&command_pretrain, a,
                           "mask_rate|mask_keep_rate|even_masks|whole_word_masks|no_nsp|shifted_positions");
    a->bert.mask_flag = flag != NULL ? flag : a->bert.mask_flag;
    if (option_was_given(&command_pretrain, a, "mask_rate") &&
        !option_was_given(&command_pretrain, a, "max_predictions_per_seq")) {
        double most = fmax(a->bert.mask_rate[0], a->bert.mask_rate[1]);
        int64_t n = (int64_t)ceil((double)a->run.run.batch.max_seq_length * most);
        a->bert.max_predictions_per_seq = n > 0 ? n : 1;
    }
}

static struct status read_lengths(struct pretrain_args *a)
{
    const struct command *c = &command_pretrain;
    struct pretrain_lengths_given given = {
        .steps = option_was_given(c, a, "max_steps")        ? "max_steps"
                 : option_was_given(c, a, "steps_this_run") ? "steps_this_run"
                                                            : NULL,
        .warmup_proportion = option_was_given(c, a, "warmup_proportion"),
    };
    return pretrain_read_lengths(&a->run, &given);
}

/* Flags of masked words and of pairs, which a decoder does not have; and those of decoders. */
static const char bert_flags[] =
    "enable_packed_data_mode|max_predictions_per_seq|mask_rate|mask_keep_rate|short_seq_prob|"
    "no_nsp|whole_word_masks|even_masks|shifted_positions|sinusoidal_positions",
                  gpt_flags[] = "megatron_order|ngram_tokens",
                  position_flags[] = "shifted_positions|sinusoidal_positions";

static struct status refuse_flags(const struct pretrain_args *a, const char *names, const char *needs,
                                  const char *family)
{
    const char *flag = option_first_given(&command_pretrain, a, names);
    return flag == NULL
               ? status_ok()
               : status_error(STATUS_USAGE, "--%s needs %s, but --config_file %s describes a %s model", flag,
                              needs, a->run.run.common.config_file, family);
}

static double largest_dropout(const struct decoder_config *c)
{
    return fmax(c->embedding_dropout, fmax(c->hidden_dropout, c->attention_dropout));
}

static const struct run_flag_names names = {.data = "--input_dir",
                                            .output = "--output_dir",
                                            .resume = "--resume_from_checkpoint",
                                            .batch = "--train_batch_size",
                                            .command = "pretrain"};

/* A configuration of `arch` with a BERT's sizes; its gate has two thirds of the feed-forward's columns. */
static struct status convert_sizes(json_t **config, const char *arch, const json_t *bert, const char *source)
{
    enum { FEED_FORWARD = 3, GRAIN = 32 };
    static const char *const keys[] = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                       "intermediate_size", "max_position_embeddings"};
    *config = json_pack("{s:s}", "model_type", arch);
    for (int i = 0; i < (int)(sizeof keys / sizeof keys[0]); i++) {
        int64_t size;
        TRY(json_get_int(bert, source, keys[i], true, &size));
        size = i == FEED_FORWARD ? int_round_up(2 * size / 3, GRAIN) : size;
        FAIL_IF(*config == NULL || json_object_set_new(*config, keys[i], json_integer(size)) != 0,
                STATUS_MEMORY, "out of memory for a configuration");
    }
    return status_ok();
}

/* The configuration for --arch; null without it, or where config_file already is of that architecture.  The
 * caller json_decref's it, after a failure too. */
static struct status take_arch(json_t **config, const struct pretrain_args *a)
{
    const char *file = a->run.run.common.config_file, *type = "bert";
    json_t *root;
    *config = NULL;
    if (a->arch == NULL) {
        return status_ok();
    }
    FAIL_IF(file == NULL, STATUS_USAGE, "--arch %s needs --config_file, which says the sizes", a->arch);
    TRY(json_read_object(&root, file));
    struct status s = json_get_string(root, file, "model_type", false, &type);
    if (!failed(s) && strcmp(type, a->arch) != 0) {
        s = strcmp(type, "bert") == 0
                ? convert_sizes(config, a->arch, root, file)
                : status_error(STATUS_USAGE, "--arch %s takes the sizes of a BERT, but %s is of a \"%.40s\"",
                               a->arch, file, type);
    }
    json_decref(root);
    return s;
}

static struct status find_modernbert(struct pretrain_args *a)
{
    a->run.kind = &modernbert_pretrain;
    a->bert.no_nsp = true;
    TRY(refuse_flags(a, gpt_flags, "a decoder", modernbert_family.name));
    return refuse_flags(a, position_flags, "a BERT model, which has a table of positions",
                        modernbert_family.name);
}

/* Finds the kind of pre-training by the family of the configuration. */
static struct status find_kind(struct pretrain_args *a)
{
    const struct model_family *family;
    void *config;
    json_t *root;
    a->run.kind = &bert_pretrain;
    a->run.own = &a->bert;
    FAIL_IF(a->gpt.data_cache_path != NULL && !a->gpt.megatron_order, STATUS_USAGE,
            "--data_cache_path needs --megatron_order: other orders have no files");
    if (a->run.config != NULL) {
        return find_modernbert(a);
    }
    if (a->run.run.common.config_file == NULL ||
        failed(model_family_read_config(&family, &config, &root, a->run.run.common.config_file))) {
        return status_ok(); /* errors of the file are reported where it is read */
    }
    const struct pretrain_kind *decoder = gpt_pretrain_find(family);
    a->dropout = decoder == NULL ? 0 : largest_dropout(config);
    free(config);
    json_decref(root);
    if (family == &modernbert_family) {
        return find_modernbert(a);
    }
    if (decoder == NULL) {
        return refuse_flags(a, gpt_flags, "a decoder", family->name);
    }
    a->run.kind = decoder;
    a->run.own = &a->gpt;
    return refuse_flags(a, bert_flags, "a BERT model", family->name);
}

static struct status train_kind(const struct train_command *t, struct pretrain_args *a)
{
    json_t *flags;
    TRY(find_kind(a));
    TRY(pretrain_variant_apply_recipe(&command_pretrain, a));
    TRY(pretrain_variant_apply(&command_pretrain, a));
    TRY(read_lengths(a));
    find_mask_flags(a);
    if (a->use_zero_optimizer && a->run.run.ranks.zero_stage == 0) {
        a->run.run.ranks.zero_stage = 1;
    }
    a->run.run.names = &names;
    TRY(train_command_flags(&flags, t, a));
    struct status s = pretrain_run(&a->run);
    json_decref(flags);
    return s;
}

static struct status train(const struct train_command *t, void *args)
{
    struct pretrain_args *a = args;
    json_t *config;
    struct status s = take_arch(&config, a);
    a->run.config = config;
    s = failed(s) ? s : train_kind(t, a);
    json_decref(config);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct pretrain_args *a = args;
    return train_command_run(&(struct train_command){.command = &command_pretrain,
                                                     .launcher = &a->launcher,
                                                     .mesh = &a->mesh,
                                                     .emulation = &a->run.emulation,
                                                     .replaces = true,
                                                     .log_freq = "log_freq",
                                                     .train = train},
                             args);
}

const struct command command_pretrain = {
    .name = "pretrain",
    .summary = "pre-train BERT, ModernBERT, GPT-2, BLOOM or Llama from text that was prepared",
    .details = "BERT learns masked words and next sentences from what `kiln prepare` wrote, or from "
               "HDF5 files of the replaced scripts; ModernBERT (\"modernbert\") learns masked words. A "
               "--config_file of a decoder (\"model_type\": "
               "\"gpt2\", \"bloom\", \"gpt_neox\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"olmo2\", "
               "\"smollm3\" or \"phi3\") "
               "trains it on "
               "the next token, from "
               "a store in "
               "Megatron-LM's format (PREFIX.bin and PREFIX.idx in --input_dir), with the tokenizer that "
               "stands there, or "
               "--vocab_file. Phase 1 trains on short sequences; phase 2 (--phase2) continues with "
               "longer ones, another batch and rate.  Ctrl-C, SIGTERM or SIGHUP saves and ends with "
               "exit code 75; the same command with --resume_from_checkpoint continues as if it had "
               "never stopped.",
    .options = options,
    .usual = "input_dir|config_file|output_dir|init_checkpoint|eval_input_dir|recipe|max_seq_length|train_"
             "batch_size|gradient_accumulation_steps|max_steps|total_training_time|learning_rate|warmup_"
             "proportion|optimizer|seed|autocast|checkpoint_activations|device|deepspeed_config|phase2|"
             "phase1_end_step|resume_from_checkpoint|num_steps_per_checkpoint|eval_steps|log_freq|dry-run|"
             "global_batch_size|zero_stage",
    .args_bytes = sizeof(struct pretrain_args),
    .given = OWN(given),
    .run = run,
    .of_ranks = true,
};
