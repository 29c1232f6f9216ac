/* names of tensors, as other programs write them. */
#include "model/bert/bert_family.h"
#include "test.h"

static void expect(const char *from, const char *to, enum names_part part, bool tied)
{
    struct names_hf r = names_hf_canonical(&bert_family, from);
    EXPECT(strcmp(r.name, to) == 0, "%s became %s, not %s", from, r.name, to);
    EXPECT(r.part == part, "%s is of part %d, not %d", from, r.part, part);
    EXPECT(r.tied == tied, "%s: tied %d", from, r.tied);
}

static void test_own_names_stay(void)
{
    expect("bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.weight", NAMES_EMBEDDINGS, false);
    expect("bert.encoder.layer.11.attention.self.query.weight",
           "bert.encoder.layer.11.attention.self.query.weight", NAMES_ENCODER, false);
    expect("bert.pooler.dense.bias", "bert.pooler.dense.bias", NAMES_POOLER, false);
    expect("cls.predictions.bias", "cls.predictions.bias", NAMES_MLM, false);
    expect("cls.seq_relationship.weight", "cls.seq_relationship.weight", NAMES_NSP, false);
    expect("qa_outputs.bias", "qa_outputs.bias", NAMES_QA, false);
}

static void test_prefixes(void)
{
    expect("encoder.layer.0.output.dense.bias", "bert.encoder.layer.0.output.dense.bias", NAMES_ENCODER,
           false);
    expect("embeddings.word_embeddings.weight", "bert.embeddings.word_embeddings.weight", NAMES_EMBEDDINGS,
           false);
    expect("pooler.dense.weight", "bert.pooler.dense.weight", NAMES_POOLER, false);
    expect("module.bert.pooler.dense.weight", "bert.pooler.dense.weight", NAMES_POOLER, false);
    expect("_orig_mod.module.encoder.layer.3.output.LayerNorm.bias",
           "bert.encoder.layer.3.output.LayerNorm.bias", NAMES_ENCODER, false);
    expect("module.qa_outputs.weight", "qa_outputs.weight", NAMES_QA, false);
}

static void test_old_names(void)
{
    expect("bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight", NAMES_EMBEDDINGS, false);
    expect("cls.predictions.transform.LayerNorm.beta", "cls.predictions.transform.LayerNorm.bias", NAMES_MLM,
           false);
    expect("bert.encoder.layer.0.intermediate.dense_act.weight",
           "bert.encoder.layer.0.intermediate.dense.weight", NAMES_ENCODER, false);
    expect("bert.pooler.dense_act.bias", "bert.pooler.dense.bias", NAMES_POOLER, false);
    expect("cls.predictions.transform.dense_act.weight", "cls.predictions.transform.dense.weight", NAMES_MLM,
           false);
    expect("gamma", "gamma", NAMES_OTHER, false);
}

static void expect_transposed(const char *from, const char *to, enum names_part part, bool transposed)
{
    expect(from, to, part, false);
    EXPECT(names_hf_canonical(&bert_family, from).order.transposed == transposed, "%s: transposed %d", from,
           !transposed);
}

/* Of google-research/bert: run_pretraining.py and run_squad.py. */
static void test_tensorflow_names(void)
{
    expect_transposed("bert/encoder/layer_11/attention/output/dense/kernel",
                      "bert.encoder.layer.11.attention.output.dense.weight", NAMES_ENCODER, true);
    expect_transposed("bert/encoder/layer_0/intermediate/dense/bias",
                      "bert.encoder.layer.0.intermediate.dense.bias", NAMES_ENCODER, false);
    expect_transposed("bert/embeddings/LayerNorm/gamma", "bert.embeddings.LayerNorm.weight", NAMES_EMBEDDINGS,
                      false);
    expect_transposed("bert/embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings.weight",
                      NAMES_EMBEDDINGS, false);
    expect_transposed("bert/pooler/dense/kernel", "bert.pooler.dense.weight", NAMES_POOLER, true);
    expect_transposed("cls/predictions/transform/LayerNorm/beta", "cls.predictions.transform.LayerNorm.bias",
                      NAMES_MLM, false);
    expect_transposed("cls/predictions/output_bias", "cls.predictions.bias", NAMES_MLM, false);
    expect_transposed("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", NAMES_NSP, false);
    expect_transposed("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", NAMES_NSP, false);
    expect_transposed("cls/squad/output_weights", "qa_outputs.weight", NAMES_QA, false);
    expect_transposed("cls/squad/output_bias", "qa_outputs.bias", NAMES_QA, false);
    expect("global_step", "global_step", NAMES_STATE, false);
    EXPECT(names_hf_canonical(&bert_family, "bert/encoder/layer_0/output/dense/kernel/adam_v").part ==
               NAMES_STATE,
           "adam_v");
    EXPECT(names_hf_canonical(&bert_family, "bert/pooler/dense/kernel/LAMB_1").part == NAMES_STATE, "LAMB_1");
}

static void test_tied_and_buffers(void)
{
    expect("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", NAMES_EMBEDDINGS,
           true);
    expect("module.cls.predictions.decoder.bias", "cls.predictions.bias", NAMES_MLM, true);
    expect("embeddings.position_ids", "bert.embeddings.position_ids", NAMES_BUFFER, false);
    expect("bert.embeddings.token_type_ids", "bert.embeddings.token_type_ids", NAMES_BUFFER, false);
}

static void test_foreign_names(void)
{
    char longest[PARAM_NAME_BYTES], cut[PARAM_NAME_BYTES], over[400];
    expect("classifier.weight", "classifier.weight", NAMES_CLASSIFIER, false);
    expect("", "", NAMES_OTHER, false);
    expect("bert", "bert", NAMES_OTHER, false);
    expect("module.", "", NAMES_OTHER, false);
    /* at the limit of a name's bytes */
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    expect(longest, longest, NAMES_OTHER, false);
    memset(over, 'y', sizeof over - 1);
    memcpy(over, "encoder.", 8);
    over[sizeof over - 1] = '\0';
    snprintf(cut, sizeof cut, "bert.%s", over);
    expect(over, cut, NAMES_OTHER, false);
    /* a name that grows past the limit when it is made new stays as it is */
    snprintf(longest + sizeof longest - 16, 16, "LayerNorm.gamma");
    expect(longest, longest, NAMES_OTHER, false);
}

int main(void)
{
    test_own_names_stay();
    test_prefixes();
    test_old_names();
    test_tensorflow_names();
    test_tied_and_buffers();
    test_foreign_names();
    return 0;
}
