#include "report/run_log.h"

enum { MOST_ROWS = 8 };

static const char *prompt_of(const json_t *sample)
{
    const char *prompt = json_string_value(json_object_get(sample, "prompt"));
    return prompt == NULL ? "" : prompt;
}

/* Steps with samples, ascending, each with its texts by prompt; the prompts in the order of their first. */
static json_t *by_step(const json_t *samples, json_t *prompts)
{
    json_t *steps = json_array(), *sample;
    size_t i;
    json_array_foreach(samples, i, sample)
    {
        json_t *step = json_object_get(sample, "step"),
               *last = json_array_get(steps, json_array_size(steps) - 1);
        if (last == NULL || !json_equal(json_object_get(last, "step"), step)) {
            last = json_pack("{s:O, s:{}}", "step", step, "texts");
            json_array_append_new(steps, last);
        }
        json_object_set(json_object_get(last, "texts"), prompt_of(sample), json_object_get(sample, "text"));
        json_object_set_new(prompts, prompt_of(sample), json_null());
    }
    return steps;
}

static json_t *row_of(const json_t *step, const json_t *prompts)
{
    json_t *row = json_pack("[O]", json_object_get(step, "step"));
    const char *prompt;
    json_t *none;
    json_object_foreach((json_t *)prompts, prompt, none)
    {
        const char *text = json_string_value(json_object_get(json_object_get(step, "texts"), prompt));
        json_array_append_new(row, json_string(text == NULL ? "" : text));
    }
    return row;
}

json_t *report_samples_table(const struct run_log *log)
{
    if (json_array_size(log->samples) == 0) {
        return NULL;
    }
    json_t *prompts = json_object(), *columns = json_pack("[s]", "step"), *rows = json_array(), *none;
    json_t *steps = by_step(log->samples, prompts);
    size_t n = json_array_size(steps), n_rows = n < MOST_ROWS ? n : MOST_ROWS;
    const char *prompt;
    json_object_foreach(prompts, prompt, none)
    {
        json_array_append_new(columns, json_string(prompt));
    }
    for (size_t i = 0; i < n_rows; i++) {
        size_t at = n_rows == 1 ? 0 : i * (n - 1) / (n_rows - 1);
        json_array_append_new(rows, row_of(json_array_get(steps, at), prompts));
    }
    json_decref(steps);
    json_decref(prompts);
    return json_pack("{s:s, s:s, s:o, s:o}", "title", "Samples while it learns", "note",
                     "What the model makes of the same texts at evaluations, by the same random numbers.",
                     "columns", columns, "rows", rows);
}
