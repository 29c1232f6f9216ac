/* test: what every unit test uses.  One program per file, one process per test: the exit code is the verdict,
 * 77 is a skip, which KILN_REQUIRE turns into a failure. */
#ifndef KILN_TESTS_TEST_H
#define KILN_TESTS_TEST_H

#include "core/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_SKIPPED = 77 };

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

/* Leaves with a visible skip, or a failure if KILN_REQUIRE names `feature` (a comma-separated list). */
static inline void test_skip(const char *feature, const char *why)
{
    const char *required = getenv("KILN_REQUIRE");
    size_t n = strlen(feature);
    for (const char *p = required; p != NULL && *p != '\0'; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, feature, n) == 0 && (p[n] == ',' || p[n] == '\0')) {
            fprintf(stderr, "%s is required, but: %s\n", feature, why);
            exit(1);
        }
    }
    printf("skipped: %s\n", why);
    exit(TEST_SKIPPED);
}

#endif
