/* precision_flags: the flags that choose the number format of training, for the option tables; AT(field) is
 * the field's offset in the command's own struct. */
#ifndef KILN_CMD_PRECISION_FLAGS_H
#define KILN_CMD_PRECISION_FLAGS_H

#define PRECISION_ROWS                                                                                       \
    OPTION_FLAG_ROW(                                                                                         \
        "autocast", AT(precision.autocast),                                                                  \
        "compute in bf16, with fp32 master weights and statistics; without it everything is fp32"),          \
        OPTION_FLAG_ROW("hmp", AT(precision.autocast), "old name of --autocast"),                            \
        OPTION_FLAG_ROW("tf32", AT(precision.tf32),                                                          \
                        "on a GPU, multiply fp32 matrices in TF32, which keeps 10 bits of their mantissa; "  \
                        "ignored on the cpu"),                                                               \
        OPTION_FLAG_ROW("fp16", AT(precision.fp16),                                                          \
                        "compute in fp16 on a GPU, with or without --autocast; in training with fp32 "       \
                        "master weights and a scaled loss, which bf16 does not need; prediction on the cpu " \
                        "rounds to fp16 and computes in fp32"),                                              \
        OPTION_FLAG_ROW("amp", AT(precision.fp16), "the same as --fp16"),                                    \
        OPTION_FLAG_ROW(                                                                                     \
            "fp8", AT(precision.fp8),                                                                        \
            "multiply in the layers in fp8 (e4m3 forward, e5m2 for gradients), and compute all else in "     \
            "bf16; a device without such products multiplies the same numbers in bf16, slower")

#define LOSS_SCALE_ROW                                                                                       \
    OPTION_REAL_ROW(                                                                                         \
        "loss_scale", AT(loss_scale.fixed), "0", 0, 1e9,                                                     \
        "in fp16, multiply the loss by this before backward; 0: off, the scale follows overflows")

#endif
