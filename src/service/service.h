/* service: answers HTTP requests with models: which endpoint a path names, which models are loaded, and what
 * is counted.  docs/howto/serve.md says what each limit means. */
#ifndef KILN_SERVICE_SERVICE_H
#define KILN_SERVICE_SERVICE_H

#include "http/http.h"
#include "service/service_metrics.h"
#include "service/served_models.h"
#include "service/watched_runs.h"

struct access_log;

struct service_options {
    const struct served_source *sources; /* [n_sources], borrowed */
    int n_sources;
    struct served_options models;
    struct watch_options watch;
    double request_timeout_s;      /* time from a request's head to its answer */
    struct access_log *access_log; /* NULL: none */
};

struct service {
    struct service_options options;
    struct service_metrics metrics;
    struct http_server *server; /* the caller's, for counts; NULL: none */
    struct watched_runs *watched;
    pthread_mutex_t lock;         /* guards the rest */
    struct served_models *models; /* NULL: they are being loaded */
    bool drains;                  /* work is not begun any more */

    struct served_models *coming; /* open, but not loaded; service_load's */
};

/* Reads all of the models but their weights (served_models_open): until service_load, work is answered by
 * 503.  Fails as watched_runs_create, too. */
struct status service_init(struct service *s, const struct service_options *o);

/* No exchange may be left. Safe on a zeroed struct and after a failed init. */
void service_fini(struct service *s);

/* Loads the models, again where they are loaded: requests that have begun end with those before.  After a
 * failure those before stay. */
struct status service_load(struct service *s);

/* Frees the models before, as far as no request holds them any more; false: some do. */
bool service_free_replaced(struct service *s);

/* From now on work is answered by 503, and runs are not watched any more. */
void service_drain(struct service *s);

/* Ends the work that is left, whose calls then fail by 503. */
void service_end_work(struct service *s);

/* The handler of requests for http_server_create. */
struct http_handler service_handler(struct service *s);

/* ---- for calls ---- */

/* The models that are served, held until service_release; NULL: none are. */
struct served_models *service_hold(struct service *s, bool *drains);
void service_release(struct service *s, struct served_models *set);

/* ---- systemd: sd_listen_fds(3), sd_notify(3); nothing where it did not start the server ---- */

/* The listening socket of LISTEN_FDS; -1: there is none. */
int service_notify_socket(void);

/* Sends "READY=1" and the like to NOTIFY_SOCKET. */
void service_notify(const char *state);

#endif
