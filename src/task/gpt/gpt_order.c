#include "task/gpt/gpt_order.h"

#include "core/log.h"
#include "task/gpt/gpt_pretrain.h"

enum { PREFIX_BYTES = FILE_PATH_BYTES + sizeof((struct gpt_order){0}.name) };

static struct status find_directory(char path[FILE_PATH_BYTES], const struct pretrain_options *o)
{
    const char *given = ((const struct gpt_pretrain_options *)o->own)->data_cache_path;
    int n = given != NULL ? snprintf(path, FILE_PATH_BYTES, "%s", given)
                          : snprintf(path, FILE_PATH_BYTES, "%s/index", o->run.common.output_dir);
    FAIL_IF(n >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            FILE_PATH_BYTES - 1);
    return status_ok();
}

struct status gpt_order_plan(struct gpt_order *g, const struct sample_order_config *config, const char *name,
                             const char *part)
{
    *g = (struct gpt_order){.config = *config, .part = part};
    FAIL_IF((size_t)snprintf(g->name, sizeof g->name, "%s", name) >= sizeof g->name, STATUS_USAGE,
            "the name of the store %.60s... is longer than %zu bytes", name, sizeof g->name - 1);
    return sample_order_plan(&g->order, config);
}

struct status gpt_order_open(struct gpt_order *g, const struct pretrain_options *o)
{
    char directory[FILE_PATH_BYTES], prefix[PREFIX_BYTES];
    bool made;
    if (g->part == NULL) {
        return status_ok();
    }
    TRY(find_directory(directory, o));
    TRY(status_context(file_make_directories(directory), "the directory of index files"));
    snprintf(prefix, sizeof prefix, "%s/%s", directory, g->name);
    TRY(index_files_make(&made, &g->order, prefix, g->part, &g->config));
    if (!made) {
        log_info("the order of the %s samples is that of %s_%s_indexmap_*", g->part, prefix, g->part);
    }
    bool checks = !made && rank_options_world(&o->run.ranks).local_rank == 0;
    return index_files_open(&g->files, &g->order, prefix, g->part, &g->config, checks);
}

void gpt_order_close(struct gpt_order *g)
{
    index_files_close(&g->files);
    *g = (struct gpt_order){0};
}

void gpt_order_add_size(struct gpt_order_size *size, const struct gpt_order *g)
{
    if (g->part != NULL) {
        size_t making = index_files_make_bytes(&g->order);
        size->mapped += sample_order_bytes(&g->order);
        size->making = making > size->making ? making : size->making;
    }
}

void gpt_order_announce(const struct gpt_order_size *size, const struct pretrain_options *o)
{
    char directory[FILE_PATH_BYTES];
    if (size->mapped > 0 && !failed(find_directory(directory, o))) {
        log_info("order: %.1f MiB of index files in %s, mapped and shared by ranks; making them takes one "
                 "rank %.1f MiB",
                 (double)size->mapped / 0x1p20, directory, (double)size->making / 0x1p20);
    }
}
