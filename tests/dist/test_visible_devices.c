/* Each rank of a node gets another GPU of those that its processes may see. */
#include "dist/world.h"

#include "test.h"

static const struct visible_case {
    const char *list;
    int n_chips, local_rank;
    const char *wanted; /* NULL: nothing to choose from */
} cases[] = {
    {NULL, 8, 0, "0"},
    {NULL, 8, 7, "7"},
    {NULL, 2, 3, "1"}, /* ranks share a GPU */
    {NULL, 0, 1, NULL},
    {"4,5,6,7", 8, 0, "4"},
    {"4,5,6,7", 8, 3, "7"},
    {"4,5", 8, 3, "5"},
    {"3", 8, 5, "3"}, /* a scheduler has chosen */
    {"GPU-1111,MIG-2222", 8, 1, "MIG-2222"},
    {"1,", 8, 1, "1"},
    {",2,,3", 8, 1, "3"},
    {"", 8, 1, NULL},
    {",", 8, 0, NULL},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct visible_case *k = &cases[i];
        char chosen[32] = "";
        bool chose = world_choose_device(chosen, sizeof chosen, k->list, k->n_chips, k->local_rank);
        EXPECT(chose == (k->wanted != NULL) && (!chose || strcmp(chosen, k->wanted) == 0), "case %zu: '%s'",
               i, chosen);
    }
    EXPECT(setenv("CUDA_VISIBLE_DEVICES", "6,7", 1) == 0, "setenv");
    world_show_device(1);
    EXPECT(strcmp(getenv("CUDA_VISIBLE_DEVICES"), "7") == 0, "%s", getenv("CUDA_VISIBLE_DEVICES"));
    world_show_device(1); /* again */
    EXPECT(strcmp(getenv("CUDA_VISIBLE_DEVICES"), "7") == 0, "%s", getenv("CUDA_VISIBLE_DEVICES"));
    return 0;
}
