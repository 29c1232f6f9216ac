/* precision_flags: the flags by which `kiln pretrain` and `kiln squad` are told what numbers to compute in, for
 * their option tables; AT(field) is the place in the command's own struct. */
#ifndef KILN_CMD_PRECISION_FLAGS_H
#define KILN_CMD_PRECISION_FLAGS_H

#define PRECISION_ROWS                                                                                       \
    OPTION_FLAG_ROW(                                                                                         \
        "autocast", AT(precision.autocast),                                                                  \
        "compute in bf16, with fp32 master weights and statistics; without it everything is fp32"),          \
        OPTION_FLAG_ROW("hmp", AT(precision.autocast), "the old name of --autocast"),                        \
        OPTION_FLAG_ROW("tf32", AT(precision.tf32),                                                          \
                        "on a GPU, multiply fp32 matrices in TF32: 10 bits of mantissa, several times as "   \
                        "fast; ignored on the cpu")

#endif
