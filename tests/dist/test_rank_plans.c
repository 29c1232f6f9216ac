/* Plans of ranks: each counts its own shard, slots and layers. */
#include "rank_steps.h"

/* The plan of a rank that has a shard of the moments counts those alone; of one that has none, too. */
static void plans_count_shards(void)
{
    static const struct rank_case k = {.name = "plans of shards", .hidden_size = 48};
    struct run r;
    struct trainer_plan whole, part;
    size_t of_moments = 0;
    open_run(&r, &k);
    EXPECT_OK(trainer_plan(&whole, &r.config));
    size_t moments = 2 * (size_t)r.params.n_elements * sizeof(float), sums = whole.optimizer_bytes - moments;
    EXPECT(sums < moments / 40, "%zu bytes of sums", sums);
    for (int i = 0; i < 1000; i++) {
        struct trainer_config config = r.config;
        config.ranks = (struct trainer_ranks){.shape.dp = i < 4 ? 4 : 1000, .place.dp = i, .zero_stage = 1};
        EXPECT_OK(trainer_plan(&part, &config));
        EXPECT(part.net.weight_bytes == whole.net.weight_bytes && part.gradient_bytes == whole.gradient_bytes,
               "%zu and %zu", part.net.weight_bytes, part.gradient_bytes);
        of_moments += i < 4 ? part.optimizer_bytes - sums : 0;
    }
    EXPECT(of_moments == moments, "%zu of %zu bytes", of_moments, moments);
    EXPECT(part.optimizer_bytes == sums, "%zu bytes of an empty shard", part.optimizer_bytes);
    close_run(&r);
}

static struct status in_stages(struct trainer_config *config, int stage, int n, int64_t n_micro)
{
    config->ranks = (struct trainer_ranks){.shape.pp = n, .place.pp = stage, .n_micro = n_micro};
    return trainer_ranks_place(&config->ranks, &config->net);
}

/* The plan counts every slot, and only the layers of the range. */
static void plans_count_slots_and_layers(void)
{
    static const struct rank_case k = {.name = "plans"};
    struct run r;
    struct trainer_plan whole, one, two, last;
    open_run(&r, &k);
    struct trainer_config config = r.config;
    EXPECT_OK(trainer_plan(&whole, &config));
    EXPECT_OK(in_stages(&config, 0, 2, 1));
    EXPECT_OK(trainer_plan(&one, &config));
    EXPECT_OK(in_stages(&config, 0, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&two, &config));
    EXPECT_OK(in_stages(&config, 1, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&last, &config));
    EXPECT(two.net.activation_bytes == 2 * one.net.activation_bytes, "%zu and %zu", two.net.activation_bytes,
           one.net.activation_bytes);
    EXPECT(one.net.activation_bytes < whole.net.activation_bytes &&
               last.net.activation_bytes < whole.net.activation_bytes,
           "%zu and %zu of %zu", one.net.activation_bytes, last.net.activation_bytes,
           whole.net.activation_bytes);
    size_t sums = whole.optimizer_bytes - 2 * (size_t)r.params.n_elements * sizeof(float);
    EXPECT(one.optimizer_bytes + last.optimizer_bytes == whole.optimizer_bytes + sums,
           "%zu and %zu bytes of moments, of %zu", one.optimizer_bytes, last.optimizer_bytes,
           whole.optimizer_bytes);
    EXPECT(one.micro_flops + last.micro_flops < 1.001 * whole.micro_flops &&
               one.micro_flops + last.micro_flops > 0.999 * whole.micro_flops,
           "%g and %g of %g", one.micro_flops, last.micro_flops, whole.micro_flops);
    config.net.precision =
        (struct precision){.dtype = DTYPE_BF16, .fp8 = true}; /* all slots read the same weights in fp8 */
    EXPECT_OK(in_stages(&config, 0, 2, 1));
    EXPECT_OK(trainer_plan(&one, &config));
    EXPECT_OK(in_stages(&config, 0, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&two, &config));
    EXPECT(two.net.weight_bytes == one.net.weight_bytes, "%zu and %zu", two.net.weight_bytes,
           one.net.weight_bytes);
    EXPECT_ERROR(in_stages(&config, 0, 5, 1), STATUS_USAGE,
                 "5 stages with 1 chunks each needs a layer for each chunk, but the model has 4");
    struct bert_model *bert = fixture_bert(&config);
    bert->config.layer_norm_large_model = true;
    fixture_bert_changed(bert);
    EXPECT_ERROR(in_stages(&config, 0, 2, 1), STATUS_USAGE, "2 stages cannot run pre-LN layers");
    EXPECT_OK(in_stages(&config, 0, 1, 1));
    close_run(&r);
}

int main(void)
{
    plans_count_slots_and_layers();
    plans_count_shards();
    return 0;
}
