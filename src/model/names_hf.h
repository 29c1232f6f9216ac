/* names_hf: from the names of tensors in other programs' files to kiln's, which are those of Hugging Face's
 * BERT classes with a head ("bert.encoder.layer.0...", "cls.predictions...", "qa_outputs...").
 *
 * Understood: wrappers of PyTorch ("module.", "_orig_mod."), files of the bare encoder
 * ("encoder.layer.0..."), layer norms of TensorFlow's days ("LayerNorm.gamma", "LayerNorm.beta") and NVIDIA's
 * fused layers ("dense_act"). */
#ifndef KILN_MODEL_NAMES_HF_H
#define KILN_MODEL_NAMES_HF_H

#include "core/param.h"

/* The part of a model that a tensor belongs to. */
enum names_part {
    NAMES_EMBEDDINGS, /* bert.embeddings.* */
    NAMES_ENCODER,    /* bert.encoder.* */
    NAMES_POOLER,     /* bert.pooler.* */
    NAMES_MLM,        /* cls.predictions.* */
    NAMES_NSP,        /* cls.seq_relationship.* */
    NAMES_QA,         /* qa_outputs.* */
    NAMES_CLASSIFIER, /* classifier.* */
    NAMES_BUFFER,     /* constants that old files hold, such as bert.embeddings.position_ids */
    NAMES_OTHER,      /* no part of these models */
    NAMES_N_PARTS,
};

struct names_hf {
    char name[PARAM_NAME_BYTES]; /* as in kiln's parameter table */
    enum names_part part;
    bool tied; /* another name of a tensor that the file has too: the decoder of the MLM head */
};

/* What a tensor of a file stands for.  A name too long to be any parameter's is cut, and NAMES_OTHER. */
struct names_hf names_hf_canonical(const char *name);

/* The part of a name in kiln's parameter table. */
enum names_part names_hf_part(const char *name);

/* "bert.pooler.*" and so on. */
const char *names_hf_pattern(enum names_part part);

#endif
