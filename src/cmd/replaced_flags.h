/* replaced_flags: flags of run_pretraining.py and run_squad.py that have no meaning here.  They are accepted,
 * each with a log line that says why it has no effect, so that an old command line runs unchanged.  A flag
 * that asks for a computation that kiln does not do is refused.  AT(field) is the field's offset in the
 * command's own struct. */
#ifndef KILN_CMD_REPLACED_FLAGS_H
#define KILN_CMD_REPLACED_FLAGS_H

#define REPLACED_FLAG_ROWS                                                                                   \
    OPTION_GROUP_ROW("flags of the replaced scripts"),                                                       \
        OPTION_IGNORED_ROW("use_env", "the replaced script does not use it either"),                         \
        OPTION_IGNORED_ROW(                                                                                  \
            "use_habana",                                                                                    \
            "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),              \
        OPTION_IGNORED_ROW(                                                                                  \
            "use_hpu", "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),   \
        OPTION_IGNORED_ROW(                                                                                  \
            "hpu", "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),       \
        OPTION_MEANS_ROW("no_cuda", AT(device), "cpu", "the same as --device cpu"),                          \
        OPTION_IGNORED_VALUE_ROW("use_lazy_mode", "BOOL", "there is no graph to be lazy about"),             \
        OPTION_IGNORED_ROW("use_torch_compile", "everything is compiled already"),                           \
        OPTION_IGNORED_ROW("compiled_autograd", "everything is compiled already"),                           \
        OPTION_IGNORED_ROW("no_compiled_autograd", "everything is compiled already"),                        \
        OPTION_IGNORED_VALUE_ROW("hmp_bf16", "FILE", "--autocast has no lists of operations"),               \
        OPTION_IGNORED_VALUE_ROW("hmp_fp32", "FILE", "--autocast has no lists of operations"),               \
        OPTION_IGNORED_VALUE_ROW("hmp_opt_level", "NAME", "--autocast has one level"),                       \
        OPTION_IGNORED_ROW("hmp_verbose", "--autocast has no lists of operations")

#endif
