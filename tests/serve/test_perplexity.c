/* The perplexity of a text, read in windows of several contexts and strides, is that which `transformers`
 * gives (tests/golden/make_decoders.py); what cannot be read is refused. */
#define _GNU_SOURCE
#include "session_case.h"

#include "data/text_ids.h"
#include "serve/perplexity.h"

static struct safetensors golden;

static const struct stored_tensor *entry(const char *name)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    EXPECT(e != NULL, "there is no %s", name);
    return e;
}

/* What a text is added to, and the session that reads it. */
struct adding {
    struct perplexity *p;
    struct session *s;
};

static struct status add_document(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    const struct adding *a = self;
    return perplexity_add_ids(a->p, a->s, ids, n, n_bytes);
}

static struct status add(struct perplexity *p, struct session *s, const char *text, size_t n)
{
    return text_ids_of_text(&s->scratch, text, n, add_document, &(struct adding){p, s});
}

static void check_windows(struct session *s, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s:nats", name);
    const struct stored_tensor *text = entry("text"), *windows = entry("windows"), *nats = entry(key);
    for (int64_t i = 0; i < windows->dims[0]; i++) {
        struct perplexity p;
        int32_t window[2];
        double wanted;
        memcpy(window, (const char *)windows->data + (size_t)i * sizeof window, sizeof window);
        memcpy(&wanted, (const char *)nats->data + (size_t)i * sizeof wanted, sizeof wanted);
        EXPECT_OK(perplexity_init(&p, s, window[0], window[1]));
        EXPECT_OK(add(&p, s, (const char *)text->data, (size_t)text->bytes));
        EXPECT(fabs(perplexity_nats(&p) - wanted) < 1e-5, "%s, context %d, stride %d: %.7f nats, not %.7f",
               name, window[0], window[1], perplexity_nats(&p), wanted);
        EXPECT(p.n_bytes == (int64_t)text->bytes - 1, "%lld bytes", (long long)p.n_bytes);
        EXPECT(fabs(perplexity_bits(&p) * (double)p.n_bytes * log(2) - p.nats) < 1e-9, "bits a byte");
    }
}

static void check_refused(struct session *s)
{
    struct perplexity p;
    EXPECT_ERROR(perplexity_init(&p, s, 25, 0), STATUS_USAGE,
                 "--context is 25 tokens, but the model reads at most 24");
    EXPECT_ERROR(perplexity_init(&p, s, 12, 13), STATUS_USAGE, "--stride 13 is longer than the context, 12");
    EXPECT_OK(perplexity_init(&p, s, 0, 0));
    EXPECT(p.context == 24 && p.stride == 24, "%lld and %lld", (long long)p.context, (long long)p.stride);
    EXPECT_ERROR(add(&p, s, "", 0), STATUS_DATA, "a text of 0 tokens");
    EXPECT_ERROR(add(&p, s, "a", 1), STATUS_DATA, "a text of 1 tokens");
    EXPECT(p.n_tokens == 0 && perplexity_bits(&p) == 0, "a refused text counts");
    EXPECT_OK(add(&p, s, "ab", 2));
    EXPECT(p.n_tokens == 1 && p.n_bytes == 1, "%lld tokens", (long long)p.n_tokens);
}

int main(void)
{
    static const char *const names[] = {"gpt2",    "bloom", "llama", "qwen2", "mistral_window",
                                        "smollm3", "phi3",  "qwen3", "olmo2", "pythia"};
    char directory[SESSION_CASE_PATH / 2], path[SESSION_CASE_PATH];
    session_case_directory(directory, sizeof directory);
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    session_case_write(&golden, directory, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct session s;
        struct session_options o = session_defaults();
        o.batching = BATCHING_LOSSES;
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
        check_windows(&s, names[i]);
        if (i == 0) {
            check_refused(&s);
        }
        session_close(&s);
    }
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
    return 0;
}
