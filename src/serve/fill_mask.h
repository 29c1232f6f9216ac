/* fill_mask: the most probable words for each [MASK] of a text. */
#ifndef KILN_SERVE_FILL_MASK_H
#define KILN_SERVE_FILL_MASK_H

#include "serve/session.h"

struct fill_candidate {
    int32_t id;
    double probability; /* probability of this word at this position, over the complete vocabulary */
};

struct fill_result {
    int64_t n_masks;
    int64_t top_k;
    struct fill_candidate *candidates; /* [n_masks, top_k], the most probable first */
};

/* A text as a job (serve/request.h); its masks are filled as the packer takes the rows. */
struct fill_job {
    struct request request;
    const struct session *session; /* borrowed */
    struct id_list ids;            /* ids of the text, special tokens included */
    int32_t *words;                /* [n_words] ids that may be filled in; NULL: all */
    int64_t n_words;
    struct fill_result result;
};

/* Whether text[0..n) has a mask: "[MASK]", or what the tokenizer calls it, "<mask>". */
bool fill_mask_is_in(const struct tokenizer *t, const char *text, size_t n);

/* Makes the job of a text.  STATUS_DATA if text[0..n) has no mask, or more than fit a batch, or is longer
 * than the model reads. */
struct status fill_job_make(struct fill_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                            const char *text, size_t n, int64_t top_k);

/* Leaves only these words to be filled in, before the job is handed over; probabilities stay those among all
 * words.  STATUS_MEMORY. */
struct status fill_job_choose(struct fill_job *j, const int32_t *words, int64_t n);
/* Appends the id of a word or piece, or of the first piece of a text that is none, unless it is there or has
 * none.  STATUS_MEMORY. */
struct status fill_mask_find_word(struct id_list *words, struct tokenizer_scratch *scratch, const char *text,
                                  size_t n);
void fill_job_read(struct fill_job *j, struct fill_result *result);
void fill_job_fini(struct fill_job *j);

/* Fills every mask of text[0..n).  STATUS_DATA if there is none, or if the text is longer than the model
 * reads; STATUS_NUMERIC if the model computes something that is not finite. */
struct status fill_mask(struct session *s, const char *text, size_t n, int64_t top_k,
                        struct fill_result *result);

/* Fills with these words only; none: with all. */
struct status fill_mask_with(struct session *s, const char *text, size_t n, int64_t top_k,
                             const struct id_list *words, struct fill_result *result);
void fill_result_fini(struct fill_result *r);

#endif
