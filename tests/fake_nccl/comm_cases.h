/* comm_cases: tests of communicators as lists of cases, which run on threads; on processes, if a launcher
 * starts the program several times; and over the substitute of NCCL.  And sums of a fixed shape. */
#ifndef KILN_TESTS_COMM_CASES_H
#define KILN_TESTS_COMM_CASES_H

#include "dist/comm_wire.h"
#include "core/log.h"
#include "core/rng.h"

#include "over_nccl.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { N = 5000 };

static const double DEADLINE_S = 30; /* never reached where all come */

static struct exec host_exec(void)
{
    return (struct exec){.device = &device_cpu, .layer_index = -1};
}

/* Of rank r in a round: numbers whose sum depends on the order. */
static double value_of(int r, int round, int64_t i)
{
    struct rng_stream s = rng_stream(rng_key((uint64_t)(100 * round + r), (uint64_t)i));
    return ldexp((double)rng_below(&s, 1 << 23) - (1 << 22), (int)rng_below(&s, 24) - 34);
}

/* A rank comes late, and another one each time. */
static void dawdle(int rank, int round)
{
    struct timespec t = {.tv_nsec = rank == round % 3 ? 1000000 : 0};
    nanosleep(&t, NULL); /* time: whoever is last, the bits are the same */
}

/* The sum of ranks [first, first + n) in fp32 or fp64, of numbers as the dtype holds them: that of the first
 * half, which is the largest power of two below n, plus that of the rest. */
static double tree_sum(enum dtype dtype, const struct comm *c, int first, int n, int round, int64_t i)
{
    char memory[8];
    tensor one = tensor_1d(memory, dtype, 1);
    int half = n > 4 ? 4 : n > 2 ? 2 : 1;
    if (n == 1) {
        tensor_set(one, 0, value_of(comm_number(&c->numbers, first), round, i));
        return tensor_get(one, 0);
    }
    double a = tree_sum(dtype, c, first, half, round, i);
    double b = tree_sum(dtype, c, first + half, n - half, round, i);
    return dtype == DTYPE_F64 ? a + b : (double)((float)a + (float)b);
}

static double wanted_sum(enum dtype dtype, const struct comm *c, int round, int64_t i)
{
    char memory[8];
    tensor one = tensor_1d(memory, dtype, 1);
    tensor_set(one, 0, tree_sum(dtype, c, 0, c->size, round, i));
    return tensor_get(one, 0);
}

/* The sum of n_rounds, which all ranks of c check to the bit. */
static void sum_dtype(const struct comm *c, enum dtype dtype, int n_rounds)
{
    struct exec x = host_exec();
    tensor t = tensor_1d(malloc(N * sizeof(double)), dtype, N);
    for (int round = 0; round < n_rounds; round++) {
        for (int64_t i = 0; i < N; i++) {
            tensor_set(t, i, value_of(comm_number(&c->numbers, c->rank), round, i));
        }
        dawdle(c->rank, round);
        comm_all_reduce_sum(c, &x, t);
        EXPECT_OK(x.status);
        for (int64_t i = 0; i < N; i += 7) {
            double wanted = wanted_sum(dtype, c, round, i);
            EXPECT(tensor_get(t, i) == wanted, "element %lld of rank %d: %g, not %g", (long long)i, c->rank,
                   tensor_get(t, i), wanted);
        }
    }
    free(t.data);
}

/* ---- words that ranks say outside of the communicator ---- */

enum word { I_GAVE_UP, I_LEFT, I_END, N_WORDS };

static const char *word_files; /* their directory, if ranks are processes */
static atomic_bool said[N_WORDS][RANKS_MOST];

static const char *word_path(char path[512], enum word word, int rank)
{
    snprintf(path, 512, "%s/%d.%d", word_files, (int)word, rank);
    return path;
}

static void say(enum word word, int rank)
{
    char path[512];
    if (word_files == NULL) {
        atomic_store(&said[word][rank], true);
    } else {
        EXPECT(fclose(fopen(word_path(path, word, rank), "w")) == 0, "%s", path);
    }
}

static bool has_said(enum word word, int rank)
{
    char path[512];
    return word_files == NULL ? atomic_load(&said[word][rank])
                              : access(word_path(path, word, rank), F_OK) == 0;
}

static void look_again_soon(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* time: between two looks, of any number */
}

static void await_word(enum word word, int rank)
{
    while (!has_said(word, rank)) {
        look_again_soon();
    }
}

/* ---- cases ---- */

/* What a failing rank does, and what all others then hear. */
struct failing_case {
    int failing;
    enum {
        IN_A_SUM,
        IN_A_GATHER,
        IN_A_SUM_IN_PARTS,
        IN_A_MESSAGE,
        LEAVES,
        LEAVES_IN_PEACE,
        HAS_LEFT,
        IS_LATE,
        SUMS_ANOTHER_SIZE,
        IS_KILLED, /* these only where ranks are processes */
        IS_STOPPED,
        IS_BUSY,
    } how;
    const char *wanted;
    double deadline_s;
};

/* A case that ends with an error, which stays: processes can run one of these only, and then no other. */
struct comm_case {
    const char *name;
    int least, most; /* ranks */
    rank_body *body;
    struct failing_case how; /* for failing_body */
};

/* The cases of a program: those that all end well, and those that end with an error. */
struct comm_cases {
    const struct comm_case *peaceful, *ending;
    int n_peaceful, n_ending;
    const char *library; /* NCCL's substitute */
};

static void run_case(const struct comm *world, const struct comm_case *k)
{
    for (int n = k->least; n <= k->most; n++) {
        memset(said, 0, sizeof said);
        run_ranks_of(world, n, k->how.deadline_s > 0 ? k->how.deadline_s : DEADLINE_S, k->body,
                     (void *)&k->how);
    }
}

static bool is_gone(const struct comm_case *k, int rank)
{
    return (k->how.how == IS_KILLED || k->how.how == IS_STOPPED) && k->how.failing == rank;
}

static bool needs_processes(const struct comm_case *k)
{
    return is_gone(k, k->how.failing) || k->how.how == IS_BUSY;
}

/* Until others would find that this rank is silent. */
static void await_heartbeats(const struct comm *world)
{
    while (comm_wire_heard(world) < (world->rank == 0 ? world->size - 1 : 1)) {
        look_again_soon();
    }
}

/* A process that ends without the others may end them too, so each waits for the word of all. */
static void await_all(const struct comm *world, const struct comm_case *k)
{
    say(I_END, world->rank);
    for (int r = 0; r < world->size; r++) {
        if (!is_gone(k, r)) {
            await_word(I_END, r);
        }
    }
}

/* The case of a launcher's processes, whose world ends with it. */
static void end_world(struct comm *world, const struct comm_cases *all, const char *name)
{
    for (int i = 0; i < all->n_ending; i++) {
        const struct comm_case *k = &all->ending[i];
        if (strcmp(k->name, name) == 0) {
            EXPECT(world->size == k->most, "%s in %d processes", name, world->size);
            run_case(world, k);
            printf("as expected\n");
            fflush(stdout);
            await_all(world, k);
            world_close(world, status_ok());
            return;
        }
    }
    EXPECT(false, "there is no case %s", name);
}

/* The cases over NCCL, on ranks that are threads.  Who is late is late for what ranks agree on first, which
 * has another name. */
static void run_cases_over_nccl(const struct comm_cases *all)
{
    struct comm one = comm_self();
    over_nccl_use(all->library, "");
    ranks_over = over_nccl_run;
    for (int i = 0; i < all->n_peaceful; i++) {
        run_case(&one, &all->peaceful[i]);
    }
    for (int i = 0; i < all->n_ending; i++) {
        if (!needs_processes(&all->ending[i]) && all->ending[i].how.how != IS_LATE) {
            run_case(&one, &all->ending[i]);
        }
    }
}

static void list_cases(const struct comm_cases *all)
{
    for (int i = 0; i < all->n_ending; i++) {
        printf("%s %d %g\n", all->ending[i].name, all->ending[i].most, all->ending[i].how.deadline_s);
    }
}

/* usage of a program of cases: all of them in threads, or if a launcher starts it several times, in processes
 * all that end without an error.  --list: the others, and what they need.  CASE DIRECTORY: one of them, with
 * an empty directory.  nccl: over NCCL's substitute.  `alone`: besides, in a single process; or NULL. */
static int comm_cases_main(int argc, char **argv, const struct comm_cases *all, void (*alone)(void))
{
    struct comm world;
    if (argc == 2) {
        (strcmp(argv[1], "nccl") == 0 ? run_cases_over_nccl : list_cases)(all);
        return 0;
    }
    log_set_level(LOG_WARNING);
    EXPECT_OK(world_open(&world));
    if (argc == 3) {
        word_files = argv[2];
        end_world(&world, all, argv[1]);
        return 0;
    }
    for (int i = 0; i < all->n_peaceful; i++) {
        run_case(&world, &all->peaceful[i]);
    }
    for (int i = 0; i < all->n_ending && world.size == 1; i++) {
        if (!needs_processes(&all->ending[i])) {
            run_case(&world, &all->ending[i]);
        }
    }
    if (world.size == 1 && alone != NULL) {
        alone();
    }
    printf("as expected\n");
    world_close(&world, status_ok());
    return 0;
}

#endif
