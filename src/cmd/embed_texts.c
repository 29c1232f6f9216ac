/* kiln embed: sentence vectors of texts, one JSON array per text. */
#include "cmd/commands.h"
#include "cmd/embed_neighbors.h"
#include "cmd/embed_tokens.h"
#include "cmd/session_flags.h"
#include "cmd/standard_streams.h"
#include "cmd/text_groups.h"
#include "core/buf.h"
#include "core/log.h"
#include "io/npy_file.h"
#include "serve/answer_json.h"
#include "serve/embed.h"

#include <stdlib.h>
#include <string.h>

struct embed_args {
    struct session_flags session;
    const char *pooling, *prompt, *prompt_name, *output;
    int64_t max_length, truncate_dim, layer, top_k;
    bool json, tokens, neighbors, normalize, no_normalize, no_prompt, parse_special_tokens;
};

static const struct option options[] = {
    SESSION_FLAG_ROWS(offsetof(struct embed_args, session),
                      "a checkpoint or model directory; only its embeddings and encoder are read"),
    OPTION_STRING_ROW(
        "output", offsetof(struct embed_args, output), NULL, "FILE",
        "write the vectors into this file of numpy, whose name ends in .npy: fp32, a row for each "
        "text, as they come"),
    OPTION_FLAG_ROW("json", offsetof(struct embed_args, json),
                    "print --neighbors as a JSON object for each word; vectors are JSON arrays anyway"),
    OPTION_GROUP_ROW("how vectors are made, instead of what the model's files say"),
    OPTION_CHOICE_ROW("pooling", offsetof(struct embed_args, pooling), NULL,
                      "cls|max|mean|mean_sqrt_len_tokens|weightedmean|lasttoken",
                      "combine the vectors of all tokens, [CLS] and [SEP] included, in this way"),
    OPTION_FLAG_ROW("normalize", offsetof(struct embed_args, normalize), "scale vectors to length 1"),
    OPTION_FLAG_ROW("no_normalize", offsetof(struct embed_args, no_normalize), "do not scale vectors"),
    OPTION_INT_ROW("max_seq_length", offsetof(struct embed_args, max_length), NULL, 2, 65536,
                   "maximum number of tokens of a text, [CLS] and [SEP] included; a longer text is cut"),
    OPTION_INT_ROW("truncate_dim", offsetof(struct embed_args, truncate_dim), NULL, 1, 1000000,
                   "keep only the first N numbers of a vector; --normalize scales what is left"),
    OPTION_STRING_ROW("prompt", offsetof(struct embed_args, prompt), NULL, "TEXT",
                      "put this text before each text"),
    OPTION_FLAG_ROW("no_prompt", offsetof(struct embed_args, no_prompt), "put nothing before a text"),
    OPTION_STRING_ROW("prompt_name", offsetof(struct embed_args, prompt_name), NULL, "NAME",
                      "put the prompt of this name in config_sentence_transformers.json before each text"),
    OPTION_GROUP_ROW("vectors of tokens"),
    OPTION_FLAG_ROW(
        "tokens", offsetof(struct embed_args, tokens),
        "print the vector of each token, special ones included, neither pooled nor scaled: a line "
        "of JSON with text, token, id, piece and vector"),
    OPTION_INT_ROW("layer", offsetof(struct embed_args, layer), "0", 0, 100000,
                   "take vectors from this layer, from 1; 0: the last one"),
    OPTION_GROUP_ROW("vectors of words"),
    OPTION_FLAG_ROW("neighbors", offsetof(struct embed_args, neighbors),
                    "print the words of the vocabulary that are nearest to each word by the cosine of the "
                    "model's input vectors, a table with tabs; arguments or lines are words"),
    OPTION_INT_ROW("top_k", offsetof(struct embed_args, top_k), "10", 1, 1000,
                   "number of --neighbors of a word"),
    OPTION_GROUP_ROW("other"),
    OPTION_FLAG_ROW("parse_special_tokens", offsetof(struct embed_args, parse_special_tokens),
                    "read \"[SEP]\" and the like in a text as special tokens, as sentence-transformers does; "
                    "by default they are plain text"),
    {0},
};

struct embedding {
    struct session *s;
    struct embed_plan plan;
    float *vectors;        /* [TEXT_GROUP_TEXTS, plan.width] */
    struct npy_rows *rows; /* NULL: standard output */
    int64_t n_cut;
    bool of_tokens;  /* vectors of tokens are printed */
    int64_t n_done;  /* texts of the groups before */
    bool has_warned; /* a special token in a text was warned of */
};

static struct status print_vector(struct buf *line, const float *v, int64_t n)
{
    buf_clear(line);
    answer_json_append_vector(line, v, n);
    buf_putc(line, '\n');
    TRY(buf_status(line));
    return fwrite(line->data, 1, line->n, stdout) == line->n ? status_ok() : standard_streams_flush();
}

/* Warns of a text for which kiln's vectors differ from those of sentence-transformers. */
static void warn_of_special(struct embedding *g, const char *text, size_t n)
{
    struct added_match m;
    if (!g->has_warned && !g->s->tokenizer->parses_special &&
        tokenizer_spells_special(g->s->tokenizer, &m, text, n)) {
        log_warning("a text has %.*s, which is read as text; --parse_special_tokens reads it as the special "
                    "token, as sentence-transformers does",
                    (int)m.n, text + m.at);
        g->has_warned = true;
    }
}

static struct status embed_group(void *self, const struct text_bytes *texts, size_t n)
{
    struct embedding *g = self;
    int64_t width = g->plan.width, n_cut;
    struct buf line = {0};
    for (size_t i = 0; i < n; i++) {
        warn_of_special(g, texts[i].bytes, texts[i].n);
    }
    if (g->of_tokens) {
        TRY(embed_tokens_print(g->s, &g->plan, texts, n, g->n_done, &n_cut));
        g->n_cut += n_cut;
        g->n_done += (int64_t)n;
        return status_ok();
    }
    TRY(embed_texts(g->s, g->vectors, &n_cut, texts, n, &g->plan));
    struct status s = g->rows == NULL ? status_ok() : npy_rows_put(g->rows, g->vectors, (int64_t)n);
    for (size_t i = 0; g->rows == NULL && i < n && !failed(s); i++) {
        s = print_vector(&line, g->vectors + (int64_t)i * width, width);
    }
    buf_fini(&line);
    g->n_cut += n_cut;
    return s;
}

static struct status embed_all(struct embedding *g, int n_positional, const char *const *positional)
{
    g->vectors = malloc((size_t)(TEXT_GROUP_TEXTS * g->plan.width) * sizeof *g->vectors);
    FAIL_IF(g->vectors == NULL, STATUS_MEMORY, "out of memory for the vectors of %d texts", TEXT_GROUP_TEXTS);
    TRY(text_groups_answer(n_positional, positional, embed_group, g));
    text_groups_warn_cut(g->n_cut, g->plan.max_length);
    return status_ok();
}

/* Logs how vectors are made, and where that setting is from. */
static struct status plan(struct embedding *g, const struct embed_args *a)
{
    struct embed_options o = {
        .has_pooling = a->pooling == NULL ? EMBED_AS_MODEL : EMBED_YES,
        .pooling = a->pooling == NULL ? SENTENCE_MEAN : sentence_pooling_find(a->pooling),
        .normalize = a->normalize      ? EMBED_YES
                     : a->no_normalize ? EMBED_NO
                                       : EMBED_AS_MODEL,
        .prompt = a->no_prompt ? "" : a->prompt,
        .prompt_name = a->prompt_name,
        .max_length = a->max_length,
        .truncate_dim = a->truncate_dim,
    };
    bool asked = a->pooling != NULL || a->normalize || a->no_normalize || a->no_prompt || a->prompt != NULL ||
                 a->prompt_name != NULL || a->max_length != 0 || a->truncate_dim != 0;
    struct buf line = {0};
    TRY(embed_plan_make(&g->plan, g->s, &o));
    embed_plan_describe(&line, &g->plan);
    log_info("vectors: %s (%s%s)", buf_text(&line),
             g->s->sentence->found ? "modules.json" : "no modules.json: as sentence-transformers",
             asked ? ", and the flags" : "");
    buf_fini(&line);
    return status_ok();
}

static struct status check(const struct embed_args *a)
{
    FAIL_IF(a->normalize && a->no_normalize, STATUS_USAGE,
            "--normalize and --no_normalize contradict each other");
    FAIL_IF((a->prompt != NULL) + (a->prompt_name != NULL) + a->no_prompt > 1, STATUS_USAGE,
            "--prompt, --prompt_name and --no_prompt contradict each other: give one");
    size_t n = a->output == NULL ? 4 : strlen(a->output);
    FAIL_IF(a->output != NULL && (n < 4 || strcmp(a->output + n - 4, ".npy") != 0), STATUS_USAGE,
            "--output %s: the name must end in .npy; without --output, vectors are printed as JSON",
            a->output);
    FAIL_IF(a->tokens && (a->pooling != NULL || a->normalize || a->truncate_dim != 0 || a->output != NULL),
            STATUS_USAGE,
            "--tokens prints vectors as they are: leave out --pooling, --normalize, "
            "--truncate_dim and --output");
    FAIL_IF(
        a->neighbors && (a->tokens || a->output != NULL || a->layer != 0), STATUS_USAGE,
        "--neighbors prints words by the model's input vectors: leave out --tokens, --output and --layer");
    return status_ok();
}

/* The model, or its first layers.  Layers of a model with another form end without a norm: they are read by
 * one at the model's end, which is not a part of them. */
static struct status open_layers(struct session *s, const struct embed_args *a)
{
    struct session_options o;
    TRY(session_flags_options(&o, &a->session, ANSWER_EMBED));
    o.n_layers = a->layer;
    TRY(session_open(s, a->session.model, answer_kind_of(ANSWER_EMBED)->task, &o));
    if (a->layer == 0 || s->model->form == NULL) {
        return status_ok();
    }
    struct status status = status_error(
        STATUS_USAGE, "--layer is not for this model, whose layers (%s) end without a norm", s->model->form);
    session_close(s);
    return status;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct embed_args *a = args;
    TRY(check(a));
    if (a->session.common.dry_run) {
        return session_flags_plan(&a->session, ANSWER_EMBED);
    }
    if (a->neighbors) {
        return embed_neighbors_print(&a->session, a->top_k, a->json, n_positional, positional);
    }
    struct session s;
    TRY(open_layers(&s, a));
    s.dir.tokenizer.parses_special |= a->parse_special_tokens;
    struct embedding g = {.s = &s, .of_tokens = a->tokens};
    struct status status = plan(&g, a);
    struct npy_rows rows = {.fd = -1};
    if (!failed(status) && a->output != NULL) {
        g.rows = &rows;
        status = npy_rows_open(&rows, a->output, g.plan.width, false);
    }
    status = failed(status) ? status : embed_all(&g, n_positional, positional);
    struct status closed = npy_rows_close(&rows);
    status = failed(status) ? status : closed;
    free(g.vectors);
    session_close(&s);
    return status;
}

const struct command command_embed = {
    .name = "embed",
    .summary = "compute vectors of texts, for search and comparison",
    .details = "Texts are arguments, or lines of standard input; an empty line is a text too. Each becomes a "
               "line of output: a JSON array with all digits of fp32. The scalar product of two normalised "
               "vectors is the cosine of their angle. The files of sentence-transformers beside the model "
               "(modules.json, 1_Pooling, sentence_bert_config.json, config_sentence_transformers.json) say "
               "how vectors are made; without them a vector is the mean over all tokens, as in "
               "sentence-transformers. "
               "A line on standard error says which. Longer texts are cut, and counted in a warning.",
    .positional_usage = "[TEXT...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct embed_args),
    .run = run,
};
