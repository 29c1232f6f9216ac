/* Tests of corpus/store_builder and io/token_store: parts and what is held out, the description beside a
 * store, and every way in which the three files can disagree. */
#include "built_store.h"
#include "fixture_store.h"

#include "data/store_check.h"
#include "text/wordpiece.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char VOCAB[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n.\n";
enum { ID_A = 5, ID_STOP = 8 };

static struct tokenizer tokenizer;

static struct store_builder_config config_of(const char *directory, double holdout_fraction)
{
    return (struct store_builder_config){
        .tokenizer = &tokenizer, .holdout_fraction = holdout_fraction, .seed = 1, .directory = directory};
}

static const struct document_ids_config sentences = {.tokenizer = &tokenizer},
                                        lines = {.tokenizer = &tokenizer, .one_sentence_per_line = true};
static struct built_store of_sentences, of_lines;

static void add(struct store_builder *b, const char *text, bool begins)
{
    built_store_add(&of_sentences, b, text, begins);
}

/* Builds the stores of n_documents documents of n_sentences sentences each. */
static void build(struct store_builder *b, struct store_builder_config config, int n_documents,
                  int n_sentences)
{
    EXPECT_OK(store_builder_open(b, config));
    for (int d = 0; d < n_documents; d++) {
        for (int i = 0; i < n_sentences; i++) {
            add(b, i % 3 == 0 ? "A b c." : "B.", i == 0);
        }
    }
    EXPECT_OK(store_builder_commit(b));
}

static void open_store(struct token_store *s, const char *directory, const char *name)
{
    char prefix[600];
    snprintf(prefix, sizeof prefix, "%s/%s", directory, name);
    EXPECT_OK(token_store_open(s, prefix));
    EXPECT_OK(token_store_verify(s, prefix, NULL));
    EXPECT_OK(token_store_check_vocab(s, prefix, tokenizer.hash, tokenizer.n));
}

static void paragraphs_become_sentences(const char *directory)
{
    struct store_builder b;
    struct token_store s;
    int32_t ids[7];
    EXPECT_OK(store_builder_open(&b, config_of(directory, 0)));
    add(&b, "B c. A c.  \x01 A", true);
    EXPECT_OK(store_builder_commit(&b));
    open_store(&s, directory, "train");
    EXPECT(s.index.n_sequences == 3 && s.index.n_tokens == 7 && s.index.n_documents == 1,
           "%lld sentences, %lld tokens", (long long)s.index.n_sequences, (long long)s.index.n_tokens);
    indexed_copy(&s.index, ids, 0, 7);
    EXPECT(ids[0] == ID_A + 1 && ids[2] == ID_STOP && ids[3] == ID_A && ids[6] == ID_A, "tokens");
    EXPECT(s.info.lower_case && s.info.vocab_size == 9 && strcmp(s.info.kiln_version, KILN_VERSION) == 0,
           "description");
    token_store_close(&s);

    EXPECT_OK(store_builder_open(&b, config_of(directory, 0)));
    built_store_add(&of_lines, &b, "A. B c. A", true);
    built_store_add(&of_lines, &b, "\x01\x02", true); /* nothing is left of it */
    EXPECT_OK(store_builder_commit(&b));
    open_store(&s, directory, "train");
    EXPECT(s.index.n_sequences == 1 && s.index.n_tokens == 6, "one sentence");
    token_store_close(&s);
}

static void long_documents_become_parts(const char *directory)
{
    struct store_builder b;
    struct token_store train, heldout;
    build(&b, config_of(directory, 0.25), 40, 300);
    EXPECT(b.n_parts == 120, "%lld parts", (long long)b.n_parts);
    open_store(&train, directory, "train");
    open_store(&heldout, directory, "heldout");
    EXPECT(train.index.n_documents + heldout.index.n_documents == 120, "parts");
    EXPECT(train.index.n_sequences + heldout.index.n_sequences == 12000, "sentences");
    EXPECT_NEAR((double)heldout.index.n_documents, 30, 4 * sqrt(120 * 0.25 * 0.75));
    const struct token_store *stores[] = {&train, &heldout};
    for (int k = 0; k < 2; k++) {
        for (int64_t d = 0; d < stores[k]->index.n_documents; d++) {
            int64_t n = indexed_first_sequence(&stores[k]->index, d + 1) -
                        indexed_first_sequence(&stores[k]->index, d);
            EXPECT(n == STORE_BUILDER_PART_SENTENCES || n == 300 - 2 * STORE_BUILDER_PART_SENTENCES,
                   "%lld sentences", (long long)n);
        }
    }
    token_store_close(&train);
    token_store_close(&heldout);
}

/* Whatever the hash says, two parts give both stores one. */
static void both_stores_have_documents(const char *directory)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        for (int n = 1; n <= 4; n++) {
            struct store_builder b;
            struct store_builder_config config = config_of(directory, seed % 2 == 0 ? 0.02 : 0.9);
            config.seed = seed;
            build(&b, config, n, 5);
            int64_t n_train = b.infos[STORE_TRAIN].n_documents,
                    n_heldout = b.infos[STORE_HELDOUT].n_documents;
            EXPECT(n_train + n_heldout == n && n_train > 0 && (n_heldout > 0) == (n > 1),
                   "%lld and %lld of %d parts", (long long)n_train, (long long)n_heldout, n);
            char path[600];
            snprintf(path, sizeof path, "%s/heldout.json", directory);
            EXPECT(file_exists(path) == (n > 1), "%s", path);
        }
    }
}

/* What has no tokens is no part: behind the last one it changes nothing. */
static void empty_sentences_change_nothing(const char *directory)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct store_builder b;
        struct store_builder_config config = config_of(directory, seed % 2 == 0 ? 0.02 : 0.9);
        config.seed = seed;
        EXPECT_OK(store_builder_open(&b, config));
        add(&b, "A b c.", true);
        add(&b, "B.", true);
        add(&b, "\x01\x02", true);
        EXPECT_OK(store_builder_commit(&b));
        EXPECT(b.infos[STORE_TRAIN].n_documents == 1 && b.infos[STORE_HELDOUT].n_documents == 1,
               "%lld and %lld parts", (long long)b.infos[STORE_TRAIN].n_documents,
               (long long)b.infos[STORE_HELDOUT].n_documents);
    }
}

static void no_text_is_no_store(const char *directory)
{
    struct store_builder b;
    EXPECT_OK(store_builder_open(&b, config_of(directory, 0.1)));
    EXPECT_ERROR(store_builder_commit(&b), STATUS_DATA, "no text");
    store_builder_abandon(&b);
    EXPECT_OK(store_builder_open(&b, config_of(directory, 0.1)));
    add(&b, "A.", true);
    store_builder_abandon(&b);
    EXPECT(rmdir(fixture_directory) == 0 && mkdir(fixture_directory, 0700) == 0, "something remains");
    EXPECT_ERROR(store_builder_open(&b, config_of("/no/such/directory", 0.1)), STATUS_IO,
                 "/no/such/directory");
}

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
}

static void disagreeing_files_are_named(const char *directory)
{
    struct store_builder b;
    struct token_store s;
    char prefix[600];
    snprintf(prefix, sizeof prefix, "%s/train", directory);
    build(&b, config_of(directory, 0), 2, 5);
    struct token_store_info good = b.infos[STORE_TRAIN], info = good;

    info.n_tokens++;
    EXPECT_OK(token_store_write_info(prefix, &info, NULL));
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "from different runs");
    info = good;
    info.bin_crc ^= 1;
    EXPECT_OK(token_store_write_info(prefix, &info, NULL));
    EXPECT_OK(token_store_open(&s, prefix));
    EXPECT_ERROR(token_store_verify(&s, prefix, NULL), STATUS_DATA, "train.bin is damaged");
    EXPECT_ERROR(token_store_check_vocab(&s, prefix, tokenizer.hash + 1, tokenizer.n), STATUS_DATA,
                 "another vocabulary");
    EXPECT_ERROR(token_store_check_vocab(&s, prefix, tokenizer.hash, tokenizer.n + 1), STATUS_DATA,
                 "another vocabulary");
    token_store_close(&s);
    info = good;
    info.idx_crc ^= 1;
    EXPECT_OK(token_store_write_info(prefix, &info, NULL));
    EXPECT_OK(token_store_open(&s, prefix));
    EXPECT_ERROR(token_store_verify(&s, prefix, NULL), STATUS_DATA, "train.idx is damaged");
    token_store_close(&s);

    write_file(directory, "train.json", "{");
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "train.json is not valid JSON");
    write_file(directory, "train.json", "{\"kiln_version\": 1}");
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "kiln_version");
    write_file(directory, "train.json", "{\"kiln_version\": \"1\"}");
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "vocab_hash");
    write_file(directory, "train.json", "{\"kiln_version\": \"1\", \"vocab_hash\": \"12zz\"}");
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "16 hexadecimal digits");
    char path[700];
    snprintf(path, sizeof path, "%s.json", prefix);
    EXPECT(unlink(path) == 0, "unlink");
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "no finished token store");
}

/* Turns one bit of a file, and back again when called once more. */
static void flip(const char *prefix, const char *suffix, long at)
{
    char path[700];
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    FILE *f = fopen(path, "r+b");
    EXPECT(f != NULL && fseek(f, at, SEEK_SET) == 0, "%s", path);
    int c = getc(f);
    EXPECT(fseek(f, at, SEEK_SET) == 0 && putc(c ^ 1, f) == (c ^ 1) && fclose(f) == 0, "%s", path);
}

/* As if the file had been written in 1970. */
static void change_time(const char *prefix, const char *suffix)
{
    char path[700];
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    EXPECT(utimensat(AT_FDCWD, path, (const struct timespec[2]){0}, 0) == 0, "%s", path);
}

/* A store of more than one MiB. */
static void damage_has_a_place(const char *directory)
{
    enum { N_DOCUMENTS = 800 };
    struct store_builder b;
    struct token_store s;
    atomic_bool stop = true;
    char prefix[600];
    snprintf(prefix, sizeof prefix, "%s/train", directory);
    build(&b, config_of(directory, 0), N_DOCUMENTS, 300);
    open_store(&s, directory, "train");
    EXPECT(s.index.bin.n > BLOCK_SUMS_BYTES + 100, "%zu bytes", s.index.bin.n);
    EXPECT(s.sums.bin.crcs.n == 4 * block_sums_count(s.index.bin.n), "%zu", s.sums.bin.crcs.n);

    flip(prefix, "bin", BLOCK_SUMS_BYTES + 7);
    EXPECT_ERROR(token_store_verify(&s, prefix, NULL), STATUS_DATA,
                 "train.bin is damaged: the CRC-32C of its bytes 1048576 to");
    EXPECT_OK(token_store_verify(&s, prefix, &stop));
    flip(prefix, "bin", BLOCK_SUMS_BYTES + 7);
    flip(prefix, "idx", BLOCK_SUMS_BYTES - 1);
    EXPECT_ERROR(token_store_verify(&s, prefix, NULL), STATUS_DATA,
                 "train.idx is damaged: the CRC-32C of its bytes 0 to 1048575");
    flip(prefix, "idx", BLOCK_SUMS_BYTES - 1);
    EXPECT_OK(token_store_verify(&s, prefix, NULL));

    struct indexed_sums fewer = s.sums;
    fewer.bin.crcs.n -= 4;
    EXPECT_OK(token_store_write_info(prefix, &s.info, &fewer));
    token_store_close(&s);
    EXPECT_ERROR(token_store_open(&s, prefix), STATUS_DATA, "blocks of 1 MiB, which does not match");
}

static void expect_same(const char *a, const char *b, const char *name)
{
    char paths[2][700];
    struct file_map maps[2];
    snprintf(paths[0], sizeof paths[0], "%s/%s", a, name);
    snprintf(paths[1], sizeof paths[1], "%s/%s", b, name);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(file_map_open(&maps[i], paths[i]));
    }
    EXPECT(maps[0].n == maps[1].n && memcmp(maps[0].data, maps[1].data, maps[0].n) == 0, "%s differs from %s",
           paths[0], paths[1]);
    file_map_close(&maps[0]);
    file_map_close(&maps[1]);
}

/* Saved and continued in the middle of parts, between them and at once again: the bytes are those of one
 * run. */
static void continuing_changes_nothing(const char *directory)
{
    static const char *const names[] = {"train.bin",   "train.idx",   "train.json",
                                        "heldout.bin", "heldout.idx", "heldout.json"};
    enum { N_SENTENCES = 2000 };
    struct store_builder b;
    struct store_builder_place place;
    struct buf part = {0};
    char other[600];
    snprintf(other, sizeof other, "%s/continued", directory);
    EXPECT_OK(file_make_directories(other));
    build(&b, config_of(directory, 0.25), N_SENTENCES / 400, 400);
    EXPECT_OK(store_builder_open(&b, config_of(other, 0.25)));
    for (int i = 0; i < N_SENTENCES; i++) {
        add(&b, i % 400 % 3 == 0 ? "A b c." : "B.", i % 400 == 0);
        if (i % 67 == 0) {
            buf_clear(&part);
            EXPECT_OK(store_builder_save(&b, &place, &part));
            add(&b, "C c c c c c.", true); /* is lost */
            store_builder_close(&b);
            struct span in = bytes_span(part.data, part.n);
            EXPECT_OK(store_builder_continue(&b, config_of(other, 0.25), &place, &in));
        }
    }
    EXPECT_OK(store_builder_commit(&b));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        expect_same(directory, other, names[i]);
    }
    struct span cut = bytes_span(part.data, part.n - 1);
    EXPECT_ERROR(store_builder_continue(&b, config_of(other, 0.25), &place, &cut), STATUS_DATA, "damaged");
    buf_fini(&part);
}

static struct status check_stores(const struct token_store *s, const char *prefix, const char *directory)
{
    struct store_check c = {0};
    EXPECT_OK(store_check_add(&c, s, prefix));
    EXPECT_OK(store_check_begin(&c, directory, 0));
    struct status found = store_check_take(&c, true);
    EXPECT(!store_check_is_pending(&c), "still pending");
    EXPECT(strcmp(store_check_take(&c, false).message, found.message) == 0, "another result");
    store_check_close(&c);
    return found;
}

/* A result is kept for the files as they are, and for no others. */
static void what_holds_is_kept(const char *directory)
{
    struct store_builder b;
    struct token_store s;
    char prefix[600], kept[600];
    snprintf(prefix, sizeof prefix, "%s/train", directory);
    snprintf(kept, sizeof kept, "%s/.data_checked", directory);
    build(&b, config_of(directory, 0), 2, 5);
    open_store(&s, directory, "train");
    flip(prefix, "bin", 3);
    EXPECT_ERROR(check_stores(&s, prefix, directory), STATUS_DATA, "train.bin is damaged");
    EXPECT(!file_exists(kept), "damaged files are kept as whole");
    flip(prefix, "bin", 3);
    EXPECT_OK(check_stores(&s, prefix, directory));
    EXPECT(file_exists(kept), "nothing is kept");

    ((unsigned char *)s.sums.bin.crcs.data)[0] ^= 1; /* whoever reads the file now finds it damaged */
    EXPECT_OK(check_stores(&s, prefix, directory));
    change_time(prefix, "bin");
    EXPECT_ERROR(check_stores(&s, prefix, directory), STATUS_DATA, "train.bin is damaged");
    token_store_close(&s);
}

static struct status check_again(const struct token_store *s, const char *prefix, const char *directory,
                                 bool allows_other)
{
    struct store_check c = {.was_resumed = true, .allows_other = allows_other};
    EXPECT_OK(store_check_add(&c, s, prefix));
    struct status begun = store_check_begin(&c, directory, 0), found = store_check_take(&c, true);
    store_check_close(&c);
    return failed(begun) ? begun : found;
}

/* A store of another program has no checksums: whoever resumes a run on it has a sample of what it was. */
static void what_has_no_sums_is_known(const char *directory)
{
    struct store_builder b;
    struct token_store s;
    char prefix[600], kept[600];
    snprintf(prefix, sizeof prefix, "%s/train", directory);
    snprintf(kept, sizeof kept, "%s/.data_checked", directory);
    build(&b, config_of(directory, 0), 2, 5);
    open_store(&s, directory, "train");
    s.info = (struct token_store_info){0};
    EXPECT(unlink(kept) == 0, "%s", kept);
    EXPECT_OK(check_again(&s, prefix, directory, false));
    EXPECT(file_exists(kept), "nothing is kept");
    EXPECT_OK(check_again(&s, prefix, directory, false));
    flip(prefix, "bin", 3);
    EXPECT_ERROR(check_again(&s, prefix, directory, false), STATUS_DATA, "train.bin is another file than");
    EXPECT_OK(check_stores(&s, prefix, directory)); /* a run that begins may have any */
    flip(prefix, "bin", 3);
    EXPECT_OK(check_again(&s, prefix, directory, true));
    EXPECT_OK(check_again(&s, prefix, directory, false)); /* it is known from now on */
    token_store_close(&s);
}

int main(void)
{
    char directory[512];
    EXPECT_OK(wordpiece_tokenizer_init(&tokenizer, VOCAB, sizeof VOCAB - 1, "test", true));
    of_sentences = built_store_open(&sentences);
    of_lines = built_store_open(&lines);
    snprintf(directory, sizeof directory, "%s", fixture_path("."));
    no_text_is_no_store(directory);
    paragraphs_become_sentences(directory);
    long_documents_become_parts(directory);
    both_stores_have_documents(directory);
    empty_sentences_change_nothing(directory);
    disagreeing_files_are_named(directory);
    damage_has_a_place(directory);
    continuing_changes_nothing(directory);
    what_holds_is_kept(directory);
    what_has_no_sums_is_known(directory);
    built_store_close(&of_sentences);
    built_store_close(&of_lines);
    tokenizer_fini(&tokenizer);
    fixture_remove();
    return 0;
}
