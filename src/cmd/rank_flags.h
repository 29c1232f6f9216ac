/* rank_flags: the flags of task/rank_options.h, for the option tables of the training commands; `at` is the
 * offset of a struct rank_options in the command's own struct. */
#ifndef KILN_CMD_RANK_FLAGS_H
#define KILN_CMD_RANK_FLAGS_H

#include "task/rank_options.h"

#define RANK_ROWS(at)                                                                                        \
    OPTION_GROUP_ROW("several ranks, started by mpirun or srun"),                                            \
        OPTION_INT_ROW(                                                                                      \
            "global_batch_size", (at) + offsetof(struct rank_options, global_batch_size), "0", 0, 1e9,       \
            "number of sequences in an optimizer step of all ranks together, in "                            \
            "--gradient_accumulation_steps micro-batches of all ranks: the same work, however many "         \
            "ranks there are; 0: off, --train_batch_size and its micro-batches are per rank"),               \
        OPTION_INT_ROW(                                                                                      \
            "reproducible_ranks", (at) + offsetof(struct rank_options, reproducible_ranks), "0", 0, 1024,    \
            "give the same bits on 1, 2, 4 ... N ranks, for the same global batch and micro-batches; N "     \
            "/ ranks = 2, 4, 8 take 1, 2, 3 more buffers of gradients on each; 0: off, only the same "       \
            "number of ranks gives the same bits"),                                                          \
        OPTION_INT_ROW("zero_stage", (at) + offsetof(struct rank_options, zero_stage), "0", 0, 3,            \
                       "shard training state over ranks. 0: off; 1: a rank keeps the moments and, in 16 "    \
                       "bits, the fp32 weights of its shard only, with the same bits; 2: also only the "     \
                       "gradients of its shard, which costs a reduction each micro-batch"),                  \
        OPTION_INT_ROW("replica_check_steps", (at) + offsetof(struct rank_options, replica_check_steps),     \
                       "0", 0, 1e12,                                                                         \
                       "compare a hash of all ranks' weights every N steps, and end if a bit differs "       \
                       "(silent corruption: Dixit et al. 2021, arXiv:2102.11245); 0: off, only before the "  \
                       "first step and each checkpoint")

#endif
