/* kiln serve: models answer over HTTP, in the dialects of the servers that people know. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/clock.h"
#include "core/log.h"
#include "http/http.h"
#include "io/file.h"
#include "service/access_log.h"
#include "service/service.h"

#include <signal.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct serve_args {
    struct option_words models, watched, hosts, origins;
    struct option_given given;
    const char *device, *dtype, *watch_prompt, *host, *unix_socket, *api_key_file, *access_log;
    int64_t port, batch_size, http_threads, max_connections, max_connections_per_address;
    int64_t max_concurrent_requests, max_queue_tokens;
    double cache_gib, max_body_mib, request_timeout_s, read_timeout_s, idle_timeout_s, shutdown_timeout_s;
    struct command_flags common;
};

#define AT(field) offsetof(struct serve_args, field)

static const struct option options[] = {
    OPTION_LIST_ROW(
        "model", AT(models), "[NAME=]DIR",
        "checkpoints, model directories or GGUF files, each by its name in requests or, without one, by the "
        "last part of its path"),
    OPTION_LIST_ROW("watch", AT(watched), "[NAME=]DIR",
                    "output directories of runs, whose curves the page draws as they grow; then --model may "
                    "be absent"),
    OPTION_STRING_ROW("watch_prompt", AT(watch_prompt), "The", "TEXT",
                      "what a watched decoder continues at each of its checkpoints; empty: nothing"),
    DEVICE_ROW(AT(device)),
    OPTION_CHOICE_ROW("dtype", AT(dtype), "fp32", SESSION_DTYPES, SESSION_DTYPE_HELP),
    OPTION_GROUP_ROW("where it listens"),
    OPTION_STRING_ROW("host", AT(host), "127.0.0.1", "ADDRESS",
                      "address of this machine; 0.0.0.0 or :: for all of them"),
    OPTION_INT_ROW("port", AT(port), "8080", 0, 65535, "port; 0: any that is free, which the log names"),
    OPTION_STRING_ROW("unix_socket", AT(unix_socket), NULL, "PATH", "a unix socket, instead of a port"),
    OPTION_LIST_ROW("allowed_host", AT(hosts), "NAME",
                    "names by which requests may call the server (Host), such as that of a proxy; by "
                    "default localhost on an address of this machine alone, else any"),
    OPTION_LIST_ROW("cors_origin", AT(origins), "ORIGIN",
                    "pages of other sites that may send requests, such as https://example.org; * for all"),
    OPTION_STRING_ROW("api_key_file", AT(api_key_file), NULL, "FILE",
                      "keys, one a line, of which requests must send one; health and metrics need none"),
    OPTION_GROUP_ROW("limits"),
    OPTION_INT_ROW("batch_size", AT(batch_size), "16", 1, 4096, "texts that a decoder continues at once"),
    OPTION_REAL_ROW("cache_gib", AT(cache_gib), "0", 0, 1e6,
                    "GiB for keys and values of a decoder; 0: for texts of the model's length, half of the "
                    "free memory at most"),
    OPTION_INT_ROW("max_concurrent_requests", AT(max_concurrent_requests), "512", 1, 1 << 20,
                   "requests that wait or compute; more get 429"),
    OPTION_INT_ROW("max_queue_tokens", AT(max_queue_tokens), "1048576", 1, 1LL << 40,
                   "tokens of these, to be read and to be generated; more get 429, but one request alone is "
                   "always taken"),
    OPTION_REAL_ROW("max_body_mib", AT(max_body_mib), "8", 0.001, 1024,
                    "MiB of a request's body; more get 413"),
    OPTION_REAL_ROW("request_timeout_s", AT(request_timeout_s), "600", 0.01, 1e6,
                    "seconds until a request that is not answered gets 504; its header Request-Timeout may "
                    "ask for less"),
    OPTION_REAL_ROW("read_timeout_s", AT(read_timeout_s), "30", 0.01, 1e6,
                    "seconds for all of a request's head and body; then the connection is closed"),
    OPTION_REAL_ROW("idle_timeout_s", AT(idle_timeout_s), "75", 0.01, 1e6,
                    "seconds of a connection between requests"),
    OPTION_INT_ROW("max_connections", AT(max_connections), "1024", 1, 1 << 16, "connections"),
    OPTION_INT_ROW("max_connections_per_address", AT(max_connections_per_address), "512", 1, 1 << 16,
                   "connections of one address"),
    OPTION_INT_ROW("http_threads", AT(http_threads), "2", 1, 64,
                   "threads that read requests, tokenize and write answers"),
    OPTION_GROUP_ROW("operation"),
    OPTION_REAL_ROW("shutdown_timeout_s", AT(shutdown_timeout_s), "30", 0, 1e6,
                    "seconds that requests get to end after SIGTERM; a second one ends them at once"),
    OPTION_STRING_ROW("access_log", AT(access_log), NULL, "FILE",
                      "append a JSON line for each request, without texts; - for standard error"),
    DRY_RUN_ROW(AT(common.dry_run), "check the models and print the memory that they need; open no port"),
    {0},
};

/* ---- options ---- */

enum { MAX_SOURCES = 64, MAX_KEYS = 1024 };

struct keys {
    struct buf text;
    const char *of[MAX_KEYS]; /* keys in `text` */
    int n;
};

static struct status add_key(struct keys *k, char *line, const char *path)
{
    line[strcspn(line, "\r")] = '\0';
    if (line[0] == '\0') {
        return status_ok();
    }
    FAIL_IF(k->n == MAX_KEYS, STATUS_USAGE, "%s has more than %d keys", path, MAX_KEYS);
    k->of[k->n++] = line;
    return status_ok();
}

static void warn_of_readers(const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 && (found.st_mode & S_IROTH) != 0) {
        log_warning("%s can be read by other users: chmod 600 takes that away", path);
    }
}

/* Keys are in a file, since a command line can be read by all users of a machine. */
static struct status read_keys(struct keys *k, const char *path)
{
    if (path == NULL) {
        return status_ok();
    }
    struct file_map map;
    TRY(file_map_open(&map, path));
    warn_of_readers(path);
    buf_append(&k->text, map.data, map.n);
    file_map_close(&map);
    TRY(buf_status(&k->text));
    char *rest = k->text.data;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        TRY(add_key(k, line, path));
    }
    return k->n > 0 ? status_ok()
                    : status_error(STATUS_USAGE, "--api_key_file %s has no key: one a line", path);
}

/* "NAME=DIR" or "DIR"; a path may have a "=" after a slash. */
static struct status read_source(struct served_source *s, char *name, size_t n_name, const char *flag,
                                 const char *word)
{
    const char *equals = strchr(word, '='), *slash = strchr(word, '/');
    if (equals == NULL || (slash != NULL && slash < equals)) {
        *s = (struct served_source){.path = word};
        return status_ok();
    }
    FAIL_IF(equals == word || equals[1] == '\0' || (size_t)(equals - word) >= n_name, STATUS_USAGE,
            "--%s %.200s: it must be DIR, or NAME=DIR with a name of at most %zu bytes", flag, word,
            n_name - 1);
    memcpy(name, word, (size_t)(equals - word));
    name[equals - word] = '\0';
    *s = (struct served_source){.name = name, .path = equals + 1};
    return status_ok();
}

struct sources {
    struct served_source of[MAX_SOURCES];
    char names[MAX_SOURCES][128];
    int n;
};

static struct status read_sources(struct sources *s, const char *flag, const struct option_words *words)
{
    FAIL_IF(words->n > MAX_SOURCES, STATUS_USAGE, "--%s is given %d times: give at most %d", flag, words->n,
            MAX_SOURCES);
    for (; s->n < words->n; s->n++) {
        TRY(read_source(&s->of[s->n], s->names[s->n], sizeof s->names[0], flag, words->of[s->n]));
    }
    return status_ok();
}

static struct http_options http_options_of(const struct serve_args *a, const struct keys *k)
{
    struct http_options o = http_defaults();
    o.host = a->host;
    o.port = (int)a->port;
    o.unix_socket = a->unix_socket;
    o.socket = service_notify_socket();
    o.n_threads = (int)a->http_threads;
    o.max_connections = (int)a->max_connections;
    o.max_connections_per_address = (int)a->max_connections_per_address;
    o.max_body_bytes = (size_t)(a->max_body_mib * 0x1p20);
    o.request_read_timeout_s = a->read_timeout_s;
    o.idle_timeout_s = a->idle_timeout_s;
    o.hosts = a->hosts.of;
    o.n_hosts = a->hosts.n;
    o.origins = a->origins.of;
    o.n_origins = a->origins.n;
    o.keys = k->of;
    o.n_keys = k->n;
    return o;
}

static struct status service_options_of(struct service_options *o, const struct serve_args *a,
                                        const struct sources *models, const struct sources *runs)
{
    *o = (struct service_options){.sources = models->of,
                                  .n_sources = models->n,
                                  .watch = {.runs = runs->of, .n_runs = runs->n, .prompt = a->watch_prompt},
                                  .request_timeout_s = a->request_timeout_s};
    TRY(session_options_find(&o->models.session, a->device, a->dtype));
    o->models.session.n_prompts = a->batch_size;
    o->models.session.cache_bytes = (size_t)(a->cache_gib * 0x1p30);
    o->models.engine = (struct text_engine_options){.max_queue_tokens = a->max_queue_tokens,
                                                    .max_works = a->max_concurrent_requests};
    o->watch.session = o->models.session;
    return status_ok();
}

/* ---- running ---- */

static void say_where(const struct serve_args *a, const struct http_server *server)
{
    int port = http_server_port(server);
    bool is_v6 = strchr(a->host, ':') != NULL;
    if (port > 0) {
        log_info("serving on http://%s%s%s:%d", is_v6 ? "[" : "", a->host, is_v6 ? "]" : "", port);
    } else {
        log_info("serving on %s", a->unix_socket == NULL ? "the socket of systemd" : a->unix_socket);
    }
}

static void say_models(const struct served_models *set)
{
    for (int i = 0; i < set->n; i++) {
        struct buf list = {0};
        for (int k = 0; k < SERVED_ANSWERS; k++) {
            if (set->models[i].lanes[k] != NULL) {
                buf_printf(&list, "%s%s", list.n == 0 ? "" : ", ", answer_kind_of((enum answer)k)->name);
            }
        }
        log_info("%s answers: %s", set->models[i].name, buf_text(&list));
        buf_fini(&list);
    }
}

/* The models before go on where the new ones cannot be loaded. */
static void reload(struct service *s)
{
    char reloading[64];
    snprintf(reloading, sizeof reloading, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(clock_ns() / 1000));
    service_notify(reloading);
    struct status loaded = service_load(s);
    if (failed(loaded)) {
        log_warning("the models are not loaded again, and those before go on: %s", loaded.message);
    } else {
        log_info("the models are loaded again");
    }
    service_notify("READY=1");
}

static void take_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

/* Requests end within the time, or at the second signal. */
static struct status end(struct service *s, struct http_server *server, double timeout_s,
                         const sigset_t *signals)
{
    const double step_s = 0.1;
    int64_t began = clock_ns();
    struct timespec at_once = {0};
    service_notify("STOPPING=1");
    service_drain(s);
    http_server_close_door(server);
    log_info("ending: %lld requests get %g s", (long long)http_server_exchanges(server), timeout_s);
    while (!http_server_wait(server, step_s)) {
        if (clock_since_s(began) > timeout_s || sigtimedwait(signals, NULL, &at_once) > 0) {
            log_warning("%lld requests are broken off", (long long)http_server_exchanges(server));
            service_end_work(s);
            http_server_wait(server, 10 * step_s); /* time to inform their clients */
            break;
        }
    }
    return status_ok();
}

/* The next signal, while models that were replaced are freed once no request holds them. */
static int next_signal(struct service *s, const sigset_t *signals)
{
    const struct timespec look_again = {.tv_nsec = 100000000};
    int number = -1;
    while (number < 0) {
        number =
            service_free_replaced(s) ? sigwaitinfo(signals, NULL) : sigtimedwait(signals, NULL, &look_again);
    }
    return number;
}

static struct status serve(struct service *s, struct http_server *server, const struct serve_args *a)
{
    sigset_t signals;
    take_signals(&signals);
    TRY(service_load(s));
    say_models(s->models);
    say_where(a, server);
    service_notify("READY=1");
    for (int number; (number = next_signal(s, &signals)) != SIGTERM && number != SIGINT;) {
        if (number == SIGHUP) {
            reload(s);
        }
    }
    return end(s, server, a->shutdown_timeout_s, &signals);
}

static struct status run_service(const struct serve_args *a, const struct service_options *so,
                                 const struct http_options *ho)
{
    struct service s;
    struct http_server *server;
    TRY(service_init(&s, so));
    const struct http_handler handler = service_handler(&s);
    struct status status = http_server_create(&server, ho, &handler);
    if (!failed(status)) {
        s.server = server;
        status = serve(&s, server, a);
        service_end_work(&s);
        http_server_destroy(server);
    }
    service_fini(&s);
    return status;
}

static struct status print_plan(const struct service_options *o)
{
    struct service s;
    struct buf text = {0};
    struct status status = service_init(&s, o);
    if (!failed(status)) {
        served_models_describe(&text, s.coming);
        status = standard_streams_put(&text);
    }
    service_fini(&s);
    return status;
}

static struct status run_with(const struct serve_args *a, struct keys *keys)
{
    struct sources models = {0}, runs = {0};
    struct service_options so;
    TRY(read_sources(&models, "model", &a->models));
    TRY(read_sources(&runs, "watch", &a->watched));
    FAIL_IF(models.n == 0 && runs.n == 0, STATUS_USAGE,
            "there is nothing to serve: give --model DIR, or --watch DIR");
    TRY(service_options_of(&so, a, &models, &runs));
    TRY(read_keys(keys, a->api_key_file));
    if (a->common.dry_run) {
        return print_plan(&so);
    }
    struct access_log log;
    if (a->access_log != NULL) {
        TRY(access_log_open(&log, a->access_log));
        so.access_log = &log;
    }
    const struct http_options ho = http_options_of(a, keys);
    struct status s = run_service(a, &so, &ho);
    if (so.access_log != NULL) {
        access_log_close(&log);
    }
    return s;
}

/* Signals are taken by this thread when it waits for them, and by no other. */
static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct keys keys = {0};
    sigset_t signals, before;
    (void)n_positional, (void)positional;
    take_signals(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    struct status s = run_with(args, &keys);
    buf_fini(&keys.text);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "answer over HTTP, as OpenAI, text-embeddings-inference, huggingface_hub, TGI and Ollama do",
    .details = "Each flag with a value may also be given by the environment, as KILN_SERVE_PORT for --port. "
               "SIGHUP loads the "
               "models again behind the same port; SIGTERM ends once requests have been answered.",
    .options = options,
    .given = AT(given),
    .args_bytes = sizeof(struct serve_args),
    .environment = "KILN_SERVE_",
    .run = run,
};
