/* model_families: the table of all families of models.  A new one is a row. */
#include "model/bert/bert_family.h"
#include "model/decoder/decoder_family.h"
#include "model/modernbert/modernbert_family.h"

const struct model_family *const model_families[] = {
    &bert_family,         &roberta_family,    &xlm_roberta_family,  &camembert_family,     &distilbert_family,
    &modernbert_family,   &gpt2_family,       &bloom_family,        &tied_gpt_neox_family, &gpt_neox_family,
    &tied_llama_family,   &llama_family,      &tied_mistral_family, &mistral_family,       &tied_qwen2_family,
    &qwen2_family,        &tied_qwen3_family, &qwen3_family,        &tied_olmo2_family,    &olmo2_family,
    &tied_smollm3_family, &smollm3_family,    &tied_phi3_family,    &phi3_family,          NULL};
