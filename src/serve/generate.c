#include "serve/generate.h"

#include "core/clock.h"
#include "core/integers.h"
#include "core/rng.h"
#include "data/text_batch.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_PROMPT = 0x67656e };

/* Tokens at the beginning of a text that stay where its window is shifted. */
enum { KEPT_TOKENS = 4 };

_Static_assert((int)GENERATE_ALTERNATIVES + 1 == CHOICE_ROOM_TOLD, "a row has room for all that are told");

/* ---- a prompt ---- */

/* A prompt without a token is the begin of a text. */
static struct status begin_nothing(struct generation *g, const struct tokenizer *t)
{
    FAIL_IF(t->special[SPECIAL_BEGIN] < 0, STATUS_DATA,
            "prompt %lld is empty, and the model has no token that begins a text: a decoder continues a text",
            (long long)g->number);
    return id_list_append(&g->ids, t->special[SPECIAL_BEGIN])
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a prompt");
}

static struct status begin(struct generation *g, const struct session *s, const struct generate_options *o,
                           int64_t number)
{
    g->number = number;
    g->seed = rng_key(rng_key(o->seed, KEY_PROMPT), (uint64_t)number);
    g->options = o;
    TRY(g->ids.n > 0 ? status_ok() : begin_nothing(g, s->tokenizer));
    g->n_prompt = g->ids.n;
    g->first_rated = o->rates_prompt ? 1 : g->n_prompt;
    int64_t wanted = (int64_t)g->ids.n + o->max_new_tokens;
    bool shifts = o->context_shift && s->max_length > 2 * KEPT_TOKENS;
    bool fits =
        wanted <= s->max_length || (shifts && !(o->rates_prompt && (int64_t)g->ids.n > s->max_length));
    return fits ? status_ok()
                : status_error(STATUS_DATA,
                               "prompt %lld has %zu tokens, and --max_new_tokens is %lld: "
                               "together %lld, but the model reads "
                               "at most %lld (--context_shift goes on without the older half)",
                               (long long)number, g->ids.n, (long long)o->max_new_tokens, (long long)wanted,
                               (long long)s->max_length);
}

struct status generation_init(struct generation *g, const struct session *s,
                              struct tokenizer_scratch *scratch, const char *text, size_t n,
                              const struct generate_options *o, int64_t number)
{
    *g = (struct generation){0};
    TRY(tokenizer_encode_document(scratch, &g->ids, text, n));
    return begin(g, s, o, number);
}

struct status generation_init_ids(struct generation *g, const struct session *s, const int32_t *ids, size_t n,
                                  const struct generate_options *o, int64_t number)
{
    *g = (struct generation){0};
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(!id_list_append(&g->ids, ids[i]), STATUS_MEMORY, "out of memory for a prompt of %zu tokens",
                n);
    }
    return begin(g, s, o, number);
}

void generation_fini(struct generation *g)
{
    id_list_fini(&g->ids);
    buf_fini(&g->text);
    free(g->pages);
    free(g->rated);
    *g = (struct generation){0};
}

/* ---- the text of new tokens ---- */

/* Bytes of text[0..n) that end with a complete character of UTF-8; all of them where the end is no UTF-8. */
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

/* Whether a stop begins at text[0..n): completely or, unless `whole`, as far as the text extends. */
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
static void settle(struct generation *g)
{
    const struct generate_options *o = g->options;
    size_t stop = find_stop(&g->text, g->n_settled, o, true);
    if (stop < g->text.n) {
        g->end = GENERATION_AT_STOP;
        g->text.n = stop;
    }
    g->n_settled = g->end != GENERATION_GOES_ON
                       ? g->text.n
                       : whole_characters(buf_text(&g->text), find_stop(&g->text, g->n_settled, o, false));
}

/* ---- texts that come and go ---- */

static int64_t pages_for(int64_t n_tokens)
{
    return (n_tokens + BATCH_PAGE - 1) / BATCH_PAGE;
}

/* The pages of a text are given back; what it has said stays. */
static void forget_cache(struct generator *r, struct generation *g)
{
    page_pool_give(&r->s->pages, g->pages, g->n_pages);
    g->n_pages = 0;
    g->n_cached = 0;
}

static void leave(struct generator *r, struct generation *g)
{
    forget_cache(r, g);
    free(g->pages);
    g->pages = NULL;
}

/* Texts that have ended leave. */
static void drop_ended(struct generator *r)
{
    for (struct generation **at = &r->running; *at != NULL;) {
        struct generation *g = *at;
        if (g->end != GENERATION_GOES_ON) {
            *at = g->next;
            leave(r, g);
            r->n_running--;
        } else {
            at = &g->next;
        }
    }
}

static void drop_all(struct generator *r)
{
    for (struct generation *g; (g = r->running) != NULL;) {
        r->running = g->next;
        leave(r, g);
    }
    for (struct generation *g; (g = r->waiting) != NULL;) {
        r->waiting = g->next;
        leave(r, g);
    }
}

/* The youngest text waits for free pages, before all that came later. */
static struct generation *put_back_youngest(struct generator *r)
{
    struct generation **last = &r->running;
    CHECK(r->running != NULL, "no text has pages");
    while ((*last)->next != NULL) {
        last = &(*last)->next;
    }
    struct generation *g = *last;
    *last = NULL;
    r->n_running--;
    r->times.n_put_back++;
    forget_cache(r, g);
    g->next = r->waiting;
    r->waiting = g;
    return g;
}

/* Takes pages for so many tokens from those of younger texts, if need be; false: it was put back itself.  The
 * oldest never is, since the longest text fits the cache. */
static bool take_pages(struct generator *r, struct generation *g, int64_t n_tokens)
{
    int64_t wanted = pages_for(n_tokens) - g->n_pages;
    while (wanted > 0 && !page_pool_take(&r->s->pages, g->pages + g->n_pages, wanted)) {
        if (put_back_youngest(r) == g) {
            return false;
        }
    }
    g->n_pages += wanted > 0 ? wanted : 0;
    return true;
}

/* Tokens that the model sees. */
static int64_t n_seen(const struct generation *g)
{
    return (int64_t)(g->ids.n - g->n_shifted);
}

/* Drops old tokens where the window is full. */
static void shift(struct generator *r, struct generation *g)
{
    while (n_seen(g) > r->s->max_length) {
        g->n_shifted += (size_t)(n_seen(g) - KEPT_TOKENS + 1) / 2;
        forget_cache(r, g);
    }
}

/* Complete pages with which both begin; g computes a token of its own at least. */
static int64_t common_pages(const struct generation *g, const struct generation *other)
{
    int64_t n = int_smaller(n_seen(g) - 1, n_seen(other)), i = 0;
    while (i < n && g->ids.ids[i] == other->ids.ids[i]) {
        i++;
    }
    return g->n_shifted > 0 || other->n_shifted > 0 ? 0 : i / BATCH_PAGE;
}

/* Shares the pages of the beginning with an older text that begins the same way.  False: they are being
 * computed, and the text waits for them.  Pages do not hold how probable their tokens were. */
static bool share_beginning(struct generator *r, struct generation *g)
{
    const struct generation *with = NULL;
    int64_t most = 0;
    if (g->options->rates_prompt) {
        return true;
    }
    for (const struct generation *o = r->running; o != g; o = o->next) {
        int64_t n = common_pages(g, o);
        with = n > most ? o : with;
        most = n > most ? n : most;
    }
    if (with == NULL || (int64_t)with->n_cached < most * BATCH_PAGE) {
        return with == NULL;
    }
    page_pool_share(&r->s->pages, with->pages, most);
    memcpy(g->pages, with->pages, (size_t)most * sizeof *g->pages);
    g->n_pages = most;
    g->n_cached = (size_t)(most * BATCH_PAGE);
    return true;
}

static struct status start(struct generator *r, struct generation *g)
{
    struct generation **end = &r->running;
    shift(r, g);
    if (g->pages == NULL) {
        int64_t longest = (int64_t)g->n_prompt + g->options->max_new_tokens;
        int64_t most = pages_for(int_smaller(longest, r->s->max_length));
        g->pages = malloc((size_t)most * sizeof *g->pages);
        FAIL_IF(g->pages == NULL, STATUS_MEMORY, "out of memory for a list of %lld pages", (long long)most);
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = g;
    g->next = NULL;
    g->generator = r;
    r->n_running++;
    return status_ok();
}

/* The next prompt, waiting for one only if nothing else is to be done. */
static void fetch(struct generator *r, bool may_wait)
{
    may_wait = may_wait && r->n_running == 0;
    if (r->waiting == NULL && !r->exhausted) {
        r->source_status = r->source.next(r->source.self, may_wait, &r->waiting);
        r->exhausted = failed(r->source_status) || (may_wait && r->waiting == NULL);
        if (r->waiting != NULL) {
            r->waiting->next = NULL;
        }
    }
}

/* Texts begin where there are pages for all that they have so far. */
static struct status admit(struct generator *r, bool may_wait)
{
    while (r->n_running < r->most_running) {
        fetch(r, may_wait);
        struct generation *g = r->waiting;
        if (g == NULL || (r->n_running > 0 && pages_for(n_seen(g)) > r->s->pages.n_free)) {
            return status_ok();
        }
        r->waiting = g->next;
        TRY(start(r, g));
    }
    return status_ok();
}

/* ---- steps ---- */

/* Reports a new token to the source, unless that has failed before. */
static void tell(struct generator *r, struct generation *g)
{
    if (!failed(r->told_status)) {
        r->told_status = r->source.told(r->source.self, g);
    }
}

static void end(struct generator *r, struct generation *g, enum generation_end how)
{
    g->end = how;
    g->n_settled = g->text.n;
    tell(r, g);
}

static int64_t length(const void *self, int64_t i)
{
    (void)i;
    return (int64_t)((const struct generation *)self)->n_part;
}

static bool reaches_end(const struct generation *g)
{
    return (int64_t)(g->n_cached + g->n_part) == n_seen(g);
}

/* Tokens of the prompt that are not rated, of which the model sees all: those that it computes again because
 * the text lost its pages are rated once. */
static int64_t n_unrated(const struct generation *g)
{
    int64_t next = (int64_t)(g->first_rated + g->n_rated);
    return g->options->rates_prompt ? int_larger((int64_t)g->n_prompt - next, 0) : 0;
}

/* Tokens of the part before the first one whose logits rate a token of the prompt. */
static int64_t n_before_rated(const struct generation *g)
{
    return (int64_t)g->n_prompt - 1 - n_unrated(g) - (int64_t)g->n_cached;
}

/* Tokens of the part whose logits rate one of the prompt. */
static int64_t n_rating(const struct generation *g)
{
    return int_larger(int_smaller((int64_t)g->n_part - n_before_rated(g), n_unrated(g)), 0);
}

/* Whether the part's last logits choose a token. */
static bool chooses(const struct generation *g)
{
    return reaches_end(g) && g->options->max_new_tokens > 0;
}

/* Asks for the tokens after those that rate or choose one. */
static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct generation *g = self;
    int32_t *to = text_batch_add_cached(out, (int64_t)g->n_part, (int64_t)g->n_cached, g->pages, key);
    (void)i;
    for (size_t k = 0; k < g->n_part; k++) {
        size_t at = g->n_cached + k;
        to[k] = g->ids.ids[at < KEPT_TOKENS ? at : at + g->n_shifted];
    }
    int64_t m = 0;
    for (; m < n_rating(g); m++) {
        text_batch_masked_positions(out)[m] = (int32_t)(n_before_rated(g) + m);
        text_batch_masked_labels(out)[m] = -1;
    }
    if (chooses(g)) {
        text_batch_masked_positions(out)[m] = (int32_t)g->n_part - 1;
        text_batch_masked_labels(out)[m++] = -1;
    }
    text_batch_take_masked(out, m);
}

static int n_told(const struct generate_options *o)
{
    return o->rates || o->rates_prompt ? 1 + o->n_alternatives : 0;
}

/* Rows that rate tokens of the prompt come first. */
static struct token_question question(const void *self, int64_t i, int64_t k)
{
    const struct generation *g = self;
    bool rates = k < n_rating(g);
    (void)i;
    return (struct token_question){.label = rates ? g->ids.ids[g->first_rated + g->n_rated + (size_t)k] : -1,
                                   .n_rated = n_told(g->options),
                                   .options = &g->options->choice,
                                   .past = {g->ids.ids, g->n_prompt, g->ids.n},
                                   .random = rng_uniform_at(g->seed, g->ids.n - g->n_prompt)};
}

/* Notes how probable the tokens of row `row` are. */
static struct status rate(struct generation *g, const tensor outputs[MODEL_N_OUTPUTS], int64_t row)
{
    size_t n = (size_t)n_told(g->options);
    const int32_t *ids = (const int32_t *)outputs[MODEL_CHOICES].data + row * CHOICE_ROOM_TOLD;
    const float *log_ps = (const float *)outputs[MODEL_CHOICE_LOG_PS].data + row * CHOICE_ROOM_TOLD;
    if (g->n_rated == g->rated_capacity) {
        size_t capacity = g->n_rated == 0 ? g->n_prompt + 16 : 2 * g->n_rated;
        void *more = realloc(g->rated, capacity * n * sizeof *g->rated);
        FAIL_IF(more == NULL, STATUS_MEMORY, "out of memory for the probabilities of %zu tokens", capacity);
        g->rated = more;
        g->rated_capacity = capacity;
    }
    for (size_t k = 0; k < n; k++) {
        g->rated[g->n_rated * n + k] = (struct token_probability){ids[k], log_ps[k]};
    }
    g->n_rated++;
    return status_ok();
}

/* Appends the token that was chosen. */
static struct status append(struct generator *r, struct generation *g, int32_t id)
{
    const struct generate_options *o = g->options;
    size_t n_new = g->ids.n - g->n_prompt;
    FAIL_IF(!id_list_append(&g->ids, id), STATUS_MEMORY, "out of memory for a token");
    bool is_end = tokenizer_ends(r->s->tokenizer, id) && !o->ignore_eos;
    g->end = is_end                                    ? GENERATION_AT_END
             : (int64_t)n_new + 1 == o->max_new_tokens ? GENERATION_AT_LENGTH
                                                       : GENERATION_GOES_ON;
    if (!is_end) {
        TRY(extend_text(g, r->s));
    }
    settle(g);
    tell(r, g);
    return status_ok();
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct generation *g = self;
    bool at_end = reaches_end(g), chosen = chooses(g);
    int64_t n_rows = n_rating(g) + chosen;
    (void)i;
    for (int64_t row = 0; row < n_rows && n_told(g->options) > 0; row++) {
        TRY(rate(g, outputs, row));
    }
    g->n_cached += g->n_part;
    if (chosen) {
        const int32_t *ids = outputs[MODEL_CHOICES].data;
        return append(g->generator, g, ids[(n_rows - 1) * CHOICE_ROOM_TOLD]);
    }
    if (at_end) {
        end(g->generator, g, GENERATION_AT_LENGTH);
    }
    return status_ok();
}

/* Tokens and texts that a step computes. */
struct turn_size {
    int64_t n_tokens, n_texts;
};

/* Tokens of the next part: all that fit next to one token of each text, both into the tokens of the batch and
 * into those that logits are asked of. */
static size_t part_of(const struct generation *g, size_t left, int64_t left_asked)
{
    size_t wanted = (size_t)n_seen(g) - g->n_cached;
    size_t n = wanted - 1 < left ? wanted : left + 1;
    int64_t most = n_before_rated(g) + left_asked + 1;
    return n_unrated(g) > left_asked && (int64_t)n > most ? (size_t)most : n;
}

/* The next token of each text goes first; prompts share what is left of the batch, in their order. */
static struct turn_size plan_turn(struct generator *r)
{
    size_t left = (size_t)(r->s->packer.limits.n_tokens - r->n_running);
    int64_t left_asked = r->s->packer.limits.n_labels - r->n_running;
    struct turn_size size = {0};
    for (struct generation *g = r->running, *next; g != NULL; g = next) {
        shift(r, g);
        g->n_part = 0;
        next = g->next;
        if (g->n_cached == 0 && !share_beginning(r, g)) {
            continue;
        }
        g->n_part = part_of(g, left, left_asked);
        bool has_room = take_pages(r, g, (int64_t)(g->n_cached + g->n_part));
        next = g->next; /* younger ones may have been put back */
        if (!has_room) {
            break;
        }
        left -= g->n_part - 1;
        left_asked -= int_larger(n_rating(g) + chooses(g) - 1, 0);
        size.n_tokens += (int64_t)g->n_part;
        size.n_texts++;
    }
    return size;
}

static void count_turn(struct generator *r, struct turn_size size, int64_t ns)
{
    if (size.n_tokens > size.n_texts) {
        r->times.prompt_tokens += size.n_tokens;
        r->times.prompt_ns += ns;
    } else {
        r->times.new_tokens += size.n_tokens;
        r->times.new_ns += ns;
    }
}

static void ask(struct generator *r, struct generation *g)
{
    g->request =
        (struct request){.source = {.name = "prompts", .self = g, .n = 1, .length = length, .add = add},
                         .n_asked = n_rating(g) + chooses(g),
                         .outputs = 1U << MODEL_CHOICES | 1U << MODEL_CHOICE_LOG_PS,
                         .question = question,
                         .take = take,
                         .self = g};
    packer_add(&r->s->packer, &g->request);
}

/* Each text is a request of its own, so that what is wrong with one is its own. */
static struct status turn(struct generator *r)
{
    int64_t began = clock_ns();
    struct turn_size size = plan_turn(r);
    for (struct generation *g = r->running; g != NULL; g = g->next) {
        if (g->n_part > 0) {
            ask(r, g);
        }
    }
    for (bool more = true; more;) {
        TRY(packer_step(&r->s->packer, &more));
    }
    for (struct generation *g = r->running; g != NULL; g = g->next) {
        if (g->n_part > 0 && failed(g->request.status)) {
            g->status = g->request.status;
            end(r, g, GENERATION_FAILED);
        }
    }
    count_turn(r, size, clock_ns() - began);
    return r->told_status;
}

static struct status end_cancelled(struct generator *r)
{
    for (struct generation *g = r->running; g != NULL; g = g->next) {
        if (g->cancelled && g->end == GENERATION_GOES_ON) {
            end(r, g, GENERATION_CANCELLED);
        }
    }
    drop_ended(r);
    for (struct generation **at = &r->waiting; *at != NULL;) {
        struct generation *g = *at;
        if (!g->cancelled) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        leave(r, g);
        end(r, g, GENERATION_CANCELLED);
    }
    return r->told_status;
}

void generator_init(struct generator *r, struct session *s, const struct generation_source *source)
{
    *r = (struct generator){.s = s, .source = *source, .most_running = s->packer.limits.n_sequences - 1};
}

void generator_fini(struct generator *r)
{
    drop_all(r);
    *r = (struct generator){0};
}

struct status generator_step(struct generator *r, bool may_wait, bool *more)
{
    TRY(admit(r, may_wait));
    TRY(end_cancelled(r));
    if (r->n_running > 0) {
        TRY(turn(r));
        drop_ended(r);
    }
    *more = r->n_running > 0 || r->waiting != NULL || !r->exhausted;
    return status_ok();
}

struct status generate(struct session *s, const struct generation_source *source,
                       struct generate_times *times)
{
    struct generator r;
    struct status status = status_ok();
    generator_init(&r, s, source);
    for (bool more = true; more && !failed(status);) {
        status = generator_step(&r, true, &more);
    }
    status = failed(status) ? status : r.source_status;
    if (times != NULL) {
        *times = r.times;
    }
    generator_fini(&r);
    return status; /* NOLINT(clang-analyzer-core.StackAddressEscape): no text has a generator once it ended */
}

/* The only prompt, which is given once. */
static struct status next_of_one(void *self, bool may_wait, struct generation **next)
{
    struct generation **given = self;
    (void)may_wait;
    *next = *given;
    *given = NULL;
    return status_ok();
}

static struct status told_of_one(void *self, struct generation *g)
{
    (void)self;
    return g->status;
}

struct status generate_one(struct buf *out, struct session *s, const char *prompt, size_t n,
                           const struct generate_options *o)
{
    struct generation g, *given = &g;
    const struct generation_source source = {.next = next_of_one, .told = told_of_one, .self = &given};
    struct status status = generation_init(&g, s, &s->scratch, prompt, n, o, 1);
    status = failed(status) ? status : packer_explain(&s->packer, generate(s, &source, NULL));
    if (!failed(status)) {
        buf_append(out, buf_text(&g.text), g.text.n);
        status = buf_status(out);
    }
    generation_fini(&g);
    return status;
}
