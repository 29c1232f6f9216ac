/* Tests of HDF5 shards, both ways: files that h5py wrote in the replaced system's layouts (tests/golden),
 * files that kiln writes, the order of an epoch, what damaged and contradictory files lead to, and the end of
 * the process that reads. */
#include "fixture_loader.h"

#include "data/pack.h"
#include "data/bert/shard_loader.h"
#include "data/shard_writer.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VOCAB = 40, S = 32, P = 6, N_GOLDEN = 24, GOLDEN_CLS = 1, GOLDEN_SEP = 2, GOLDEN_MASK = 3 };

static struct shard_loader_config config_of(const char *directory, int64_t batch, int64_t accumulation)
{
    return (struct shard_loader_config){.directory = directory,
                                        .word = "training",
                                        .vocab_size = VOCAB,
                                        .seed = 7,
                                        .batch.train_batch_size = batch,
                                        .batch.gradient_accumulation_steps = accumulation,
                                        .allow_packed = true};
}

/* A new directory of the test's own; the caller frees its path. */
static char *make_directory(const char *name)
{
    char *path = strdup(fixture_path(name));
    EXPECT(path != NULL && mkdir(path, 0777) == 0, "mkdir %s", name);
    return path;
}

static char *file_in(const char *directory, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void copy_file(const char *from, const char *to, size_t n_most)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, from));
    FILE *f = fopen(to, "wb");
    size_t n = m.n < n_most ? m.n : n_most;
    EXPECT(f != NULL && fwrite(m.data, 1, n, f) == n && fclose(f) == 0, "cannot write %s", to);
    file_map_close(&m);
}

static void make_step(const struct batch_source *source, struct batch_step *step)
{
    EXPECT_OK(batch_step_init(step, source->n_micro, &text_batch_layout, source->limits));
}

/* One sequence of a batch by value, so that two can be compared. */
struct sequence {
    int64_t n, n_masked;
    int32_t ids[S], types[S], places[P], labels[P], nsp;
};

static void take_sequence(struct sequence *out, const struct batch *b, int64_t k)
{
    int32_t begin = b->cu_seqlens[k], end = b->cu_seqlens[k + 1];
    *out = (struct sequence){.n = end - begin, .nsp = b->fields[TEXT_PAIR_LABELS][k]};
    EXPECT(out->n <= S && b->fields[TEXT_CLS_ROWS][k] == begin, "sequence of %lld tokens", (long long)out->n);
    for (int64_t i = 0; i < out->n; i++) {
        out->ids[i] = b->ids[begin + i];
        out->types[i] = b->fields[TEXT_TYPES][begin + i];
        EXPECT(b->positions[begin + i] == i && b->row_keys[2 * (begin + i) + 1] == i, "positions restart");
    }
    for (int64_t m = 0; m < b->n_real_labels; m++) {
        if (b->fields[TEXT_MASKED_ROWS][m] >= begin && b->fields[TEXT_MASKED_ROWS][m] < end) {
            EXPECT(out->n_masked < P, "%lld predictions", (long long)out->n_masked);
            out->places[out->n_masked] = b->fields[TEXT_MASKED_ROWS][m] - begin;
            out->labels[out->n_masked++] = b->fields[TEXT_MASKED_LABELS][m];
        }
    }
}

static int64_t take_all(struct sequence *out, const struct batch_step *step)
{
    int64_t n = 0;
    for (int64_t k = 0; k < step->n_micro; k++) {
        for (int64_t i = 0; i < step->micro[k].n_sequences; i++) {
            take_sequence(&out[n++], &step->micro[k], i);
        }
    }
    return n;
}

/* Both hold the same sequences, each as often, in whatever order. */
static void expect_same_set(const struct sequence *a, const struct sequence *b, int64_t n)
{
    bool *taken = calloc((size_t)n, sizeof *taken);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = 0;
        while (k < n && (taken[k] || memcmp(&a[i], &b[k], sizeof a[i]) != 0)) {
            k++;
        }
        EXPECT(k < n, "sequence %lld of %lld tokens is in one set only", (long long)i, (long long)a[i].n);
        taken[k] = true;
    }
    free(taken);
}

/* Sequence i of tests/golden/make_shards.py. */
static struct sequence golden(int64_t i)
{
    enum { FIRST_WORD = 4, WORDS = 36 };
    struct sequence s = {.n = 5 + i * 7 % 13, .nsp = (int32_t)(i % 2)};
    int64_t n_first = 3 + i % (s.n - 4);
    for (int64_t j = 0; j < s.n; j++) {
        bool separates = j == n_first - 1 || j == s.n - 1;
        s.ids[j] = j == 0      ? GOLDEN_CLS
                   : separates ? GOLDEN_SEP
                               : (int32_t)(FIRST_WORD + (i * 11 + j * 5) % WORDS);
        s.types[j] = j >= n_first;
        if (j > 0 && !separates && (i + j) % 6 == 0 && s.n_masked < P - 1) {
            s.places[s.n_masked] = (int32_t)j;
            s.labels[s.n_masked++] = s.ids[j];
            s.ids[j] = GOLDEN_MASK;
        }
    }
    return s;
}

static void files_of_h5py_are_read(const char *golden_name, bool packed)
{
    char source_path[1024];
    struct shard_loader l;
    struct batch_step step;
    struct sequence wanted[N_GOLDEN], found[N_GOLDEN];
    char *directory = make_directory(golden_name);
    snprintf(source_path, sizeof source_path, "%s/tests/golden/%s", KILN_SOURCE_DIR, golden_name);
    copy_file(source_path, file_in(directory, "shard.hdf5"), SIZE_MAX);
    EXPECT_OK(shard_loader_open(&l, config_of(directory, 24, 1)));
    EXPECT(l.shape.packed == packed && l.shape.seq_length == S, "shape");
    int64_t n_records = l.n_total;
    shard_loader_close(&l);
    EXPECT_OK(shard_loader_open(&l, config_of(directory, n_records, 1)));
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    for (int64_t i = 0; i < N_GOLDEN; i++) {
        wanted[i] = golden(i);
    }
    for (int64_t epoch = 1; epoch <= 3; epoch++) {
        EXPECT_OK(source.fill(source.self, epoch, &step));
        EXPECT(step.n_sequences == N_GOLDEN && step.n_labels[TEXT_PAIR_LABELS] == N_GOLDEN, "%lld sequences",
               (long long)step.n_sequences);
        EXPECT(take_all(found, &step) == N_GOLDEN, "all");
        expect_same_set(found, wanted, N_GOLDEN);
    }
    batch_step_fini(&step);
    shard_loader_close(&l);
    free(directory);
}

/* Writes a store's samples of one epoch as shards and returns their directory. */
static char *write_shards(const struct bert_loader_config *samples, const char *name, int64_t n_shards,
                          bool packed, struct shard_writer_report *report)
{
    char *directory = make_directory(name);
    struct shard_writer_config c = {.samples = *samples,
                                    .directory = directory,
                                    .word = "training",
                                    .dupe_factor = 1,
                                    .n_shards = n_shards,
                                    .packed = packed};
    EXPECT_OK(shard_writer_run(report, &c));
    EXPECT(report->n_shards == n_shards, "%lld files", (long long)report->n_shards);
    return directory;
}

static struct bert_loader_config sample_config(const struct indexed *store)
{
    struct bert_loader_config c = fixture_loader(store, VOCAB);
    c.seed = 3;
    c.batch.max_seq_length = S;
    c.max_predictions_per_seq = P;
    c.short_seq_prob = 0.5;
    return c;
}

/* What is read from shards in one epoch. */
static struct sequence *read_epoch(const char *directory, int64_t n_records, int64_t n_sequences)
{
    struct shard_loader l;
    struct batch_step step;
    struct sequence *all = calloc((size_t)n_sequences, sizeof *all);
    EXPECT_OK(shard_loader_open(&l, config_of(directory, n_records, 1)));
    EXPECT(l.n_total == n_records, "%lld records", (long long)l.n_total);
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    EXPECT_OK(source.fill(source.self, 1, &step));
    EXPECT(step.n_sequences == n_sequences, "%lld sequences", (long long)step.n_sequences);
    take_all(all, &step);
    batch_step_fini(&step);
    shard_loader_close(&l);
    return all;
}

/* The samples of a store's first epoch, as run-time training would see them. */
static struct sequence *draw_epoch(struct bert_loader_config c, int64_t n)
{
    struct bert_loader l;
    struct batch_step step;
    struct sequence *all = calloc((size_t)n, sizeof *all);
    c.batch.train_batch_size = n;
    EXPECT_OK(bert_loader_open(&l, c));
    EXPECT(l.map.n_samples == n, "%lld samples", (long long)l.map.n_samples);
    EXPECT_OK(bert_loader_init_step(&c, &step));
    EXPECT_OK(bert_loader_step(&l, 1, &step));
    take_all(all, &step);
    batch_step_fini(&step);
    bert_loader_close(&l);
    return all;
}

static void what_is_written_is_read(const struct indexed *store)
{
    struct bert_loader_config c = sample_config(store);
    struct shard_writer_report padded, packed;
    char *padded_at = write_shards(&c, "padded", 3, false, &padded);
    char *packed_at = write_shards(&c, "packed", 3, true, &packed);
    int64_t n = padded.packing.n_sequences;
    EXPECT(n > 100 && packed.packing.n_sequences == n && padded.packing.n_packs == n &&
               packed.packing.n_tokens == padded.packing.n_tokens,
           "%lld sequences", (long long)n);
    EXPECT(packed.packing.n_packs < n * 4 / 5 && packed.packing.n_strategies > 3, "%lld packs",
           (long long)packed.packing.n_packs);
    struct sequence *wanted = draw_epoch(c, n);
    struct sequence *a = read_epoch(padded_at, n, n);
    struct sequence *b = read_epoch(packed_at, packed.packing.n_packs, n);
    expect_same_set(a, wanted, n);
    expect_same_set(b, wanted, n);
    free(wanted);
    free(a);
    free(b);
    free(padded_at);
    free(packed_at);
}

static uint32_t digest(const struct batch_step *step)
{
    uint32_t crc = 0;
    for (int64_t k = 0; k < step->n_micro; k++) {
        const struct batch *b = &step->micro[k];
        crc = crc * 31 + (uint32_t)b->n_sequences;
        for (int64_t i = 0; i < b->n_tokens; i++) {
            crc = crc * 16777619 + (uint32_t)b->ids[i] + (uint32_t)b->row_keys[2 * i];
        }
    }
    return crc;
}

/* Any step can be made at once, forwards and backwards, over the ends of files and epochs. */
static void a_step_depends_on_its_number_alone(const char *directory)
{
    enum { STEPS = 40 };
    struct shard_loader one, other;
    struct batch_step step;
    uint32_t digests[STEPS + 1];
    EXPECT_OK(shard_loader_open(&one, config_of(directory, 20, 2)));
    struct batch_source source = shard_loader_source(&one);
    make_step(&source, &step);
    for (int64_t s = 1; s <= STEPS; s++) {
        EXPECT_OK(source.fill(source.self, s, &step));
        digests[s] = digest(&step);
        EXPECT(s == 1 || digests[s] != digests[s - 1], "step %lld repeats", (long long)s);
    }
    EXPECT_OK(shard_loader_open(&other, config_of(directory, 20, 2)));
    struct batch_source again = shard_loader_source(&other);
    for (int64_t s = STEPS; s >= 1; s -= 3) {
        EXPECT_OK(again.fill(again.self, s, &step));
        EXPECT(digest(&step) == digests[s], "step %lld differs", (long long)s);
    }
    batch_step_fini(&step);
    shard_loader_close(&other);
    shard_loader_close(&one);
}

/* Without the permutation a file's records are those of its order, in every epoch. */
static void records_may_come_in_their_order(const char *golden_name)
{
    char source_path[1024];
    char *directory = make_directory("ordered");
    snprintf(source_path, sizeof source_path, "%s/tests/golden/%s", KILN_SOURCE_DIR, golden_name);
    copy_file(source_path, file_in(directory, "shard.hdf5"), SIZE_MAX);
    for (int in_order = 0; in_order < 2; in_order++) {
        struct shard_loader_config c = config_of(directory, 1, 1);
        struct shard_loader l;
        struct batch_step one, two;
        int64_t same = 0;
        c.batch.in_order = in_order == 1;
        EXPECT_OK(shard_loader_open(&l, c));
        struct batch_source source = shard_loader_source(&l);
        make_step(&source, &one);
        make_step(&source, &two);
        for (int64_t s = 1; s <= l.n_total; s++) {
            EXPECT_OK(source.fill(source.self, s, &one));
            EXPECT_OK(source.fill(source.self, s + l.n_total, &two));
            same += digest(&one) == digest(&two);
        }
        EXPECT(in_order ? same == l.n_total : 2 * same < l.n_total, "%lld of %lld records", (long long)same,
               (long long)l.n_total);
        batch_step_fini(&two);
        batch_step_fini(&one);
        shard_loader_close(&l);
    }
    free(directory);
}

/* Keys of dropout rows: no two sequences of a global batch share one, packed or not. */
static void keys_are_unique(const char *directory)
{
    struct shard_loader l;
    struct batch_step step;
    bool used[3 * 64] = {false};
    EXPECT_OK(shard_loader_open(&l, config_of(directory, 64, 4)));
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    EXPECT_OK(source.fill(source.self, 1, &step));
    for (int64_t k = 0; k < step.n_micro; k++) {
        for (int64_t i = 0; i < step.micro[k].n_sequences; i++) {
            int32_t key = step.micro[k].row_keys[(int64_t)2 * step.micro[k].fields[TEXT_CLS_ROWS][i]];
            EXPECT(key >= 0 && key < 3 * 64 && !used[key], "key %d", key);
            used[key] = true;
        }
    }
    batch_step_fini(&step);
    shard_loader_close(&l);
}

/* Micro-batches of packed data: round_half_even(accumulation / average), and never 0. */
static void packed_accumulation_is_rounded(const char *directory)
{
    static const struct {
        double average;
        int64_t asked, wanted;
    } cases[] = {{1.2, 128, 107}, {2, 512, 256}, {2, 1, 1}, {2, 3, 2}, {2, 5, 2}, {1, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], path[1024];
        struct shard_loader l;
        int n = snprintf(text, sizeof text, "{\"avg_seq_per_sample\": %g}", cases[i].average);
        snprintf(path, sizeof path, "%s_metadata.json", directory);
        EXPECT_OK(file_write_atomic(path, text, (size_t)n));
        EXPECT_OK(shard_loader_open(&l, config_of(directory, 2 * cases[i].asked, cases[i].asked)));
        EXPECT(l.n_micro == cases[i].wanted && l.micro_size == 2, "%lld micro-batches of %lld",
               (long long)l.n_micro, (long long)l.micro_size);
        shard_loader_close(&l);
        EXPECT(unlink(path) == 0, "unlink");
    }
}

static void contradictions_are_told(const char *padded, const char *packed)
{
    struct shard_loader l;
    char path[1024];
    struct shard_loader_config c = config_of(packed, 4, 1);
    c.allow_packed = false;
    EXPECT_ERROR(shard_loader_open(&l, c), STATUS_USAGE, "--enable_packed_data_mode is False");
    EXPECT_ERROR(shard_loader_open(&l, config_of(packed, 4, 3)), STATUS_USAGE, "gradient_accumulation_steps");
    snprintf(path, sizeof path, "%s_metadata.json", padded);
    EXPECT_OK(file_write_atomic(path, "{\"avg_seq_per_sample\": 1.2}", 27));
    EXPECT_ERROR(shard_loader_open(&l, config_of(padded, 4, 1)), STATUS_DATA, "belongs to packed data");
    EXPECT_OK(file_write_atomic(path, "{}", 2));
    EXPECT_ERROR(shard_loader_open(&l, config_of(padded, 4, 1)), STATUS_DATA, "avg_seq_per_sample");
    EXPECT(unlink(path) == 0, "unlink");
    char *empty = make_directory("empty");
    EXPECT_ERROR(shard_loader_open(&l, config_of(empty, 4, 1)), STATUS_DATA, "no file named *.hdf5");
    copy_file(file_in(padded, "kiln_training_0.hdf5"), strcpy(path, file_in(empty, "a.hdf5")), SIZE_MAX);
    char other[1024];
    copy_file(file_in(packed, "kiln_training_0.hdf5"), strcpy(other, file_in(empty, "b.h5")), SIZE_MAX);
    EXPECT_ERROR(shard_loader_open(&l, config_of(empty, 4, 1)), STATUS_DATA, "cannot be trained on together");
    free(empty);
}

/* What one bad file leads to: an error that names the file, when it is opened or when it is used. */
static struct status use(const char *directory)
{
    struct shard_loader l;
    struct batch_step step;
    TRY(shard_loader_open(&l, config_of(directory, 8, 2)));
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    struct status s = status_ok();
    for (int64_t i = 1; i <= 6 && !failed(s); i++) {
        s = source.fill(source.self, i, &step);
    }
    batch_step_fini(&step);
    shard_loader_close(&l);
    return s;
}

static void damage_is_an_error(const char *golden_name)
{
    char source_path[1024], path[1024];
    struct file_map m;
    char *directory = make_directory("damaged");
    snprintf(source_path, sizeof source_path, "%s/tests/golden/%s", KILN_SOURCE_DIR, golden_name);
    snprintf(path, sizeof path, "%s", file_in(directory, "a.hdf5"));
    EXPECT_OK(file_map_open(&m, source_path));
    for (size_t n = 0; n < m.n; n += m.n / 12) {
        copy_file(source_path, path, n);
        struct status s = use(directory);
        EXPECT(failed(s) && strstr(s.message, "a.hdf5") != NULL, "%zu of %zu bytes: '%s'", n, m.n, s.message);
    }
    unsigned char *bytes = malloc(m.n);
    struct rng_stream r = rng_stream(5);
    int n_failed = 0;
    for (int i = 0; i < 40; i++) {
        memcpy(bytes, m.data, m.n);
        for (int k = 0; k < 20; k++) {
            bytes[rng_below(&r, (uint32_t)m.n)] ^= (unsigned char)(1 + rng_below(&r, 255));
        }
        EXPECT_OK(file_write_atomic(path, bytes, m.n));
        struct status s = use(directory);
        EXPECT(!failed(s) || strstr(s.message, "a.hdf5") != NULL, "'%s'", s.message);
        n_failed += failed(s);
    }
    EXPECT(n_failed > 5, "%d of 40 damaged files are refused", n_failed);
    free(bytes);
    file_map_close(&m);
    EXPECT_OK(file_remove_tree(directory));
    free(directory);
}

/* A padded shard of two records, in which one thing can be wrong. */
struct small {
    int32_t ids[2][8], places[2][2], labels[2][2];
    int8_t mask[2][8], segments[2][8], nsp[2];
    struct hdf5_array arrays[6];
};

static void make_small(struct small *s)
{
    *s = (struct small){0};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 6; j++) {
            s->ids[i][j] = 5 + j;
            s->mask[i][j] = 1;
            s->segments[i][j] = j > 2;
        }
        s->places[i][0] = 1;
        s->labels[i][0] = 9;
    }
    const struct hdf5_array arrays[6] = {{"input_ids", HDF5_I32, 2, {2, 8}, s->ids},
                                         {"input_mask", HDF5_I8, 2, {2, 8}, s->mask},
                                         {"segment_ids", HDF5_I8, 2, {2, 8}, s->segments},
                                         {"masked_lm_positions", HDF5_I32, 2, {2, 2}, s->places},
                                         {"masked_lm_ids", HDF5_I32, 2, {2, 2}, s->labels},
                                         {"next_sentence_labels", HDF5_I8, 1, {2, 1}, s->nsp}};
    memcpy(s->arrays, arrays, sizeof arrays);
}

static void expect_refused(const char *directory, const struct small *s, int n_arrays, const char *part)
{
    EXPECT_OK(hdf5_file_write(file_in(directory, "small.hdf5"), s->arrays, n_arrays));
    EXPECT_ERROR(use(directory), STATUS_DATA, part);
}

static void wrong_contents_are_told(void)
{
    struct small s;
    char *directory = make_directory("small");
    make_small(&s);
    EXPECT_OK(hdf5_file_write(file_in(directory, "small.hdf5"), s.arrays, 6));
    EXPECT_OK(use(directory));
    expect_refused(directory, &s, 5, "has no dataset next_sentence_labels");
    s.arrays[5].n_dims = 2;
    expect_refused(directory, &s, 6, "next_sentence_labels has 2 dimensions, but should have 1");
    make_small(&s);
    s.arrays[4].dims[1] = 1;
    expect_refused(directory, &s, 6, "masked_lm_ids has 2 x 1 values, but the other datasets need 2 x 2");
    make_small(&s);
    s.arrays[1].dims[0] = 1;
    expect_refused(directory, &s, 6, "input_mask has 1 x 8 values, but the other datasets need 2 x 8");
    make_small(&s);
    s.ids[1][4] = VOCAB;
    expect_refused(directory, &s, 6, "input_ids[4] is 40");
    make_small(&s);
    s.places[0][0] = 6;
    expect_refused(directory, &s, 6, "masked_lm_positions[0] is 6");
    make_small(&s);
    s.mask[1][2] = 0;
    expect_refused(directory, &s, 6, "input_mask");
    make_small(&s);
    s.nsp[0] = 5;
    expect_refused(directory, &s, 6, "next_sentence_labels");
    EXPECT_OK(file_remove_tree(directory));
    free(directory);
}

/* The process that reads may end at any time: an error once a file is wanted that is not in memory yet, and
 * the next call too. */
static void the_readers_end_is_an_error(const char *directory, int signal)
{
    struct shard_loader l;
    struct batch_step step;
    EXPECT_OK(shard_loader_open(&l, config_of(directory, 8, 2)));
    EXPECT(l.files.n > SHARD_PROCESS_SLOTS, "all %lld files fit in memory", (long long)l.files.n);
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    EXPECT_OK(source.fill(source.self, 1, &step));
    EXPECT(l.process->pid > 0 && kill(l.process->pid, signal) == 0, "kill");
    struct status s = status_ok();
    for (int64_t i = 2; i < 100 && !failed(s); i++) {
        s = source.fill(source.self, i, &step);
    }
    EXPECT(failed(s) && strstr(s.message, "the process that reads HDF5 files") != NULL, "'%s'", s.message);
    EXPECT(failed(source.fill(source.self, 100, &step)), "it goes on");
    batch_step_fini(&step);
    shard_loader_close(&l);
}

/* What the run had open is not open in the process that reads: else a pipe that the run has closed, or the
 * port of a run that died, would stay in use. */
static void the_reader_has_nothing_else_open(const char *directory)
{
    struct shard_loader l;
    struct batch_step step;
    int ends[2];
    EXPECT(pipe(ends) == 0, "a pipe");
    EXPECT_OK(shard_loader_open(&l, config_of(directory, 8, 2)));
    struct batch_source source = shard_loader_source(&l);
    make_step(&source, &step);
    EXPECT_OK(source.fill(source.self, 1, &step)); /* it has begun */
    close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    int n = poll(&end, 1, 0); /* time: it does not wait */
    EXPECT(n == 1 && (end.revents & POLLHUP) != 0, "a pipe of the run is open in its reader");
    close(ends[0]);
    batch_step_fini(&step);
    shard_loader_close(&l);
}

static void packing_keeps_its_limits(int most)
{
    enum { N = 500, ROOM = 64, MASKED = 12 };
    int32_t lengths[N], masked[N];
    bool seen[N] = {false};
    struct rng_stream r = rng_stream(9);
    int64_t n_rows, total = 0;
    struct pack_row *rows;
    for (int i = 0; i < N; i++) {
        lengths[i] = (int32_t)(1 + rng_below(&r, i % 3 == 0 ? ROOM : ROOM / 3));
        masked[i] = lengths[i] / 6;
    }
    EXPECT_OK(pack_sequences(&rows, &n_rows, &(struct pack_problem){N, lengths, masked, ROOM, MASKED, most}));
    for (int64_t k = 0; k < n_rows; k++) {
        int32_t length = 0, predictions = 0;
        EXPECT(rows[k].n >= 1 && rows[k].n <= (most > 0 ? most : PACK_MOST), "%d sequences", rows[k].n);
        for (int j = 0; j < rows[k].n; j++) {
            int64_t i = rows[k].sequences[j];
            EXPECT(i >= 0 && i < N && !seen[i], "sequence %lld twice", (long long)i);
            seen[i] = true;
            length += lengths[i];
            predictions += masked[i];
            total++;
        }
        EXPECT(length <= ROOM && predictions <= MASKED && length == rows[k].length, "row of %d", length);
    }
    EXPECT(total == N, "%lld of %d sequences are packed", (long long)total, N);
    free(rows);
}

int main(int argc, char **argv)
{
    struct indexed store;
    if (shard_process_is_wanted(argc, argv)) {
        return shard_process_serve();
    }
    for (int most = 0; most <= PACK_MOST; most++) {
        packing_keeps_its_limits(most);
    }
    if (hdf5_file_version() == NULL) {
        test_skip("hdf5", TEST_NO_HDF5);
    }
    static const char *const forms[] = {"", "_wide", "_big_endian"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "shards_padded%s.hdf5", forms[i]);
        files_of_h5py_are_read(name, false);
        snprintf(name, sizeof name, "shards_packed%s.hdf5", forms[i]);
        files_of_h5py_are_read(name, true);
    }
    fixture_store(&store, "store", 120, 12, 9, VOCAB);
    what_is_written_is_read(&store);
    indexed_close(&store);
    char *padded = strdup(fixture_path("padded")), *packed = strdup(fixture_path("packed"));
    a_step_depends_on_its_number_alone(padded);
    a_step_depends_on_its_number_alone(packed);
    records_may_come_in_their_order("shards_padded.hdf5");
    keys_are_unique(padded);
    keys_are_unique(packed);
    packed_accumulation_is_rounded(packed);
    contradictions_are_told(padded, packed);
    the_reader_has_nothing_else_open(padded);
    the_readers_end_is_an_error(padded, SIGKILL);
    the_readers_end_is_an_error(packed, SIGSEGV);
    wrong_contents_are_told();
    damage_is_an_error("shards_padded.hdf5");
    damage_is_an_error("shards_packed.hdf5");
    free(padded);
    free(packed);
    fixture_remove();
    return 0;
}
