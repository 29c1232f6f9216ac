/* ollama: the API of Ollama (github.com/ollama/ollama, api.md of its documents) for what kiln has: a text
 * that a decoder continues, vectors, and the models that are served. There are no templates: a prompt is
 * read as it is. */
#include "core/clock.h"
#include "service/embedding_call.h"
#include "service/endpoints.h"
#include "service/generation_call.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ollama {
    struct generation_call q; /* first */
    bool streams;
    int64_t first_ns; /* time of the first token */
};

enum { NAME_BYTES = 256, DATE_BYTES = 32 };

/* A time of the wall clock as RFC 3339 has it. */
static const char *date(char to[DATE_BYTES], double wall_s)
{
    time_t seconds = (time_t)wall_s;
    struct tm tm;
    char day[DATE_BYTES - 6];
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    snprintf(to, DATE_BYTES, "%s.%03dZ", day, (int)((wall_s - (double)seconds) * 1e3));
    return to;
}

/* The name of a model, which clients may write with the tag that Ollama gives to all.  False: it has failed
 * the call. */
static bool read_name(struct call *c, char to[NAME_BYTES])
{
    static const char tag[] = ":latest";
    const char *name = "";
    if (!call_string(c, c->body, "name", &name) || !call_string(c, c->body, "model", &name)) {
        return false;
    }
    snprintf(to, NAME_BYTES, "%s", name);
    size_t n = strlen(to), n_tag = sizeof tag - 1;
    if (n > n_tag && strcmp(to + n - n_tag, tag) == 0) {
        to[n - n_tag] = '\0';
    }
    return true;
}

/* ---- a text ---- */

/* Refuses the other parts of a prompt: they need a template, or are not text. */
static bool check_refused(struct call *c)
{
    static const char *const names[] = {"system", "template", "suffix",  "format",
                                        "images", "context",  "logprobs"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *v = call_field(c->body, names[i]);
        bool is_empty = v == NULL || json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0) ||
                        (json_is_array(v) && json_array_size(v) == 0);
        if (!is_empty) {
            call_fail_value(c, names[i], "%s is not supported: kiln continues the prompt alone, as it is",
                            names[i]);
            return false;
        }
    }
    return true;
}

/* Ollama's defaults; -1 and -2 new tokens: all that fit. */
static bool read_options(struct call *c)
{
    struct ollama *q = c->state;
    struct generate_options *o = &q->q.options;
    const json_t *p = NULL;
    int64_t n_predict = -1;
    o->choice = (struct token_choice_options){
        .temperature = 0.8, .top_k = 40, .top_p = 0.9, .repetition_penalty = 1.1};
    if (!call_object(c, c->body, "options", &p) ||
        !call_int(c, p, "num_predict", -2, INT32_MAX, &n_predict) ||
        !call_real(c, p, "temperature", 0, 100, &o->choice.temperature) ||
        !call_int(c, p, "top_k", 0, INT32_MAX, &o->choice.top_k) ||
        !call_real(c, p, "top_p", 0, 1, &o->choice.top_p) ||
        !call_real(c, p, "min_p", 0, 1, &o->choice.min_p) ||
        !call_real(c, p, "repeat_penalty", 0.01, 100, &o->choice.repetition_penalty) ||
        !call_real(c, p, "presence_penalty", -2, 2, &o->choice.presence_penalty) ||
        !call_real(c, p, "frequency_penalty", -2, 2, &o->choice.frequency_penalty) ||
        !generation_call_read_stops(c, p, "stop") || !generation_call_read_seed(c, p, "seed")) {
        return false;
    }
    q->q.has_limit = n_predict > 0;
    o->max_new_tokens = n_predict > 0 ? n_predict : INT32_MAX;
    return true;
}

/* {"model", "created_at", "response", "done"}; takes the text over. */
static json_t *line_json(const struct ollama *q, json_t *text, bool is_done)
{
    char now[DATE_BYTES];
    return json_pack("{s:s, s:s, s:o, s:b}", "model", q->q.m->name, "created_at", date(now, clock_wall_s()),
                     "response", text, "done", is_done);
}

/* Adds why it ended, and counts. */
static json_t *end_json(struct call *c, json_t *line, enum generation_end end)
{
    const struct ollama *q = c->state;
    const struct work *w = &c->work;
    json_t *counts = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "done_reason", generation_end_name(end), "total_duration",
        (json_int_t)(clock_ns() - http_began_ns(c->x)), "load_duration", (json_int_t)0, "prompt_eval_count",
        (json_int_t)c->n_tokens, "prompt_eval_duration", (json_int_t)(q->first_ns - w->begun_ns),
        "eval_count", (json_int_t)c->n_new_tokens, "eval_duration", (json_int_t)(w->ended_ns - q->first_ns));
    json_object_update(line, counts);
    json_decref(counts);
    return line;
}

/* Runs in the engine's thread. */
static void told(void *self, struct generation *g)
{
    struct call *c = self;
    struct ollama *q = c->state;
    struct generation_text *t = (struct generation_text *)g;
    q->first_ns = q->first_ns == 0 ? clock_ns() : q->first_ns;
    if (q->streams && g->n_settled > t->n_sent) {
        call_stream_json(c, CALL_LINES, line_json(q, generation_text_take(t), false));
    }
}

static void finish(struct call *c)
{
    struct ollama *q = c->state;
    struct generation_text *t = q->q.texts;
    if (!generation_call_is_whole(c)) {
        return;
    }
    json_t *line = end_json(c, line_json(q, generation_text_take(t), true), t->g.end);
    if (q->streams) {
        call_stream_json(c, CALL_LINES, line);
        call_stream_end(c, true);
    } else {
        call_reply(c, line);
    }
}

static void fail_length(struct call *c, int64_t most, int64_t n_prompt, int64_t n_new)
{
    call_fail_value(
        c, "prompt",
        "the prompt has %lld tokens and num_predict is %lld: together %lld, but the model reads at "
        "most %lld",
        (long long)n_prompt, (long long)n_new, (long long)(n_prompt + n_new), (long long)most);
}

/* Replies to a request without a prompt, which asks for the model to be loaded: it is. */
static void reply_loaded(struct call *c)
{
    const struct ollama *q = c->state;
    json_t *line = line_json(q, json_string(""), true);
    json_object_set_new(line, "done_reason", json_string("load"));
    call_reply(c, line);
}

static void generate_text(struct call *c)
{
    char name[NAME_BYTES];
    const char *prompt = "";
    if (!read_name(c, name)) {
        return;
    }
    struct ollama *q = generation_call_create(c, sizeof *q, name);
    if (q == NULL) {
        return;
    }
    q->streams = true;
    q->q.fail_length = fail_length;
    if (!call_bool(c, c->body, "stream", &q->streams) || !call_string(c, c->body, "prompt", &prompt) ||
        !check_refused(c) || !read_options(c)) {
        return;
    }
    if (prompt[0] == '\0') {
        reply_loaded(c);
    } else if (generation_call_read_prompts(c, c->body, "prompt")) {
        generation_call_submit(c, told, finish);
    }
}

/* ---- vectors ---- */

/* {"model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"} */
static void reply_vectors(struct embedding_call *e)
{
    struct buf body = {0};
    struct call *c = e->call;
    buf_puts(&body, "{\"embeddings\":[");
    for (int64_t i = 0; i < e->n; i++) {
        buf_puts(&body, i == 0 ? "" : ",");
        embedding_call_write(&body, e, i);
    }
    buf_puts(&body, "],\"model\":");
    embedding_call_write_model(&body, e);
    buf_printf(&body, ",\"total_duration\":%lld,\"load_duration\":0,\"prompt_eval_count\":%lld}",
               (long long)(clock_ns() - http_began_ns(c->x)), (long long)c->n_tokens);
    call_reply_text(c, 200, "application/json", &body);
}

/* {"embedding"}, as it was before there was /api/embed. */
static void reply_vector(struct embedding_call *e)
{
    struct buf body = {0};
    buf_puts(&body, "{\"embedding\":");
    embedding_call_write(&body, e, 0);
    buf_putc(&body, '}');
    call_reply_text(e->call, 200, "application/json", &body);
}

/* Forms of /api/embed and of the one before it. */
enum { OF_INPUT, OF_PROMPT };

static void embed(struct call *c)
{
    char name[NAME_BYTES];
    const char *key = c->form == OF_PROMPT ? "prompt" : "input";
    if (c->form == OF_PROMPT && !json_is_string(json_object_get(c->body, key))) {
        call_fail_value(c, key, "\"prompt\" must be a string");
        return;
    }
    struct embedding_call *e = embedding_call_make(c);
    if (e == NULL || !read_name(c, name) || !embedding_call_read_options(e, c->body)) {
        return;
    }
    e->key = key;
    e->takes_empty = true;
    e->answer = c->form == OF_PROMPT ? reply_vector : reply_vectors;
    embedding_call_start(e, name, json_object_get(c->body, key));
}

/* ---- models ---- */

static int64_t n_weights(const struct served_model *m)
{
    const struct param_table *table = &m->model.net.params;
    int64_t n = 0;
    for (int i = 0; i < table->n; i++) {
        const struct param *p = &table->params[i];
        n += p->dims[0] * (p->n_dims == 2 ? p->dims[1] : 1);
    }
    return n;
}

static json_t *details_json(const struct served_model *m)
{
    char size[32];
    const char *family = m->model.dir.family->model_types[0];
    snprintf(size, sizeof size, "%.1fM", (double)n_weights(m) / 1e6);
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "safetensors",
                     "family", family, "families", family, "parameter_size", size, "quantization_level", "");
}

/* Describes a model.  Ollama's own client cuts digests, so there is one; the size is that of the weights in
 * fp32. */
static json_t *describe(const struct served_models *set, const struct served_model *m, bool is_running)
{
    static const char no_digest[] = "0000000000000000000000000000000000000000000000000000000000000000";
    char loaded[DATE_BYTES];
    json_int_t size = (json_int_t)(n_weights(m) * (int64_t)sizeof(float));
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:o}", "name", m->name, "model", m->name, "modified_at",
                  date(loaded, set->loaded_s), "size", size, "digest", no_digest, "details", details_json(m));
    if (is_running) {
        json_object_set_new(o, "expires_at", json_string("9999-12-31T23:59:59Z"));
        json_object_set_new(o, "size_vram", json_integer(size));
        json_object_set_new(o, "context_length", json_integer((json_int_t)m->model.max_length));
    }
    return o;
}

/* The lists of models. */
enum { SERVED, RUNNING };

static void list_models(struct call *c)
{
    if (call_any_model(c, NULL) == NULL) {
        return;
    }
    json_t *list = json_array();
    for (int i = 0; i < c->models->n; i++) {
        json_array_append_new(list, describe(c->models, &c->models->models[i], c->form == RUNNING));
    }
    call_reply(c, json_pack("{s:o}", "models", list));
}

static void show_model(struct call *c)
{
    char name[NAME_BYTES], key[64], loaded[DATE_BYTES];
    if (!read_name(c, name)) {
        return;
    }
    const struct served_model *m = call_any_model(c, name);
    if (m == NULL) {
        return;
    }
    const char *family = m->model.dir.family->model_types[0];
    json_t *can = json_array(), *info = json_object();
    if (m->lanes[ANSWER_GENERATE] != NULL) {
        json_array_append_new(can, json_string("completion"));
    }
    if (m->lanes[ANSWER_EMBED] != NULL) {
        json_array_append_new(can, json_string("embedding"));
    }
    snprintf(key, sizeof key, "%s.context_length", family);
    json_object_set_new(info, "general.architecture", json_string(family));
    json_object_set_new(info, "general.parameter_count", json_integer((json_int_t)n_weights(m)));
    json_object_set_new(info, key, json_integer((json_int_t)m->model.max_length));
    call_reply(c, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "modelfile", "", "parameters", "",
                            "template", "{{ .Prompt }}", "details", details_json(m), "model_info", info,
                            "capabilities", can, "modified_at", date(loaded, c->models->loaded_s)));
}

static void reply_version(struct call *c)
{
    call_reply(c, json_pack("{s:s}", "version", KILN_VERSION));
}

const struct endpoint ollama_endpoints[] = {
    {"POST", "/api/generate", &dialect_ollama, generate_text, .is_open = false},
    {"POST", "/api/embed", &dialect_ollama, embed, .form = OF_INPUT},
    {"POST", "/api/embeddings", &dialect_ollama, embed, .form = OF_PROMPT},
    {"GET", "/api/tags", &dialect_ollama, list_models, .form = SERVED},
    {"GET", "/api/ps", &dialect_ollama, list_models, .form = RUNNING},
    {"POST", "/api/show", &dialect_ollama, show_model, .is_open = false},
    {"GET", "/api/version", &dialect_ollama, reply_version, .is_open = false},
    {0},
};
