#include "cmd/command_run.h"

#include "cmd/rank_run.h"
#include "cmd/shipped_config.h"
#include "core/launcher.h"
#include "core/log.h"

#include <string.h>

struct parsed {
    _Alignas(16) char args[OPTION_ARGS_BYTES];
    char config[SHIPPED_CONFIG_BYTES]; /* a path that stands for a name */
    int n_positional;
    enum option_help help;
};

static struct status parse(struct parsed *p, const struct command *c, int argc, const char **argv)
{
    CHECK(c->args_bytes <= sizeof p->args, "the arguments of %s need %zu bytes", c->name, c->args_bytes);
    return option_parse(c, argc, argv, p->args, &p->n_positional, &p->help);
}

/* --config_file of any command takes the name of a configuration that kiln comes with. */
static struct status find_config(struct parsed *p, const struct command *c)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        const char **file = (const char **)(void *)(p->args + o->offset);
        if (strcmp(o->name, "config_file") == 0 && o->kind == OPTION_STRING && *file != NULL) {
            return shipped_config_find(p->config, file);
        }
    }
    return status_ok();
}

struct status command_run(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    if (c->of_ranks &&
        launcher_rank() > 0) { /* until the others are found: the first one says what they all have to say */
        log_set_level(LOG_QUIET);
    }
    struct status s = parse(&p, c, argc, argv);
    if (!failed(s) && p.help == OPTION_NO_HELP) {
        s = find_config(&p, c);
    }
    if (failed(s)) {
        return c->of_ranks ? rank_run_refuse(s) : s;
    }
    if (p.help != OPTION_NO_HELP) {
        option_print_help(c, p.help);
        return status_ok();
    }
    return c->run(p.args, p.n_positional, argv);
}

struct status command_check(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    return parse(&p, c, argc, argv);
}
