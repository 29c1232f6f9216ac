/* A save, one in the background, one over an older one of the same step, and a prune: each is cut short at
 * every system call, by death, by a power cut, by an error and by a full disk.  Whatever happens, the newest
 * whole checkpoint is the old or the new one, and a run that lives through an error leaves nothing half
 * done. */
#define _GNU_SOURCE
#include "faults.h"

#include "checkpoint_case.h"
#include "core/clock.h"
#include "model/background_save.h"

#include <dirent.h>

struct scenario {
    const char *name;
    int64_t n_before;           /* checkpoints 1 to n_before exist */
    int64_t old_step, new_step; /* newest before, and after success */
    int (*run)(void *);
};

static int save_next(void *context)
{
    return (int)case_save(context, 2).code;
}

/* As a run does, which has other values by the time that they are written. */
static int save_in_background(void *context)
{
    struct checkpoint_case *k = context;
    struct checkpoint_contents c = case_contents(k, 2);
    struct background_save b;
    struct background_save_result r;
    json_incref(k->config);
    json_incref(k->tokenizer);
    json_incref(k->state);
    EXPECT_OK(background_save_init(&b, background_save_bytes(k->params.n_elements, DTYPE_F32)));
    struct status s =
        background_save_begin(&b, k->directory, &(struct exec){.device = &device_cpu}, &c, 0, clock_ns(), 0);
    case_set_values(k, 7);
    if (background_save_take(&b, true, &r)) {
        s = r.status;
    }
    background_save_fini(&b);
    return (int)s.code;
}

static int save_over(void *context)
{
    return (int)case_save(context, 2).code;
}

static int save_over_in_two(void *context)
{
    faults.no_exchange = true;
    return save_over(context);
}

static int prune_all_but_one(void *context)
{
    struct checkpoint_case *k = context;
    return (int)checkpoint_dir_prune(k->directory, 3, 1, 0).code;
}

static const struct scenario scenarios[] = {
    {"save", 1, 1, 2, save_next},
    {"save in the background", 1, 1, 2, save_in_background},
    {"save over the same step", 2, 2, 2, save_over},
    {"save over the same step, without an exchange", 2, 2, 2, save_over_in_two},
    {"prune", 3, 3, 3, prune_all_but_one},
};

/* Entries of the output directory whose name begins with a dot. */
static int count_left_behind(const struct checkpoint_case *k)
{
    DIR *dir = opendir(k->directory);
    int n = 0;
    EXPECT(dir != NULL, "%s", k->directory);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return n;
}

static void start_over(struct checkpoint_case *k, const struct scenario *s)
{
    EXPECT_OK(file_remove_tree(k->directory));
    EXPECT_OK(file_make_directories(k->directory));
    for (int64_t step = 1; step <= s->n_before; step++) {
        EXPECT_OK(case_save(k, step));
    }
}

/* A checkpoint that is half there would hide in the list until it is needed. */
static void expect_all_whole(const struct checkpoint_case *k)
{
    for (int step = 1; step <= 3; step++) {
        char path[CHECKPOINT_PATH_BYTES];
        struct checkpoint c;
        EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d", k->directory, step));
        if (file_exists(path)) {
            EXPECT_OK(checkpoint_open(&c, path));
            checkpoint_close(&c);
        }
    }
}

/* Failures that may pass unseen: cleaning up what is worthless, and a prune, which needs no room and keeps
 * what it cannot read. */
static bool may_pass(const struct scenario *s, enum fault_kind kind, const char *call)
{
    return strcmp(call, "remove") == 0 ||
           (s->run == prune_all_but_one && (kind == FAULT_FULL || strcmp(call, "open") == 0));
}

/* What a run leaves behind that saw the error through: a failed prune leaves its victim to the next clean-up.
 */
static bool may_leave(const struct scenario *s, const char *call)
{
    return strcmp(call, "remove") == 0 || s->run == prune_all_but_one;
}

static void expect_sound(struct checkpoint_case *k, const struct scenario *s, enum fault_kind kind, int point,
                         const struct fault_outcome *o)
{
    const char *what = fault_names[kind];
    bool dies = kind == FAULT_KILL_BEFORE || kind == FAULT_KILL_AFTER || kind == FAULT_POWER_CUT;
    EXPECT(o->killed == dies, "%s, %s at %d (%s): code %d", s->name, what, point, o->call, o->code);
    if (!dies) {
        EXPECT(o->code == STATUS_IO || may_pass(s, kind, o->call), "%s, %s at %d (%s): unseen", s->name, what,
               point, o->call);
        EXPECT(count_left_behind(k) == 0 || may_leave(s, o->call), "%s, %s at %d (%s): something is left",
               s->name, what, point, o->call);
    }
    EXPECT_OK(checkpoint_dir_clean(k->directory));
    EXPECT(count_left_behind(k) == 0, "%s, %s at %d (%s): not cleaned", s->name, what, point, o->call);
    int64_t newest = case_newest(k);
    EXPECT(newest == s->new_step || newest == s->old_step, "%s, %s at %d (%s): newest is %lld", s->name, what,
           point, o->call, (long long)newest);
    EXPECT(dies || o->code != STATUS_OK || newest == s->new_step, "%s, %s at %d: acknowledged, but lost",
           s->name, what, point);
    expect_all_whole(k);
    EXPECT_OK(case_save(k, 9));
    EXPECT(case_newest(k) == 9, "%s, %s at %d (%s): the next save", s->name, what, point, o->call);
}

/* A fork is slow under AddressSanitizer, so that build takes every third point. */
#if KILN_SANITIZED
enum { POINT_STRIDE = 3 };
#else
enum { POINT_STRIDE = 1 };
#endif

/* Returns the number of faults. */
static int test_scenario(struct checkpoint_case *k, const struct scenario *s, enum fault_kind kind, int error)
{
    start_over(k, s);
    struct fault_outcome whole = fault_run(FAULT_NONE, 0, 0, s->run, k);
    EXPECT(whole.code == STATUS_OK && whole.n_points > 10, "%s: code %d, %d calls", s->name, whole.code,
           whole.n_points);
    int n = 0;
    for (int point = 1; point <= whole.n_points; point += POINT_STRIDE) {
        start_over(k, s);
        struct fault_outcome o = fault_run(kind, point, error, s->run, k);
        EXPECT(*o.call != '\0', "%s: point %d was not reached", s->name, point);
        expect_sound(k, s, kind, point, &o);
        n++;
    }
    return n;
}

static int save_and_lose_power(void *context)
{
    int code = save_next(context);
    if (code == STATUS_OK) {
        fault_die();
    }
    return code;
}

/* What a save has acknowledged survives a power cut right after. */
static void test_acknowledged(struct checkpoint_case *k)
{
    start_over(k, &scenarios[0]);
    struct fault_outcome o = fault_run(FAULT_POWER_CUT, 0, 0, save_and_lose_power, k);
    EXPECT(o.killed, "code %d", o.code);
    EXPECT(case_newest(k) == 2, "newest is %lld", (long long)case_newest(k));
}

int main(void)
{
    struct checkpoint_case k;
    int n_points = 0;
    case_init(&k);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        n_points += test_scenario(&k, &scenarios[i], FAULT_KILL_BEFORE, 0);
        n_points += test_scenario(&k, &scenarios[i], FAULT_KILL_AFTER, 0);
        n_points += test_scenario(&k, &scenarios[i], FAULT_POWER_CUT, 0);
        n_points += test_scenario(&k, &scenarios[i], FAULT_ERROR, i % 2 == 0 ? EIO : ENOSPC);
        n_points += test_scenario(&k, &scenarios[i], FAULT_FULL, ENOSPC);
    }
    test_acknowledged(&k);
    printf("%d faults survived\n", n_points);
    case_fini(&k);
    return 0;
}
