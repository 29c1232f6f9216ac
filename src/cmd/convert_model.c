/* kiln convert: writes any model that kiln reads in a form that other programs read, reads it back, and says
 * by how much its logits differ. */
#include "cmd/commands.h"
#include "cmd/model_writing.h"
#include "core/log.h"
#include "data/shard_directory.h"
#include "serve/model_outputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct convert_args {
    struct model_writing_flags writing;
    const char *format, *type, *logits, *input_dir;
    struct option_given given;
    int64_t step, ranks, tp, pp;
    bool optimizer, compare_logits;
};

static const struct option options[] = {
    OPTION_ROWS_OF(model_writing_flags, offsetof(struct convert_args, writing)),
    OPTION_CHOICE_ROW(
        "format", offsetof(struct convert_args, format), "huggingface",
        "huggingface|pt|deepspeed|onnx|gguf|megatron_deepspeed|universal",
        "write in this format. huggingface: config.json and model.safetensors; pt: ckpt_N.pt and "
        "bert_config.json, as NVIDIA's and Habana's scripts keep a model; deepspeed: a directory of ZeRO 1 "
        "with the state of the run, latest and bert_config.json; decoders "
        "also gguf: config.json and model.gguf, which llama.cpp loads; "
        "megatron_deepspeed: latest and a directory of layer files and of each rank's mp_rank file; "
        "universal: "
        "latest_universal and the universal checkpoint of Megatron-DeepSpeed, with the state of the run; "
        "onnx is not written: the error says how optimum-cli makes it"),
    OPTION_SAME_ROW("to", "format", "the same as --format"),
    OPTION_CHOICE_ROW("type", offsetof(struct convert_args, type), "f32", "f32|f16|bf16|q8_0",
                      "store the weights of --format gguf, whose vectors stay f32, in this type"),
    OPTION_INT_ROW("tp", offsetof(struct convert_args, tp), "1", 1, 1024,
                   "number of ranks of tensor parallelism that read --format megatron_deepspeed"),
    OPTION_INT_ROW("pp", offsetof(struct convert_args, pp), "1", 1, 1024,
                   "number of stages of the pipeline that reads --format megatron_deepspeed"),
    OPTION_FLAG_ROW("optimizer", offsetof(struct convert_args, optimizer),
                    "with --format pt, also write the moments and the step of a checkpoint of kiln, so that "
                    "the scripts resume from it; --format deepspeed and universal always do"),
    OPTION_INT_ROW("ranks", offsetof(struct convert_args, ranks), "1", 1, 4096,
                   "number of ranks that resume from --format deepspeed"),
    OPTION_STRING_ROW(
        "input_dir", offsetof(struct convert_args, input_dir), NULL, "DIR",
        "list the HDF5 files of this directory in ckpt_N.pt, so that the scripts resume within a phase"),
    OPTION_INT_ROW("step", offsetof(struct convert_args, step), "0", 0, 1e15,
                   "number in the name of ckpt_N.pt, of DeepSpeed's directory or of Megatron-DeepSpeed's "
                   "global_stepN; with the state of a run, 0: off, the step of the checkpoint"),
    OPTION_BOOL_ROW("compare_logits", offsetof(struct convert_args, compare_logits), "true",
                    "compare the logits of both models, for which each is in memory once; false: for a model "
                    "that is larger than the memory, which is written and read back a tensor at a time"),
    OPTION_STRING_ROW("logits", offsetof(struct convert_args, logits), NULL, "FILE",
                      "also write the compared tokens and logits as safetensors, for other programs to "
                      "compare with"),
    {0},
};

static enum model_dir_kind kind_of(const char *format)
{
    return strcmp(format, "pt") == 0                   ? MODEL_DIR_SCRIPT
           : strcmp(format, "deepspeed") == 0          ? MODEL_DIR_DEEPSPEED
           : strcmp(format, "gguf") == 0               ? MODEL_DIR_GGUF
           : strcmp(format, "megatron_deepspeed") == 0 ? MODEL_DIR_MEGATRON
           : strcmp(format, "universal") == 0          ? MODEL_DIR_UNIVERSAL
                                                       : MODEL_DIR_HUGGING_FACE;
}

static enum model_dir_type type_of(const char *type)
{
    return strcmp(type, "f16") == 0    ? MODEL_DIR_F16
           : strcmp(type, "bf16") == 0 ? MODEL_DIR_BF16
           : strcmp(type, "q8_0") == 0 ? MODEL_DIR_Q8_0
                                       : MODEL_DIR_F32;
}

/* Largest difference of logits, in parts of the largest: by rounding in another order, or by the type of the
 * weights. */
static double bound_of(enum model_dir_type type)
{
    static const double bounds[] = {
        [MODEL_DIR_F32] = 1e-5, [MODEL_DIR_F16] = 1e-2, [MODEL_DIR_BF16] = 5e-2, [MODEL_DIR_Q8_0] = 1e-1};
    return bounds[type];
}

/* Prints the largest difference of each output.  The weights are the same except for the rounding of their
 * type, so a larger difference means that the files next to them disagree. */
static struct status compare(const struct model_outputs *before, const struct model_outputs *after,
                             double bound, const char *path)
{
    double worst = 0, scale = 1, difference, largest;
    char text[256] = "";
    size_t used = 0;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        if (!model_outputs_compare(&difference, &largest, before, after, k)) {
            FAIL_IF(!tensor_is_null(before->values[k]), STATUS_INTERNAL, "%s has no output %s of the model",
                    path, model_outputs_name(before, k));
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.3g of %.3g", used > 0 ? ", " : "",
                                 model_outputs_name(before, k), difference, largest);
        worst = fmax(worst, difference);
        scale = fmax(scale, largest);
    }
    printf("largest difference of logits before and after: %.3g (%s)\n", worst, text);
    return worst <= bound * scale
               ? status_ok()
               : status_error(
                     STATUS_INTERNAL,
                     "%s computes other logits than the model it was made from: they may differ by %.3g",
                     path, bound * scale);
}

static struct status compare_written(const struct model_writing *w, enum model_task task,
                                     const struct outputs_input *in, const struct model_outputs *before)
{
    char path[MODEL_DIR_PATH_BYTES];
    struct model_dir m;
    struct model_outputs after;
    TRY(model_dir_written_path(path, w->flags->common.output_dir, w->form));
    TRY(model_dir_open(&m, path));
    struct status s = model_outputs_compute(&after, &m, task, in);
    model_dir_close(&m);
    if (!failed(s)) {
        s = compare(before, &after, bound_of(w->form.type), path);
        model_outputs_fini(&after);
    }
    return s;
}

static struct status compare_logits(const struct model_writing *w, const struct model_dir *m,
                                    enum model_task task)
{
    const struct convert_args *a = w->context;
    struct outputs_input in = {0};
    struct model_outputs before = {0};
    struct status s = outputs_input_fixed(&in, m);
    if (!failed(s)) {
        s = model_outputs_compute(&before, m, task, &in);
    }
    if (!failed(s) && a->logits != NULL) {
        s = model_outputs_save(a->logits, &in, &before);
    }
    if (!failed(s)) {
        s = compare_written(w, task, &in, &before);
    }
    model_outputs_fini(&before);
    outputs_input_fini(&in);
    return s;
}

/* The logits must not replace a file of the model. */
static struct status check_logits(const struct convert_args *a)
{
    char beside[FILE_PATH_BYTES];
    const char *model = a->writing.model;
    file_parent(beside, a->logits);
    FAIL_IF(file_is_same(a->logits, model) || (file_is_same(beside, model) && file_exists(a->logits)),
            STATUS_USAGE, "--logits %s is a file of the --model: choose another name", a->logits);
    return a->writing.common.dry_run ? status_ok() : file_check_output(a->logits, 0);
}

/* The formats that a flag is for, by their bits. */
enum {
    FOR_SCRIPTS = 1 << MODEL_DIR_SCRIPT | 1 << MODEL_DIR_DEEPSPEED,
    FOR_UNIVERSAL = 1 << MODEL_DIR_UNIVERSAL,
    FOR_MEGATRON = 1 << MODEL_DIR_MEGATRON,
};

static const struct {
    const char *flag;
    unsigned kinds;
    const char *formats;
} bound_flags[] = {
    {"tp", FOR_MEGATRON, "megatron_deepspeed"},
    {"pp", FOR_MEGATRON, "megatron_deepspeed"},
    {"ranks", 1 << MODEL_DIR_DEEPSPEED, "deepspeed"},
    {"input_dir", FOR_SCRIPTS, "pt or deepspeed"},
    {"optimizer", FOR_SCRIPTS | FOR_UNIVERSAL, "pt, deepspeed or universal"},
    {"step", FOR_SCRIPTS | FOR_UNIVERSAL | FOR_MEGATRON, "pt, deepspeed, megatron_deepspeed or universal"},
};

/* STATUS_USAGE: a flag that the format would pass over in silence. */
static struct status check_bound_flags(const struct convert_args *a, enum model_dir_kind kind)
{
    for (size_t i = 0; i < sizeof bound_flags / sizeof bound_flags[0]; i++) {
        FAIL_IF(option_was_given(&command_convert, a, bound_flags[i].flag) &&
                    (bound_flags[i].kinds >> kind & 1) == 0,
                STATUS_USAGE, "--%s needs --format %s, not %s", bound_flags[i].flag, bound_flags[i].formats,
                a->format);
    }
    return status_ok();
}

static struct status check_progress(const struct convert_args *a, enum model_dir_kind kind)
{
    TRY(check_bound_flags(a, kind));
    FAIL_IF(a->input_dir != NULL && kind == MODEL_DIR_SCRIPT && !a->optimizer, STATUS_USAGE,
            "--input_dir lists the data that a run goes on with: give --optimizer");
    if (a->optimizer && kind == MODEL_DIR_SCRIPT && a->input_dir == NULL) {
        log_warning(
            "no --input_dir: the scripts resume within a phase only if ckpt_N.pt lists the HDF5 files");
    }
    return status_ok();
}

/* Checks that the form has the type, and that --logits has something to write. */
static struct status check_type(const struct convert_args *a, enum model_dir_kind kind)
{
    FAIL_IF(type_of(a->type) != MODEL_DIR_F32 && kind != MODEL_DIR_GGUF, STATUS_USAGE,
            "--type %s needs --format gguf, not %s", a->type, a->format);
    FAIL_IF(a->logits != NULL && !a->compare_logits, STATUS_USAGE,
            "--logits writes what --compare_logits false leaves out: leave out one of them");
    return status_ok();
}

static struct status list_files(struct shard_list *files, const char *directory)
{
    char found[SHARD_DIRECTORY_PATH_BYTES];
    (void)shard_directory_find(found, directory, "training");
    return shard_directory_list(files, found, "training");
}

/* Prints what a run of the scripts looks for and no checkpoint of kiln has. */
static void tell_what_is_left_out(void)
{
    puts("not written: a loss scale, and the place in the data and random states, which kiln does not have: "
         "the run resumes with other batches and dropout. Rates and decay are the scripts' defaults where "
         "the checkpoint does not say");
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct convert_args *a = args;
    struct model_writing w = {.flags = &a->writing,
                              .form = {kind_of(a->format), a->step, type_of(a->type), a->tp, a->pp},
                              .verify = true,
                              .n_ranks = (int)a->ranks,
                              .after = a->compare_logits ? compare_logits : NULL,
                              .context = a};
    FAIL_IF(strcmp(a->format, "onnx") == 0, STATUS_UNAVAILABLE,
            "kiln writes no ONNX: write --format huggingface, and make ONNX of that by optimum-cli export "
            "onnx --model %s ONNX_DIR (pip install optimum-onnx[onnxruntime])",
            a->writing.common.output_dir);
    if (a->logits != NULL) {
        TRY(check_logits(a));
    }
    w.with_progress =
        a->optimizer || w.form.kind == MODEL_DIR_DEEPSPEED || w.form.kind == MODEL_DIR_UNIVERSAL;
    TRY(check_progress(a, w.form.kind));
    TRY(check_type(a, w.form.kind));
    struct shard_list files = {0};
    if (w.with_progress && a->input_dir != NULL) {
        TRY(list_files(&files, a->input_dir));
        w.files = (const char *const *)files.paths;
        w.n_files = files.n;
    }
    struct status s = model_writing_run(&w);
    shard_list_fini(&files);
    if (!failed(s) && w.with_progress) {
        tell_what_is_left_out();
    }
    return s;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "write a model for another program, and compare the logits",
    .details =
        "Reads what `kiln export` reads, and writes a directory: for `transformers` and kiln (as `kiln "
        "export` does), for the training scripts of NVIDIA and Habana (ckpt_N.pt with a state dict under "
        "\"model\", their names of layers, the vocabulary rounded up to a multiple of 8); decoders "
        "also for llama.cpp and Megatron-DeepSpeed. kiln reads all weights back and compares them bit "
        "by bit; but for pt and deepspeed, no more than two tensors are in memory for that. It "
        "compares the logits of both models on fixed tokens.\n\n--optimizer and --format deepspeed and "
        "universal also write the state of a run: moments and "
        "steps, but "
        "not the place in the data, random states or a loss scale.",
    .options = options,
    .given = offsetof(struct convert_args, given),
    .args_bytes = sizeof(struct convert_args),
    .run = run,
};
