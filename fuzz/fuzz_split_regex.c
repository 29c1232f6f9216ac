/* Any first line as a regular expression of tokenizer.json, and the rest as the text that it cuts: refused
 * with a reason, or pieces that follow each other inside the text. */
#include "core/log.h"
#include "text/pre_split.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct status take(void *self, const char *text, size_t begin, size_t end)
{
    size_t *before = self;
    (void)text;
    CHECK(begin == *before && begin < end, "a piece at %zu after one that ends at %zu", begin, *before);
    *before = end;
    return status_ok();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *text = (const char *)bytes, *feed = n == 0 ? NULL : memchr(text, '\n', n);
    size_t n_pattern = feed == NULL ? n : (size_t)(feed - text), end = 0;
    struct pre_split p = {.n = 1, .has_regex = true};
    struct split_regex_scratch *scratch;
    const struct pre_split_sink sink = {take, &end};
    log_set_level(LOG_QUIET);
    if (feed == NULL || failed(split_regex_create(&p.steps[0].regex, text, n_pattern, "input"))) {
        return 0;
    }
    p.steps[0].kind = PRE_SPLIT_REGEX;
    CHECK(!failed(split_regex_scratch_create(&scratch)), "no memory");
    size_t n_rest = n - n_pattern - 1;
    if (!failed(pre_split_each(&p, scratch, feed + 1, n_rest, &sink))) {
        CHECK(end == n_rest, "%zu of %zu bytes are in pieces", end, n_rest);
    }
    split_regex_scratch_destroy(scratch);
    pre_split_fini(&p);
    return 0;
}
