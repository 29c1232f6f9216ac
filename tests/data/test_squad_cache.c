/* Tests of the feature cache: what is read is what was written; another key, another file of data, a missing
 * file and every cut or changed byte are refused. */
#include "test.h"

#include "data/squad_cache.h"
#include "io/file.h"
#include "text/wordpiece_tokenizer.h"

#include <unistd.h>

static const char data_file[] = "test_squad_cache.json";
static const char cache_file[] = "test_squad_cache.json_tiny_12_3_4";
static const char json[] =
    "{\"data\": [{\"paragraphs\": [{\"context\": \"the year 1895 in the early year\", \"qas\": "
    "[{\"id\": 1, \"question\": \"who\", \"answers\": [{\"text\": \"1895\", \"answer_start\": "
    "9}]}, {\"id\": 2, \"question\": \"\", \"answers\": [{\"text\": \"in the\", "
    "\"answer_start\": 14}]}]}]}]}";
static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nyear\n1895\nin\nearl\n##y\nwho\n";

static void expect_same(const struct squad_features *a, const struct squad_features *b)
{
    EXPECT(a->n == b->n && a->n_examples == b->n_examples && a->n_contexts == b->n_contexts, "counts");
    EXPECT(a->max_length == b->max_length && a->cls == b->cls && a->sep == b->sep, "numbers");
    EXPECT(memcmp(a->features, b->features, (size_t)a->n * sizeof *a->features) == 0, "features");
    for (int64_t i = 0; i < a->n; i++) {
        int32_t ids[2][16];
        int64_t n = squad_feature_length(a, i);
        EXPECT(n <= 16 && n == squad_feature_length(b, i), "length %lld", (long long)n);
        squad_feature_fill(a, i, ids[0]);
        squad_feature_fill(b, i, ids[1]);
        EXPECT(memcmp(ids[0], ids[1], (size_t)n * sizeof ids[0][0]) == 0, "ids");
        for (int64_t p = 0; p < n; p++) {
            EXPECT(squad_feature_word(a, i, p) == squad_feature_word(b, i, p), "words");
        }
    }
}

static void expect_refused(const void *bytes, size_t n, const struct squad_cache_key *key, const char *part)
{
    struct squad_features f;
    EXPECT_OK(file_write_atomic(cache_file, bytes, n));
    EXPECT_ERROR(squad_cache_read(&f, cache_file, key), STATUS_DATA, part);
    EXPECT(f.features == NULL && f.context_ids == NULL, "something was left");
}

/* Every cut, and a changed bit in every byte. */
static void test_damage(const struct squad_cache_key *key)
{
    struct file_map m;
    EXPECT_OK(file_map_open(&m, cache_file));
    unsigned char *bytes = malloc(m.n);
    EXPECT(bytes != NULL, "memory");
    memcpy(bytes, m.data, m.n);
    size_t n = m.n;
    file_map_close(&m);
    for (size_t i = 0; i < n; i += i < 200 ? 1 : 7) {
        expect_refused(bytes, i, key, "the feature cache");
        bytes[i] ^= 0x10;
        expect_refused(bytes, n, key, "the feature cache");
        bytes[i] ^= 0x10;
    }
    free(bytes);
}

int main(void)
{
    struct tokenizer tokenizer;
    struct squad_examples e;
    struct squad_features made, read;
    struct squad_cache_key key, other;
    struct squad_feature_options o = {12, 3, 4, true};
    struct buf name = {0};
    EXPECT_OK(wordpiece_tokenizer_init(&tokenizer, pieces, sizeof pieces - 1, "vocab", true));
    EXPECT_OK(file_write_atomic(data_file, json, sizeof json - 1));
    EXPECT_OK(squad_examples_open(&e, data_file, (struct squad_read_options){.training = true}));
    EXPECT_OK(squad_features_build(&made, &e, &tokenizer, o));
    EXPECT(made.n == 2 && made.features[0].start > 0, "the set is as meant: %lld features",
           (long long)made.n);

    squad_cache_name(&name, data_file, NULL, "models/tiny", &o);
    EXPECT(strcmp(name.data, cache_file) == 0, "name: %s", name.data);
    buf_clear(&name);
    squad_cache_name(&name, "here/train.json", "there", "tiny", &o);
    EXPECT(strcmp(name.data, "there/train.json_tiny_12_3_4") == 0, "name: %s", name.data);

    EXPECT_OK(squad_cache_key_init(&key, data_file, &tokenizer, o, false));
    EXPECT_ERROR(squad_cache_read(&read, "no/cache", &key), STATUS_DATA, "no/cache");
    EXPECT_OK(squad_cache_write(cache_file, &made, &key));
    EXPECT_OK(squad_cache_read(&read, cache_file, &key));
    expect_same(&made, &read);
    squad_features_fini(&read);

    other = key;
    other.lower_case = false;
    EXPECT_ERROR(squad_cache_read(&read, cache_file, &other), STATUS_DATA, "other settings");
    other = key;
    other.version_2 = true;
    EXPECT_ERROR(squad_cache_read(&read, cache_file, &other), STATUS_DATA, "other settings");
    other = key;
    other.vocab_hash++;
    EXPECT_ERROR(squad_cache_read(&read, cache_file, &other), STATUS_DATA, "another vocabulary");
    EXPECT_OK(file_write_atomic(data_file, json, sizeof json - 2));
    EXPECT_OK(squad_cache_key_init(&other, data_file, &tokenizer, o, false));
    EXPECT_ERROR(squad_cache_read(&read, cache_file, &other), STATUS_DATA, "other data");
    test_damage(&key);
    EXPECT_ERROR(squad_cache_write("no/such/dir/cache", &made, &key), STATUS_IO, "no/such/dir");

    unlink(data_file);
    unlink(cache_file);
    buf_fini(&name);
    squad_features_fini(&made);
    squad_examples_fini(&e);
    tokenizer_fini(&tokenizer);
    return 0;
}
