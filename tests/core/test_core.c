/* Tests of core: number formats, addressed randomness, tensors, options. */
#include "test.h"

#include "core/base64.h"
#include "core/dtype.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/option.h"
#include "core/rng.h"
#include "core/tensor.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

static void half_floats_round_trip(void)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float f = f16_to_f32((uint16_t)bits);
        if (!isnan(f)) {
            EXPECT(f16_from_f32(f) == bits, "fp16 bits %04x became %04x", bits, f16_from_f32(f));
        }
        float b = bf16_to_f32((uint16_t)bits);
        if (!isnan(b)) {
            EXPECT(bf16_from_f32(b) == bits, "bf16 bits %04x became %04x", bits, bf16_from_f32(b));
        }
    }
    EXPECT(isnan(bf16_to_f32(bf16_from_f32(NAN))), "NaN must stay NaN");
    EXPECT(f16_from_f32(65519.0f) == 0x7bff && f16_from_f32(65520.0f) == 0x7c00, "overflow of fp16");
    EXPECT(f16_from_f32(1.0f + 0x1p-11f) == 0x3c00 && f16_from_f32(1.0f + 3 * 0x1p-11f) == 0x3c02,
           "ties to even");
}

static void permutations_are_bijective(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 5, 64, 1000, 4097};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t n = sizes[k];
        char *seen = calloc(n, 1);
        uint64_t fixed = 0;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t image = rng_permute(rng_key(1, n), n, i);
            EXPECT(image < n && !seen[image], "index %llu of %llu", (unsigned long long)i,
                   (unsigned long long)n);
            seen[image] = 1;
            fixed += image == i;
        }
        EXPECT(n < 64 || fixed < n / 8, "%llu of %llu fixed points", (unsigned long long)fixed,
               (unsigned long long)n);
        free(seen);
    }
}

static void random_numbers_have_their_moments(void)
{
    enum { N = 100000 };
    double sum = 0, squares = 0, uniform = 0;
    for (int i = 0; i < N; i++) {
        double z = rng_normal(7, (uint64_t)i);
        sum += z;
        squares += z * z;
        uniform += rng_uniform_at(8, (uint64_t)i);
    }
    EXPECT_NEAR(sum / N, 0, 4 / sqrt(N));
    EXPECT_NEAR(squares / N, 1, 4 * sqrt(2.0 / N));
    EXPECT_NEAR(uniform / N, 0.5, 4 * sqrt(1.0 / 12 / N));
    struct rng_stream s = rng_stream(3);
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++) {
        counts[rng_below(&s, 6)]++;
    }
    for (int i = 0; i < 6; i++) {
        EXPECT_NEAR(counts[i], 10000, 4 * sqrt(10000));
    }
}

/* Every byte counts, and so does the length, whatever is behind the text. */
static void check_hash_bytes(void)
{
    char text[40] = {0};
    for (size_t n = 0; n < 32; n++) {
        uint64_t before = hash_bytes(text, n);
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = 1;
            EXPECT((hash_bytes(text, n) == before) == (i >= n), "byte %zu of %zu", i, n);
            text[i] = 0;
        }
        EXPECT(hash_bytes(text, n + 1) != before, "%zu zeros hash as %zu", n + 1, n);
    }
}

static void checksums_match_their_standards(void)
{
    EXPECT(hash_crc32c(0, "123456789", 9) == 0xE3069283U, "CRC-32C check value"); /* RFC 3720, B.4 */
    EXPECT(hash_crc32c(hash_crc32c(0, "1234", 4), "56789", 5) == 0xE3069283U, "CRC-32C in two parts");
    /* LevelDB's way to store it: util/crc32c.h. */
    EXPECT(hash_mask_crc(0) == 0xA282EAD8U && hash_mask_crc(0xE3069283U) == 0xC78AB0E5U, "masked");
    EXPECT(hash_unmask_crc(hash_mask_crc(0xE3069283U)) == 0xE3069283U, "and back");
    EXPECT(hash_fnv1a("a", 1) == 0xAF63DC4C8601EC8CU, "FNV-1a of 'a'");
    check_hash_bytes();
}

static void strided_views_address_elements(void)
{
    float data[24];
    for (int i = 0; i < 24; i++) {
        data[i] = (float)i;
    }
    tensor t = tensor_2d(data, DTYPE_F32, 4, 6);
    tensor columns = tensor_columns(t, 2, 4);
    EXPECT(tensor_get(columns, 5) == 9, "row 1, column 1 of columns 2..5");
    EXPECT(!tensor_is_dense(columns) && tensor_is_dense(tensor_slice(t, 1, 2)), "density");
    tensor heads = tensor_split_heads(columns, 2);
    EXPECT(heads.n_dims == 3 && tensor_get(heads, 7) == 11, "row 1, head 1, element 1 is %g",
           tensor_get(heads, 7));
}

struct parsed {
    bool flag, is_on;
    int64_t count, large;
    double rate;
    const char *mode;
    const char *text;
};

static const struct option test_options[] = {
    {.name = "flag", .kind = OPTION_FLAG, .offset = offsetof(struct parsed, flag), .help = "h"},
    {.name = "max_count",
     .kind = OPTION_INT,
     .offset = offsetof(struct parsed, count),
     .default_text = "3",
     .value_name = "N",
     .help = "h",
     .min = 1,
     .max = 10},
    {.name = "max-rate",
     .kind = OPTION_REAL,
     .offset = offsetof(struct parsed, rate),
     .value_name = "R",
     .help = "h"},
    {.name = "mode",
     .kind = OPTION_STRING,
     .offset = offsetof(struct parsed, mode),
     .value_name = "M",
     .help = "h",
     .choices = "cat|dog"},
    OPTION_INT_ROW("large", offsetof(struct parsed, large), "0", 0, INT64_MAX, "h"),
    OPTION_BOOL_ROW("on", offsetof(struct parsed, is_on), "no", "h"),
    OPTION_MEANS_ROW("canine", offsetof(struct parsed, mode), "dog", "h"),
    OPTION_IGNORED_VALUE_ROW("use_graphs", "BOOL", "h"),
    OPTION_INPUT_ROW("text", offsetof(struct parsed, text), "TEXT", "h", false),
    OPTION_INPUT_ROW("words", offsetof(struct parsed, text), "TEXT", "h", false),
    {0},
};

static struct status parse(struct parsed *p, int *n_positional, int argc, const char **argv)
{
    static const struct command c = {.name = "test",
                                     .options = test_options,
                                     .args_bytes = sizeof(struct parsed),
                                     .positional_usage = "FILE",
                                     .max_positional = 1};
    enum option_help help;
    return option_parse(&c, argc, argv, p, n_positional, &help);
}

static void json_has_no_infinities(void)
{
    const double numbers[] = {1.5, NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        json_t *number = json_finite(numbers[i]);
        EXPECT(i == 0 ? json_real_value(number) == 1.5 : json_is_null(number), "%g", numbers[i]);
        json_decref(number);
    }
}

/* Digits are not rounded to a double; other forms are exact, too, or refused. */
static void large_numbers_are_exact(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"--large=9007199254740993", 9007199254740993},
                {"--large=9223372036854775807", INT64_MAX},
                {"--large=9_223_372_036_854_775_806", INT64_MAX - 1},
                {"--large=1e15", 1000000000000000},
                {"--large=2.5e1", 25}};
    static const char *const bad[][2] = {
        {"--large=9223372036854775808", "between 0 and 9223372036854775807"},
        {"--large=-1", "between 0 and 9223372036854775807"},
        {"--large=1e30", "between 0 and 9223372036854775807"},
        {"--large=9.007199254740993e15", "all digits of so large a number"},
        {"--max_count=9223372036854775807", "between 1 and 10"},
        {"--large=1x", "needs a number"},
        {"--large=", "needs a number"},
    };
    struct parsed p;
    int n;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        EXPECT_OK(parse(&p, &n, 1, (const char *[]){good[i].text}));
        EXPECT(p.large == good[i].value, "%s is %lld", good[i].text, (long long)p.large);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){bad[i][0]}), STATUS_USAGE, bad[i][1]);
    }
}

static void options_parse_and_refuse(void)
{
    struct parsed p;
    int n;
    EXPECT_OK(parse(&p, &n, 4, (const char *[]){"--max-count=7", "file", "--max_r", "1e-3"}));
    EXPECT(p.count == 7 && p.rate == 1e-3 && n == 1 && !p.flag, "values");
    EXPECT_OK(parse(&p, &n, 0, NULL));
    EXPECT(p.count == 3 && p.mode == NULL, "defaults");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max=7"}), STATUS_USAGE, "is ambiguous");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--none"}), STATUS_USAGE, "unknown flag --none; `kiln");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_rtae=1"}), STATUS_USAGE,
                 "did you mean --max-rate?");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max-cuont"}), STATUS_USAGE,
                 "did you mean --max_count?");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--max_count=1_0", "--max_rate=0.000_1"}));
    EXPECT(p.count == 10 && p.rate == 1e-4, "underscores between digits");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_count=_7"}), STATUS_USAGE, "needs a number");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_count=1__0"}), STATUS_USAGE, "needs a number");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--max_count=7", "--max_count=8"}));
    EXPECT(p.count == 8, "the last of two counts");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--text=a", "--text=a"}));
    EXPECT_ERROR(parse(&p, &n, 3, (const char *[]){"--text=a", "--text", "b"}), STATUS_USAGE,
                 "--text is given twice, as 'a' and as 'b'");
    EXPECT_ERROR(parse(&p, &n, 3, (const char *[]){"--text=a", "--words", "b"}), STATUS_USAGE,
                 "--text 'a' and --words 'b' are two names of the same flag");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--text=a", "--words=a"}));
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_count=11"}), STATUS_USAGE, "between 1 and 10");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_count=1.5"}), STATUS_USAGE, "whole number");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--max_rate=x"}), STATUS_USAGE, "needs a number");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--mode=do"}), STATUS_USAGE, "cat|dog");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--mode"}), STATUS_USAGE, "needs a value");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--flag", "--flag=false"}));
    EXPECT(!p.flag, "a flag that was taken back");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--flag=2"}), STATUS_USAGE, "must be true or false");
    EXPECT_ERROR(parse(&p, &n, 2, (const char *[]){"a", "b"}), STATUS_USAGE, "unexpected argument 'b'");
}

/* A variable stands behind the flag, and before the default; an empty one is none. */
static void options_read_the_environment(void)
{
    static const struct option options[] = {{.name = "mode",
                                             .kind = OPTION_STRING,
                                             .offset = offsetof(struct parsed, mode),
                                             .default_text = "cat",
                                             .help = "h",
                                             .choices = "cat|dog|cow",
                                             .env = "KILN_TEST_MODE"},
                                            {0}};
    static const struct command c = {.name = "test", .options = options, .args_bytes = sizeof(struct parsed)};
    struct parsed p;
    enum option_help help;
    int n;
    setenv("KILN_TEST_MODE", "dog", 1);
    EXPECT_OK(option_parse(&c, 0, NULL, &p, &n, &help));
    EXPECT(strcmp(p.mode, "dog") == 0, "the variable gives %s", p.mode);
    EXPECT_OK(option_parse(&c, 1, (const char *[]){"--mode=cow"}, &p, &n, &help));
    EXPECT(strcmp(p.mode, "cow") == 0, "the flag gives %s", p.mode);
    setenv("KILN_TEST_MODE", "", 1);
    EXPECT_OK(option_parse(&c, 0, NULL, &p, &n, &help));
    EXPECT(strcmp(p.mode, "cat") == 0, "an empty variable gives %s", p.mode);
    setenv("KILN_TEST_MODE", "cat|dog", 1);
    EXPECT_ERROR(option_parse(&c, 0, NULL, &p, &n, &help), STATUS_USAGE,
                 "environment variable KILN_TEST_MODE");
    unsetenv("KILN_TEST_MODE");
    EXPECT_OK(option_parse(&c, 0, NULL, &p, &n, &help));
    EXPECT(strcmp(p.mode, "cat") == 0, "the default is %s", p.mode);
}

/* No flag takes the next flag for its value, however it is written. */
static void options_leave_their_neighbours(void)
{
    struct parsed p;
    int n;
    EXPECT_ERROR(parse(&p, &n, 3, (const char *[]){"--mode", "--max_count", "7"}), STATUS_USAGE,
                 "not the flag --max_count");
    EXPECT_ERROR(parse(&p, &n, 2, (const char *[]){"--mo", "--flag"}), STATUS_USAGE, "not the flag --flag");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--use", "--flag"}));
    EXPECT(p.flag, "an ignored flag swallowed the next one");
    EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--max_rate", "-2.5"}));
    EXPECT(p.rate == -2.5, "a negative number is a value");
    EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){"--mode=--flag"}), STATUS_USAGE, "--mode is '--flag'");
    EXPECT_OK(parse(&p, &n, 3, (const char *[]){"--flag", "--", "--mode"}));
    EXPECT(n == 1 && p.mode == NULL, "a word behind -- is no flag");
    EXPECT_OK(parse(&p, &n, 3, (const char *[]){"--mode", "cat", "--canine"}));
    EXPECT(strcmp(p.mode, "dog") == 0, "later flags win");
}

static void options_know_two_truths(void)
{
    static const char *const yes[] = {"--on", "--on=TRUE", "--on=1", "--on=Yes"};
    static const char *const no[] = {"--on=False", "--on=0", "--on=no"};
    static const char *const neither[] = {"--on=abc", "--on=nan", "--on=", "--on=2", "--on=tru"};
    struct parsed p;
    int n;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        EXPECT_OK(parse(&p, &n, 1, (const char *[]){yes[i]}));
        EXPECT(p.is_on, "%s", yes[i]);
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        EXPECT_OK(parse(&p, &n, 2, (const char *[]){"--on", no[i]}));
        EXPECT(!p.is_on, "%s", no[i]);
    }
    for (size_t i = 0; i < sizeof neither / sizeof neither[0]; i++) {
        EXPECT_ERROR(parse(&p, &n, 1, (const char *[]){neither[i]}), STATUS_USAGE, "true or false");
    }
}

struct meant {
    const char *place, *other;
    double pair[2];
    struct option_words words;
    int64_t count;
    bool flag, dry_run;
    struct option_given given;
};

static const struct option meant_options[] = {
    OPTION_STRING_ROW("place", offsetof(struct meant, place), NULL, "DIR", "h"),
    OPTION_STRING_ROW("other", offsetof(struct meant, other), NULL, "DIR", "h"),
    OPTION_PAIR_ROW("pair", offsetof(struct meant, pair), 0, 1, "h"),
    OPTION_WORDS_ROW("words", offsetof(struct meant, words), "A B", "h"),
    OPTION_INT_ROW("count", offsetof(struct meant, count), "3", 0, 0, "h"),
    OPTION_FLAG_ROW("flag", offsetof(struct meant, flag), "h"),
    OPTION_FLAG_ROW("dry-run", offsetof(struct meant, dry_run), "h"),
    OPTION_MEANS_ROW("nowhere", offsetof(struct meant, other), "no", "h"),
    OPTION_NOT_YET_ROW("rocket", "it has no fuel"),
    {0},
};

static const struct command meant_command = {
    .name = "meant",
    .options = meant_options,
    .args_bytes = sizeof(struct meant),
    .given = offsetof(struct meant, given),
    .positional_usage = "",
};

static struct status parse_meant(struct meant *p, int argc, const char **argv)
{
    enum option_help help;
    int n;
    return option_parse(&meant_command, argc, argv, p, &n, &help);
}

/* Tables in tables count their offsets from where they are listed; another name of a flag has its field,
 * range and default, and counts as the flag that was given. */
static void tables_list_tables_and_other_names(void)
{
    struct inner {
        int64_t width;
    };
    struct outer {
        const char *model;
        struct inner first, second;
        struct option_given given;
    } p;
    static const struct option innermost[] = {
        OPTION_INT_ROW("width", offsetof(struct inner, width), "3", 1, 9, "h"),
        OPTION_SAME_ROW("breadth", "width", "the same as --width"),
        {0},
    };
    static const struct option middle[] = {OPTION_ROWS_OF(innermost, offsetof(struct outer, second)), {0}};
    static const struct option rows[] = {
        OPTION_SAME_ROW("path", "model", "the same as --model"),
        OPTION_ROWS_OF(middle, 0),
        OPTION_REQUIRED_ROW("model", offsetof(struct outer, model), "PATH", "h"),
        {0},
    };
    static const struct command c = {.name = "nested",
                                     .options = rows,
                                     .args_bytes = sizeof(struct outer),
                                     .given = offsetof(struct outer, given),
                                     .positional_usage = ""};
    enum option_help help;
    int n;
    EXPECT_OK(option_parse(&c, 2, (const char *[]){"--path", "a"}, &p, &n, &help));
    EXPECT(strcmp(p.model, "a") == 0 && p.first.width == 0 && p.second.width == 3, "a default of a table");
    EXPECT(option_was_given(&c, &p, "model") && !option_was_given(&c, &p, "width"), "what was given");
    EXPECT_OK(option_parse(&c, 2, (const char *[]){"--path=a", "--breadth=4"}, &p, &n, &help));
    EXPECT(p.second.width == 4 && option_was_given(&c, &p, "width"), "another name of a flag");
    EXPECT_ERROR(option_parse(&c, 2, (const char *[]){"--path=a", "--breadth=10"}, &p, &n, &help),
                 STATUS_USAGE, "--breadth is 10, but must lie between 1 and 9");
    EXPECT_ERROR(option_parse(&c, 0, NULL, &p, &n, &help), STATUS_USAGE, "needs --model");
}

/* Slips of published command lines, and what must not be taken for one. */
static void options_read_slips_as_meant(void)
{
    struct meant p;
    EXPECT_OK(parse_meant(&p, 3, (const char *[]){"--place=", "/tmp/a", "--flag"}));
    EXPECT(strcmp(p.place, "/tmp/a") == 0 && p.flag, "a space after --place=");
    EXPECT_ERROR(parse_meant(&p, 2, (const char *[]){"--place=", "--flag"}), STATUS_USAGE,
                 "--place is empty");
    EXPECT_OK(parse_meant(&p, 3, (const char *[]){"--place", "a", " --count=5"}));
    EXPECT(p.count == 5 && strcmp(p.place, "a") == 0, "a backslash before a flag");
    EXPECT_OK(parse_meant(&p, 4, (const char *[]){"--flag", " ", "\\", "\\ --count=6"}));
    EXPECT(p.count == 6 && p.flag, "a backslash that stands alone");
    EXPECT_ERROR(parse_meant(&p, 2, (const char *[]){"--place", " --count=5"}), STATUS_USAGE,
                 "needs a value");
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){" word"}), STATUS_USAGE, "takes flags");
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){"--place=<path-to-it>"}), STATUS_USAGE,
                 "--place is <path-to-it>, a placeholder");
    EXPECT_OK(parse_meant(&p, 2, (const char *[]){"--place=<path-to-it>", "--dry_run"}));
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){"--rocket"}), STATUS_UNAVAILABLE,
                 "--rocket is not supported yet: it has no fuel");
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){"--rocket=3"}), STATUS_UNAVAILABLE, "it has no fuel");
}

/* All up to the next flag; of those that are given twice the last. */
static void options_take_words(void)
{
    const char *many[OPTION_MOST_WORDS + 2] = {"--words"};
    struct meant p;
    EXPECT_OK(parse_meant(&p, 7, (const char *[]){"--words", "a", "--words", "16", "5_000", "b", "--flag"}));
    EXPECT(p.words.n == 3 && p.flag && strcmp(p.words.of[1], "5_000") == 0, "%d words", p.words.n);
    json_t *values = option_values(&meant_command, &p);
    EXPECT(json_array_size(json_object_get(values, "words")) == 3, "words in the values");
    json_decref(values);
    struct buf line = {0};
    option_append_line(&line, &meant_command, &p);
    EXPECT(strcmp(buf_text(&line), "kiln meant --words 16 5_000 b --flag") == 0, "the line is %s",
           buf_text(&line));
    buf_fini(&line);
    EXPECT_OK(parse_meant(&p, 2, (const char *[]){"--words=a", "b"}));
    EXPECT(p.words.n == 2 && strcmp(p.words.of[0], "a") == 0, "%d words behind =", p.words.n);
    EXPECT_ERROR(parse_meant(&p, 2, (const char *[]){"--words", "--flag"}), STATUS_USAGE, "needs a value");
    for (int i = 1; i < OPTION_MOST_WORDS + 2; i++) {
        many[i] = "w";
    }
    EXPECT_ERROR(parse_meant(&p, OPTION_MOST_WORDS + 2, many), STATUS_USAGE, "at most 512 words");
}

static void options_take_pairs(void)
{
    struct meant p;
    EXPECT_OK(parse_meant(&p, 4, (const char *[]){"--pair", "0.9", "0.98", "--flag"}));
    EXPECT(p.pair[0] == 0.9 && p.pair[1] == 0.98 && p.flag, "two words");
    EXPECT_OK(parse_meant(&p, 2, (const char *[]){"--pair=0.8,,0.95", "--flag"}));
    EXPECT(p.pair[0] == 0.8 && p.pair[1] == 0.95 && p.flag, "a doubled comma");
    EXPECT_OK(parse_meant(&p, 2, (const char *[]){"--pair=0.7", "0.6"}));
    EXPECT(p.pair[0] == 0.7 && p.pair[1] == 0.6, "a word and the next");
    EXPECT_ERROR(parse_meant(&p, 3, (const char *[]){"--pair", "0.9", "--flag"}), STATUS_USAGE,
                 "needs two numbers");
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){"--pair=0.9,2"}), STATUS_USAGE, "between 0 and 1");
    EXPECT_ERROR(parse_meant(&p, 1, (const char *[]){"--pair"}), STATUS_USAGE, "needs a value");
}

static void options_tell_what_was_given(void)
{
    struct meant p;
    EXPECT(strcmp(option_key(&(struct option){.name = "max-long-name"}).text, "max_long_name") == 0, "a key");
    EXPECT_OK(parse_meant(&p, 3, (const char *[]){"--dry_run", "--count", "4"}));
    EXPECT(option_was_given(&meant_command, &p, "count") && option_was_given(&meant_command, &p, "dry_run"),
           "given");
    EXPECT(!option_was_given(&meant_command, &p, "place") && !option_was_given(&meant_command, &p, "flag"),
           "not given");
    option_set_default(&meant_command, &p, "count", "9");
    option_set_default(&meant_command, &p, "place", "there");
    EXPECT(p.count == 4 && strcmp(p.place, "there") == 0, "a default that depends on other flags");
    EXPECT_OK(parse_meant(&p, 1, (const char *[]){"--nowhere"}));
    EXPECT(option_was_given(&meant_command, &p, "other"), "given by another flag");
}

/* In dense order, past gaps between rows, in every kind of number. */
static void test_find_nonfinite(void)
{
    float v[6 * 9];
    double d[3] = {1, -INFINITY, NAN};
    uint16_t h[4] = {0x3c00, 0x7bff, 0x7c00, 0x7e00}; /* 1, 65504, infinity, NaN */
    for (int i = 0; i < 54; i++) {
        v[i] = i % 9 == 8 ? NAN : FLT_MAX; /* the last column is no part of the matrix */
    }
    tensor t = tensor_columns(tensor_2d(v, DTYPE_F32, 6, 9), 0, 8);
    EXPECT(tensor_find_nonfinite(t) == -1, "%lld", (long long)tensor_find_nonfinite(t));
    v[5 * 9 + 7] = NAN;
    EXPECT(tensor_find_nonfinite(t) == 47, "%lld", (long long)tensor_find_nonfinite(t));
    v[2 * 9 + 1] = INFINITY;
    EXPECT(tensor_find_nonfinite(t) == 17, "%lld", (long long)tensor_find_nonfinite(t));
    EXPECT(tensor_find_nonfinite(tensor_slice(t, 3, 2)) == -1, "rows 3 and 4");
    EXPECT(tensor_find_nonfinite(tensor_1d(d, DTYPE_F64, 3)) == 1, "fp64");
    EXPECT(tensor_find_nonfinite(tensor_1d(h, DTYPE_F16, 4)) == 2, "fp16");
    uint16_t b[6] = {0x3f80, 0x7f7f, 0xff7f, 0, 0xff80, 0x7fc0}; /* 1, the largest, -infinity, NaN */
    EXPECT(tensor_find_nonfinite(tensor_2d(b, DTYPE_BF16, 2, 3)) == 4 &&
               tensor_find_nonfinite(tensor_1d(b, DTYPE_BF16, 4)) == -1,
           "bf16");
}

static void expect_json_text(const char *text, const char *wanted)
{
    json_t *value = json_text(text);
    EXPECT(strcmp(json_string_value(value), wanted) == 0, "'%s', not '%s'", json_string_value(value), wanted);
    json_decref(value);
}

/* UTF-8 stays, bytes that are none are spelt out, and can then be told from a backslash. */
static void test_json_text(void)
{
    expect_json_text("", "");
    expect_json_text("a\\b \xc3\xa9 \xf0\x9f\x98\x80", "a\\b \xc3\xa9 \xf0\x9f\x98\x80");
    expect_json_text("r\xffn", "r\\xffn");
    expect_json_text("\xc3", "\\xc3");
    expect_json_text("\xe2\x82\xac\xe2\x82", "\xe2\x82\xac\\xe2\\x82");
    expect_json_text("\\xff\xff", "\\x5cxff\\xff");
    expect_json_text("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

/* The vectors of RFC 4648 section 10, and back. */
static void base64_matches_its_standard(void)
{
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text = {0}, bytes = {0};
        base64_encode(&text, cases[i][0], strlen(cases[i][0]));
        EXPECT(strcmp(buf_text(&text), cases[i][1]) == 0, "%s became %s", cases[i][0], buf_text(&text));
        EXPECT(base64_decode(&bytes, buf_text(&text)) && strcmp(buf_text(&bytes), cases[i][0]) == 0, "%s",
               cases[i][0]);
        buf_fini(&text);
        buf_fini(&bytes);
    }
}

int main(void)
{
    half_floats_round_trip();
    permutations_are_bijective();
    random_numbers_have_their_moments();
    checksums_match_their_standards();
    strided_views_address_elements();
    options_parse_and_refuse();
    large_numbers_are_exact();
    json_has_no_infinities();
    options_read_the_environment();
    options_leave_their_neighbours();
    options_know_two_truths();
    options_read_slips_as_meant();
    tables_list_tables_and_other_names();
    options_take_pairs();
    options_take_words();
    options_tell_what_was_given();
    test_json_text();
    test_find_nonfinite();
    base64_matches_its_standard();
    return 0;
}
