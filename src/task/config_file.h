/* config_file: a BERT model's configuration from the file of --config_file. */
#ifndef KILN_TASK_CONFIG_FILE_H
#define KILN_TASK_CONFIG_FILE_H

#include "nn/bert/bert_config.h"

struct status config_file_read(struct bert_config *config, const char *path);

#endif
