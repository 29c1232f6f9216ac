/* What a server says before the bytes: every header that counts, and lines that are none. */
#include "test.h"

#include "fetch/http_answer.h"

/* The answer of these lines, which end with NULL. */
static struct http_answer answer_of(const char *const *lines)
{
    struct http_answer a;
    http_answer_init(&a);
    for (; *lines != NULL; lines++) {
        http_answer_take(&a, *lines, strlen(*lines));
    }
    return a;
}

static void test_whole(void)
{
    static const char *const lines[] = {"HTTP/1.1 200 OK\r\n",
                                        "content-length:  123 \r\n",
                                        "ETag: \"a b\"\r\n",
                                        "Last-Modified: Sun, 22 Nov 2026 10:00:00 GMT\r\n",
                                        "\r\n",
                                        NULL};
    struct http_answer a = answer_of(lines);
    EXPECT(a.code == 200 && a.begin == 0 && a.total == 123 && a.marks_end && a.retry_after_s == -1,
           "code %ld, %lld bytes", a.code, (long long)a.total);
    EXPECT(strcmp(a.validator, "\"a b\"") == 0, "%s", a.validator);
}

static void test_part(void)
{
    static const char *const lines[] = {"HTTP/1.1 206 Partial Content\r\n", "Content-Length: 5\r\n",
                                        "Content-Range: bytes 7-11/12\r\n", NULL};
    static const char *const unknown[] = {"HTTP/1.1 206 P\r\n", "Content-Range: bytes 7-11/*\r\n", NULL};
    static const char *const odd[] = {"HTTP/1.1 206 P\r\n",         "Content-Range: lines 7-11/12\r\n",
                                      "Content-Range: bytes\r\n",   "Content-Range: bytes x/9\r\n",
                                      "Content-Range: bytes 3\r\n", NULL};
    struct http_answer a = answer_of(lines);
    EXPECT(a.code == 206 && a.begin == 7 && a.total == 12, "from %lld of %lld", (long long)a.begin,
           (long long)a.total);
    a = answer_of(unknown);
    EXPECT(a.begin == 7 && a.total == -1, "from %lld of %lld", (long long)a.begin, (long long)a.total);
    a = answer_of(odd);
    EXPECT(a.begin == 0 && a.total == -1, "from %lld of %lld", (long long)a.begin, (long long)a.total);
}

static void test_validators(void)
{
    static const char *const weak[] = {"HTTP/1.1 200 OK", "ETag: W/\"a\"", "Last-Modified: then", NULL};
    static const char *const later[] = {"HTTP/1.1 200 OK", "Last-Modified: then", "ETag: \"a\"", NULL};
    static const char *const lines[] = {"HTTP/1.1 200 OK", "ETag: \"a\r\nHost: evil\"", NULL};
    char lengthy[400] = "ETag: ";
    memset(lengthy + 6, 'a', sizeof lengthy - 7);
    const char *const too_long[] = {"HTTP/1.1 200 OK", lengthy, NULL};
    EXPECT(strcmp(answer_of(weak).validator, "then") == 0, "%s", answer_of(weak).validator);
    EXPECT(strcmp(answer_of(later).validator, "\"a\"") == 0, "%s", answer_of(later).validator);
    EXPECT(answer_of(lines).validator[0] == '\0', "%s", answer_of(lines).validator);
    EXPECT(answer_of(too_long).validator[0] == '\0', "%s", answer_of(too_long).validator);
}

static void test_redirect(void)
{
    static const char *const lines[] = {"HTTP/1.1 302 Found\r\n", "Content-Length: 99\r\n",
                                        "ETag: \"page\"\r\n",     "\r\n",
                                        "HTTP/2 200 \r\n",        NULL};
    struct http_answer a = answer_of(lines);
    EXPECT(a.code == 200 && a.total == -1 && a.validator[0] == '\0' && a.marks_end,
           "what the redirect said is left");
}

static void test_ends(void)
{
    static const char *const chunked[] = {"HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked", NULL};
    static const char *const none[] = {"HTTP/1.1 200 OK", "Transfer-Encoding: chunk", "Content-Length: many",
                                       NULL};
    static const char *const huge[] = {"HTTP/1.1 200 OK", "Content-Length: 99999999999999999999999", NULL};
    static const char *const busy[] = {"HTTP/1.1 503 Busy", "Retry-After: 120", NULL};
    EXPECT(answer_of(chunked).marks_end && !answer_of(none).marks_end,
           "chunks mark an end, and nothing else here");
    EXPECT(answer_of(huge).total == -1 && !answer_of(huge).marks_end, "%lld",
           (long long)answer_of(huge).total);
    EXPECT(answer_of(busy).retry_after_s == 120, "%lld", (long long)answer_of(busy).retry_after_s);
}

int main(void)
{
    test_whole();
    test_part();
    test_validators();
    test_redirect();
    test_ends();
    return 0;
}
