/* A model goes from one form to another a tensor at a time: a child whose memory is limited to two of the
 * largest tensors, and what a process has anyway, reads, writes and verifies a deep and narrow decoder of
 * many times that, and its weights come back bit by bit.  The limit is RLIMIT_DATA, which counts memory that
 * a process may write, and no mapped files. */
#include "decoder_case.h"

#include "core/hash.h"
#include "core/log.h"
#include "nn/decoder/decoder_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
    HIDDEN = 256,
    LAYERS = 48,
    LARGEST = 4 * HIDDEN * HIDDEN * 4, /* bytes of a matrix of the feed-forward layers */
    MODEL = LAYERS * 3 * LARGEST,      /* bytes of all layers, about */
    BESIDE = 24 << 20, /* buffers, the tokenizer, and lists of tensors: 100 kB for each of 300 files */
};

/* Values that depend on the name and the place, from -1 to 1, made one parameter at a time. */
static struct status make_values(void *self, const struct param *p, tensor *values)
{
    static float room[4 * HIDDEN * HIDDEN];
    uint64_t x = hash_fnv1a(p->name, strlen(p->name)) | 1;
    struct param whole = *p;
    (void)self;
    whole.offset = 0;
    for (int64_t i = 0; i < param_count(p); i++) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        room[i] = (float)(int32_t)(x >> 32) / 2147483648.0F;
    }
    *values = param_view(&whole, tensor_1d(room, DTYPE_F32, param_count(p)));
    return status_ok();
}

static void make_model(void)
{
    struct model_dir m;
    struct param_table params = {0};
    const struct weight_source weights = {NULL, make_values};
    EXPECT_OK(model_dir_open(&m, path_of("gpt2")));
    struct decoder_config *config = m.config;
    config->hidden_size = HIDDEN;
    config->feed_forward_size = 4 * HIDDEN;
    config->n_layers = LAYERS;
    EXPECT_OK(model_dir_declare(&m, &params, m.task));
    struct model_dir_contents contents = {.family = m.family,
                                          .task = m.task,
                                          .params = &params,
                                          .weights = &weights,
                                          .config = config,
                                          .tokenizer = &m.tokenizer};
    EXPECT_OK(model_dir_save(path_of("deep"), &contents));
    EXPECT_OK(model_dir_verify(path_of("deep"), &contents));
    param_table_fini(&params);
    model_dir_close(&m);
}

static void stream(const char *from, struct model_dir_form form, const char *to)
{
    struct model_dir m;
    struct param_table params = {0};
    struct model_dir_source source;
    struct load_report report;
    EXPECT_OK(model_dir_open(&m, path_of(from)));
    if (model_dir_form_drops_rows(form)) {
        model_dir_drop_rows(&m);
    }
    EXPECT_OK(model_dir_declare(&m, &params, m.task));
    EXPECT_OK(model_dir_source_open(&source, &m, &params, m.task, &report));
    struct weight_source weights = model_dir_source_of(&source);
    struct model_dir_contents contents = {.family = m.family,
                                          .task = m.task,
                                          .params = &params,
                                          .weights = &weights,
                                          .config = m.config,
                                          .tokenizer = &m.tokenizer,
                                          .form = form};
    EXPECT_OK(model_dir_save(path_of(to), &contents));
    EXPECT_OK(model_dir_verify(path_of(to), &contents));
    EXPECT_OK(model_dir_source_close(&source));
    param_table_fini(&params);
    model_dir_close(&m);
}

/* What the process has of memory that RLIMIT_DATA counts, in bytes. */
static size_t bytes_of_data(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && kib < 0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "VmData: %ld kB", &kib);
    }
    EXPECT(f != NULL && kib >= 0, "/proc/self/status has no VmData");
    fclose(f);
    return (size_t)kib << 10;
}

/* Streams in a child, with so many bytes more than the process has; whether it succeeds. */
static bool stream_within(size_t bytes, const char *from, struct model_dir_form form, const char *to)
{
    int code = 0;
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
    if (child == 0) {
        struct rlimit limit = {bytes_of_data() + bytes, RLIM_INFINITY};
        EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit");
        stream(from, form, to);
        _exit(0);
    }
    EXPECT(waitpid(child, &code, 0) == child, "no child");
    return code == 0;
}

static void expect_stream(const char *from, struct model_dir_form form, const char *to)
{
    EXPECT(stream_within(BESIDE + 2 * LARGEST, from, form, to), "%s as %s needs more than %d MiB", from, to,
           (BESIDE + 2 * LARGEST) >> 20);
}

static void expect_same_file(const char *a, const char *b)
{
    struct file_map x, y;
    EXPECT_OK(file_map_open(&x, path_of(a)));
    EXPECT_OK(file_map_open(&y, path_of(b)));
    EXPECT(x.n == y.n && memcmp(x.data, y.data, x.n) == 0, "%s is not %s", b, a);
    file_map_close(&x);
    file_map_close(&y);
}

static struct model_dir_form ranks(int64_t n, int64_t stages)
{
    return (struct model_dir_form){.kind = MODEL_DIR_MEGATRON, .step = 7, .n_ranks = n, .n_stages = stages};
}

int main(void)
{
    const struct model_dir_form plain = {.kind = MODEL_DIR_HUGGING_FACE}, gguf = {.kind = MODEL_DIR_GGUF};
#if KILN_SANITIZED || defined(__SANITIZE_THREAD__)
    test_skip("addresses", "a sanitizer needs more memory than a process without it");
#endif
    log_set_level(LOG_QUIET);
    cases_open(KILN_SOURCE_DIR "/tests/golden/decoder_files.safetensors");
    unpack("gpt2");
    make_model();
    EXPECT(4 * (BESIDE + 2 * LARGEST) < MODEL, "the limit would not show that all is in memory");
    expect_stream("deep", gguf, "plain/named"); /* the file says the name of its directory */
    expect_stream("deep", ranks(2, 4), "wide");
    expect_stream("wide", ranks(4, 1), "wider");
    expect_stream("wide", gguf, "of_wide/named");
    expect_same_file("plain/named/model.gguf", "of_wide/named/model.gguf");
    expect_stream("wider", plain, "back");
    expect_stream("back", gguf, "of_back/named");
    expect_same_file("plain/named/model.gguf", "of_back/named/model.gguf");
    cases_close();
    return 0;
}
