#include "cmd/train_kinds.h"

#include "core/integers.h"
#include "core/status.h"

#include <string.h>

/* Llama's form, with a gate of two thirds of 4 H so that a layer has as many weights as GPT-2's: it learns
 * more in the same time (docs/decisions/0122_forms.md).  No more positions than it is trained on. */
static json_t *gpt_config(const struct train_choice *c, double dropout)
{
    enum { GRAIN = 32 };
    int64_t width = c->size->width, n_heads = c->size->n_heads;
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:f, s:f}", "model_type", "llama",
                     "hidden_size", (json_int_t)width, "intermediate_size",
                     (json_int_t)int_round_up(8 * width / 3, GRAIN), "num_hidden_layers",
                     (json_int_t)c->size->n_layers, "num_attention_heads", (json_int_t)n_heads,
                     "num_key_value_heads", (json_int_t)n_heads, "max_position_embeddings",
                     (json_int_t)c->length, "rms_norm_eps", 1e-5, "tie_word_embeddings", 1, "hidden_dropout",
                     dropout, "attention_dropout", dropout);
}

/* --shifted_positions trains the positions beyond a sample's, too. */
static json_t *bert_config(const struct train_choice *c, double dropout)
{
    enum { POSITIONS = 512 };
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "model_type", "bert", "hidden_size",
                     (json_int_t)c->size->width, "num_hidden_layers", (json_int_t)c->size->n_layers,
                     "num_attention_heads", (json_int_t)c->size->n_heads, "intermediate_size",
                     (json_int_t)(4 * c->size->width), "max_position_embeddings", (json_int_t)POSITIONS,
                     "hidden_dropout_prob", dropout, "attention_probs_dropout_prob", dropout);
}

#define WORDS(...)                                                                                           \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

static const struct train_kind kinds[] = {
    {.name = "gpt",
     .title = "GPT",
     .vocab_written = "vocab.json",
     .vocab_read = "tokenizer.json",
     .vocab = WORDS("--kind=bpe", "--keep_layout", "--overwrite"),
     .prepare = WORDS("--format=gpt", "--append_eod", "--resume"),
     .pretrain = WORDS("--recipe=modern"),
     .config = gpt_config,
     .tries = WORDS("generate --model %s --prompt \"It was\" --max_new_tokens 100",
                    "eval --model %s --input another.txt", "serve --model %s")},
    {.name = "bert",
     .title = "BERT",
     .masked = true,
     .vocab_written = "vocab.txt",
     .vocab_read = "vocab.txt",
     .vocab = WORDS("--kind=wordpiece", "--skip_other_files", "--overwrite"),
     .prepare = WORDS("--skip_other_files", "--resume"),
     .pretrain = WORDS("--recipe=modern"),
     .config = bert_config,
     .tries = WORDS("fill --model %s \"The house of [MASK] was empty.\"",
                    "classify --init_checkpoint %s --do_train --train_file texts.csv --output_dir labels",
                    "serve --model %s")},
};

const struct train_kind *train_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    CHECK(false, "kind %s", name);
    return NULL;
}
