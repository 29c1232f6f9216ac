#include "cmd/plan.h"

#include <inttypes.h>
#include <math.h>

/* Bytes on disk. */
struct disk {
    double checkpoint; /* weights and moments, fp32 */
    double model;      /* weights, fp32 */
    double store;      /* the tokens of the run; 0: not asked for */
};

/* Stores keep ids of smaller vocabularies in two bytes, else in four (Megatron-LM: indexed_dataset.py). */
enum { SHORT_IDS = 65500 };

static struct status find_disk(struct disk *d, const struct plan_budget *p)
{
    struct world_plan whole;
    TRY(world_plan_bytes(&whole, p->setup, 1, 0, 1));
    int64_t vocab_size = p->setup->bench.config.net.model->vocab_size;
    *d = (struct disk){.checkpoint = (double)whole.rank.master_bytes + (double)whole.rank.optimizer_bytes,
                       .model = 4 * (double)whole.rank.trainer.net.n_params,
                       .store = p->tokens * (vocab_size < SHORT_IDS ? 2 : 4)};
    return status_ok();
}

static double steps_of(const struct plan_budget *p)
{
    return ceil(p->tokens / ((double)p->sequences * (double)p->setup->bench.length));
}

static double seconds_of(const struct plan_budget *p)
{
    return steps_of(p) * p->step_s;
}

static double device_hours_of(const struct plan_budget *p)
{
    return seconds_of(p) / 3600 * (double)p->devices;
}

static bool has_run(const struct plan_budget *p)
{
    return p->tokens > 0 && p->step_s > 0;
}

static void append_run(struct buf *b, const struct plan_budget *p)
{
    double hours = seconds_of(p) / 3600, kwh = device_hours_of(p) * p->setup->machine->watts / 1000;
    buf_printf(b, "a run over %.4g tokens (predicted): %.0f steps, ", p->tokens, steps_of(p));
    buf_printf(b, hours < 48 ? "%.1f hours" : "%.1f days", hours < 48 ? hours : hours / 24);
    buf_printf(b, ", %.4g device hours on %" PRId64 " devices", device_hours_of(p), p->devices);
    if (kwh > 0) {
        buf_printf(b, ", %.4g kWh at most (%.0f W a device, datasheet; without hosts and cooling)", kwh,
                   p->setup->machine->watts);
    }
    if (p->cost_per_hour > 0) {
        buf_printf(b, ", cost %.2f", device_hours_of(p) * p->cost_per_hour);
    }
    buf_putc(b, '\n');
}

struct status plan_budget_append(struct buf *b, const struct plan_budget *p)
{
    struct disk d;
    TRY(find_disk(&d, p));
    buf_putc(b, '\n');
    if (has_run(p)) {
        append_run(b, p);
    }
    buf_printf(b, "on disk: %.4g GB a checkpoint, %.4g GB an exported model", d.checkpoint / 1e9,
               d.model / 1e9);
    if (d.store > 0) {
        buf_printf(b, ", %.4g GB the store of the tokens", d.store / 1e9);
    }
    buf_putc(b, '\n');
    return status_ok();
}

struct status plan_budget_add_json(json_t *object, const struct plan_budget *p)
{
    struct disk d;
    TRY(find_disk(&d, p));
    double watts = p->setup->machine->watts, device_hours = device_hours_of(p);
    bool runs = has_run(p);
    json_t *budget = json_pack(
        "{s:f, s:f, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "checkpoint_bytes", d.checkpoint, "model_bytes",
        d.model, "store_bytes", d.store > 0 ? json_real(d.store) : NULL, "steps",
        runs ? json_integer((json_int_t)steps_of(p)) : NULL, "seconds",
        runs ? json_real(seconds_of(p)) : NULL, "device_hours", runs ? json_real(device_hours) : NULL, "kwh",
        runs && watts > 0 ? json_real(device_hours * watts / 1000) : NULL, "cost",
        runs && p->cost_per_hour > 0 ? json_real(device_hours * p->cost_per_hour) : NULL);
    return json_object_set_new(object, "budget", budget) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a plan");
}
