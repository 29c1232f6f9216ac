#include "task/health.h"

#include "core/hash.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- spikes ---- */

static float log_of(double loss)
{
    return (float)log(loss > FLT_MIN ? loss : FLT_MIN);
}

/* Sums in fp64 and in the order of steps, so that a resumed run has the same bits. */
static double score_of(const float *values, int64_t n, float value)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += values[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    double deviation = sqrt(squares / (double)n);
    return deviation > 0 ? (value - mean) / deviation : 0;
}

struct health_score health_score(const struct health_state *s, const struct health_options *o, double loss,
                                 double grad_norm)
{
    int64_t n = o->spike_window;
    if (s->n < n) {
        return (struct health_score){0};
    }
    return (struct health_score){.log_loss = score_of(s->log_loss + s->n - n, n, log_of(loss)),
                                 .grad_norm = score_of(s->grad_norm + s->n - n, n, (float)grad_norm)};
}

bool health_is_spike(const struct health_options *o, struct health_score score)
{
    return o->spike_z > 0 && (score.log_loss > o->spike_z || score.grad_norm > o->spike_z);
}

void health_add(struct health_state *s, const struct health_options *o, double loss, double grad_norm)
{
    int64_t n = s->n < o->spike_window ? s->n : o->spike_window - 1, left = s->n - n;
    memmove(s->log_loss, s->log_loss + left, (size_t)n * sizeof *s->log_loss);
    memmove(s->grad_norm, s->grad_norm + left, (size_t)n * sizeof *s->grad_norm);
    s->log_loss[n] = log_of(loss);
    s->grad_norm[n] = (float)grad_norm;
    s->n = n + 1;
}

bool health_leaves_out(const struct health_state *s, int64_t step)
{
    bool any = false;
    for (int64_t i = 0; i < s->n_left_out; i++) {
        any = any || (step >= s->left_out[i].first && step <= s->left_out[i].last);
    }
    return any;
}

bool health_leave_out(struct health_state *s, const struct health_options *o, int64_t step)
{
    if (s->n_left_out >= o->spike_rollbacks || s->n_left_out >= HEALTH_MOST_ROLLBACKS) {
        return false;
    }
    int64_t first = step > o->spike_skip ? step - o->spike_skip : 1;
    s->left_out[s->n_left_out++] = (struct health_range){first, step};
    return true;
}

/* ---- in trainer_state.json ---- */

static json_t *list_of(const float *values, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++) {
        json_array_append_new(list, json_real((double)values[i]));
    }
    return list;
}

json_t *health_to_json(const struct health_state *s)
{
    if (s->n == 0 && s->n_left_out == 0) {
        return NULL;
    }
    json_t *ranges = json_array();
    for (int64_t i = 0; i < s->n_left_out; i++) {
        json_array_append_new(
            ranges, json_pack("[I, I]", (json_int_t)s->left_out[i].first, (json_int_t)s->left_out[i].last));
    }
    return json_pack("{s:o, s:o, s:o}", "log_loss", list_of(s->log_loss, s->n), "grad_norm",
                     list_of(s->grad_norm, s->n), "left_out", ranges);
}

/* Finds the array of a key, with at most `most` elements. */
static struct status find_list(const json_t **list, const json_t *object, const char *key, size_t most,
                               const char *source)
{
    *list = json_object_get(object, key);
    return json_is_array(*list) && json_array_size(*list) <= most
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"health\" needs \"%s\", a list of at most %zu", source, key,
                              most);
}

static struct status parse_values(float *values, const json_t *list, const char *source)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        values[i] = (float)json_number_value(value);
        FAIL_IF(!json_is_number(value) || !isfinite(values[i]), STATUS_DATA,
                "%s: value %zu of \"health\" must be a finite number", source, i + 1);
    }
    return status_ok();
}

static struct status parse_ranges(struct health_state *s, const json_t *list, const char *source)
{
    s->n_left_out = (int64_t)json_array_size(list);
    for (int64_t i = 0; i < s->n_left_out; i++) {
        const json_t *range = json_array_get(list, (size_t)i);
        struct health_range *r = &s->left_out[i];
        *r = (struct health_range){json_integer_value(json_array_get(range, 0)),
                                   json_integer_value(json_array_get(range, 1))};
        FAIL_IF(json_array_size(range) != 2 || r->first < 1 || r->last < r->first, STATUS_DATA,
                "%s: \"left_out\" of \"health\": element %lld is not a range of steps", source,
                (long long)i + 1);
    }
    return status_ok();
}

struct status health_parse(struct health_state *s, const json_t *object, int64_t step, const char *source)
{
    const json_t *losses, *norms, *ranges;
    *s = (struct health_state){0};
    if (object == NULL) {
        return status_ok();
    }
    TRY(find_list(&losses, object, "log_loss", HEALTH_MOST_WINDOW, source));
    TRY(find_list(&norms, object, "grad_norm", HEALTH_MOST_WINDOW, source));
    TRY(find_list(&ranges, object, "left_out", HEALTH_MOST_ROLLBACKS, source));
    s->n = (int64_t)json_array_size(losses);
    FAIL_IF(json_array_size(norms) != json_array_size(losses) || s->n > step, STATUS_DATA,
            "%s: \"health\" has %lld losses and %zu norms after %lld steps; both must be as many, and at "
            "most one for each step",
            source, (long long)s->n, json_array_size(norms), (long long)step);
    TRY(parse_values(s->log_loss, losses, source));
    TRY(parse_values(s->grad_norm, norms, source));
    return parse_ranges(s, ranges, source);
}

/* ---- replicas ---- */

enum { PIECE_BYTES = 4 << 20 }; /* copied from a device at once */

static struct status hash_weights(uint64_t *hash, struct exec *x, tensor weights)
{
    size_t bytes = tensor_bytes(weights);
    const bool in_place = x->device->is_host;
    void *piece = in_place ? NULL : malloc(PIECE_BYTES);
    FAIL_IF(!in_place && piece == NULL, STATUS_MEMORY, "out of memory for %d bytes of weights to compare",
            PIECE_BYTES);
    uint64_t both[2] = {0};
    exec_synchronize(x);
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        const void *from = (const char *)weights.data + at;
        if (!in_place) {
            exec_copy_out(x, piece, from, n);
        }
        both[1] = failed(x->status) ? 0 : hash_bytes(in_place ? from : piece, n);
        both[0] = hash_bytes(both, sizeof both);
    }
    free(piece);
    *hash = both[0];
    return x->status;
}

static int n_with(const uint64_t *hashes, int n, uint64_t hash)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += hashes[i] == hash;
    }
    return count;
}

/* STATUS_OK if all hashes are equal. */
static struct status compare(const struct comm *world, const uint64_t *hashes, int64_t step, bool begins)
{
    char text[256] = "";
    int n = world->size;
    uint64_t usual = hashes[0];
    for (int i = 1; i < n; i++) {
        usual = n_with(hashes, n, hashes[i]) > n_with(hashes, n, usual) ? hashes[i] : usual;
    }
    int n_usual = n_with(hashes, n, usual);
    if (n_usual == n) {
        return status_ok();
    }
    bool majority = 2 * n_usual > n;
    for (int i = 0, shown = 0; i < n && shown < 8; i++) {
        if (!majority || hashes[i] != usual) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%srank %d", shown++ > 0 ? ", " : "",
                     comm_number(&world->numbers, i));
        }
    }
    const char *from = majority ? "those of the other ranks" : "one another";
    FAIL_IF(begins, STATUS_DATA,
            "the weights that %s would start from differ from %s: the ranks have read different files", text,
            from);
    return status_error(STATUS_IO,
                        "after step %" PRId64
                        " the weights of %s differ from %s: memory or a processor there may be bad, or "
                        "processors of different kinds round differently; nothing was saved since the last "
                        "comparison, so --resume_from_checkpoint resumes from equal weights",
                        step, text, from);
}

/* Gathers one hash of each rank, in their order. */
static struct status gather(const struct comm *world, uint64_t *hashes, int64_t *bounds)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    for (int i = 0; i <= world->size; i++) {
        bounds[i] = i;
    }
    comm_all_gather(world, &host, tensor_1d(hashes, DTYPE_F64, world->size), bounds); /* bits, not numbers */
    return host.status;
}

/* Compares the hashes that each rank has made, or failed to make. */
static struct status compare_hashes(const struct comm *world, struct status made, uint64_t mine, int64_t step,
                                    bool begins)
{
    uint64_t *hashes = calloc((size_t)world->size, sizeof *hashes);
    int64_t *bounds = calloc((size_t)world->size + 1, sizeof *bounds);
    bool allocated = hashes != NULL && bounds != NULL;
    if (!allocated) {
        made = status_error(STATUS_MEMORY, "out of memory for the hashes of %d ranks", world->size);
    }
    struct status s = comm_agree(world, made); /* a failure of any */
    if (allocated && !failed(s)) {
        hashes[world->rank] = mine;
        s = gather(world, hashes, bounds);
        s = failed(s) ? s : compare(world, hashes, step, begins);
    }
    free(bounds);
    free(hashes);
    return s;
}

static bool has_replicas(const struct comm *world)
{
    return world->size > 1 && world->emulated == NULL;
}

struct status health_check_replicas(const struct comm *world, struct exec *x, tensor weights, int64_t step,
                                    bool begins)
{
    uint64_t mine = 0;
    if (!has_replicas(world)) {
        return status_ok();
    }
    struct status made = hash_weights(&mine, x, weights);
    return compare_hashes(world, made, mine, step, begins);
}

static struct status hash_uncut(uint64_t *hash, struct network *n)
{
    uint64_t both[2] = {0};
    for (int i = 0; i < n->params.n; i++) {
        const struct param *p = &n->params.params[i];
        if (param_is_full(p)) {
            TRY(hash_weights(&both[1], &n->x, network_view_param(n, p)));
            both[0] = hash_bytes(both, sizeof both);
        }
    }
    *hash = both[0];
    return status_ok();
}

struct status health_check_uncut(const struct comm *peers, struct network *n, int64_t step, bool begins)
{
    uint64_t mine = 0;
    if (!has_replicas(peers)) {
        return status_ok();
    }
    struct status made = hash_uncut(&mine, n);
    return compare_hashes(peers, made, mine, step, begins);
}
