/* kiln export: writes a checkpoint or model directory as a directory that `transformers` and kiln load. */
#include "cmd/commands.h"
#include "cmd/model_writing.h"

static const struct option options[] = {OPTION_ROWS_OF(model_writing_flags, 0), {0}};

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    struct model_writing w = {.flags = args, .form = {.kind = MODEL_DIR_HUGGING_FACE}};
    return model_writing_run(&w);
}

const struct command command_export = {
    .name = "export",
    .summary = "write a model as a Hugging Face directory",
    .details = "Reads kiln's checkpoints and output directories, Hugging Face directories (model.safetensors "
               "or pytorch_model.bin, whole or in shards; F32, F16, BF16; old names), ckpt_N.pt and "
               "mp_rank_00_model_states.pt of PyTorch and DeepSpeed, and TensorFlow checkpoints by their "
               "prefix, the configuration and vocabulary beside them, and writes config.json, "
               "model.safetensors, vocab.txt, tokenizer.json and the files around them, in fp32. Heads that "
               "the task lacks are left out and listed; heads that the model lacks are an error.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct model_writing_flags),
    .run = run,
};
