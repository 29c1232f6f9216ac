/* Any bytes as a list of checksums, and their lines as the headers of a server: what is kept of them can be a
 * file's name, and a line that is said to a server again. */
#include "fetch/http_answer.h"
#include "io/sum_list.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void read_list(const uint8_t *bytes, size_t n)
{
    struct sum_list list;
    const char *name, *sum;
    enum digest_kind kind;
    size_t n_read = 0;
    if (failed(sum_list_parse(&list, bytes, n, "input"))) {
        return;
    }
    for (size_t at = 0; (sum = sum_list_next(&list, &at, &name)) != NULL; n_read++) {
        CHECK(digest_kind_of(&kind, sum), "no checksum: %s", sum);
        CHECK(strchr(name, '/') == NULL && name[0] != '.' && name[0] != '\0', "no name: %s", name);
        CHECK(sum_list_find(&list, name) != NULL, "not found: %s", name);
    }
    CHECK(n_read == list.n, "%zu of %zu files", n_read, list.n);
    sum_list_fini(&list);
}

static void read_headers(const uint8_t *bytes, size_t n)
{
    struct http_answer answer;
    http_answer_init(&answer);
    while (n > 0) {
        const uint8_t *end = memchr(bytes, '\n', n);
        size_t line = end == NULL ? n : (size_t)(end - bytes) + 1;
        http_answer_take(&answer, (const char *)bytes, line);
        bytes += line;
        n -= line;
        CHECK(answer.begin >= 0 && answer.total >= -1 && answer.retry_after_s >= -1, "a negative length");
        CHECK(memchr(answer.validator, '\0', sizeof answer.validator) != NULL &&
                  strpbrk(answer.validator, "\r\n") == NULL,
              "a validator of several lines");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    read_list(bytes, n);
    read_headers(bytes, n);
    return 0;
}
