#include "cmd/command_run.h"

#include "cmd/rank_run.h"
#include "core/launcher.h"
#include "core/log.h"

struct parsed {
    _Alignas(16) char args[OPTION_ARGS_BYTES];
    int n_positional;
    bool wants_help;
};

static struct status parse(struct parsed *p, const struct command *c, int argc, const char **argv)
{
    CHECK(c->args_bytes <= sizeof p->args, "the arguments of %s need %zu bytes", c->name, c->args_bytes);
    return option_parse(c, argc, argv, p->args, &p->n_positional, &p->wants_help);
}

struct status command_run(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    if (c->of_ranks &&
        launcher_rank() > 0) { /* until the others are found: the first one says what they all have to say */
        log_set_level(LOG_QUIET);
    }
    struct status s = parse(&p, c, argc, argv);
    if (failed(s)) {
        return c->of_ranks ? rank_run_refuse(s) : s;
    }
    if (p.wants_help) {
        option_print_help(c);
        return status_ok();
    }
    return c->run(p.args, p.n_positional, argv);
}

struct status command_check(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    return parse(&p, c, argc, argv);
}
