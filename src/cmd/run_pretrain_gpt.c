/* kiln pretrain-gpt: Megatron-DeepSpeed's pretrain_gpt.py, flag by flag: cmd/megatron_args.h says what
 * they mean here. */
#include "cmd/commands.h"
#include "cmd/megatron_args.h"
#include "cmd/settings.h"
#include "cmd/train_command.h"

#include <stddef.h>

#define AT(field)       offsetof(struct megatron_args, run.run.field)
#define PRETRAIN(field) offsetof(struct megatron_args, run.field)
#define GPT(field)      offsetof(struct megatron_args, gpt.field)
#define OWN(field)      offsetof(struct megatron_args, field)
#define LOG(field)      offsetof(struct megatron_args, run.megatron_log.field)

#define BERT_ONLY     "it is for BERT"
#define OWN_LAYERS    "each rank has what its own layers need, and no more"
#define WHOLE_OUTPUTS "stages send whole outputs"
#define OWN_WAY       "ranks share the optimizer's state in kiln's own buckets"
#define OTHER_SPLITS                                                                                         \
    "--split is one for all sets: give --data-path WEIGHT PREFIX WEIGHT PREFIX ... and --split"
#define NO_MOE "kiln has no mixtures of experts"

static const struct option options[] = {
    OPTION_GROUP_ROW("network"),
    OPTION_INT_ROW("num-layers", OWN(model.n_layers), NULL, 1, 1024, "number of layers"),
    OPTION_INT_ROW("hidden-size", OWN(model.hidden_size), NULL, 8, 65536, "width of the model"),
    OPTION_INT_ROW("num-attention-heads", OWN(model.n_heads), NULL, 1, 1024, "number of attention heads"),
    OPTION_INT_ROW("ffn-hidden-size", OWN(model.feed_forward_size), NULL, 1, 262144,
                   "width of the feed-forward layer; default: 4 times --hidden-size"),
    OPTION_INT_ROW("kv-channels", OWN(kv_channels), NULL, 1, 65536,
                   "width of a head: --hidden-size / --num-attention-heads, and nothing else"),
    OPTION_INT_ROW("max-position-embeddings", OWN(model.n_positions), NULL, 1, 65536,
                   "number of positions that the model has"),
    OPTION_CHOICE_ROW("position-embedding-type", OWN(positions), "absolute", "absolute|learnable|alibi",
                      "absolute: learned positions, as GPT-2; alibi: BLOOM's biases by distance"),
    OPTION_FLAG_ROW("embed-layernorm", OWN(embed_layernorm),
                    "normalize the embeddings, as BLOOM does; goes with --position-embedding-type alibi"),
    OPTION_INT_ROW("make-vocab-size-divisible-by", OWN(vocab_divisor), "128", 1, 1e6,
                   "pad the rows of the vocabulary to a multiple of this; padding is never predicted"),
    OPTION_INT_ROW("pad-vocab-size-to", OWN(model.vocab_size), NULL, 1, 1 << 24,
                   "pad the rows of the vocabulary to this number"),
    OPTION_REAL_ROW("layernorm-epsilon", OWN(model.norm_eps), "1e-5", 1e-12, 1,
                    "added to the variance in LayerNorm"),
    OPTION_FLAG_ROW("no-bias-gelu-fusion", OWN(no_bias_gelu_fusion),
                    "compute GELU by erf, exactly; without it by its tanh form, as the fused kernel did"),
    OPTION_FLAG_ROW("openai-gelu", OWN(openai_gelu), "compute GELU by its tanh form"),
    OPTION_FLAG_ROW("onnx-safe", OWN(onnx_safe), "compute GELU by erf, exactly"),
    OPTION_REAL_ROW(
        "init-method-std", OWN(model.initializer_range), "0.02", 0, 10,
        "standard deviation of new weights; of those before a residual sum, over the root of twice the "
        "number of layers"),
    OPTION_REAL_ROW("attention-dropout", OWN(model.attention_dropout), "0.1", 0, 0.99,
                    "fraction of attention probabilities that is dropped"),
    OPTION_REAL_ROW("hidden-dropout", OWN(model.hidden_dropout), "0.1", 0, 0.99,
                    "fraction of the residual branches and of the embeddings that is dropped"),
    OPTION_GROUP_ROW("data"),
    OPTION_WORDS_ROW(
        "data-path", OWN(data_path), "PREFIX",
        "tokens as PREFIX.bin and PREFIX.idx, from `kiln prepare --format gpt` or preprocess_data.py; "
        "required; or several sets, each with its weight before it: 0.7 PREFIX 0.3 PREFIX"),
    OPTION_STRING_ROW("split", GPT(split), "969, 30, 1", "A,B,C",
                      "parts of the documents to train on, to validate on and to test on"),
    OPTION_REQUIRED_ROW("vocab-file", AT(vocabulary.vocab_file), "FILE",
                        "GPT-2's vocab.json, or a tokenizer.json"),
    OPTION_STRING_ROW("tokenizer-name-or-path", AT(vocabulary.vocab_file), NULL, "DIR",
                      "the same as --vocab-file, for a directory with the files of a tokenizer; nothing is "
                      "downloaded"),
    OPTION_STRING_ROW("merge-file", AT(vocabulary.merge_file), NULL, "FILE",
                      "GPT-2's merges.txt, if --vocab-file is vocab.json"),
    OPTION_CHOICE_ROW("tokenizer-type", OWN(tokenizer_type), "GPT2BPETokenizer",
                      "GPT2BPETokenizer|PretrainedFromHF", "name of the tokenizer, which its files decide"),
    OPTION_INT_ROW("seq-length", AT(batch.max_seq_length), NULL, 1, 65536, "number of tokens of a sample"),
    OPTION_CHOICE_ROW("data-impl", OWN(data_impl), "infer", "infer|mmap",
                      "format of the store; there is one"),
    OPTION_CHOICE_ROW("dataloader-type", OWN(loader_type), "single", "single",
                      "how samples are taken; single: each once, in the order of the index files"),
    OPTION_BOOL_ROW(
        "megatron_order", GPT(megatron_order), "True",
        "take samples in the order of Megatron-LM's index files; else in an order that needs no files"),
    OPTION_STRING_ROW(
        "data-cache-path", GPT(data_cache_path), NULL, "DIR",
        "read Megatron-LM's index files of the samples in this directory, not in SAVE/index, and "
        "write those that are missing"),
    OPTION_GROUP_ROW("batches and steps"),
    OPTION_INT_ROW("micro-batch-size", OWN(micro_batch_size), NULL, 1, 1e6,
                   "number of samples that a rank computes together"),
    OPTION_INT_ROW("global-batch-size", AT(ranks.global_batch_size), "0", 0, 1e9,
                   "number of samples in an optimizer step of all ranks; 0: one micro-batch per rank"),
    OPTION_WORDS_ROW(
        "rampup-batch-size", OWN(rampup), "START INCREMENT SAMPLES",
        "let batches grow from START by INCREMENT samples, evenly over the first SAMPLES samples"),
    OPTION_INT_ROW("train-samples", OWN(train_samples), NULL, 1, 1e15, "number of samples of the run"),
    OPTION_INT_ROW("train-iters", OWN(train_iters), NULL, 1, 1e12,
                   "number of steps, in place of --train-samples"),
    OPTION_INT_ROW("seed", AT(seed), "1234", 0, 2147483647, "seed of weights, data order and dropout"),
    OPTION_INT_ROW("exit-interval", AT(exit.interval), "0", 0, 1e12,
                   "save and end after a step that is a multiple of this; 0: off"),
    OPTION_REAL_ROW("exit-duration-in-mins", AT(exit.minutes), "0", 0, 1e9,
                    "save and end after so many minutes; 0: off"),
    OPTION_STRING_ROW("kill-switch-path", AT(exit.kill_switch), NULL, "FILE",
                      "save and end once this file is there; do not begin if it is"),
    OPTION_GROUP_ROW("optimizer and learning rate"),
    OPTION_CHOICE_ROW(
        "recipe", OWN(recipe), NULL, MEGATRON_RECIPES,
        "set flags that go together, and print them; flags on the command line take precedence. "
        "modern: Muon, and what else taught a small model more (docs/numbers/decoders.md)"),
    OPTION_CHOICE_ROW(
        "optimizer", OWN(optimizer), "adam", "adam|adamw|sgd|muon",
        "how weights are updated: adam and adamw are AdamW; sgd has a momentum, and decay in the "
        "gradient; muon is AdamW but for the matrices of layers, which move by Muon"),
    OPTION_REAL_ROW("adam-beta1", PRETRAIN(update.beta1), "0.9", 0, 0.999999, "decay of the first moment"),
    OPTION_REAL_ROW("adam-beta2", PRETRAIN(update.beta2), "0.999", 0, 0.999999, "decay of the second moment"),
    OPTION_REAL_ROW("adam-eps", PRETRAIN(update.eps), "1e-8", 1e-30, 1,
                    "added to the square root of the second moment"),
    OPTION_REAL_ROW("sgd-momentum", OWN(sgd_momentum), "0.9", 0, 0.999999, "momentum of --optimizer sgd"),
    OPTION_REAL_ROW("weight-decay", PRETRAIN(update.weight_decay), "0.01", 0, 10,
                    "weight decay of matrices and embeddings; biases and LayerNorms have none"),
    OPTION_REAL_ROW("clip-grad", PRETRAIN(update.max_grad_norm), "1.0", 0, 1e9,
                    "clip the global gradient norm at this; 0: off"),
    OPTION_REAL_ROW("lr", AT(learning_rate), NULL, 0, 100, "learning rate at the end of the warm-up"),
    OPTION_REAL_ROW("min-lr", OWN(min_lr), "0", 0, 100,
                    "learning rate at the end of the decay, and after it"),
    OPTION_CHOICE_ROW("lr-decay-style", OWN(decay_style), "linear", "constant|linear|cosine",
                      "how the learning rate falls"),
    OPTION_INT_ROW("lr-decay-samples", OWN(lr_decay_samples), NULL, 1, 1e15,
                   "number of samples until the learning rate is --min-lr; default: --train-samples"),
    OPTION_INT_ROW("lr-warmup-samples", OWN(lr_warmup_samples), "0", 0, 1e15,
                   "number of samples in which the learning rate rises from 0"),
    OPTION_INT_ROW("lr-decay-iters", OWN(lr_decay_iters), NULL, 1, 1e12,
                   "the same in steps, with --train-iters"),
    OPTION_INT_ROW("lr-warmup-iters", OWN(lr_warmup_iters), "0", 0, 1e12,
                   "the same in steps, with --train-iters"),
    OPTION_REAL_ROW("lr-warmup-fraction", OWN(lr_warmup_fraction), "0", 0, 0.999999,
                    "fraction of the decay in which the learning rate rises; 0: off"),
    OPTION_GROUP_ROW("number formats and memory"),
    OPTION_FLAG_ROW("bf16", AT(precision.autocast),
                    "compute in bf16, with fp32 master weights and sums, of which each rank keeps a part"),
    OPTION_FLAG_ROW("fp16", AT(precision.fp16), "compute in fp16 on a GPU, with a scaled loss"),
    OPTION_FLAG_ROW("fp32-residual-connection", AT(precision.fp32_residual),
                    "with --bf16 or --fp16, keep the residual stream and its gradient in fp32"),
    OPTION_REAL_ROW(
        "loss-scale", AT(loss_scale.fixed), "0", 0, 1e9,
        "in fp16, multiply the loss by this before backward; 0: by a scale that follows overflows"),
    OPTION_REAL_ROW("initial-loss-scale", AT(loss_scale.first), "4294967296", 1, 1e10,
                    "first value of a scale that follows overflows"),
    OPTION_REAL_ROW("min-loss-scale", AT(loss_scale.least), "1", 1e-30, 1e10,
                    "least value of it: the run ends when it would have to fall below"),
    OPTION_INT_ROW("loss-scale-window", AT(loss_scale.window), "1000", 1, 1e12,
                   "number of steps without an overflow that double it"),
    OPTION_INT_ROW(
        "hysteresis", AT(loss_scale.hysteresis), "2", 1, 1e9,
        "halve it at this overflow after it was doubled, and at those that follow; overflows before "
        "only skip their step"),
    OPTION_FLAG_ROW("checkpoint-activations", PRETRAIN(checkpoint_activations),
                    "keep the activations of few layers and recompute the others in backward"),
    OPTION_INT_ROW("checkpoint-num-layers", OWN(checkpoint_num_layers), "1", 1, 1024,
                   "number of layers that are recomputed together"),
    OPTION_FLAG_ROW("deepspeed-activation-checkpointing", OWN(recomputes_by_deepspeed),
                    "the same as --checkpoint-activations, which must be given too"),
    OPTION_CHOICE_ROW("device", AT(device), "auto", "auto|cpu|cuda",
                      "where to compute; auto is the cpu, since cuda has not been tested on a GPU yet"),
    OPTION_GROUP_ROW("ranks, and DeepSpeed's JSON"),
    OPTION_ROWS_OF(settings_mesh, OWN(mesh)),
    OPTION_FLAG_ROW(
        "sequence-parallel", AT(ranks.cut.sequence_parallel),
        "ranks that share layers also divide the rows of LayerNorms, dropouts and residuals, which "
        "takes less memory for activations; without such ranks it does nothing"),
    OPTION_INT_ROW("num-layers-per-virtual-pipeline-stage", OWN(virtual_stage_layers), "0", 0, 1024,
                   "layers of a chunk, of which each pipeline stage then has several (interleaved 1F1B); 0: "
                   "each stage has one"),
    OPTION_STRING_ROW("pp-partition-method", OWN(partition), NULL, "NAME",
                      "uniform, parameters or type:transformer: stages have as many layers; "
                      "'type:transformer|embedding': with embedding and head counted as a layer each"),
    OPTION_INT_ROW(
        "zero-stage", AT(ranks.zero_stage), "0", 0, 3,
        "0: off, but in bf16 the same as 1; 1: ranks share the moments and the fp32 weights; 2: and the "
        "gradients"),
    OPTION_INT_ROW("reproducible_ranks", AT(ranks.reproducible_ranks), "0", 0, 1024,
                   "give the same bits on 1, 2, 4 ... N ranks; 0: off"),
    OPTION_INT_ROW(
        "replica_check_steps", AT(ranks.replica_check_steps), "0", 0, 1e12,
        "compare a hash of all ranks' weights every N steps; 0: only before the first step and each "
        "checkpoint"),
    OPTION_FLAG_ROW("deepspeed", OWN(deepspeed), "read --deepspeed_config, which must be given"),
    OPTION_STRING_ROW("deepspeed_config", PRETRAIN(deepspeed_config), NULL, "FILE",
                      "DeepSpeed's JSON, which must say the same as the flags"),
    DEEPSCALE_ROWS,
    OPTION_ROWS_OF(settings_emulation, PRETRAIN(emulation)),
    OPTION_GROUP_ROW("checkpoints"),
    OPTION_STRING_ROW("save", OWN(save), NULL, "DIR", "write checkpoints, log.jsonl and report.html here"),
    OPTION_INT_ROW("save-interval", OWN(save_interval), "0", 0, 1e12,
                   "number of steps between checkpoints; required with --save"),
    OPTION_STRING_ROW(
        "load", OWN(load), NULL, "DIR",
        "resume from the newest checkpoint here; without one the run begins with random weights"),
    OPTION_FLAG_ROW(
        "universal-checkpoint", PRETRAIN(load_universal),
        "resume from the universal checkpoint in --load, or that latest_universal there names, if "
        "it has no checkpoint of kiln, which need no flag on any number of ranks"),
    OPTION_FLAG_ROW("finetune", OWN(finetune), "take only the weights from --load, and begin at step 0"),
    OPTION_STRING_ROW("output_dir", OWN(log_dir), NULL, "DIR",
                      "write log.jsonl and report.html here; default: --save, or --tensorboard-dir"),
    OPTION_INT_ROW("keep_checkpoints", AT(keep_checkpoints), "0", 0, 1e6, "keep the last N; 0: all"),
    OTHER_DATA_ROW("--data-path does not hold what"),
    OPTION_GROUP_ROW("validation and logs"),
    OPTION_INT_ROW("eval-interval", AT(eval_steps), "1000", 1, 1e12, "number of steps between validations"),
    OPTION_INT_ROW("eval-iters", PRETRAIN(eval_iters), "100", 0, 1e9,
                   "number of batches of a validation, of the size of the training step's; 0: off"),
    NGRAM_ROW(GPT(ngram_tokens), ""),
    OPTION_INT_ROW("log-interval", AT(log_freq), "100", 1, 1e9, "number of steps between lines of the log"),
    OPTION_FLAG_ROW("log-params-norm", PRETRAIN(log_weight_norm),
                    "log the norm of all weights, in lines and event files"),
    OPTION_FLAG_ROW("log-num-zeros-in-grad", PRETRAIN(log_zero_gradients),
                    "count the zeros in gradients, and log their number in place of 0"),
    OPTION_STRING_ROW("tensorboard-dir", LOG(tensorboard), NULL, "DIR",
                      "write event files for TensorBoard here"),
    OPTION_INT_ROW("tensorboard-log-interval", LOG(events_every), "1", 1, 1e9,
                   "number of steps between scalars of event files"),
    OPTION_FLAG_ROW("log-timers-to-tensorboard", LOG(timers), "write the times of steps to event files"),
    OPTION_FLAG_ROW("log-batch-size-to-tensorboard", LOG(batch_size), "write the batch size to event files"),
    OPTION_FLAG_ROW("log-validation-ppl-to-tensorboard", LOG(perplexity),
                    "write the perplexity of validations to event files"),
    OPTION_FLAG_ROW("no-log-learnig-rate-to-tensorboard", OWN(no_log_learning_rate),
                    "do not write the learning rate to event files"),
    OPTION_FLAG_ROW("no-log-loss-scale-to-tensorboard", OWN(no_log_loss_scale),
                    "do not write the loss scale to event files"),
    RUN_LOG_ROWS,
    PROGRESS_BAR_ROW(AT(common.disable_progress_bar)),
    DRY_RUN_ROW(AT(common.dry_run), "check everything, print the planned work and memory, write nothing"),
    OPTION_GROUP_ROW("flags of the replaced script"),
    /* refused: kiln does it otherwise, or cannot do it */
    OPTION_REFUSED_ROW("apply-residual-connection-post-layernorm",
                       "residual connections begin before the LayerNorm"),
    OPTION_REFUSED_ROW("glu-activation", "kiln's feed-forward layers have GELU"),
    OPTION_REFUSED_ROW("init-method-xavier-uniform", "kiln draws weights from a normal distribution"),
    OPTION_REFUSED_ROW("fp16-lm-cross-entropy", "losses are computed in fp32"),
    OPTION_REFUSED_ROW("cpu-optimizer", "weights are updated on the device of --device"),
    OPTION_REFUSED_ROW("batch-size", "it is the old name of --micro-batch-size; give that"),
    OPTION_REFUSED_ROW("warmup", "it is the old name of --lr-warmup-fraction; give that"),
    OPTION_REFUSED_ROW("train-tokens", "give --train-samples, the tokens divided by --seq-length"),
    OPTION_REFUSED_ROW("lr-decay-tokens", "give --lr-decay-samples, the tokens divided by --seq-length"),
    OPTION_REFUSED_ROW("lr-warmup-tokens", "give --lr-warmup-samples, the tokens divided by --seq-length"),
    OPTION_REFUSED_ROW("use-checkpoint-lr-scheduler",
                       "a resumed run has the schedule of its flags; give those that the run began with"),
    OPTION_REFUSED_ROW("no-load-lr-state", "the schedule follows from the step; --finetune begins at step 0"),
    OPTION_REFUSED_ROW("no-save-optim", "a checkpoint is whole, so that the run can go on"),
    OPTION_REFUSED_ROW("no-load-optim", "a run resumes with its moments; --finetune takes the weights alone"),
    OPTION_REFUSED_ROW("inference", "this command trains; `kiln generate` and `kiln eval` use the model"),
    OPTION_REFUSED_ROW("checkpoint-in-cpu", "activations stay on the device of --device"),
    OPTION_REFUSED_ROW("reset-position-ids",
                       "positions count from the beginning of the sample, not of a document"),
    OPTION_REFUSED_ROW("reset-attention-mask",
                       "a token attends to all tokens before it in the sample, of any document"),
    OPTION_REFUSED_ROW("eod-mask-loss", "every token but the first is predicted"),
    OPTION_REFUSED_ROW("curriculum-learning", "all samples have --seq-length tokens"),
    OPTION_REFUSED_ROW("num-experts", NO_MOE),
    OPTION_REFUSED_ROW("create-moe-param-group", NO_MOE),
    OPTION_REFUSED_ROW("mlp-type", NO_MOE),
    OPTION_REFUSED_ROW("log-optimizer-states-to-tensorboard", "norms of moments are not computed"),
    OPTION_REFUSED_ROW("memory-centric-tiled-linear", "linear layers are computed whole"),
    OPTION_REFUSED_ROW("train-weighted-split-paths", OTHER_SPLITS),
    OPTION_REFUSED_ROW("valid-weighted-split-paths", OTHER_SPLITS),
    OPTION_REFUSED_ROW("test-weighted-split-paths", OTHER_SPLITS),
    OPTION_REFUSED_ROW("train-weighted-split-paths-path", OTHER_SPLITS),
    OPTION_REFUSED_ROW("valid-weighted-split-paths-path", OTHER_SPLITS),
    OPTION_REFUSED_ROW("test-weighted-split-paths-path", OTHER_SPLITS),
    /* ignored: it changes nothing here */
    OPTION_IGNORED_ROW("abort-on-unmet-fused-kernel-constraints", "kernels take any sizes"),
    OPTION_IGNORED_ROW("no-masked-softmax-fusion", "attention is one kernel"),
    OPTION_IGNORED_ROW("no-bias-dropout-fusion", "the same numbers, fused or not"),
    OPTION_IGNORED_ROW("no-query-key-layer-scaling",
                       "scores are computed in fp32, so scaling them changes nothing"),
    OPTION_IGNORED_ROW("apply-query-key-layer-scaling",
                       "scores are computed in fp32, so scaling them changes nothing"),
    OPTION_IGNORED_ROW("attention-softmax-in-fp32", "softmax is always computed in fp32"),
    OPTION_IGNORED_ROW("accumulate-allreduce-grads-in-fp32", "gradients are always summed in fp32"),
    OPTION_IGNORED_ROW("no-pipeline-parallel",
                       "--pipeline-model-parallel-size says how many stages there are"),
    OPTION_IGNORED_ROW("distribute-checkpointed-activations", OWN_LAYERS),
    OPTION_IGNORED_ROW("partition-activations", OWN_LAYERS),
    OPTION_IGNORED_ROW("scattered-embeddings", WHOLE_OUTPUTS),
    OPTION_IGNORED_ROW("split-transformers", "a layer is run as a whole"),
    OPTION_IGNORED_ROW("no-scatter-gather-tensors-in-pipeline", WHOLE_OUTPUTS),
    OPTION_IGNORED_ROW("sync-tp-duplicated-parameters",
                       "what tensor-parallel ranks have alike they compute alike, to the bit"),
    OPTION_IGNORED_ROW("contigious-checkpointing", "activations lie in one planned block"),
    OPTION_IGNORED_ROW("synchronize-each-layer", "--sync_ops waits after every op"),
    OPTION_IGNORED_ROW("profile-backward", "--profile times operations"),
    OPTION_IGNORED_ROW("override-lr-scheduler", "a resumed run has the schedule of its flags"),
    OPTION_IGNORED_ROW("no-save-rng",
                       "there is no generator state: randomness follows from the seed and the step"),
    OPTION_IGNORED_ROW("no-load-rng",
                       "there is no generator state: randomness follows from the seed and the step"),
    OPTION_IGNORED_ROW("verify-checkpoint", "checksums of a checkpoint are always checked"),
    OPTION_IGNORED_VALUE_ROW("verify-checkpoint-model-type", "NAME",
                             "checksums of a checkpoint are always checked"),
    OPTION_IGNORED_VALUE_ROW("distributed-backend", "NAME", "MPI joins the ranks, and NCCL those with GPUs"),
    OPTION_IGNORED_VALUE_ROW("DDP-impl", "NAME", OWN_WAY),
    OPTION_IGNORED_ROW("use-contiguous-buffers-in-ddp", OWN_WAY),
    OPTION_IGNORED_ROW("no-contiguous-buffers-in-local-ddp", OWN_WAY),
    OPTION_IGNORED_ROW("zero-contigious-gradients", OWN_WAY),
    OPTION_IGNORED_ROW("zero-reduce-scatter", OWN_WAY),
    OPTION_IGNORED_VALUE_ROW("zero-reduce-bucket-size", "N", OWN_WAY),
    OPTION_IGNORED_VALUE_ROW("zero-allgather-bucket-size", "N", OWN_WAY),
    OPTION_IGNORED_VALUE_ROW("remote-device", "NAME", "everything is on the device of --device"),
    OPTION_IGNORED_ROW("use-pin-memory", "everything is on the device of --device"),
    OPTION_IGNORED_ROW("use-cpu-initialization", "weights are drawn alike on every device"),
    OPTION_IGNORED_VALUE_ROW("lazy-mpu-init", "BOOL", "mpirun and srun tell the ranks"),
    OPTION_IGNORED_VALUE_ROW("num-workers", "N", "one thread makes the next batch"),
    OPTION_IGNORED_ROW("mmap-warmup", "a store is mapped, and read when it is needed"),
    OPTION_IGNORED_VALUE_ROW("tensorboard-queue-size", "N", "event files are written at once"),
    OPTION_IGNORED_ROW("log-memory-to-tensorboard", "--log_memory_usage logs the memory"),
    OPTION_IGNORED_ROW("adlr-autoresume", "a signal saves, and the same command resumes"),
    OPTION_IGNORED_VALUE_ROW("adlr-autoresume-interval", "N", "a signal saves, and the same command resumes"),
    OPTION_IGNORED_VALUE_ROW("vocab-extra-ids", "N", "it is for T5"),
    OPTION_IGNORED_VALUE_ROW("mask-prob", "X", BERT_ONLY),
    OPTION_IGNORED_VALUE_ROW("short-seq-prob", "X", BERT_ONLY),
    OPTION_IGNORED_ROW("bert-no-binary-head", BERT_ONLY),
    OPTION_IGNORED_VALUE_ROW("encoder-seq-length", "N", "--seq-length is the length"),
    OPTION_IGNORED_VALUE_ROW("decoder-seq-length", "N", "it is for T5"),
    OPTION_IGNORED_ROW("use_hpu",
                       "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),
    OPTION_IGNORED_ROW("hpu-deterministic", "the same run gives the same bits"),
    OPTION_ROWS_OF(settings_launcher, OWN(launcher)),
    {0},
};

static const struct run_flag_names names = {.data = "--data-path",
                                            .output = "--save",
                                            .resume = "--load",
                                            .batch = "--micro-batch-size",
                                            .command = "pretrain-gpt",
                                            .of_prefix = true};

static struct status train(const struct train_command *t, void *args)
{
    struct megatron_args *a = args;
    struct rank_options *ranks = &a->run.run.ranks;
    int n_data = rank_options_data(ranks).size;
    json_t *config = NULL, *flags = NULL;
    struct status s = megatron_args_read(t->command, a, n_data, &config);
    a->run.run.names = &names;
    s = failed(s) ? s : train_command_flags(&flags, t, a);
    if (!failed(s)) {
        json_object_set_new(flags, "world_size", json_integer(rank_options_world(ranks).size));
        json_object_set_new(flags, "data_parallel_size", json_integer(n_data));
        s = pretrain_run(&a->run);
    }
    json_decref(flags);
    json_decref(config);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct megatron_args *a = args;
    return train_command_run(&(struct train_command){.command = &command_pretrain_gpt,
                                                     .launcher = &a->launcher,
                                                     .mesh = &a->mesh,
                                                     .emulation = &a->run.emulation,
                                                     .replaces = true,
                                                     .train = train},
                             args);
}

const struct command command_pretrain_gpt = {
    .name = "pretrain-gpt",
    .summary = "pre-train GPT-2 or BLOOM with the flags of Megatron-DeepSpeed's pretrain_gpt.py",
    .details =
        "Trains a decoder as `kiln pretrain` does, and takes the flags of pretrain_gpt.py: those that mean "
        "nothing here are accepted with a line that says why, and those that ask for what kiln does not do "
        "are refused. Lines and event files are the script's. Ctrl-C, SIGTERM or SIGHUP saves and ends with "
        "exit code 75; the same command with --load continues as if it had never stopped.",
    .options = options,
    .usual = "num-layers|hidden-size|num-attention-heads|max-position-embeddings|data-path|split|vocab-file|"
             "merge-file|seq-length|micro-batch-size|global-batch-size|rampup-batch-size|train-samples|"
             "train-iters|seed|recipe|lr|min-lr|lr-decay-style|lr-decay-samples|lr-warmup-samples|"
             "weight-decay|bf16|checkpoint-activations|device|deepspeed_config|save|save-interval|load|"
             "eval-interval|eval-iters|log-interval|tensorboard-dir|dry-run",
    .args_bytes = sizeof(struct megatron_args),
    .given = OWN(given),
    .run = run,
    .of_ranks = true,
};
