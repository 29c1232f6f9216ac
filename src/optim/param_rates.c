#include "optim/param_rates.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INPUT_LAYER = -1, WORD_BYTES = 2 * PARAM_NAME_BYTES };

static bool is_embeddings(const char *word)
{
    return strcmp(word, "embeddings") == 0;
}

/* Whether a word is "3" or "0-5". */
static bool is_layers(const char *word, int64_t *first, int64_t *last)
{
    long long a, b;
    int end = 0;
    bool digits = word[strspn(word, "0123456789-")] == '\0' && word[0] != '-';
    if (digits && sscanf(word, "%9lld-%9lld%n", &a, &b, &end) == 2 && word[end] == '\0') {
        *first = a, *last = b;
        return true;
    }
    if (digits && sscanf(word, "%9lld%n", &a, &end) == 1 && word[end] == '\0') {
        *first = *last = a;
        return true;
    }
    return false;
}

static bool has_name(const struct param *p, const char *word)
{
    size_t n = strlen(word);
    return fnmatch(word, p->name, 0) == 0 ||
           (strncmp(p->name, word, n) == 0 && (p->name[n] == '.' || p->name[n] == '\0'));
}

static struct status check_layers(const char *word, int64_t first, int64_t last, int64_t n_layers)
{
    if (first <= last && last < n_layers) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "--freeze: there are no layers %s; the model has %lld, numbered 0 to %lld", word,
                        (long long)n_layers, (long long)n_layers - 1);
}

static struct status freeze_word(struct param_table *t, int64_t n_layers, const char *word)
{
    int64_t first = INPUT_LAYER, last = INPUT_LAYER;
    bool layers = is_layers(word, &first, &last);
    if (layers) {
        TRY(check_layers(word, first, last, n_layers));
    }
    layers = layers || is_embeddings(word);
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        struct param *p = &t->params[i];
        bool matches = layers ? p->layer >= first && p->layer <= last : has_name(p, word);
        p->rate = matches ? 0 : p->rate;
        n += matches;
    }
    return n > 0 ? status_ok()
                 : status_error(STATUS_USAGE,
                                "--freeze: \"%s\" matches no parameter; give embeddings, a layer as 3, "
                                "layers as 0-5, or names as `kiln inspect` lists them, with * for any part",
                                word);
}

static struct status freeze(struct param_table *t, int64_t n_layers, const char *words)
{
    const char *at = words;
    for (;;) {
        char word[WORD_BYTES];
        size_t n = strcspn(at, ",");
        FAIL_IF(n == 0 || n >= sizeof word, STATUS_USAGE,
                "--freeze \"%s\" has a word that is empty or too long; put one comma between words", words);
        memcpy(word, at, n);
        word[n] = '\0';
        TRY(freeze_word(t, n_layers, word));
        if (at[n] == '\0') {
            return status_ok();
        }
        at += n + 1;
    }
}

struct status param_rates_apply(struct param_table *t, int64_t n_layers, const struct param_rates *r)
{
    int n_trained = 0;
    for (int i = 0; i < t->n && r->layer_decay > 0; i++) {
        t->params[i].rate = pow(r->layer_decay, (double)(n_layers - t->params[i].layer));
    }
    TRY(r->freeze != NULL ? freeze(t, n_layers, r->freeze) : status_ok());
    for (int i = 0; i < t->n; i++) {
        n_trained += t->params[i].rate != 0;
    }
    return n_trained > 0 ? status_ok()
                         : status_error(STATUS_USAGE, "--freeze \"%s\" leaves nothing to train", r->freeze);
}

int64_t param_rates_lowest(const struct param_table *t)
{
    int64_t lowest = INT64_MAX;
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        lowest = p->rate != 0 && p->layer < lowest ? p->layer : lowest;
    }
    return lowest;
}

int64_t param_rates_count_frozen(const struct param_table *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->n; i++) {
        n += t->params[i].rate == 0 ? param_count(&t->params[i]) : 0;
    }
    return n;
}
