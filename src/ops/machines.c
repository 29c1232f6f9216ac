#include "ops/machines.h"

#include "core/buf.h"
#include "ops/cuda/table/cuda_overhead.h"

#include <string.h>

const double MACHINE_LINK_SHARE = 0.8;

/* Products of BERT-Large's layers by cuBLASLt 13.1 and copies, measured on one H200; no product of fp32 or
 * TF32 was: assumed.  The H100 (SXM) has the same multiprocessors, clock and power. */
#define HOPPER_PRODUCTS .half = 706e12, .fp8 = 1180e12, .tf32 = 380e12, .fp32 = 50e12
static const double H200_COPY = 4.29e12, HOPPER_REACHED = 0.734;
#define HOPPER_SOURCE                                                                                        \
    "roofline of products and copies measured on one H200; a step is assumed to reach the same share of "    \
    "it as tuned PyTorch there (BERT-Large, 128 tokens, 1,861 sequences/s)"

/* docs/decisions/0046_plan.md has the sources at length, and how `reached` and the Gaudi's rate were
 * found. */
static const struct machine machines[] = {
    {.name = "h200",
     .title = "NVIDIA H200 SXM",
     .rates = {HOPPER_PRODUCTS, .copy = H200_COPY, .reached = HOPPER_REACHED},
     .memory_bytes = 141e9,
     .watts = 700,
     .per_node = 8,
     .within = 450e9,
     .between = 50e9,
     .computes_in_f16 = true,
     .computes_in_fp8 = true,
     .memory_source = "NVIDIA's datasheet, 141 GB",
     .rates_source = HOPPER_SOURCE,
     .links_source = "NVLink 900 GB/s both ways (datasheet); one 400 Gb/s adapter a device (DGX H200)"},
    {.name = "h100",
     .title = "NVIDIA H100 SXM",
     .rates = {HOPPER_PRODUCTS, .copy = H200_COPY * 3.35 / 4.8, .reached = HOPPER_REACHED},
     .memory_bytes = 80e9,
     .watts = 700,
     .per_node = 8,
     .within = 450e9,
     .between = 50e9,
     .computes_in_f16 = true,
     .computes_in_fp8 = true,
     .memory_source = "NVIDIA's datasheet, 80 GB",
     .rates_source = HOPPER_SOURCE "; copies 3.35 / 4.8 of an H200's (datasheets)",
     .links_source = "NVLink 900 GB/s both ways (datasheet); one 400 Gb/s adapter a device (DGX H100)"},
    {.name = "a100",
     .title = "NVIDIA A100 SXM 80 GB",
     .rates = {.half = 312e12, .tf32 = 156e12, .fp32 = 19.5e12, .copy = 2.039e12, .reached = 0.513},
     .memory_bytes = 80e9,
     .watts = 400,
     .per_node = 8,
     .within = 300e9,
     .between = 25e9,
     .computes_in_f16 = true,
     .memory_source = "NVIDIA's datasheet, 80 GB",
     .rates_source = "roofline of the datasheet's 312 TFLOP/s (bf16) and 2.039 TB/s; a step is assumed to "
                     "reach the same share of it as NVIDIA's BERT-Large (phase 1, 580 sequences/s)",
     .links_source = "NVLink 600 GB/s both ways (datasheet); one 200 Gb/s adapter a device (DGX A100)"},
    {.name = "gaudi1",
     .title = "Habana Gaudi, first generation (HL-205)",
     .rates = {.half = 46.4e12, .copy = 1e12, .reached = 1},
     .memory_bytes = 32e9,
     .watts = 350,
     .per_node = 8,
     .within = 87.5e9,
     .between = 6.25e9,
     .memory_source =
         "32 GB (Hugging Face's pages on Gaudi); kiln does not run on it, so bytes are counted as on a GPU",
     .rates_source =
         "roofline; its makers publish no rate of products, so kiln assumes the rate at which BERT-Large "
         "reaches the published speed (phase 1, 1,489 sequences/s on 8); memory 1 TB/s",
     .links_source = "AWS dl1.24xlarge: 700 Gb/s in the node, 400 Gb/s from node to node for 8 devices"},
    {.name = "cpu",
     .title = "this machine's processor",
     .rates = {.reached = 0.9},
     .per_node = 1,
     .within = 1.25e9,
     .between = 1.25e9,
     .memory_source = "the memory free here now",
     .rates_source =
         "roofline of products and copies; a step is assumed to reach the share that kiln bench shows",
     .links_source = "10 Gb/s between machines (assumed)"},
};

enum { N_MACHINES = sizeof machines / sizeof machines[0] };

struct status machine_find(const struct machine **machine, const char *name)
{
    struct buf names = {0};
    for (int i = 0; i < N_MACHINES; i++) {
        if (strcmp(machines[i].name, name) == 0) {
            *machine = &machines[i];
            buf_fini(&names);
            return status_ok();
        }
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", machines[i].name);
    }
    struct status s = status_error(STATUS_USAGE, "kiln does not know the device \"%.40s\", only %s", name,
                                   buf_text(&names));
    buf_fini(&names);
    return s;
}

double machine_product_rate(const struct machine_rates *r, struct precision p)
{
    return p.fp8 ? r->fp8 : p.dtype != DTYPE_F32 ? r->half : p.allow_tf32 ? r->tf32 : r->fp32;
}

/* Work is recorded, and pieces of it may run on the second stream, so that memory is laid out as on a CUDA
 * device. */
static struct status graph_begin(void *context, const void *key, size_t key_bytes, enum device_work *work)
{
    (void)context, (void)key, (void)key_bytes;
    *work = DEVICE_WORK_RECORD;
    return status_ok();
}

static struct status graph_end(void *context, bool abandon)
{
    (void)context, (void)abandon;
    return status_ok();
}

static struct status beside_begin_or_end(void *context)
{
    (void)context;
    return status_ok();
}

static struct status beside_join(void *context, int n_left)
{
    (void)context, (void)n_left;
    return status_ok();
}

static const struct device_graphs graphs = {.begin = graph_begin, .end = graph_end};
static const struct device_beside beside = {beside_begin_or_end, beside_begin_or_end, beside_join};

struct device machine_device(const struct machine *m)
{
    if (strcmp(m->name, device_cpu.name) == 0) {
        return device_cpu;
    }
    return (struct device){.name = m->name,
                           .computes_in_f16 = m->computes_in_f16,
                           .takes_rounded_biases = true,
                           .computes_in_fp8 = m->computes_in_fp8,
                           .overhead_bytes = CUDA_OVERHEAD_BYTES,
                           .sums_in_attention = true,
                           .keeps_dropout_bits = true,
                           .graphs = &graphs,
                           .beside = &beside};
}
