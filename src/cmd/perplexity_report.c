#include "cmd/perplexity_report.h"

#include "cmd/standard_streams.h"
#include "core/log.h"
#include "serve/answer_json.h"

#include <math.h>
#include <stdio.h>

static struct status print_json(const struct perplexity *p, const char *name)
{
    struct buf line = {0};
    struct status s = answer_json_append(
        &line, json_pack("{s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "text", json_text(name), "tokens",
                         (json_int_t)p->n_tokens, "bytes", (json_int_t)p->n_bytes, "context",
                         (json_int_t)p->context, "stride", (json_int_t)p->stride, "nats_per_token",
                         json_finite(perplexity_nats(p)), "perplexity", json_finite(exp(perplexity_nats(p))),
                         "bits_per_byte", json_finite(perplexity_bits(p))));
    if (!failed(s)) {
        fputs(buf_text(&line), stdout);
    }
    buf_fini(&line);
    return s;
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
        TRY(print_json(p, name));
    } else {
        print_words(p, name);
    }
    return standard_streams_flush();
}
