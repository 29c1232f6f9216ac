#include "task/same_inputs.h"

#include "core/hash.h"
#include "core/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void same_inputs_add_model(struct same_run *same, const struct model *m, const struct tokenizer *t)
{
    json_t *config = m->type->to_json(m), *value;
    const char *key;
    json_object_foreach(config, key, value)
    {
        char name[128];
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        snprintf(name, sizeof name, "\"%s\" of the model's configuration", key);
        same_run_add(same, name, text != NULL ? text : "");
        free(text);
    }
    json_decref(config);
    same_run_add_hash(same, "the hash of the vocabulary", t->n > 0 ? t->hash : 0);
}

struct status same_inputs_directory(const struct comm *world, const char *flag, const char *path)
{
    struct same_run same = {0};
    struct stat info;
    char name[80], text[80];
    if (world->size == 1 || world->emulated != NULL) {
        return status_ok();
    }
    struct status s = stat(path, &info) == 0 ? status_ok()
                                             : status_error(STATUS_DATA,
                                                            "--%s %s: %s; rank 0 has made it, so this is "
                                                            "another directory: all ranks need the same one",
                                                            flag, path, strerror(errno));
    TRY(comm_agree(world, s));
    bool one_node = world->n_local == world->size; /* numbers of devices are each node's own */
    snprintf(name, sizeof name, "the directory of --%s", flag);
    snprintf(text, sizeof text, "inode %llu of device %llu", (unsigned long long)info.st_ino,
             one_node ? (unsigned long long)info.st_dev : 0);
    same_run_add(&same, name, text);
    return same_run_check(&same, world, STATUS_DATA);
}

/* Number that is equal for ranks that see one file; a file that cannot be seen is its rank's own. */
static uint64_t file_identity(const struct comm *world, const char *path)
{
    struct stat info;
    char text[400];
    if (stat(path, &info) != 0) {
        snprintf(text, sizeof text, "rank %d", world->rank);
    } else {
        snprintf(text, sizeof text, "%s %llu %llu", host_node().text, (unsigned long long)info.st_dev,
                 (unsigned long long)info.st_ino);
    }
    return hash_fnv1a(text, strlen(text));
}

struct status same_inputs_reader(const struct comm *world, const char *path, bool *reads)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    *reads = true;
    if (world->size == 1 || world->emulated != NULL) {
        return status_ok();
    }
    uint64_t *all = calloc((size_t)world->size, sizeof *all);
    int64_t *bounds = calloc((size_t)world->size + 1, sizeof *bounds);
    bool allocated = all != NULL && bounds != NULL;
    struct status s = comm_agree(
        world, allocated ? status_ok() : status_error(STATUS_MEMORY, "out of memory for what ranks compare"));
    if (allocated && !failed(s)) {
        for (int i = 0; i <= world->size; i++) {
            bounds[i] = i;
        }
        all[world->rank] = file_identity(world, path);
        comm_all_gather(world, &host, tensor_1d(all, DTYPE_F64, world->size), bounds); /* bits, not numbers */
        s = host.status;
        for (int r = 0; r < world->rank; r++) {
            *reads = *reads && all[r] != all[world->rank];
        }
    }
    free(bounds);
    free(all);
    return s;
}
