/* The families of a program that also knows toy models: this table takes the place of the library's
 * (model/model_families.c).  Step 6: a family of kiln's is a row there. */
#include "model/bert/bert_family.h"
#include "toy_family.h"

const struct model_family *const model_families[] = {&bert_family, &toy_family, NULL};
