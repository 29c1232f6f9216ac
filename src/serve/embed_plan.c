/* embed_plan: combines what a model's files say about vectors with a caller's options. */
#include "serve/embed_plan.h"

static const struct sentence_layer normalize_layer = {.normalize = true};

static struct status plan_length(struct embed_plan *p, const struct session *s, int64_t wanted)
{
    int64_t positions = s->net.config.model->max_length, least = input_form_n_special(&s->frame.one);
    p->max_length = wanted == 0 ? s->text_length : wanted;
    return p->max_length >= least && p->max_length <= positions
               ? status_ok()
               : status_error(STATUS_USAGE, "max_seq_length is %lld; this model reads %lld to %lld tokens",
                              (long long)p->max_length, (long long)least, (long long)positions);
}

/* The place of the last layer but for a truncation, which comes after all modules; -1: there is none. */
static int last_module(const struct embed_plan *p)
{
    int last = p->n_layers - 1;
    return last >= 0 && p->layers[last]->truncates ? last - 1 : last;
}

static void plan_layers(struct embed_plan *p, const struct sentence_model *m, const struct embed_options *o)
{
    for (int i = 0; i < m->n_layers; i++) {
        p->layers[p->n_layers++] = &m->layers[i];
    }
    if (o->truncate_dim > 0) {
        p->truncation = (struct sentence_layer){.truncates = true, .n_out = o->truncate_dim};
        p->n_layers = last_module(p) + 1;
        p->layers[p->n_layers++] = &p->truncation;
    }
    int last = last_module(p);
    bool does = last >= 0 && p->layers[last]->normalize, truncates = last < p->n_layers - 1;
    if (o->normalize == EMBED_YES && (!does || truncates)) {
        p->layers[p->n_layers++] = &normalize_layer;
    } else if (o->normalize == EMBED_NO && does) {
        p->layers[last] = p->layers[p->n_layers - 1];
        p->n_layers--;
    }
}

static struct status plan_widths(struct embed_plan *p, int64_t hidden_size)
{
    p->width = p->max_width = p->n_poolings * hidden_size;
    for (int i = 0; i < p->n_layers; i++) {
        const struct sentence_layer *l = p->layers[i];
        FAIL_IF(!l->normalize && !l->truncates && l->n_in != p->width, STATUS_USAGE,
                "the model's Dense module takes vectors of %lld numbers, but %d poolings of %lld make %lld",
                (long long)l->n_in, p->n_poolings, (long long)hidden_size, (long long)p->width);
        p->width = sentence_layer_width(l, p->width);
        p->max_width = p->width > p->max_width ? p->width : p->max_width;
    }
    return status_ok();
}

struct status embed_plan_make(struct embed_plan *p, const struct session *s, const struct embed_options *o)
{
    const struct sentence_model *m = s->sentence;
    *p = (struct embed_plan){.n_poolings = m->n_poolings,
                             .skips_prompt = m->skips_prompt,
                             .lower_case = m->lower_case && !s->tokenizer->lower_case,
                             .prompt = o->prompt,
                             .cut = o->cut};
    for (int i = 0; i < m->n_poolings; i++) {
        p->poolings[i] = m->poolings[i];
    }
    if (o->has_pooling == EMBED_YES) {
        p->poolings[0] = o->pooling;
        p->n_poolings = 1;
    }
    if (o->prompt == NULL) {
        TRY(sentence_model_prompt(m, o->prompt_name, &p->prompt));
    }
    plan_layers(p, m, o);
    TRY(plan_length(p, s, o->max_length));
    return plan_widths(p, s->net.config.model->hidden_size);
}

void embed_plan_describe(struct buf *out, const struct embed_plan *p)
{
    for (int i = 0; i < p->n_poolings; i++) {
        buf_printf(out, "%s%s", i == 0 ? "pooling " : " + ", sentence_pooling_name(p->poolings[i]));
    }
    for (int i = 0; i < p->n_layers; i++) {
        if (p->layers[i]->normalize) {
            buf_puts(out, ", normalised");
        } else if (p->layers[i]->truncates) {
            buf_printf(out, ", the first %lld numbers", (long long)p->layers[i]->n_out);
        } else {
            buf_printf(out, ", dense to %lld", (long long)p->layers[i]->n_out);
        }
    }
    buf_printf(out, ", at most %lld tokens", (long long)p->max_length);
    if (p->prompt[0] != '\0') {
        buf_printf(out, ", prompt \"%.100s\"%s", p->prompt, p->skips_prompt ? ", which is not pooled" : "");
    }
    buf_puts(out, p->lower_case ? ", lower case" : "");
}
