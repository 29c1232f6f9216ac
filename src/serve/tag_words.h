/* tag_words: the label of each word of a sentence, and the entities that the words name, by a model
 * fine-tuned for that (kiln tag, or a BertForTokenClassification of Hugging Face). */
#ifndef KILN_SERVE_TAG_WORDS_H
#define KILN_SERVE_TAG_WORDS_H

#include "data/tag_examples.h"
#include "data/tag_score.h"
#include "serve/class_logits.h"
#include "serve/session.h"

struct tag_sentence {
    const struct text_bytes *words; /* [n] */
    size_t n;
};

struct tag_result {
    struct class_reading *words; /* [n] the label of each word, over all sentences, and its probability */
    /* [n_entities]; words are counted as above. Types are the model's, or constant */
    struct tag_entity *entities;
    int64_t n, n_entities;
    int64_t n_cut; /* sentences with too many tokens, which were read in parts */
};

/* Sentences as a job (serve/request.h). */
struct tag_job {
    struct request request;
    const struct model_labels *labels; /* labels of the session's model, borrowed */
    struct tag_examples sentences;
    struct class_logits logits;
};

/* Makes the job of sentences, as tag_words; the sentences are not read after it. */
struct status tag_job_make(struct tag_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                           const struct tag_sentence *sentences, size_t n_sentences);
struct status tag_job_read(const struct tag_job *j, struct tag_result *result);
void tag_job_fini(struct tag_job *j);

/* Labels the words of sentences, in a session of MODEL_TASK_TOKEN_CLASSIFICATION.  The label of a word is
 * that of its first piece; entities are what data/tag_score.h finds in each sentence.  STATUS_NUMERIC if the
 * model computes something that is not finite. */
struct status tag_words(struct session *s, struct tag_result *result, const struct tag_sentence *sentences,
                        size_t n_sentences);
void tag_result_fini(struct tag_result *r);

/* The logits of an encoded word, [num_labels]. */
const float *tag_words_logits(const struct class_logits *l, const struct tag_word *w);

#endif
