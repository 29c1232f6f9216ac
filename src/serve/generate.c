#include "serve/generate.h"

#include "core/clock.h"
#include "core/rng.h"
#include "data/text_batch.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_PROMPT = 0x67656e };

/* ---- a prompt ---- */

/* A prompt without a token is the begin of a text. */
static struct status begin_nothing(struct generation *g, const struct tokenizer *t)
{
    if (t->special[SPECIAL_BEGIN] < 0) {
        return status_error(STATUS_DATA,
                            "prompt %lld is empty, and the model has no token that begins a text: a decoder "
                            "continues a text",
                            (long long)g->number);
    }
    return id_list_append(&g->ids, t->special[SPECIAL_BEGIN])
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a prompt");
}

struct status generation_init(struct generation *g, struct session *s, const char *text, size_t n,
                              const struct generate_options *o, int64_t number)
{
    *g = (struct generation){.number = number,
                             .seed = rng_key(rng_key(o->seed, KEY_PROMPT), (uint64_t)number)};
    TRY(tokenizer_encode_document(&s->scratch, &g->ids, text, n));
    TRY(g->ids.n > 0 ? status_ok() : begin_nothing(g, s->tokenizer));
    g->n_prompt = g->ids.n;
    int64_t wanted = (int64_t)g->ids.n + o->max_new_tokens;
    return wanted <= s->max_length ? status_ok()
                                   : status_error(STATUS_DATA,
                                                  "prompt %lld has %zu tokens, and --max_new_tokens is %lld: "
                                                  "together %lld, but the model reads "
                                                  "at most %lld",
                                                  (long long)number, g->ids.n, (long long)o->max_new_tokens,
                                                  (long long)wanted, (long long)s->max_length);
}

void generation_fini(struct generation *g)
{
    id_list_fini(&g->ids);
    buf_fini(&g->text);
    free(g->pages);
    *g = (struct generation){0};
}

/* ---- the text of new tokens ---- */

/* Bytes of text[0..n) that end with a whole character of UTF-8; all of those that are none. */
static size_t whole_characters(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        size_t wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (c >= 0xc0 || c < 0x80) {
            return wanted > back && c >= 0xc0 ? n - back : n;
        }
    }
    return n;
}

/* Whether a stop begins at text[0..n): whole, or as far as the text goes. */
static bool begins_stop(const char *text, size_t n, const struct generate_options *o, bool whole)
{
    for (int64_t k = 0; k < o->n_stops; k++) {
        size_t length = strlen(o->stops[k]), here = n < length ? n : length;
        if (memcmp(text, o->stops[k], here) == 0 && (!whole || here == length)) {
            return true;
        }
    }
    return false;
}

/* The first place from `from` at which a stop begins; n: at none. */
static size_t find_stop(const struct buf *text, size_t from, const struct generate_options *o, bool whole)
{
    size_t i = from;
    while (i < text->n && !begins_stop(buf_text(text) + i, text->n - i, o, whole)) {
        i++;
    }
    return i;
}

/* Appends what the last token says. */
static struct status extend_text(struct generation *g, const struct session *s)
{
    const struct tokenizer *t = s->tokenizer;
    size_t first = g->ids.n - 1;
    if (!t->kind->decodes_bytes) { /* a word may depend on those before it */
        buf_clear(&g->text);
        first = g->n_prompt;
    }
    return tokenizer_decode(t, &g->text, g->ids.ids + first, g->ids.n - first);
}

/* Ends the text before a stop, and says how much of it is final. */
static void settle(struct generation *g, const struct generate_options *o)
{
    size_t stop = find_stop(&g->text, g->n_settled, o, true);
    if (stop < g->text.n) {
        g->end = GENERATION_AT_STOP;
        g->text.n = stop;
    }
    g->n_settled = g->end != GENERATION_GOES_ON
                       ? g->text.n
                       : whole_characters(buf_text(&g->text), find_stop(&g->text, g->n_settled, o, false));
}

/* ---- turns ---- */

/* Tokens of a text that a turn computes: [g->n_cached, g->n_cached + n). */
struct part {
    struct generation *g;
    size_t n;
};

struct generator {
    struct session *s;
    const struct generate_options *options;
    const struct generation_source *source;
    struct token_choice choice;
    struct generation *running, *waiting; /* a list; one that needs more pages than are free, or NULL */
    int64_t n_running, most_running;
    struct part *parts; /* [most_running] of the turn */
    int64_t n_parts;
    bool exhausted; /* the source has no more */
    struct status source_status;
    struct generate_times times;
};

static int64_t length(const void *self, int64_t i)
{
    return (int64_t)((const struct generator *)self)->parts[i].n;
}

static bool reaches_end(const struct part *p)
{
    return p->g->n_cached + p->n == p->g->ids.n;
}

/* Asks for the token behind the last. */
static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct part *p = &((const struct generator *)self)->parts[i];
    const struct generation *g = p->g;
    memcpy(text_batch_add_cached(out, (int64_t)p->n, (int64_t)g->n_cached, g->pages, key),
           g->ids.ids + g->n_cached, p->n * sizeof *g->ids.ids);
    if (reaches_end(p)) {
        text_batch_masked_positions(out)[0] = (int32_t)p->n - 1;
        text_batch_masked_labels(out)[0] = -1;
        text_batch_take_masked(out, 1);
    }
}

static struct status choose(struct generator *r, struct generation *g, float *logits)
{
    const struct generate_options *o = r->options;
    size_t n_new = g->ids.n - g->n_prompt;
    int32_t id =
        token_choose(&r->choice, logits, g->ids.ids, g->ids.n, &o->choice, rng_uniform_at(g->seed, n_new));
    if (!id_list_append(&g->ids, id)) {
        return status_error(STATUS_MEMORY, "out of memory for a token");
    }
    bool is_end = tokenizer_ends(r->s->tokenizer, id) && !o->ignore_eos;
    g->end = is_end                                    ? GENERATION_AT_END
             : (int64_t)n_new + 1 == o->max_new_tokens ? GENERATION_AT_LENGTH
                                                       : GENERATION_GOES_ON;
    if (!is_end) {
        TRY(extend_text(g, r->s));
    }
    settle(g, o);
    return r->source->told(r->source->self, g);
}

static struct status take(void *self, int64_t i, const tensor outputs[REQUEST_N_OUTPUTS])
{
    struct generator *r = self;
    const struct part *p = &r->parts[i];
    bool asked = reaches_end(p);
    p->g->n_cached += p->n;
    return asked ? choose(r, p->g, outputs[REQUEST_WORD_LOGITS].data) : status_ok();
}

/* The next token of each text goes first; prompts share what is left of the batch, in their order. */
static void plan_turn(struct generator *r)
{
    size_t left = (size_t)(r->s->packer.limits.n_tokens - r->n_running);
    r->n_parts = 0;
    for (struct generation *g = r->running; g != NULL; g = g->next) {
        size_t wanted = g->ids.n - g->n_cached, n = wanted - 1 < left ? wanted : left + 1;
        r->parts[r->n_parts++] = (struct part){g, n};
        left -= n - 1;
    }
}

static void count_turn(struct generator *r, int64_t ns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_parts; i++) {
        n += (int64_t)r->parts[i].n;
    }
    if (n > r->n_parts) {
        r->times.prompt_tokens += n;
        r->times.prompt_ns += ns;
    } else {
        r->times.new_tokens += n;
        r->times.new_ns += ns;
    }
}

static struct status turn(struct generator *r)
{
    int64_t began = clock_ns();
    plan_turn(r);
    struct request request = {
        .source = {.name = "prompts", .self = r, .n = r->n_parts, .length = length, .add = add},
        .n_asked = 1,
        .outputs = 1U << REQUEST_WORD_LOGITS,
        .take = take,
        .self = r};
    struct status s = packer_answer(&r->s->packer, &request);
    count_turn(r, clock_ns() - began);
    return s;
}

/* ---- texts that come and go ---- */

static void release(struct generator *r, struct generation *g)
{
    page_pool_give(&r->s->pages, g->pages, g->n_pages);
    free(g->pages);
    g->pages = NULL;
    g->n_pages = 0;
    r->n_running--;
}

/* Frees the pages of texts that have ended, or of all. */
static void drop(struct generator *r, bool all)
{
    for (struct generation **at = &r->running; *at != NULL;) {
        struct generation *g = *at;
        if (all || g->end != GENERATION_GOES_ON) {
            *at = g->next;
            release(r, g);
        } else {
            at = &g->next;
        }
    }
}

/* Takes the pages that it may need; *fits is false if they are not free. */
static struct status start(struct generator *r, struct generation *g, bool *fits)
{
    struct generation **end = &r->running;
    int64_t tokens = (int64_t)g->n_prompt + r->options->max_new_tokens;
    g->n_pages = (tokens + BATCH_PAGE - 1) / BATCH_PAGE;
    g->n_cached = 0;
    g->next = NULL;
    g->pages = malloc((size_t)g->n_pages * sizeof *g->pages);
    if (g->pages == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a list of %lld pages", (long long)g->n_pages);
    }
    *fits = page_pool_take(&r->s->pages, g->pages, g->n_pages);
    if (!*fits) {
        free(g->pages);
        g->pages = NULL;
        return status_ok();
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = g;
    r->n_running++;
    return status_ok();
}

/* The next prompt, waiting for one only if nothing else is to be done. */
static void fetch(struct generator *r)
{
    bool may_wait = r->n_running == 0;
    if (r->waiting == NULL && !r->exhausted) {
        r->source_status = r->source->next(r->source->self, may_wait, &r->waiting);
        r->exhausted = failed(r->source_status) || (may_wait && r->waiting == NULL);
    }
}

static struct status admit(struct generator *r)
{
    bool fits = true;
    while (fits && r->n_running < r->most_running) {
        fetch(r);
        if (r->waiting == NULL) {
            return status_ok();
        }
        TRY(start(r, r->waiting, &fits));
        r->waiting = fits ? NULL : r->waiting;
    }
    return status_ok();
}

static struct status run(struct generator *r)
{
    for (;;) {
        TRY(admit(r));
        if (r->n_running == 0) {
            return r->source_status;
        }
        TRY(turn(r));
        drop(r, false);
    }
}

struct status generate(struct session *s, const struct generation_source *source,
                       const struct generate_options *o, struct generate_times *times)
{
    struct generator r = {
        .s = s, .options = o, .source = source, .most_running = s->packer.limits.n_sequences - 1};
    struct status status = token_choice_init(&r.choice, s->tokenizer->n);
    r.parts = calloc((size_t)r.most_running, sizeof *r.parts);
    if (!failed(status) && r.parts == NULL) {
        status = status_error(STATUS_MEMORY, "out of memory for %lld texts", (long long)r.most_running);
    }
    status = failed(status) ? status : run(&r);
    drop(&r, true);
    if (times != NULL) {
        *times = r.times;
    }
    token_choice_fini(&r.choice);
    free(r.parts);
    return status;
}
