#define _GNU_SOURCE
#include "fetch/fetch.h"

#include "core/array.h"
#include "core/log.h"
#include "fetch/fetch_sources.h"
#include "fetch/hub_list.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- planning ---- */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* A language code of Wikimedia: en, simple, zh-yue. */
static bool is_language(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-_");
    return n >= 2 && n <= 20 && text[n] == '\0' && text[0] >= 'a';
}

static bool is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

struct status fetch_plan_init(struct fetch_plan *plan, const struct fetch_request *request)
{
    *plan = (struct fetch_plan){.request = *request};
    FAIL_IF(!is_language(request->language), STATUS_USAGE,
            "'%s' is not a language code, such as en, de or simple", request->language);
    FAIL_IF(request->mirror != NULL && !is_http(request->mirror), STATUS_USAGE,
            "the mirror '%s' begins neither with http:// nor with https://", request->mirror);
    return request->sums_file == NULL ? status_ok() : sum_list_read(&plan->sums, request->sums_file);
}

void fetch_plan_fini(struct fetch_plan *plan)
{
    sum_list_fini(&plan->sums);
    free(plan->items);
    plan->items = NULL;
}

static struct status add_item(struct fetch_plan *plan, struct fetch_item **item)
{
    *item = NULL;
    FAIL_IF(!ARRAY_RESERVE(plan->items, plan->capacity, plan->n + 1), STATUS_MEMORY,
            "out of memory for a list of %zu files", plan->n + 1);
    *item = &plan->items[plan->n++];
    **item = (struct fetch_item){.bytes = -1};
    return status_ok();
}

/* Appends `form` replacing each "{}" by `language`, whose '-' become '_', as in names of dumps. */
static void put_form(struct buf *b, const char *form, const char *language)
{
    for (const char *p = form; *p != '\0'; p++) {
        if (strncmp(p, "{}", 2) != 0) {
            buf_putc(b, *p);
            continue;
        }
        for (const char *c = language; *c != '\0'; c++) {
            buf_putc(b, *c == '-' ? '_' : *c);
        }
        p++;
    }
}

static struct status copy_text(char *to, size_t room, struct buf *b, const char *what)
{
    struct status s = buf_status(b);
    if (!failed(s) && b->n >= room) {
        s = status_error(STATUS_USAGE, "the %s %.60s... is longer than %zu bytes", what, buf_text(b),
                         room - 1);
    }
    if (!failed(s)) {
        memcpy(to, buf_text(b), b->n + 1);
    }
    buf_fini(b);
    return s;
}

static struct status make_url(char url[FETCH_URL_BYTES], const struct fetch_request *r, const char *form)
{
    struct buf b = {0};
    if (r->mirror != NULL) {
        size_t n = strlen(r->mirror);
        n -= n > 0 && r->mirror[n - 1] == '/';
        buf_append(&b, r->mirror, n);
        buf_putc(&b, '/');
        form = strstr(form, "://") + 3;
    }
    put_form(&b, form, r->language);
    return copy_text(url, FETCH_URL_BYTES, &b, "URL");
}

static struct status make_path(char path[FILE_PATH_BYTES], const struct fetch_request *r, const char *form)
{
    struct buf b = {0};
    buf_printf(&b, "%s/", r->directory);
    put_form(&b, form, r->language);
    return copy_text(path, FILE_PATH_BYTES, &b, "path");
}

/* Applies the request to an item: --sums and --unpack. */
static void settle(const struct fetch_plan *plan, struct fetch_item *item, const char *sum, bool unpack)
{
    const char *given = sum_list_find(&plan->sums, last_name(item->path));
    given = given == NULL ? sum_list_find(&plan->sums, last_name(item->url)) : given;
    if (given != NULL) {
        item->bytes = -1;
        item->inside = NULL; /* another version may hold other files */
    }
    sum = given != NULL ? given : sum;
    snprintf(item->sum, sizeof item->sum, "%s", sum == NULL ? "" : sum);
    bool is_wanted =
        plan->request.unpack == FETCH_UNPACK_YES || (plan->request.unpack == FETCH_UNPACK_AUTO && unpack);
    item->kind = is_wanted ? unpack_target(item->target, item->path) : UNPACK_NONE;
}

static bool is_wanted(const struct fetch_plan *plan, const char *path)
{
    return plan->request.only == NULL || fnmatch(plan->request.only, last_name(path), 0) == 0;
}

static struct status plan_file(struct fetch_plan *plan, const struct fetch_file *f)
{
    struct fetch_item *item;
    if (!f->is_list && !is_wanted(plan, f->path)) {
        return status_ok();
    }
    TRY(add_item(plan, &item));
    TRY(make_url(item->url, &plan->request, f->url));
    TRY(make_path(item->path, &plan->request, f->path));
    if (f->sums_url != NULL) {
        TRY(make_url(item->sums_url, &plan->request, f->sums_url));
    }
    item->bytes = f->bytes;
    item->about = f->about;
    item->inside = f->inside;
    item->is_list = f->is_list;
    settle(plan, item, f->sum, f->unpack);
    return status_ok();
}

static struct status unknown_source(const char *name)
{
    struct buf b = {0};
    for (const struct fetch_source *s = fetch_source_first(); s->name != NULL; s++) {
        buf_printf(&b, "%s%s", b.n > 0 ? ", " : "", s->name);
    }
    struct status s = status_error(
        STATUS_USAGE, "there is no source '%.60s', only %s; --url fetches any file", name, buf_text(&b));
    buf_fini(&b);
    return s;
}

struct status fetch_plan_source(struct fetch_plan *plan, const char *name)
{
    const struct fetch_source *source = fetch_source_find(name);
    if (source == NULL) {
        return unknown_source(name);
    }
    for (const struct fetch_file *f = source->files; f->url != NULL; f++) {
        TRY(plan_file(plan, f));
    }
    return status_ok();
}

struct status fetch_plan_url(struct fetch_plan *plan, const char *url, const char *sum)
{
    enum digest_kind kind;
    struct fetch_item *item;
    struct buf b = {0};
    FAIL_IF(!is_http(url), STATUS_USAGE, "'%.200s' begins neither with http:// nor with https://", url);
    FAIL_IF(sum != NULL && !digest_kind_of(&kind, sum), STATUS_USAGE,
            "'%.80s' is not a checksum: it must have 32 hexadecimal digits (MD5) or 64 (SHA-256)", sum);
    const char *path = strchr(strstr(url, "://") + 3, '/');
    size_t n = path == NULL ? 0 : strcspn(path, "?#");
    while (path != NULL && memchr(path, '/', n) != NULL) {
        size_t step = (size_t)((const char *)memchr(path, '/', n) - path) + 1;
        path += step;
        n -= step;
    }
    FAIL_IF(n == 0 || path[0] == '.' || memchr(path, '\\', n) != NULL, STATUS_USAGE,
            "'%.200s' does not end with a valid file name", url);
    TRY(add_item(plan, &item));
    buf_puts(&b, url);
    TRY(copy_text(item->url, sizeof item->url, &b, "URL"));
    buf_printf(&b, "%s/%.*s", plan->request.directory, (int)n, path);
    TRY(copy_text(item->path, sizeof item->path, &b, "path"));
    settle(plan, item, sum, false);
    return status_ok();
}

#define HUB "https://huggingface.co"

struct status fetch_plan_hub(struct fetch_plan *plan, const char *name, const char *revision)
{
    struct fetch_item *item;
    struct buf url = {0}, path = {0};
    FAIL_IF(!hub_name_is_valid(name), STATUS_USAGE,
            "--hub %.100s is not a repository's name, such as intfloat/e5-small-v2", name);
    FAIL_IF(!hub_name_is_valid(revision), STATUS_USAGE,
            "--revision %.100s is not a branch, a tag or a commit", revision);
    TRY(add_item(plan, &item));
    buf_printf(&url, HUB "/api/models/%s/revision/%s?blobs=true", name, revision);
    struct status s = make_url(item->url, &plan->request, buf_text(&url));
    buf_fini(&url);
    TRY(s);
    buf_printf(&path, "%s/.hub.json", name);
    s = make_path(item->path, &plan->request, buf_text(&path));
    buf_fini(&path);
    item->is_list = true;
    item->hub_name = name;
    return s;
}

static struct status plan_hub_file(struct fetch_plan *plan, const char *hub_name, const char *commit,
                                   const struct hub_file *file)
{
    struct fetch_item *item;
    struct buf b = {0};
    TRY(add_item(plan, &item));
    buf_printf(&b, HUB "/%s/resolve/%s/%s", hub_name, commit, file->name);
    struct status s = make_url(item->url, &plan->request, buf_text(&b));
    buf_fini(&b);
    TRY(s);
    buf_printf(&b, "%s/%s", hub_name, file->name);
    s = make_path(item->path, &plan->request, buf_text(&b));
    buf_fini(&b);
    item->bytes = file->bytes;
    settle(plan, item, file->sha256, false);
    return s;
}

/* Plans the files of a repository that make a model. */
static struct status plan_hub(struct fetch_plan *plan, size_t of)
{
    struct hub_list list;
    struct hub_file file;
    const char *name = plan->items[of].hub_name; /* the item moves when the plan grows */
    size_t before = plan->n;
    struct status s = hub_list_open(&list, plan->items[of].path);
    while (!failed(s) && hub_list_next(&list, &file)) {
        if (is_wanted(plan, file.name)) {
            s = plan_hub_file(plan, name, list.commit, &file);
        }
    }
    if (!failed(s)) {
        log_info("%s: %zu files of commit %.12s make a model", name, plan->n - before, list.commit);
    }
    hub_list_close(&list);
    return s;
}

/* Plans the files that a list names, in its directory. */
static struct status plan_list(struct fetch_plan *plan, size_t of)
{
    struct sum_list list;
    const char *name, *sum;
    TRY(sum_list_read(&list, plan->items[of].path));
    log_info("%s names %zu files", plan->items[of].path, list.n);
    struct status s = status_ok();
    for (size_t at = 0; !failed(s) && (sum = sum_list_next(&list, &at, &name)) != NULL;) {
        struct fetch_item *item = NULL;
        struct buf url = {0}, path = {0};
        if (!is_wanted(plan, name)) {
            continue;
        }
        s = add_item(plan, &item);
        const struct fetch_item *from = &plan->items[of]; /* a copy: the plan moves when it grows */
        if (!failed(s)) {
            buf_printf(&url, "%.*s%s", (int)(last_name(from->url) - from->url), from->url, name);
            s = copy_text(item->url, sizeof item->url, &url, "URL");
        }
        if (!failed(s)) {
            buf_printf(&path, "%.*s%s", (int)(last_name(from->path) - from->path), from->path, name);
            s = copy_text(item->path, sizeof item->path, &path, "path");
        }
        if (!failed(s)) {
            settle(plan, item, sum, false);
        }
    }
    sum_list_fini(&list);
    return s;
}

/* ---- messages ---- */

/* Whether the file, or the result of unpacking it, exists. */
static bool item_is_there(const struct fetch_item *item)
{
    return file_exists(item->path) || (item->kind != UNPACK_NONE && file_exists(item->target));
}

void fetch_print_item(const struct fetch_item *item)
{
    enum digest_kind kind;
    log_put_text(stdout, item->url);
    fputs("\n    -> ", stdout);
    log_put_text(stdout, item->path);
    if (item->bytes >= 0) {
        printf(", %lld bytes", (long long)item->bytes);
    } else if (item->about != NULL) {
        printf(", about %s", item->about);
    }
    if (digest_kind_of(&kind, item->sum)) {
        printf(", %s %s", digest_name(kind), item->sum);
    }
    if (item->sums_url[0] != '\0') {
        fputs(", checked by ", stdout);
        log_put_text(stdout, item->sums_url);
    }
    if (item->kind != UNPACK_NONE) {
        fputs(", unpacked to ", stdout);
        log_put_text(stdout, item->target);
        fputs(item->inside != NULL ? ", whose files are checked by SHA-256" : "", stdout);
    }
    printf("%s%s\n", item->is_list ? ", and the files that it names" : "",
           item_is_there(item) ? " (already there)" : "");
}

/* Lists what is missing, for users without a network on this machine. */
static struct status tell_missing(const struct fetch_plan *plan, struct status why)
{
    int n = 0;
    for (size_t i = 0; i < plan->n; i++) {
        if (!item_is_there(&plan->items[i])) {
            fetch_print_item(&plan->items[i]);
            n++;
        }
    }
    return status_error(why.code,
                        "%.300s; download the files listed above (%d) elsewhere and put them there: the same "
                        "command checks them and continues",
                        why.message, n);
}

/* ---- fetching ---- */

/* Downloads the list of checksums again: it changes with the file.  The older list stays until the new one is
 * complete. */
static struct status renew_sums(const struct fetch_plan *plan, const struct fetch_item *item,
                                const char *path)
{
    char renewed[FILE_PATH_BYTES];
    struct buf b = {0};
    bool was_there;
    buf_printf(&b, "%s.new", path);
    TRY(copy_text(renewed, sizeof renewed, &b, "path"));
    unlink(renewed);
    struct download d = {.url = item->sums_url, .path = renewed, .bytes = -1};
    TRY(download_file(&d, &plan->request.manner, &was_there));
    return rename(renewed, path) == 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot rename %s to %s: %s", renewed, path, strerror(errno));
}

/* The checksum of a file that changes, from the published list.  Without a list, or a line for the file, only
 * the length is checked.  An existing file is checked with the existing list. */
static struct status find_published_sum(const struct fetch_plan *plan, struct fetch_item *item)
{
    char path[FILE_PATH_BYTES];
    struct buf b = {0};
    struct sum_list list;
    if (item->sums_url[0] == '\0' || item->sum[0] != '\0') {
        return status_ok();
    }
    buf_printf(&b, "%.*s%s", (int)(last_name(item->path) - item->path), item->path,
               last_name(item->sums_url));
    TRY(copy_text(path, sizeof path, &b, "path"));
    bool is_there = file_exists(item->path);
    if (is_there && !file_exists(path)) {
        return status_ok();
    }
    struct status s = is_there ? status_ok() : renew_sums(plan, item, path);
    if (!failed(s)) {
        s = sum_list_read(&list, path);
    }
    if (s.code == STATUS_DATA) {
        log_warning("%s; so only the length of %s is checked", s.message, item->path);
        return status_ok();
    }
    TRY(s);
    const char *sum = sum_list_find(&list, last_name(item->url));
    if (sum == NULL) {
        log_warning("%s has no checksum for %s, so only its length is checked", path, last_name(item->url));
    }
    snprintf(item->sum, sizeof item->sum, "%s", sum == NULL ? "" : sum);
    sum_list_fini(&list);
    return status_ok();
}

static struct status unpack_item(const struct fetch_item *item)
{
    if (item->kind == UNPACK_NONE) {
        return status_ok();
    }
    TRY(unpack_archive(item->target, item->kind, item->path, item->inside));
    log_info("%s: unpacked%s", item->target,
             item->inside != NULL ? ", its files have the published checksums" : "");
    return status_ok();
}

static struct status fetch_item(const struct fetch_plan *plan, struct fetch_item *item)
{
    bool was_there;
    if (item->kind != UNPACK_NONE && file_exists(item->target)) {
        TRY(unpack_check(item->target, item->inside));
        log_info("%s: already there%s", item->target,
                 item->inside != NULL ? ", its files have the published checksums" : "");
        return status_ok();
    }
    TRY(find_published_sum(plan, item));
    struct download d = {
        .url = item->url,
        .path = item->path,
        .bytes = item->bytes,
        .sum = item->sum[0] == '\0' ? NULL : item->sum,
    };
    TRY(download_file(&d, &plan->request.manner, &was_there));
    log_info("%s: %s%s", item->path, was_there ? "already there" : "downloaded",
             d.sum != NULL ? ", its checksum is right" : "");
    return unpack_item(item);
}

struct status fetch_run(struct fetch_plan *plan)
{
    struct status first = status_ok();
    for (size_t i = 0; i < plan->n; i++) {
        struct status s = fetch_item(plan, &plan->items[i]);
        if (s.code == STATUS_UNAVAILABLE) {
            return tell_missing(plan, s);
        }
        if (failed(s) && s.code != STATUS_DATA) {
            return s;
        }
        if (!failed(s) && plan->items[i].is_list) {
            s = plan->items[i].hub_name != NULL ? plan_hub(plan, i) : plan_list(plan, i);
        }
        if (failed(s)) {
            log_warning("%s", s.message);
            first = failed(first) ? first : s;
        }
    }
    return first;
}
