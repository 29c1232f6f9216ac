#include "cmd/perplexity_report.h"

#include "cmd/standard_streams.h"
#include "core/log.h"

#include <math.h>
#include <stdio.h>

static struct status print_json(const struct perplexity *p, const char *name)
{
    return standard_streams_put_json(json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "text", json_text(name), "tokens",
        (json_int_t)p->n_tokens, "bytes", (json_int_t)p->n_bytes, "context", (json_int_t)p->context, "stride",
        (json_int_t)p->stride, "nats_per_token", json_finite(perplexity_nats(p)), "perplexity",
        json_finite(exp(perplexity_nats(p))), "bits_per_byte", json_finite(perplexity_bits(p))));
}

static void print_words(const struct perplexity *p, const char *name)
{
    log_put_text(stdout, name);
    printf(": %lld tokens of %lld bytes, context %lld, stride %lld: %.4f nats a token, perplexity %.2f, "
           "%.4f bits a byte\n",
           (long long)p->n_tokens, (long long)p->n_bytes, (long long)p->context, (long long)p->stride,
           perplexity_nats(p), exp(perplexity_nats(p)), perplexity_bits(p));
}

struct status perplexity_report(const struct perplexity *p, const char *name, bool json)
{
    if (json) {
        return print_json(p, name);
    }
    print_words(p, name);
    return standard_streams_flush();
}
