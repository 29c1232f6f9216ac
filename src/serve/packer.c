#include "serve/packer.h"

#include "core/integers.h"
#include "data/text_batch.h"
#include "dev/queue.h"
#include "pass/culprit.h"
#include "watch/profile.h"

#include <stdlib.h>
#include <string.h>

/* An output of the last batch where the device has it. */
static tensor output_of(const struct network *net, int k)
{
    return k == MODEL_CHOICES         ? net->choices.tokens
           : k == MODEL_CHOICE_LOG_PS ? net->choices.log_ps
                                      : stage_head_output(&net->stage, k);
}

unsigned packer_outputs(const struct network *net)
{
    unsigned all = 0;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        all |= tensor_is_null(output_of(net, k)) ? 0 : 1U << k;
    }
    return all;
}

struct batch_limits packer_limits(int64_t n_tokens, int64_t longest)
{
    enum { SHORTEST = 2 }; /* tokens: what begins and what ends a sequence */
    struct batch_limits limits = text_batch_limits(1, longest, 0);
    limits.n_tokens = int_larger(limits.n_tokens, int_round_up(n_tokens, BATCH_TOKEN_BUCKET));
    limits.n_sequences = limits.n_tokens / SHORTEST + 1;
    return limits;
}

/* ---- memory ---- */

static struct status allocate_rows(struct packer *p, unsigned wanted)
{
    stage_carve_largest(&p->net->stage);
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        tensor largest = (wanted >> k & 1) != 0 ? output_of(p->net, k) : NULL_TENSOR;
        if (tensor_is_null(largest)) {
            continue;
        }
        p->rows[k] = largest;
        p->rows[k].data = malloc(tensor_bytes(largest) + 1);
        FAIL_IF(p->rows[k].data == NULL, STATUS_MEMORY, "out of memory for %s of a batch",
                model_heads[k].what);
    }
    return status_ok();
}

struct status packer_init(struct packer *p, struct network *net, struct batch_limits limits, int32_t pad_id,
                          unsigned wanted)
{
    *p = (struct packer){
        .net = net, .limits = limits, .pad_id = pad_id, .n_tokens = net->config.model->n_words};
    for (int i = 0; i < 2; i++) {
        struct packed_batch *turn = &p->turns[i];
        TRY(batch_init(&turn->batch, &net->config.model->layout, limits));
        turn->sequences = calloc((size_t)limits.n_sequences, sizeof *turn->sequences);
        FAIL_IF(turn->sequences == NULL, STATUS_MEMORY, "out of memory for a batch of %lld sequences",
                (long long)limits.n_sequences);
    }
    TRY((wanted >> MODEL_CHOICES & 1) != 0 ? token_choice_init(&p->choice, p->n_tokens) : status_ok());
    return allocate_rows(p, wanted);
}

void packer_fini(struct packer *p)
{
    for (int i = 0; i < 2; i++) {
        batch_fini(&p->turns[i].batch);
        free(p->turns[i].sequences);
    }
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        free(p->rows[k].data);
    }
    token_choice_fini(&p->choice);
    *p = (struct packer){0};
}

/* ---- requests ---- */

void packer_add(struct packer *p, struct request *r)
{
    struct request **end = &p->first;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = r;
    r->next = NULL;
    r->n_packed = r->n_back = 0;
    r->ended = false;
    r->status = status_ok();
}

/* Whether no more of its sequences are to be packed. */
static bool is_packed(const struct request *r)
{
    return r->cancelled || failed(r->status) || r->n_packed == r->source.n;
}

static void end_if_back(struct request *r)
{
    if (is_packed(r) && r->n_back == r->n_packed) {
        r->ended = true;
        if (r->cancelled && !failed(r->status)) {
            r->status = status_error(STATUS_PREEMPTED, "the request was cancelled");
        }
    }
}

/* Takes those out of the queue that are packed; their sequences in batches come back. */
static void drop_packed(struct packer *p)
{
    for (struct request **at = &p->first; *at != NULL;) {
        struct request *r = *at;
        if (is_packed(r)) {
            *at = r->next;
            end_if_back(r);
        } else {
            at = &r->next;
        }
    }
}

static int64_t next_sequence(const struct request *r)
{
    return r->order == NULL ? r->n_packed : r->order[r->n_packed];
}

static bool fits(const struct batch *b, const struct request *r)
{
    return b->n_real_tokens + r->source.length(r->source.self, next_sequence(r)) <= b->limits.n_tokens &&
           b->n_sequences + 1 < b->limits.n_sequences && b->n_real_labels + r->n_asked <= b->limits.n_labels;
}

/* A request that has sequences in this batch, and has more, goes to the end of the queue. */
static void rotate(struct packer *p, const struct packed_batch *turn)
{
    struct request *r = p->first, **end = &p->first;
    int64_t n = turn->batch.n_sequences;
    if (r == NULL || n == 0 || turn->sequences[n - 1].request != r) {
        return;
    }
    p->first = r->next;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = r;
    r->next = NULL;
}

/* Fills a batch with the next sequences that want the same outputs. */
static void fill(struct packer *p, struct packed_batch *turn)
{
    struct batch *b = &turn->batch;
    unsigned wanted = p->first == NULL ? 0 : p->first->outputs;
    while (p->first != NULL && p->first->outputs == wanted && fits(b, p->first)) {
        struct request *r = p->first;
        int64_t sequence = next_sequence(r);
        turn->sequences[b->n_sequences] = (struct packed_sequence){r, sequence, b->n_real_labels};
        r->source.add(r->source.self, sequence, 0, b);
        r->n_packed++;
        if (is_packed(r)) {
            drop_packed(p);
        }
    }
    CHECK(b->n_sequences > 0 || p->first == NULL, "a sequence of %lld tokens in batches of %lld",
          (long long)p->first->source.length(p->first->source.self, next_sequence(p->first)),
          (long long)b->limits.n_tokens);
    batch_finish(b, p->pad_id);
    rotate(p, turn);
}

/* ---- batches ---- */

/* Losses are computed where the logits are, and only they are fetched. */
static void compute_losses(struct packer *p)
{
    struct stage *s = &p->net->stage;
    exec_enter(&p->net->x, "the losses of words", -1);
    p->net->x.ops->cross_entropy(&p->net->x, output_of(p->net, MODEL_WORD_LOSSES),
                                 stage_head_output(s, MODEL_WORD_CORRECT), NULL_TENSOR,
                                 output_of(p->net, MODEL_WORD_LOGITS), stage_field(s, TEXT_MASKED_LABELS),
                                 s->config->model->n_words, tensor_slice(stage_loss_scales(s), 0, 1));
}

/* A place for the next group of rows; false after a failure. */
static bool begin_choices(struct packer *p)
{
    const struct choice_room *room = &p->net->choices;
    size_t bytes = choice_room_parts(NULL, room->n_rows, room->n_changes).bytes;
    void *memory = queue_stage(&p->net->x, room->memory, bytes);
    if (memory == NULL) {
        return false;
    }
    token_choice_begin(&p->choice, choice_room_parts(memory, room->n_rows, room->n_changes));
    return true;
}

/* Gives the device the rows of the group, which begin with row `first` of the batch. */
static void choose(struct packer *p, int64_t first)
{
    struct exec *x = &p->net->x;
    const struct choice_room *room = &p->net->choices;
    int64_t n = p->choice.n_rows, n_changes = p->choice.n_changes;
    struct choice_parts there = choice_room_parts(room->memory, room->n_rows, int_larger(n_changes, 1));
    queue_send(x, room->memory, p->choice.parts.options.data, there.bytes);
    exec_enter(x, "the choice of tokens", -1);
    x->ops->choose_tokens(x, tensor_slice(room->tokens, first, n), tensor_slice(room->log_ps, first, n),
                          there.changes, tensor_slice(output_of(p->net, MODEL_WORD_LOGITS), first, n),
                          tensor_slice(there.options, 0, n), tensor_slice(there.starts, 0, n + 1),
                          p->n_tokens, p->net->config.model->n_words);
}

/* Rows that are asked for of sequence i of the batch. */
static int64_t n_asked_of(const struct packed_batch *turn, int64_t i)
{
    const struct batch *b = &turn->batch;
    int64_t end = i + 1 < b->n_sequences ? turn->sequences[i + 1].first_asked : b->n_real_labels;
    return end - turn->sequences[i].first_asked;
}

/* Adds a row to the group, which begins with row *first of the batch; where it does not fit the next group
 * begins with it.  False after a failure. */
static bool add_choice(struct packer *p, const struct token_question *q, int64_t *first)
{
    if (token_choice_add(&p->choice, q)) {
        return true;
    }
    choose(p, *first);
    *first += p->choice.n_rows;
    return begin_choices(p) && token_choice_add(&p->choice, q);
}

static void choose_all(struct packer *p, const struct packed_batch *turn)
{
    int64_t first = 0;
    bool goes_on = begin_choices(p);
    for (int64_t i = 0; i < turn->batch.n_sequences && goes_on; i++) {
        const struct packed_sequence *s = &turn->sequences[i];
        for (int64_t k = 0; k < n_asked_of(turn, i) && goes_on; k++) {
            struct token_question q = s->request->question(s->request->source.self, s->sequence, k);
            goes_on = add_choice(p, &q, &first);
        }
    }
    if (goes_on) {
        choose(p, first);
    }
}

static unsigned wanted_of(const struct packed_batch *turn)
{
    return turn->sequences[0].request->outputs;
}

static void start(struct packer *p, struct packed_batch *turn)
{
    stage_infer(&p->net->stage, &turn->batch);
    bool wants_losses = (wanted_of(turn) >> MODEL_WORD_LOSSES & 1) != 0;
    if (wants_losses && !p->net->config.losses_only) { /* else the heads have computed them */
        compute_losses(p);
    }
    if ((wanted_of(turn) >> MODEL_CHOICES & 1) != 0 && turn->batch.n_real_labels > 0) {
        choose_all(p, turn);
    }
}

/* The rows of sequence i of the batch in the host's copy. */
static tensor rows_of(const struct packer *p, const struct packed_batch *turn, int64_t i, int k)
{
    const struct batch *b = &turn->batch;
    int64_t first = i, end = i + 1;
    if (model_heads[k].rows == BATCH_OF_TOKENS) {
        first = b->cu_seqlens[i];
        end = b->cu_seqlens[i + 1];
    } else if (model_heads[k].rows == BATCH_OF_LABELS) {
        first = turn->sequences[i].first_asked;
        end = first + n_asked_of(turn, i);
    }
    return tensor_slice(p->rows[k], first, end - first);
}

/* Fails the requests to whom the rows belong that are not finite. */
static void blame(struct packer *p, struct packed_batch *turn, int k)
{
    struct status why =
        status_error(STATUS_NUMERIC, "%s are not finite: the model is damaged, or too large for %s",
                     model_heads[k].what, precision_name(p->net->config.precision));
    for (int64_t i = 0; i < turn->batch.n_sequences; i++) {
        struct request *r = turn->sequences[i].request;
        if (!failed(r->status) && tensor_find_nonfinite(rows_of(p, turn, i, k)) >= 0) {
            r->status = why;
        }
    }
}

/* Waits for the last batch and copies its rows. */
static struct status fetch(struct packer *p, struct packed_batch *turn)
{
    struct exec *x = &p->net->x;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        if ((wanted_of(turn) >> k & 1) == 0) {
            continue;
        }
        tensor from =
            tensor_slice(output_of(p->net, k), 0, batch_real_rows(&turn->batch, model_heads[k].rows));
        CHECK(!tensor_is_null(p->rows[k]) && tensor_is_dense(from), "%s, which the packer has no room for",
              model_heads[k].what);
        exec_copy_out(x, p->rows[k].data, from.data, tensor_bytes(from));
        TRY(x->status);
        tensor copy = tensor_slice(p->rows[k], 0, from.dims[0]);
        if (tensor_find_nonfinite(copy) >= 0) {
            blame(p, turn, k);
        }
    }
    return status_ok();
}

/* Hands each request its rows. */
static void take(struct packer *p, struct packed_batch *turn)
{
    for (int64_t i = 0; i < turn->batch.n_sequences; i++) {
        struct request *r = turn->sequences[i].request;
        tensor rows[MODEL_N_OUTPUTS] = {0};
        for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
            rows[k] = (r->outputs >> k & 1) != 0 ? rows_of(p, turn, i, k) : NULL_TENSOR;
        }
        if (!r->cancelled && !failed(r->status)) {
            r->status = r->take(r->self, turn->sequences[i].sequence, rows);
        }
        r->n_back++;
        end_if_back(r);
    }
}

/* Ends all requests, those in batches included. */
static struct status end_all(struct packer *p, struct status why)
{
    for (int i = 0; i < 2; i++) {
        for (int64_t k = 0; k < p->turns[i].batch.n_sequences; k++) {
            struct request *r = p->turns[i].sequences[k].request;
            r->status = failed(r->status) ? r->status : why;
            r->ended = true;
        }
        batch_clear(&p->turns[i].batch);
    }
    for (; p->first != NULL; p->first = p->first->next) {
        p->first->status = why;
        p->first->ended = true;
    }
    return why;
}

struct status packer_step(struct packer *p, bool *more)
{
    struct packed_batch *next = &p->turns[p->turn], *last = &p->turns[1 - p->turn];
    bool has_last = last->batch.n_sequences > 0;
    drop_packed(p);
    *more = p->first != NULL;
    if (*more) {
        profile_micro_step(p->net->profile);
        profile_phase(p->net->profile, "batch");
        fill(p, next);
    }
    if (has_last) {
        profile_phase(p->net->profile, "logits");
        struct status s = fetch(p, last);
        if (failed(s)) {
            *more = false;
            return end_all(p, s);
        }
    }
    if (*more) {
        profile_phase(p->net->profile, "forward");
        start(p, next);
    }
    if (has_last) {
        profile_phase(p->net->profile, "answers");
        take(p, last);
        batch_clear(&last->batch);
        drop_packed(p);
    }
    p->turn = 1 - p->turn;
    return status_ok();
}

struct status packer_answer(struct packer *p, struct request *r)
{
    packer_add(p, r);
    for (bool more = true; more && !r->ended;) {
        TRY(packer_step(p, &more));
    }
    return packer_explain(p, r->status);
}

struct status packer_explain(struct packer *p, struct status s)
{
    return culprit_explain(p->net, s);
}
