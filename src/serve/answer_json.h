/* answer_json: what models answer, as JSON: for predictions.jsonl and the commands' --json.
 *
 * The caller json_decref's each value; NULL: out of memory. */
#ifndef KILN_SERVE_ANSWER_JSON_H
#define KILN_SERVE_ANSWER_JSON_H

#include "core/json.h"
#include "serve/ask.h"
#include "serve/class_logits.h"
#include "serve/fill_mask.h"
#include "serve/generate.h"

/* Appends a line to `out`: numbers of fp64 have 9 digits, with which an fp32 is read back bit for bit.  Takes
 * `line` over. STATUS_MEMORY, also for NULL. */
struct status answer_json_append(struct buf *out, json_t *line);

/* Appends a vector, all digits of fp32: many times faster than by way of a json_t. */
void answer_json_append_vector(struct buf *out, const float *v, int64_t n);

/* A string of text that a model makes; bytes that are no UTF-8 become U+FFFD. */
json_t *answer_json_said(const char *text, size_t n);

/* {"text", "masks": [[{"token", "id", "probability"}, ...], ...]}: the candidates for each mask, the most
 * probable first. */
json_t *answer_json_fill(const char *text, size_t n, const struct fill_result *r, const struct tokenizer *t);

/* {"prompt", "text", "ids", "end"}: what follows a prompt, bytes that are no UTF-8 as U+FFFD; its tokens;
 * and "end", "stop" or "length", why it ended. */
json_t *answer_json_generation(const char *prompt, size_t n, const struct generation *g);

/* {"question", "answers": [{"text", "probability", "start", "end", "start_char", "end_char"}, ...]}, with
 * places in bytes and in characters of the context; all null for no answer. */
json_t *answer_json_ask(const char *question, const char *context, const struct ask_result *r);

/* {"id", "label", "scores"}: one label or number, or a list of them where a text may have several; all scores
 * by label.  `readings` are in the model's order.  Takes `id` over. */
json_t *answer_json_labels(json_t *id, const struct class_reading *readings,
                           const struct model_labels *model);

#endif
