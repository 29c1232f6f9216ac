/* test: shared by all unit tests.  One program per file, one process per test: the exit code is the verdict,
 * 77 is a skip, which KILN_REQUIRE turns into a failure. */
#ifndef KILN_TESTS_TEST_H
#define KILN_TESTS_TEST_H

#include "core/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_SKIPPED = 77 };

/* How to enable the tests of the feature "hdf5". */
#define TEST_NO_HDF5 "this build has no HDF5; install libhdf5-dev, and build without KILN_HDF5=OFF"

/* Fails the test program with file, line and a printf-formatted message unless `condition` holds. */
#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: expected (%s): ", __FILE__, __LINE__, #condition);                       \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define EXPECT_OK(call)                                                                                      \
    do {                                                                                                     \
        struct status test_status = (call);                                                                  \
        EXPECT(test_status.code == STATUS_OK, "%s", test_status.message);                                    \
    } while (0)

/* The call fails with this code, and its message contains `part`. */
#define EXPECT_ERROR(call, expected_code, part)                                                              \
    do {                                                                                                     \
        struct status test_status = (call);                                                                  \
        EXPECT(test_status.code == (expected_code), "code %d, message '%s'", test_status.code,               \
               test_status.message);                                                                         \
        EXPECT(strstr(test_status.message, part) != NULL, "message '%s' lacks '%s'", test_status.message,    \
               part);                                                                                        \
    } while (0)

#define EXPECT_NEAR(actual, wanted, bound)                                                                   \
    do {                                                                                                     \
        double test_actual = (actual), test_wanted = (wanted);                                               \
        EXPECT(fabs(test_actual - test_wanted) <= (bound), "%.17g against %.17g, bound %g", test_actual,     \
               test_wanted, (double)(bound));                                                                \
    } while (0)

/* Prints "LEFT[feature]: " and what would enable what is left out; if KILN_REQUIRE, a comma-separated list,
 * names the feature, it is a failure. */
__attribute__((format(printf, 3, 0))) static inline void
test_say_left_out(const char *left, const char *feature, const char *format, va_list arguments)
{
    const char *required = getenv("KILN_REQUIRE");
    bool is_required = false;
    size_t n = strlen(feature);
    for (const char *p = required; p != NULL && *p != '\0'; p = strchr(p, ',') ? strchr(p, ',') + 1 : "") {
        is_required = is_required || (strncmp(p, feature, n) == 0 && (p[n] == ',' || p[n] == '\0'));
    }
    FILE *out = is_required ? stderr : stdout;
    fprintf(out, is_required ? "%s is required, but: " : "%s[%s]: ", is_required ? feature : left, feature);
    vfprintf(out, format, arguments);
    fputc('\n', out);
    if (is_required) {
        exit(1);
    }
}

/* Exits with a skip that says "skipped[feature]: " and what would enable the test, printf-formatted (a
 * package, a file, a device); tools/test.sh counts skips by feature.  A failure if KILN_REQUIRE names the
 * feature.  tests/cli/expect.sh has the same for scripts. */
__attribute__((format(printf, 2, 3), noreturn)) static inline void test_skip(const char *feature,
                                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    test_say_left_out("skipped", feature, format, arguments);
    va_end(arguments);
    exit(TEST_SKIPPED);
}

/* Says "left out[feature]: " of a part of a test that goes on. */
__attribute__((format(printf, 2, 3))) static inline void test_leave_out(const char *feature,
                                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    test_say_left_out("left out", feature, format, arguments);
    va_end(arguments);
}

#endif
