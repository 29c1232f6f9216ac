/* model_outputs: everything that a model computes for a small batch, in host memory: so that two forms of a
 * model can be compared, here or by another program. */
#ifndef KILN_SERVE_MODEL_OUTPUTS_H
#define KILN_SERVE_MODEL_OUTPUTS_H

#include "dev/precision.h"
#include "model/model_dir.h"

/* Sequences in a batch with padding. */
struct outputs_input {
    int64_t n_sequences, length;
    int32_t *ids, *types, *lengths; /* [B, S], [B, S], [B] the real tokens of each */
};

/* Three sequences of different lengths, up to 64 tokens, of pieces spread over the vocabulary: the same for
 * the same vocabulary and length.  outputs_input_fini frees it, and is safe on a zeroed struct.
 * STATUS_MEMORY. */
struct status outputs_input_fixed(struct outputs_input *in, const struct model_dir *m);

/* These texts, each cut at `length` tokens, in the frame of the model's tokenizer.  STATUS_DATA: the
 * vocabulary lacks what the frame needs; STATUS_MEMORY. */
struct status outputs_input_texts(struct outputs_input *in, const struct model_dir *m,
                                  const char *const *texts, int n, int64_t length);
void outputs_input_fini(struct outputs_input *in);

/* Outputs for all tokens but padding: for each token its word, by a decoder the next one. */
struct model_outputs {
    enum model_task task;
    tensor values[MODEL_N_OUTPUTS]; /* fp32, dense; null where the task has no such output; no losses */
};

/* Computes the outputs on the CPU in fp32, with the weights of the task that the directory's files have.
 * STATUS_NUMERIC: one is not finite. */
struct status model_outputs_compute(struct model_outputs *o, const struct model_dir *m, enum model_task task,
                                    const struct outputs_input *in);

/* Computes them in another precision; a pooler that the files lack is drawn at random. */
struct status model_outputs_compute_in(struct model_outputs *o, const struct model_dir *m,
                                       enum model_task task, const struct outputs_input *in,
                                       struct precision precision);

/* The cosine of the angle between an output of both, all its numbers as one vector; 1 if one has none. */
double model_outputs_cosine(const struct model_outputs *a, const struct model_outputs *b,
                            enum model_output output);

/* The name of an output in logs and files: "mlm", of a decoder "lm". */
const char *model_outputs_name(const struct model_outputs *o, enum model_output output);

/* Safe on a zeroed struct and after a failed computation. */
void model_outputs_fini(struct model_outputs *o);

/* The largest difference and the largest magnitude of an output that both have; false if one has none.  Word
 * logits are compared in the rows that both have: one model may have more rows after its pieces. */
bool model_outputs_compare(double *difference, double *largest, const struct model_outputs *a,
                           const struct model_outputs *b, enum model_output output);

/* Writes both as safetensors: "ids", "types", "lengths", and the outputs under their names. */
struct status model_outputs_save(const char *path, const struct outputs_input *in,
                                 const struct model_outputs *o);

#endif
