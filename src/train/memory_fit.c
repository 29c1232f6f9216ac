#include "train/memory_fit.h"

#include "core/buf.h"
#include "core/log.h"
#include "dev/host_memory.h"

#include <stdio.h>

/* "5.5 MiB", "12.25 GiB" */
struct size_text {
    char text[32];
};

static struct size_text size_of(size_t bytes)
{
    struct size_text t;
    bool large = bytes >= (size_t)1 << 30;
    snprintf(t.text, sizeof t.text, large ? "%.2f GiB" : "%.1f MiB",
             (double)bytes / (large ? 0x1p30 : 0x1p20));
    return t;
}

size_t memory_fit_device_bytes(const struct trainer_plan *plan, const struct device *device)
{
    return plan->total_bytes - (device->is_host ? 0 : plan->saving_bytes);
}

/* n * part / whole, rounded up to a multiple of `bucket`. */
static int64_t share(int64_t n, int64_t part, int64_t whole, int64_t bucket)
{
    int64_t rounded = (n * part + whole - 1) / whole;
    return (rounded + bucket - 1) / bucket * bucket;
}

static struct batch_limits scaled(struct batch_limits l, int64_t part, int64_t whole)
{
    return (struct batch_limits){
        .n_tokens = share(l.n_tokens, part, whole, BATCH_TOKEN_BUCKET),
        .n_sequences = share(l.n_sequences - 1, part, whole, 1) + 1, /* the tail */
        .n_labels = share(l.n_labels, part, whole, BATCH_LABEL_BUCKET),
        .max_seqlen = l.max_seqlen,
    };
}

static size_t bytes_of(const struct trainer_config *config, int64_t part, int64_t whole)
{
    struct trainer_config c = *config;
    struct trainer_plan plan;
    c.net.limits = scaled(config->net.limits, part, whole);
    return failed(trainer_plan(&plan, &c)) ? SIZE_MAX : memory_fit_device_bytes(&plan, c.net.device);
}

int64_t memory_fit_micro_size(const struct trainer_config *config, int64_t n_sequences, size_t budget)
{
    int64_t fits = 0, too_many = n_sequences + 1;
    while (fits + 1 < too_many) {
        int64_t middle = fits + (too_many - fits) / 2;
        bool enough = bytes_of(config, middle, n_sequences) <= budget;
        fits = enough ? middle : fits;
        too_many = enough ? too_many : middle;
    }
    return fits;
}

/* The largest divisor of n that is at most `most`. */
static int64_t largest_divisor(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n;
    while (n % d != 0) {
        d--;
    }
    return d;
}

/* "--gradient_accumulation_steps 16 (micro-batches of 4)": how the batch may be split so that at most `most`
 * sequences are in flight. */
static void put_cut(char text[160], const struct memory_cut *cut, int64_t most)
{
    if (cut->can_cut) {
        int64_t micro = largest_divisor(cut->batch_size, most);
        snprintf(text, 160, "--gradient_accumulation_steps %lld (micro-batches of %lld)",
                 (long long)(cut->batch_size / micro), (long long)micro);
    } else {
        snprintf(text, 160, "%s %lld", cut->flag, (long long)most);
    }
}

/* Whether it would fit without the copy for a save. */
static bool fits_unsaved(const struct trainer_config *config, const struct trainer_plan *plan, size_t budget)
{
    return config->saving && memory_fit_device_bytes(plan, config->net.device) - plan->saving_bytes <= budget;
}

static void put_advice(struct buf *text, const struct trainer_config *config, const struct trainer_plan *plan,
                       const struct memory_cut *cut, size_t budget)
{
    char plain[160], recomputed[160];
    int64_t n = cut->batch_size / cut->n_micro;
    int64_t most = memory_fit_micro_size(config, n, budget), most_recomputing = 0;
    bool unsaved = config->net.device->is_host && fits_unsaved(config, plan, budget);
    if (cut->recompute > 0) {
        struct trainer_config c = *config;
        c.net.recompute = cut->recompute;
        most_recomputing = memory_fit_micro_size(&c, n, budget);
    }
    put_cut(plain, cut, most > 0 ? most : 1);
    put_cut(recomputed, cut, most_recomputing > 0 ? most_recomputing : 1);
    const char *or_plain = most > 0 ? ", or with " : "", *then_plain = most > 0 ? plain : "";
    if (most == 0 && most_recomputing == 0) {
        buf_printf(text, "not even one sequence at a time would fit (%s)",
                   size_of(bytes_of(config, 1, n)).text);
    } else if (most_recomputing >= n) {
        buf_printf(text, "it fits with --checkpoint_activations%s%s", or_plain, then_plain);
    } else if (most_recomputing > most) {
        buf_printf(text, "it fits with --checkpoint_activations and %s%s%s", recomputed, or_plain,
                   then_plain);
    } else {
        buf_printf(text, "it fits with %s", plain);
    }
    if (unsaved) {
        buf_puts(text, most == 0 && most_recomputing == 0 ? "; it fits with" : ", or with");
        buf_puts(text, " --skip_checkpoint, which saves nothing");
    }
}

/* Why there may be less than the machine has: empty where addresses are not limited. */
static void put_limit(struct buf *text, const struct device *device, int n_processes)
{
    if (device->is_host && n_processes > 1) {
        buf_printf(text, " for each of the %d ranks of this node", n_processes);
    }
    if (device->is_host && host_memory_addresses() != SIZE_MAX) {
        buf_printf(text, " (`ulimit -v` limits addresses; libraries and threads take %s)",
                   size_of(host_memory_library_addresses()).text);
    }
}

static struct status refuse(const struct trainer_config *config, const struct trainer_plan *plan,
                            const struct memory_cut *cut, size_t batches, size_t available)
{
    const struct device *device = config->net.device;
    size_t needed = memory_fit_device_bytes(plan, device) + batches;
    struct buf limit = {0}, advice = {0};
    put_limit(&limit, device, cut->n_processes);
    if (batches < available) {
        put_advice(&advice, config, plan, cut, available - batches);
    } else {
        buf_printf(&advice, "the batches alone take %s; a smaller batch needs less", size_of(batches).text);
    }
    struct status s = status_error(STATUS_MEMORY, "%s of %s memory are needed, but only %s are free%s; %s",
                                   size_of(needed).text, device->name, size_of(available).text,
                                   buf_text(&limit), buf_text(&advice));
    buf_fini(&advice);
    buf_fini(&limit);
    return s;
}

/* The host's memory, where the device has its own. */
static struct status check_host(const struct trainer_plan *plan, const struct memory_cut *cut,
                                size_t available)
{
    size_t needed = plan->saving_bytes + cut->batch_bytes;
    return needed <= available
               ? status_ok()
               : status_error(
                     STATUS_MEMORY,
                     "%s of host memory are needed, %s to save in the background and %s for batches, "
                     "but only %s are free; --skip_checkpoint saves nothing, and a smaller batch "
                     "needs less",
                     size_of(needed).text, size_of(plan->saving_bytes).text, size_of(cut->batch_bytes).text,
                     size_of(available).text);
}

struct status memory_fit_check(const struct trainer_config *config, const struct trainer_plan *plan,
                               struct memory_cut cut)
{
    const struct device *device = config->net.device;
    size_t n_sharing = cut.n_processes > 1 ? (size_t)cut.n_processes : 1;
    size_t available = device->free_bytes() / (device->is_host ? n_sharing : 1);
    size_t batches = device->is_host ? cut.batch_bytes : 0;
    if (memory_fit_device_bytes(plan, device) + batches > available) {
        return refuse(config, plan, &cut, batches, available);
    }
    return device->is_host ? status_ok() : check_host(plan, &cut, device_cpu.free_bytes() / n_sharing);
}

struct status memory_fit_require(const struct trainer_config *config, const struct trainer_plan *plan,
                                 struct memory_cut cut, bool dry_run)
{
    struct status s = memory_fit_check(config, plan, cut);
    if (failed(s) && dry_run) {
        log_warning("%s", s.message);
        return status_ok();
    }
    return s;
}
