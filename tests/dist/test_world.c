/* What a launcher's variables make of a process: alone, or one of several, which are refused with what to
 * type instead if MPI cannot find the others.  That they are found is tested by test_mpi.sh. */
#include "dist/world.h"
#include "core/shared_library.h"

#include "test.h"

#include <unistd.h>

static const char *const variables[] = {
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_SIZE",
    "PMI_RANK",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_PROCID",
    "MV2_COMM_WORLD_SIZE",
    "KILN_COMM_TIMEOUT",
    "KILN_COMM_SILENCE",
};

/* Variables as "NAME=VALUE NAME=VALUE", and no others that launchers set. */
static struct status open_with(const char *told, struct comm *world)
{
    char text[256], *save;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        unsetenv(variables[i]);
    }
    snprintf(text, sizeof text, "%s", told);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
    return world_open(world);
}

static void the_only_process_is_alone(void)
{
    static const char *const told[] = {
        "", "WORLD_SIZE=1 RANK=0 LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0",
        "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0", "RANK= KILN_COMM_TIMEOUT=2.5 KILN_COMM_SILENCE=0"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct comm world;
        EXPECT_OK(open_with(told[i], &world));
        EXPECT(world.size == 1 && world.rank == 0 && world.n_local == 1, "%s: %d ranks", told[i], world.size);
        world_close(&world, status_ok());
    }
}

static void others_are_refused_with_a_way_out(void)
{
    static const struct {
        const char *told;
        enum status_code code;
        const char *wanted;
    } cases[] = {
        {"WORLD_SIZE=4 RANK=0", STATUS_UNAVAILABLE, "WORLD_SIZE is 4: this process is one of several"},
        {"WORLD_SIZE=4 RANK=0", STATUS_UNAVAILABLE, "start the ranks by `mpirun -n N kiln ...`"},
        {"RANK=3", STATUS_UNAVAILABLE, "or unset RANK"},
        {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0", STATUS_UNAVAILABLE, "`srun --mpi=pmix kiln ...`"},
        {"PMI_SIZE=2 PMI_RANK=0", STATUS_UNAVAILABLE, "PMI_SIZE is 2"},
        {"MV2_COMM_WORLD_SIZE=2", STATUS_UNAVAILABLE, "MV2_COMM_WORLD_SIZE is 2"},
        {"OMPI_COMM_WORLD_SIZE=2", STATUS_UNAVAILABLE, "no launcher started it (PMIX_NAMESPACE is not set)"},
        {"PMIX_RANK=1", STATUS_UNAVAILABLE, "or unset PMIX_RANK"},
        {"WORLD_SIZE=many", STATUS_USAGE, "WORLD_SIZE is 'many', but must be a number of ranks"},
        {"KILN_COMM_TIMEOUT=0", STATUS_USAGE, "KILN_COMM_TIMEOUT is '0', but must be"},
        {"KILN_COMM_SILENCE=0.5", STATUS_USAGE, "KILN_COMM_SILENCE is '0.5', but must be"},
        {"KILN_COMM_SILENCE=never", STATUS_USAGE, "KILN_COMM_SILENCE is 'never', but must be"},
        {"KILN_COMM_TIMEOUT=soon", STATUS_USAGE, "KILN_COMM_TIMEOUT is 'soon', but must be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct comm world;
        EXPECT_ERROR(open_with(cases[i].told, &world), cases[i].code, cases[i].wanted);
        EXPECT(world.size == 1, "%s: %d ranks", cases[i].told, world.size);
    }
}

/* Served by a launcher, but without the library. */
static void a_build_without_mpi_says_so(void)
{
    char path[1100];
    struct comm world;
    shared_library_of_kiln(path, sizeof path, "libkiln_mpi.so");
    if (access(path, F_OK) != 0) {
        EXPECT_ERROR(open_with("PMIX_NAMESPACE=job OMPI_COMM_WORLD_SIZE=2", &world), STATUS_UNAVAILABLE,
                     "apt-get install libopenmpi-dev openmpi-bin, and build again");
    }
}

int main(void)
{
    the_only_process_is_alone();
    others_are_refused_with_a_way_out();
    a_build_without_mpi_says_so();
    return 0;
}
