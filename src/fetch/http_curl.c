/* http_curl: fetch/http.h by libcurl, which is loaded when the first file is fetched: it depends on some 30
 * libraries that no other command needs. */
#include "core/shared_library.h"
#include "core/stop.h"
#include "fetch/http_get.h"

#define CURL_DISABLE_TYPECHECK   /* curl's setopt is a macro, and we call by pointer */
#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS, which versions before 7.85 support too */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo

enum { MOST_REDIRECTS = 10, CONNECT_SECONDS = 30, SLOWEST_BYTES_PER_S = 1024 };

static struct {
    bool is_open;
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
    CURLcode (*easy_perform)(CURL *curl);
    void (*easy_cleanup)(CURL *curl);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    char *(*version)(void);
} lib;

static struct status open_library(void)
{
    static const struct shared_symbol symbols[] = {
        {"curl_global_init", (void **)&lib.global_init},
        {"curl_easy_init", (void **)&lib.easy_init},
        {"curl_easy_setopt", (void **)&lib.easy_setopt},
        {"curl_easy_getinfo", (void **)&lib.easy_getinfo},
        {"curl_easy_perform", (void **)&lib.easy_perform},
        {"curl_easy_cleanup", (void **)&lib.easy_cleanup},
        {"curl_easy_strerror", (void **)&lib.easy_strerror},
        {"curl_slist_append", (void **)&lib.slist_append},
        {"curl_slist_free_all", (void **)&lib.slist_free_all},
        {"curl_version", (void **)&lib.version},
        {0},
    };
    if (lib.is_open) {
        return status_ok();
    }
    TRY(shared_library_open(KILN_CURL_LIBRARY, "libcurl4", symbols));
    FAIL_IF(lib.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK, STATUS_INTERNAL, "%s cannot be initialised",
            KILN_CURL_LIBRARY);
    lib.is_open = true;
    return status_ok();
}

struct transfer {
    const struct http_get *get;
    struct http_answer *answer;
    bool has_begun;
    struct status status; /* error of the caller's functions */
};

static size_t on_header(char *line, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    http_answer_take(t->answer, line, n * size);
    return n * size;
}

static bool begin_body(struct transfer *t)
{
    if (!t->has_begun) {
        t->has_begun = true;
        t->status = t->get->begin(t->get->context, t->answer);
    }
    return !failed(t->status);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    n *= size;
    if (begin_body(t)) {
        t->status = t->get->put(t->get->context, bytes, n);
    }
    return failed(t->status) ? 0 : n;
}

static int on_tick(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    (void)context, (void)total, (void)now, (void)up_total, (void)up_now;
    return stop_requested();
}

/* ---- the transfer ---- */

static struct curl_slist *if_range_header(const struct http_get *get)
{
    char line[320];
    if (get->from == 0 || get->validator == NULL || get->validator[0] == '\0') {
        return NULL;
    }
    snprintf(line, sizeof line, "If-Range: %s", get->validator);
    return lib.slist_append(NULL, line);
}

static void set_up(CURL *curl, struct transfer *t, struct curl_slist *headers, char *message)
{
    const struct http_get *get = t->get;
    bool is_https = strncasecmp(get->url, "https:", 6) == 0;
    lib.easy_setopt(curl, CURLOPT_URL, get->url);
    lib.easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    lib.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib.easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's are not the answer */
    lib.easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    lib.easy_setopt(curl, CURLOPT_USERAGENT, "kiln/" KILN_VERSION);
    lib.easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    lib.easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS,
                    (long)(is_https ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
    lib.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    lib.easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTS);
    lib.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT,
                    (long)(get->stall_s < CONNECT_SECONDS ? get->stall_s : CONNECT_SECONDS));
    lib.easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST_BYTES_PER_S);
    lib.easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)get->stall_s);
    lib.easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    lib.easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    lib.easy_setopt(curl, CURLOPT_HEADERDATA, t);
    lib.easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    lib.easy_setopt(curl, CURLOPT_WRITEDATA, t);
    lib.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_tick);
    lib.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    if (get->proxy != NULL) {
        lib.easy_setopt(curl, CURLOPT_PROXY, get->proxy);
        lib.easy_setopt(curl, CURLOPT_NOPROXY, ""); /* else no_proxy would still hold */
    }
    if (get->from > 0) {
        char range[32];
        snprintf(range, sizeof range, "%lld-", (long long)get->from);
        lib.easy_setopt(curl, CURLOPT_RANGE, range); /* libcurl copies it */
    }
}

static enum http_end end_of(CURLcode code, const struct http_answer *answer)
{
    switch (code) {
    case CURLE_OK: return HTTP_WHOLE;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION: /* the server, or a proxy that decrypts the traffic */
    case CURLE_SSL_CACERT_BADFILE: return HTTP_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT: return answer->code == 0 ? HTTP_UNREACHABLE : HTTP_BROKEN;
    case CURLE_HTTP_RETURNED_ERROR: return HTTP_REFUSED;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return HTTP_BROKEN;
    default: return HTTP_FAILED;
    }
}

static struct status explain(const struct transfer *t, enum http_end end, CURLcode code, const char *message)
{
    const char *url = t->get->url, *why = message[0] != '\0' ? message : lib.easy_strerror(code);
    if (failed(t->status)) {
        return t->status;
    }
    switch (end) {
    case HTTP_WHOLE: return status_ok();
    case HTTP_UNREACHABLE: return status_error(STATUS_UNAVAILABLE, "%s cannot be reached: %s", url, why);
    case HTTP_REFUSED:
        return status_error(STATUS_DATA, "%s: the server answers with code %ld", url, t->answer->code);
    case HTTP_BROKEN: return status_error(STATUS_IO, "%s: the transfer ended early: %s", url, why);
    case HTTP_FAILED: break;
    }
    FAIL_IF(code == CURLE_ABORTED_BY_CALLBACK, STATUS_PREEMPTED, "%s: stopped by a signal", url);
    FAIL_IF(code == CURLE_UNSUPPORTED_PROTOCOL, STATUS_DATA,
            "%s: kiln does not follow the server's redirect: %s", url, why);
    return status_error(STATUS_DATA, "%s: %s", url, why);
}

struct status http_get(const struct http_get *get, enum http_end *end, struct http_answer *answer)
{
    char message[CURL_ERROR_SIZE] = "";
    struct transfer t = {.get = get, .answer = answer};
    http_answer_init(answer);
    *end = HTTP_FAILED;
    TRY(open_library());
    CURL *curl = lib.easy_init();
    struct curl_slist *headers = if_range_header(get);
    if (curl == NULL) {
        lib.slist_free_all(headers);
        return status_error(STATUS_MEMORY, "out of memory for a transfer");
    }
    set_up(curl, &t, headers, message);
    CURLcode code = lib.easy_perform(curl);
    if (code == CURLE_OK && !begin_body(&t)) { /* an answer without a byte */
        code = CURLE_WRITE_ERROR;
    }
    long proxy_code = 0;
    lib.easy_getinfo(curl, CURLINFO_HTTP_CONNECTCODE, &proxy_code);
    lib.easy_cleanup(curl);
    lib.slist_free_all(headers);
    *end = code != CURLE_OK && proxy_code >= 300 ? HTTP_UNREACHABLE : end_of(code, answer);
    return explain(&t, *end, code, message);
}

const char *http_version(void)
{
    return failed(open_library()) ? NULL : lib.version();
}
