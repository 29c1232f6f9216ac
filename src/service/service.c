#include "service/service.h"

#include "service/access_log.h"
#include "service/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct status service_init(struct service *s, const struct service_options *o)
{
    *s = (struct service){.options = *o};
    TRY(served_models_open(&s->coming, o->sources, o->n_sources, &o->models));
    struct status status = watched_runs_create(&s->watched, &o->watch);
    if (failed(status)) {
        served_models_free(s->coming);
        s->coming = NULL;
        return status;
    }
    pthread_mutex_init(&s->lock, NULL);
    service_metrics_init(&s->metrics);
    return status_ok();
}

void service_fini(struct service *s)
{
    if (s->watched == NULL) {
        return;
    }
    watched_runs_destroy(s->watched);
    service_free_replaced(s);
    served_models_free(s->coming);
    served_models_free(s->models);
    service_metrics_fini(&s->metrics);
    pthread_mutex_destroy(&s->lock);
    *s = (struct service){0};
}

/* ---- models ---- */

struct served_models *service_hold(struct service *s, bool *drains)
{
    pthread_mutex_lock(&s->lock);
    struct served_models *set = s->models;
    if (set != NULL) {
        set->n_holders++;
    }
    *drains = s->drains;
    pthread_mutex_unlock(&s->lock);
    return set;
}

void service_release(struct service *s, struct served_models *set)
{
    if (set != NULL) {
        pthread_mutex_lock(&s->lock);
        set->n_holders--;
        pthread_mutex_unlock(&s->lock);
    }
}

struct status service_load(struct service *s)
{
    struct served_models *set = s->coming;
    if (set == NULL) {
        TRY(served_models_open(&set, s->options.sources, s->options.n_sources, &s->options.models));
    }
    s->coming = NULL;
    struct status loaded = served_models_load(set);
    if (failed(loaded)) {
        served_models_free(set);
        return loaded;
    }
    pthread_mutex_lock(&s->lock);
    set->before = s->models;
    s->models = set;
    pthread_mutex_unlock(&s->lock);
    return status_ok();
}

/* A set that was replaced and that nobody holds, taken out; NULL: there is none. */
static struct served_models *take_replaced(struct service *s)
{
    struct served_models *taken = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct served_models *set = s->models; set != NULL && taken == NULL; set = set->before) {
        if (set->before != NULL && set->before->n_holders == 0) {
            taken = set->before;
            set->before = taken->before;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

bool service_free_replaced(struct service *s)
{
    for (struct served_models *set; (set = take_replaced(s)) != NULL;) {
        served_models_free(set);
    }
    return s->models == NULL || s->models->before == NULL;
}

void service_drain(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    s->drains = true;
    pthread_mutex_unlock(&s->lock);
    watched_runs_end(s->watched);
}

void service_end_work(struct service *s)
{
    service_drain(s);
    for (struct served_models *set = s->models; set != NULL; set = set->before) {
        text_engine_stop(set->engine);
    }
}

/* ---- the server's questions ---- */

static const char path_of_models[] = "/models/";

/* The path after /models/ and the name of a served model: "/" if nothing follows; NULL: it names none. */
static const char *behind_model(struct served_models *set, const char *path, struct served_model **named)
{
    size_t n = strlen(path_of_models);
    for (int i = 0; set != NULL && strncmp(path, path_of_models, n) == 0 && i < set->n; i++) {
        size_t n_name = strlen(set->models[i].name);
        const char *rest = path + n + n_name;
        if (strncmp(path + n, set->models[i].name, n_name) == 0 && (*rest == '/' || *rest == '\0')) {
            *named = &set->models[i];
            return *rest == '\0' ? "/" : rest;
        }
    }
    return NULL;
}

static void refuse_path(struct call *c, const char *path, const char *allowed)
{
    bool names_model = strncmp(path, path_of_models, strlen(path_of_models)) == 0;
    if (names_model && c->named == NULL && strcmp(http_method(c->x), "POST") == 0) {
        call_fail(c, 404, "model", "%.200s names no model of this server: GET /v1/models lists them", path);
    } else if (allowed[0] != '\0') {
        http_add_header(c->x, "Allow", allowed);
        call_fail(c, 405, NULL, "%s is answered for %s, not for %s", path, allowed, http_method(c->x));
    } else {
        call_fail(c, 404, NULL, "%.200s is no path of this server", path);
    }
}

/* The body of a POST, which is an object. False: the call has failed. */
static bool parse_body(struct call *c)
{
    size_t n;
    const char *text = http_body(c->x, &n);
    struct status s = json_parse_text(&c->body, text, n, "the body");
    if (failed(s)) {
        call_fail(c, 400, NULL, "%s", s.message);
    } else if (!json_is_object(c->body)) {
        call_fail(c, 400, NULL, "the body must be a JSON object {...}");
    }
    return json_is_object(c->body);
}

static void answer(struct call *c)
{
    char allowed[64];
    const char *path = http_path(c->x), *method = http_method(c->x);
    bool posts = strcmp(method, "POST") == 0;
    const char *rest = behind_model(c->models, path, &c->named);
    /* GET /models/NAME is OpenAI's question for a model */
    if (rest != NULL && (posts || strcmp(rest, "/") != 0)) {
        path = rest;
    } else {
        c->named = NULL;
    }
    const struct endpoint *e = endpoint_find(method, path, allowed);
    if (e == NULL) {
        refuse_path(c, path, allowed);
        return;
    }
    c->dialect = e->dialect;
    c->form = e->form;
    c->rest = path + strlen(e->path);
    if (!posts || parse_body(c)) {
        e->answer(c);
    }
}

static void handle(void *self, struct http_exchange *x)
{
    struct service *s = self;
    struct call *c = calloc(1, sizeof *c);
    if (c == NULL) {
        http_reply(x, 503, NULL, NULL);
        return;
    }
    *c = (struct call){.service = s, .x = x, .dialect = dialect_of_path(http_path(x))};
    c->models = service_hold(s, &c->drains);
    http_set_owner(x, c);
    answer(c);
}

/* GET / is the page, POST / asks a model. */
static bool is_open(void *self, const char *method, const char *path)
{
    char allowed[64];
    const struct endpoint *e = endpoint_find(method, path, allowed);
    (void)self;
    return e != NULL && e->is_open;
}

static const char *describe_error(void *self, struct buf *out, const char *path, int status,
                                  const char *message)
{
    json_t *error = dialect_of_path(path)->error(status, message, NULL);
    char *text = error == NULL ? NULL : json_dumps(error, JSON_COMPACT);
    (void)self;
    buf_puts(out, text == NULL ? "{}" : text);
    free(text);
    json_decref(error);
    return "application/json";
}

/* ---- the end of an exchange ---- */

static void ended(void *self, const struct http_exchange *x, int status, size_t n_bytes, double seconds)
{
    struct service *s = self;
    struct call *c = http_owner(x);
    const struct dialect *dialect = c == NULL ? dialect_of_path(http_path(x)) : c->dialect;
    service_metrics_count(&s->metrics, dialect->name, status, c, seconds);
    if (s->options.access_log != NULL) {
        access_log_write(s->options.access_log, x, c, status, n_bytes, seconds);
    }
    if (c != NULL) {
        struct served_models *set = c->models;
        call_free(c);
        service_release(s, set);
    }
}

struct http_handler service_handler(struct service *s)
{
    return (struct http_handler){
        .handle = handle, .is_open = is_open, .describe_error = describe_error, .ended = ended, .self = s};
}

/* ---- systemd ---- */

int service_notify_socket(void)
{
    enum { FIRST_SOCKET = 3 }; /* SD_LISTEN_FDS_START */
    const char *process = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    bool is_ours = process != NULL && n != NULL && strtol(process, NULL, 10) == (long)getpid();
    return is_ours && strtol(n, NULL, 10) >= 1 ? FIRST_SOCKET : -1;
}

void service_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path == NULL ? 0 : strlen(path);
    if (n == 0 || n >= sizeof to.sun_path) {
        return;
    }
    memcpy(to.sun_path, path, n);
    to.sun_path[0] = path[0] == '@' ? '\0' : path[0]; /* a name without a file */
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (s >= 0) {
        socklen_t n_address = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        (void)sendto(s, state, strlen(state), 0, (const struct sockaddr *)&to, n_address);
        close(s);
    }
}
