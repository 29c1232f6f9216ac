/* kiln score: exact match and F1 of predictions, as the official SQuAD scripts compute them. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "data/squad_score.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct score_args {
    const char *encoding;
    struct command_flags common;
};

static const struct option options[] = {
    ENCODING_ROW(offsetof(struct score_args, encoding), "DATASET.json"),
    DRY_RUN_ROW(offsetof(struct score_args, common.dry_run),
                "check both files, and print what would be scored"),
    {0},
};

static struct status dry_run(const char *dataset, const char *encoding, const char *predictions)
{
    struct squad_examples e;
    json_t *root;
    TRY(squad_examples_open(&e, dataset, (struct squad_read_options){.encoding = encoding}));
    struct status s = json_read_object(&root, predictions);
    if (!failed(s)) {
        log_info("would score %zu predictions of %s for the %lld questions of %s by the rules of v%s",
                 json_object_size(root), predictions, (long long)e.n, dataset,
                 e.has_impossible ? "2.0" : "1.1");
        json_decref(root);
    }
    squad_examples_fini(&e);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional;
    const struct score_args *a = args;
    if (a->common.dry_run) {
        return dry_run(positional[0], a->encoding, positional[1]);
    }
    struct squad_scores scores;
    struct buf text = {0};
    TRY(squad_score_files(&scores, positional[0], a->encoding, positional[1]));
    squad_score_to_text(&text, &scores);
    buf_putc(&text, '\n');
    return standard_streams_put(&text);
}

const struct command command_score = {
    .name = "score",
    .summary = "compute exact match and F1 of answers, as the official SQuAD scripts",
    .details = "DATASET.json is a SQuAD file, v1.1 or v2.0; PREDICTIONS.json is {\"id\": \"answer\"}. Prints "
               "{\"exact_match\": ..., \"f1\": ...} in percent.  A question without a prediction counts 0 "
               "and is named on standard error.",
    .positional_usage = "DATASET.json PREDICTIONS.json",
    .min_positional = 2,
    .max_positional = 2,
    .meant = "; `kiln eval --tokens` gives the probabilities of texts",
    .options = options,
    .args_bytes = sizeof(struct score_args),
    .run = run,
};
