#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split_regex.h"

#include "text/regex_syntax.h"

#include <pcre2.h>
#include <stdlib.h>

enum { MOST_PATTERN_BYTES = 1 << 16, MOST_STEPS = 10000000 };

struct split_regex {
    pcre2_code *code;
    bool is_native; /* compiled to machine code */
};

struct split_regex_scratch {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static struct status compile(struct split_regex *r, const char *pattern, size_t n, const char *source)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR message[128] = "";
    struct buf text = {0};
    struct status s = regex_syntax_translate(&text, pattern, n, source);
    pcre2_compile_context *context = failed(s) ? NULL : pcre2_compile_context_create(NULL);
    if (context == NULL) {
        buf_fini(&text);
        return failed(s) ? s : status_error(STATUS_MEMORY, "out of memory for a regular expression");
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile((PCRE2_SPTR)buf_text(&text), text.n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, context);
    pcre2_compile_context_free(context);
    buf_fini(&text);
    if (r->code == NULL) {
        pcre2_get_error_message(error, message, sizeof message);
        return status_error(STATUS_DATA, "%s: kiln cannot read the regular expression '%.*s': %s", source,
                            (int)(n > 200 ? 200 : n), pattern, (const char *)message);
    }
    r->is_native = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
    return status_ok();
}

struct status split_regex_create(struct split_regex **r, const char *pattern, size_t n, const char *source)
{
    *r = NULL;
    FAIL_IF(n > MOST_PATTERN_BYTES, STATUS_DATA, "%s: a regular expression has %zu bytes, more than %d",
            source, n, MOST_PATTERN_BYTES);
    *r = calloc(1, sizeof **r);
    FAIL_IF(*r == NULL, STATUS_MEMORY, "out of memory for a regular expression");
    struct status s = compile(*r, pattern, n, source);
    if (failed(s)) {
        split_regex_destroy(*r);
        *r = NULL;
    }
    return s;
}

void split_regex_destroy(struct split_regex *r)
{
    if (r != NULL) {
        pcre2_code_free(r->code);
        free(r);
    }
}

struct status split_regex_scratch_create(struct split_regex_scratch **out)
{
    enum { LEAST_STACK = 1 << 15, MOST_STACK = 1 << 24 }; /* bytes of the machine code's own stack */
    struct split_regex_scratch *s = calloc(1, sizeof *s);
    *out = s;
    if (s != NULL) {
        s->match = pcre2_match_data_create(1, NULL);
        s->context = pcre2_match_context_create(NULL);
        s->stack = pcre2_jit_stack_create(LEAST_STACK, MOST_STACK, NULL); /* NULL: there is no such code */
    }
    if (s == NULL || s->match == NULL || s->context == NULL) {
        split_regex_scratch_destroy(s);
        *out = NULL;
        return status_error(STATUS_MEMORY, "out of memory for a tokenizer");
    }
    pcre2_set_match_limit(s->context, MOST_STEPS);
    pcre2_jit_stack_assign(s->context, NULL, s->stack);
    return status_ok();
}

void split_regex_scratch_destroy(struct split_regex_scratch *s)
{
    if (s != NULL) {
        pcre2_jit_stack_free(s->stack);
        pcre2_match_context_free(s->context);
        pcre2_match_data_free(s->match);
        free(s);
    }
}

static struct status say_failure(int error, size_t at)
{
    PCRE2_UCHAR message[128] = "";
    FAIL_IF(error == PCRE2_ERROR_NOMEMORY, STATUS_MEMORY, "out of memory for a regular expression");
    pcre2_get_error_message(error, message, sizeof message);
    return status_error(STATUS_DATA,
                        "the tokenizer's regular expression cannot split the text from its byte %zu on: %s; "
                        "split long runs of the same characters",
                        at, (const char *)message);
}

struct status split_regex_find(struct split_regex_scratch *s, struct split_match *m,
                               const struct split_regex *r, const char *text, size_t n, size_t at)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int result = r->is_native
                     ? pcre2_jit_match(r->code, subject, n, at, 0, s->match, s->context)
                     : pcre2_match(r->code, subject, n, at, PCRE2_NO_UTF_CHECK, s->match, s->context);
    *m = (struct split_match){.found = result >= 0};
    if (result >= 0) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->match);
        m->begin = ends[0];
        m->end = ends[1];
    }
    return result >= 0 || result == PCRE2_ERROR_NOMATCH ? status_ok() : say_failure(result, at);
}
