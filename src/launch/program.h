/* program: the command line that is to run as ranks: kiln's own, one of the replaced scripts', a line of
 * mpirun or srun that is only supervised, or any other program. */
#ifndef KILN_LAUNCH_PROGRAM_H
#define KILN_LAUNCH_PROGRAM_H

#include "core/words.h"

struct program {
    struct words words;
    char *self;             /* kiln's path */
    bool is_line;           /* the words begin with mpirun or srun */
    int first_flag;         /* index of the word after kiln's command; 0: it is not kiln that trains */
    bool is_dry_run;        /* kiln's flags have --dry-run */
    const char *command;    /* "pretrain"; NULL: unknown; borrowed from `words`, as output_dir is */
    const char *output_dir; /* output directory of the training command; NULL: unknown */
};

/* Reads the words after the flags of `kiln launch`:
 *
 *     kiln pretrain ... | pretrain ...             this program, by its full path, which every host must have
 *     [python3 [-u]] [DIR/]run_pretraining.py ...         kiln pretrain; run_squad.py is kiln squad
 *     mpirun ... kiln pretrain ... | srun ...             as typed
 *     PROGRAM ...                                         as typed
 *
 * STATUS_USAGE: another of Python's scripts. */
struct status program_init(struct program *p, int n, const char *const *words);
void program_fini(struct program *p);

#endif
