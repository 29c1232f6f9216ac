#include "corpus/document.h"

#include "core/array.h"

#include <stdlib.h>

const char *const document_fate_names[DOCUMENT_N_FATES] = {
    [DOCUMENT_KEPT] = "kept",
    [DOCUMENT_WITHOUT_TEXT] = "without text",
    [DOCUMENT_REDIRECT] = "redirects",
    [DOCUMENT_OTHER_NAMESPACE] = "in another namespace than articles",
    [DOCUMENT_OTHER_MODEL] = "of another content model than wikitext",
    [DOCUMENT_MALFORMED] = "malformed",
    [DOCUMENT_WITHOUT_FIELD] = "without the field of the text (--text_field)",
    [DOCUMENT_TOO_LARGE] = "larger than the limit",
    [DOCUMENT_TOO_DEEP] = "nested deeper than the limit",
    [DOCUMENT_TOO_MUCH_WORK] = "over the limit of work for their size",
    [DOCUMENT_CUT] = "cut by the end of a file or a damaged part",
    [DOCUMENT_TOO_SHORT] = "shorter than --min_document_chars",
    [DOCUMENT_OTHER_SCRIPT] = "in other scripts than --keep_script",
    [DOCUMENT_DUPLICATE] = "equal to an earlier one",
    [DOCUMENT_NEAR_DUPLICATE] = "nearly equal to an earlier one",
    [DOCUMENT_NOT_UTF8] = "not UTF-8",
    [DOCUMENT_NO_STRING] = "with a text that is not a string",
    [DOCUMENT_NUMBER_OF_WORDS] = "of fewer words than --min_words or more than --max_words",
    [DOCUMENT_WORD_LENGTH] = "with a mean length of words beyond --min_word_length or --max_word_length",
    [DOCUMENT_SYMBOLS] = "with more symbols than --max_symbols",
    [DOCUMENT_REPEATED_LINES] = "with more repeated lines than --max_repeated_lines",
    [DOCUMENT_REPEATED_WORDS] = "with more repeated words than --max_repeated_words",
    [DOCUMENT_CONTAMINATED] = "with text of the files of --decontaminate",
};

const char *const document_fate_keys[DOCUMENT_N_FATES] = {
    [DOCUMENT_KEPT] = "kept",
    [DOCUMENT_WITHOUT_TEXT] = "without_text",
    [DOCUMENT_REDIRECT] = "redirect",
    [DOCUMENT_OTHER_NAMESPACE] = "other_namespace",
    [DOCUMENT_OTHER_MODEL] = "other_content_model",
    [DOCUMENT_MALFORMED] = "malformed",
    [DOCUMENT_WITHOUT_FIELD] = "without_field",
    [DOCUMENT_TOO_LARGE] = "too_large",
    [DOCUMENT_TOO_DEEP] = "too_deep",
    [DOCUMENT_TOO_MUCH_WORK] = "too_much_work",
    [DOCUMENT_CUT] = "cut",
    [DOCUMENT_TOO_SHORT] = "too_short",
    [DOCUMENT_OTHER_SCRIPT] = "other_script",
    [DOCUMENT_DUPLICATE] = "duplicate",
    [DOCUMENT_NEAR_DUPLICATE] = "near_duplicate",
    [DOCUMENT_NOT_UTF8] = "not_utf8",
    [DOCUMENT_NO_STRING] = "no_string",
    [DOCUMENT_NUMBER_OF_WORDS] = "number_of_words",
    [DOCUMENT_WORD_LENGTH] = "word_length",
    [DOCUMENT_SYMBOLS] = "symbols",
    [DOCUMENT_REPEATED_LINES] = "repeated_lines",
    [DOCUMENT_REPEATED_WORDS] = "repeated_words",
    [DOCUMENT_CONTAMINATED] = "contaminated",
};

void document_fini(struct document *d)
{
    buf_fini(&d->id);
    buf_fini(&d->title);
    buf_fini(&d->url);
    buf_fini(&d->fields);
    buf_fini(&d->text);
    buf_fini(&d->raw);
    free(d->ends);
    *d = (struct document){0};
}

void document_clear(struct document *d)
{
    buf_clear(&d->id);
    buf_clear(&d->title);
    buf_clear(&d->url);
    buf_clear(&d->fields);
    buf_clear(&d->text);
    buf_clear(&d->raw);
    d->begins = d->is_exact = false;
    d->n_paragraphs = 0;
    d->format = NULL;
    d->site = NULL;
    d->fate = DOCUMENT_KEPT;
}

bool document_is_there(const struct document *d)
{
    return d->n_paragraphs > 0 || d->format != NULL;
}

static size_t paragraph_start(const struct document *d, int64_t i)
{
    return i == 0 ? 0 : d->ends[i - 1];
}

struct paragraph document_paragraph(const struct document *d, int64_t i)
{
    size_t start = paragraph_start(d, i);
    return (struct paragraph){d->text.data + start, d->ends[i] - start};
}

size_t document_open_bytes(const struct document *d)
{
    return d->text.n - paragraph_start(d, d->n_paragraphs);
}

struct status document_end_paragraph(struct document *d)
{
    TRY(buf_status(&d->text));
    FAIL_IF(!ARRAY_RESERVE(d->ends, d->capacity, d->n_paragraphs + 1), STATUS_MEMORY,
            "out of memory for %zu paragraphs", d->capacity);
    d->ends[d->n_paragraphs++] = d->text.n;
    return status_ok();
}
