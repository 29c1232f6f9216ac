#include "task/missing.h"

#include "core/log.h"
#include "model/model_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file that is there but cannot be read is not missing: opening it reports the error. */
bool missing_is(const char *path)
{
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool say(struct missing *m, const char *flag, const char *path, const char *made_by)
{
    m->n++;
    log_info("missing: --%s %s: %s", flag, path, made_by);
    return true;
}

bool missing_path(struct missing *m, const char *flag, const char *path, const char *made_by)
{
    return path != NULL && missing_is(path) && say(m, flag, path, made_by);
}

bool missing_weights_are(const char *path)
{
    char index[FILE_PATH_BYTES], own[CHECKPOINT_PATH_BYTES];
    int n = snprintf(index, sizeof index, "%s.index", path);
    return missing_is(path) && !model_place_of_script(own, path) &&
           (n >= (int)sizeof index || missing_is(index));
}

bool missing_weights(struct missing *m, const char *path)
{
    return path != NULL && missing_weights_are(path) &&
           say(m, "init_checkpoint", path,
               "a run of `kiln pretrain` makes it, or it comes as a Hugging Face directory");
}

bool missing_config(struct missing *m, const char *path)
{
    static const struct {
        const char *name, *ours;
    } configs[] = {
        /* names of the replaced scripts */
        {"bert_config.json", "bert_large.json"},
        {"bert_config_1.2B.json", "bert_1.2b.json"},
        {"bert_1.5b_config.json", "bert_1.5b.json"},
        {"bert_5b_config.json", "bert_5b.json"},
    };
    char made_by[160] = "kiln's configs/ has models from tiny to 5 B parameters";
    const char *slash = path == NULL ? NULL : strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    for (size_t i = 0; name != NULL && i < sizeof configs / sizeof configs[0]; i++) {
        if (strcmp(name, configs[i].name) == 0) {
            snprintf(made_by, sizeof made_by, "kiln's configs/%s is that model; copy it there",
                     configs[i].ours);
        }
    }
    return missing_path(m, "config_file", path, made_by);
}

void missing_end(const struct missing *m)
{
    log_info("dry run: %d input%s missing, as listed; all else is right", m->n, m->n == 1 ? " is" : "s are");
}
