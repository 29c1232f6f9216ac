/* call: one request of a client, from its JSON to the answer, in the form of its dialect.
 *
 * An endpoint's `answer` runs in a thread of the HTTP server.  It reads fields, chooses a model, makes jobs
 * (serve/request.h) and hands them over with call_submit; `finish` then runs in such a thread again and
 * replies.  Each call ends by exactly one of call_reply, call_reply_text, call_fail..., call_stream_end;
 * after it nothing of the call may be touched. Data that the call needs until then hangs on `state`, which is
 * freed with it. */
#ifndef KILN_SERVICE_CALL_H
#define KILN_SERVICE_CALL_H

#include "core/json.h"
#include "data/encoded_texts.h"
#include "http/http.h"
#include "service/service_metrics.h"
#include "service/served_models.h"

struct service;
struct call;

/* How the clients of a dialect see errors. */
struct dialect {
    const char *name; /* name in metrics and logs */
    int invalid;      /* the HTTP status of a value that is wrong: 400, TEI's 422 */
    int wrong_model;  /* status of a task that the model does not have: 400, TEI's 424 */

    /* The body of an error; `param` is the field that is wrong, or NULL.  NULL if memory runs out. */
    json_t *(*error)(int status, const char *message, const char *param);
};

extern const struct dialect dialect_openai, dialect_tei, dialect_hub, dialect_ollama;

/* The dialect of a path which is no endpoint, or which has not been read to its end. */
const struct dialect *dialect_of_path(const char *path);

struct endpoint {
    const char *method, *path; /* one with a slash at the end stands for all that begin with it */
    const struct dialect *dialect;
    void (*answer)(struct call *c);
    bool is_open; /* answered without a key */
    int form;     /* c->form, for a function that answers several paths */
};

/* The endpoint of a method and a path; NULL: there is none, and *allowed, 64 bytes, gets the methods of the
 * path, "" if it is none. */
const struct endpoint *endpoint_find(const char *method, const char *path, char allowed[64]);

/* A stream of events or lines. */
enum call_stream {
    CALL_EVENTS, /* text/event-stream: "data: JSON\n\n" each */
    CALL_LINES,  /* application/x-ndjson: JSON and "\n" each */
};

struct call {
    struct service *service;
    struct http_exchange *x;
    const struct dialect *dialect;
    int form;                     /* the endpoint's */
    const char *rest;             /* rest of the path, after the endpoint's slash */
    json_t *body;                 /* an object, of POST */
    struct served_models *models; /* held until the call has ended; NULL: they are being loaded */
    bool drains;                  /* the server is ending */
    struct served_model *named;   /* model of the path /models/NAME; NULL: another path */

    /* State of the endpoint, and the function that frees it; NULL: none. */
    void *state;
    void (*free_state)(void *state);

    /* Values for the counts, the log and the headers x-...; the endpoint fills them in. */
    struct served_model *model;
    int64_t n_texts, n_characters, n_tokens, n_cut; /* tokens that are read: each prompt once */
    int64_t n_new_tokens;                           /* call.c's, once the work has ended */
    int64_t encoded_ns;                             /* how long reading fields and tokenizing took */

    struct work work;
    void (*finish)(struct call *c);
    struct status status;          /* status of the work */
    bool is_streaming, has_timing; /* `has_timing`: the work has ended */
    enum call_stream stream;
};

/* ---- models ---- */

/* The model to answer with: that of the path, else that of `name`, else, where it is NULL, "" or "dummy",
 * the first that has this answer.  NULL: it has failed the call, since there is none, or the model has no
 * such head. */
struct served_model *call_model(struct call *c, const char *name, enum answer a);

/* Whether models are loaded, of which there may be none, and the server is not ending; false: the call has
 * failed. */
bool call_can_work(struct call *c);

/* The model to answer with, as call_model, whatever heads it has. */
struct served_model *call_any_model(struct call *c, const char *name);

/* ---- fields ---- */

/* The value of a field; NULL where it is absent or null. */
const json_t *call_field(const json_t *o, const char *key);

/* Values of an object of the body; an absent or null field leaves *value alone.  False: the call has failed,
 * with the field, what it is and what it may be. */
bool call_int(struct call *c, const json_t *o, const char *key, int64_t min, int64_t max, int64_t *value);
bool call_real(struct call *c, const json_t *o, const char *key, double min, double max, double *value);
bool call_bool(struct call *c, const json_t *o, const char *key, bool *value);
bool call_string(struct call *c, const json_t *o, const char *key, const char **value);

/* Reads a field that is an object; an absent one gives NULL.  False: the call has failed. */
bool call_object(struct call *c, const json_t *o, const char *key, const json_t **value);

/* Reads which of `names`, which end with NULL, a field is; an absent one leaves *value alone.  False: the
 * call has failed, and the message says what is wanted. */
bool call_choice(struct call *c, const json_t *o, const char *key, const char *const *names,
                 const char *wanted, int64_t *value);

/* Reads what a text of too many tokens loses, by "truncate" and "truncation_direction", which TEI and
 * huggingface_hub send; by default ends are cut.  False: the call has failed. */
bool call_cut(struct call *c, const json_t *o, enum text_cut *cut);

/* The bytes of a string of the body; NULL and 0 of other values. */
struct text_bytes call_text(const json_t *string);

/* Appends an array of ids of the model's vocabulary, the field `name` in messages.  Ids of another model are
 * noticed only where the vocabulary does not have them.  False: the call has failed. */
bool call_ids(struct call *c, struct id_list *to, const struct served_model *m, const json_t *ids,
              const char *name);

/* The texts of a field that is a string or an array of strings, borrowed from the body; free() the array.
 * False: the call has failed, also where the field is missing, or `most` texts are fewer. */
bool call_texts(struct call *c, const json_t *o, const char *key, int64_t most, struct text_bytes **texts,
                size_t *n);

/* ---- work ---- */

/* Hands over c->work, which has its lane, its requests or generations, n_tokens and `told`, whose self is the
 * call.  `finish` runs once all has ended, without a failure of the work, while the client waits; a text that
 * failed alone has its own status.  Else the call fails by itself, and also where the engine is full. */
void call_submit(struct call *c, void (*finish)(struct call *c));

/* call_submit with n requests, which the model's lane for `a` answers. */
void call_submit_requests(struct call *c, enum answer a, struct request **requests, int64_t n,
                          void (*finish)(struct call *c));

/* ---- answers ---- */

/* Replies 200 with JSON, which is taken over; NULL: memory ran out. */
void call_reply(struct call *c, json_t *json);
void call_reply_text(struct call *c, int status, const char *content_type, struct buf *text);

/* Begins the stream before its first item; does nothing where it has begun. */
void call_stream_begin(struct call *c, enum call_stream kind);

/* Sends one item; takes the JSON over.  Characters that split lines for some clients are escaped (U+0085,
 * U+2028, U+2029). */
void call_stream_json(struct call *c, enum call_stream kind, json_t *json);
void call_stream_done(struct call *c); /* "data: [DONE]\n\n" */
void call_stream_end(struct call *c, bool is_whole);

/* Fails with a status of HTTP.  In a stream the error is its last event. */
void call_fail(struct call *c, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fails with the dialect's status of a wrong value. */
#define call_fail_value(c, param, ...) call_fail(c, (c)->dialect->invalid, param, __VA_ARGS__)

/* Fails by a status of kiln: STATUS_USAGE and STATUS_DATA with the dialect's status of a wrong value,
 * STATUS_MEMORY and STATUS_UNAVAILABLE with 503, others with 500. */
void call_fail_status(struct call *c, const char *param, struct status s);

/* Fails by the status of work: 504 where its deadline has passed, or as call_fail_status. */
void call_fail_work(struct call *c, struct status s);

/* ---- for endpoints ---- */

enum { CALL_ID_BYTES = 48 };

/* An id for answers, "cmpl-" and 24 random letters. */
void call_make_id(char to[CALL_ID_BYTES], const char *prefix);

/* Hangs a zeroed state of so many bytes on the call, and the function that frees it.  NULL: the call has
 * failed. */
void *call_make_state(struct call *c, size_t bytes, void (*free_state)(void *state));

/* Adds TEI's headers of times in integer milliseconds and of counts, and kiln-truncated, the number of texts
 * that were cut, if there is one, before the reply to a call whose work has ended. */
void call_add_headers(struct call *c);

/* Frees a call at the end of its exchange. */
void call_free(struct call *c);

/* Times of the work so far, in seconds. */
struct call_times call_times(const struct call *c);

#endif
