/* commands: one per file of this folder, listed in main.c. */
#ifndef KILN_CMD_COMMANDS_H
#define KILN_CMD_COMMANDS_H

#include "core/option.h"

extern const struct command command_ask;
extern const struct command command_bench;
extern const struct command command_blimp;
extern const struct command command_classify;
extern const struct command command_convert;
extern const struct command command_doctor;
extern const struct command command_embed;
extern const struct command command_eval;
extern const struct command command_export;
extern const struct command command_fetch;
extern const struct command command_fill;
extern const struct command command_finetune_gpt;
extern const struct command command_generate;
extern const struct command command_glue;
extern const struct command command_inspect;
extern const struct command command_launch;
extern const struct command command_netcheck;
extern const struct command command_ngram;
extern const struct command command_plan;
extern const struct command command_pretrain;
extern const struct command command_pretrain_gpt;
extern const struct command command_prepare;
extern const struct command command_pack;
extern const struct command command_report;
extern const struct command command_score;
extern const struct command command_serve;
extern const struct command command_squad;
extern const struct command command_tag;
extern const struct command command_embed_train;
extern const struct command command_tokenize;
extern const struct command command_vocab;

#endif
