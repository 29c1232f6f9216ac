#include "corpus/converter.h"

#include "corpus/source_formats.h"

void converter_init(struct converter *c, const struct source_options *options)
{
    *c = (struct converter){.options = options};
}

void converter_fini(struct converter *c)
{
    for (int i = 0; i < SOURCE_N_FORMATS; i++) {
        if (c->states[i] != NULL) {
            source_formats[i]->convert_fini(c->states[i]);
        }
    }
}

struct status converter_run(struct converter *c, struct document *d)
{
    if (d->format == NULL || d->fate != DOCUMENT_KEPT) {
        return status_ok();
    }
    d->begins = true;
    TRY(d->format->convert(&c->states[source_formats_index(d->format)], c->options, d));
    if (d->n_paragraphs == 0 && d->fate == DOCUMENT_KEPT) {
        d->fate = DOCUMENT_WITHOUT_TEXT;
    }
    return status_ok();
}
