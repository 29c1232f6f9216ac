#include "task/eval_script.h"

#include "core/buf.h"
#include "core/json.h"
#include "core/log.h"
#include "io/file.h"

#include <stdio.h>
#include <string.h>

struct printed_scores {
    double exact_match, f1;
    int n; /* objects with both */
};

/* Takes the scores of an object that has both: "exact_match" (SQuAD 1.1) or "exact" (2.0), and "f1". */
static bool take_object(struct printed_scores *scores, const json_t *object)
{
    const json_t *exact = json_object_get(object, "exact_match"), *f1 = json_object_get(object, "f1");
    exact = exact == NULL ? json_object_get(object, "exact") : exact;
    bool has = json_is_number(exact) && json_is_number(f1);
    if (has) {
        *scores = (struct printed_scores){json_number_value(exact), json_number_value(f1), scores->n + 1};
    }
    return has;
}

/* The scores of the last object of JSON that has any, whatever an evaluation script has printed around it. */
static struct printed_scores find_scores(const char *printed)
{
    struct printed_scores scores = {0};
    for (const char *at = printed; (at = strchr(at, '{')) != NULL;) {
        json_error_t error; /* also says how many bytes were read */
        json_t *object = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
        at += object != NULL && take_object(&scores, object) ? error.position : 1;
        json_decref(object);
    }
    return scores;
}

/* Runs a command and appends what it prints, which the user sees too; whether it has succeeded. */
static bool run_command(struct buf *printed, const char *command)
{
    char part[512];
    FILE *out = popen(command, "r"); /* NOLINT(cert-env33-c): the user's own script */
    if (out == NULL) {
        return false;
    }
    for (size_t n; (n = fread(part, 1, sizeof part, out)) > 0;) {
        fwrite(part, 1, n, stdout);
        buf_append(printed, part, n);
    }
    return pclose(out) == 0 && !printed->failed;
}

struct status eval_script_run(struct score_list *scores, const char *script, const char *data,
                              const char *predictions)
{
    char command[4 * FILE_PATH_BYTES];
    struct buf printed = {0};
    if (strpbrk(script, "'\\") != NULL || strpbrk(data, "'\\") != NULL ||
        strpbrk(predictions, "'\\") != NULL) {
        return status_error(STATUS_USAGE, "--eval_script cannot be run with quotes or backslashes in a path");
    }
    int n = snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", script, data, predictions);
    bool ran = n < (int)sizeof command && run_command(&printed, command);
    struct printed_scores found = ran ? find_scores(buf_text(&printed)) : (struct printed_scores){0};
    if (found.n > 0) {
        score_list_add(scores, "exact_match", found.exact_match);
        score_list_add(scores, "F1", found.f1);
    }
    if (found.n > 1) {
        log_warning("--eval_script %s printed %d objects with scores: the last one counts", script, found.n);
    }
    if (ran && found.n == 0) {
        log_warning("--eval_script %s printed no \"exact_match\" and \"f1\" as JSON: logs and the report "
                    "have no score",
                    script);
    }
    buf_fini(&printed);
    return ran ? status_ok() : status_error(STATUS_DATA, "--eval_script %s failed", script);
}
