/* kiln: BERT and GPT models in your own program: words for [MASK], answers from a text, vectors of texts,
 * labels of texts and of words, and what follows a text.
 *
 *     struct kiln_model *model;                                 one per model directory; all threads share it
 *     struct kiln_session *session;                             one per thread and task
 *     kiln_model_open(&model, "dir"), kiln_session_open(&session, model, KILN_ASK), kiln_ask(session, ...)
 *
 * Rules that hold everywhere.  A function that can fail returns a kiln_status; it then leaves its result
 * empty and nothing to free.  Bad arguments, files and texts are such errors: the library never ends the
 * process and prints nothing.  NULL is a bad argument too, unless a comment gives it a meaning: a function
 * that returns a kiln_status returns KILN_USAGE, one that returns anything else returns 0 or NULL, and one
 * that returns nothing does nothing.  Texts are `n` bytes, read as UTF-8; any bytes are allowed, and NULL
 * where n is 0.  Positions in them are byte ranges [start, end).  Results belong to the caller until their
 * kiln_..._free; freeing an empty or zeroed one does nothing.  A model may be used by any number of
 * threads, a session by one at a time, except for kiln_session_cancel.  The same call on the same model
 * gives the same bits in every session.  What a text gets does not depend on the other texts of the call,
 * but for rounding: the order of sums within a matrix product depends on its size.
 *
 * A network of your own is trained by engine.h, beside this.
 *
 * Compiles alone as C17 and as C++17. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library, which may be newer than this header. */
const char *kiln_version(void);

/* The kinds of errors; the numbers are the exit codes of the program `kiln`. */
enum kiln_code {
    KILN_OK = 0,
    KILN_USAGE = 64, /* an argument is out of range, or the session is not for this task */
    KILN_DATA = 65,  /* a file is missing, damaged or not a model for this task; a text cannot be used */
    KILN_NO_CHECKPOINT = 66, /* runs, engine.h: checkpoints, but none that is whole */
    KILN_UNAVAILABLE = 69,   /* runs, engine.h: what kiln does not have, such as ranks without MPI */
    KILN_INTERNAL = 70,      /* a library that kiln uses failed */
    KILN_MEMORY = 71,        /* not enough memory */
    KILN_IO = 74,            /* reading or writing failed */
    KILN_CANCELLED = 75,     /* kiln_session_cancel and its kin */
    KILN_NUMERIC = 99,       /* a weight or a computed number is not finite: the message names the tensor */
};

struct kiln_status {
    enum kiln_code code;
    char message[508]; /* text for users: what, where, which value, which limit; "" for KILN_OK */
};

/* Options.  Each struct of options begins with its size, and kiln_X_defaults, which is compiled into your
 * program, fills in that size and the defaults.  So a program that was built with an older header, whose
 * structs are shorter, gets the defaults for what has been added since.  KILN_USAGE: the size is 0, or larger
 * than the library's own, which is then older than the header.  Other languages call kiln_X_options_init with
 * the size of their struct.  NULL options are the defaults. */
#define KILN_OPTIONS(X)                                                                                      \
    void kiln_##X##_options_init(struct kiln_##X##_options *options, size_t size);                           \
    static inline struct kiln_##X##_options kiln_##X##_defaults(void)                                        \
    {                                                                                                        \
        struct kiln_##X##_options o;                                                                         \
        kiln_##X##_options_init(&o, sizeof o);                                                               \
        return o;                                                                                            \
    }

/* ---- log ---- */

enum kiln_log_level {
    KILN_LOG_WARNING = 1,
    KILN_LOG_INFO,
};

/* Lines for people, which the program `kiln` writes to standard error, go to `write` from now on, those of
 * `most` and less; NULL: to nobody, as in the beginning.  A line is NUL-terminated, without a line end, and
 * valid for the call.  Calls come from any thread, one at a time, and must not call kiln. */
void kiln_log_to(void (*write)(void *context, enum kiln_log_level level, const char *line), void *context,
                 enum kiln_log_level most);

/* ---- models and sessions ---- */

struct kiln_model;   /* weights and vocabulary, never written after opening */
struct kiln_session; /* a tokenizer and the memory of one computation */

enum kiln_task {
    KILN_FILL,     /* needs the masked-word head */
    KILN_ASK,      /* needs the question-answering head */
    KILN_EMBED,    /* any BERT */
    KILN_CLASSIFY, /* needs a classifier of texts: BertForSequenceClassification */
    KILN_TAG,      /* needs a classifier of tokens: BertForTokenClassification */
    KILN_GENERATE, /* a decoder: GPT-2, BLOOM; kiln_score too */
};

/* Reads a model directory: a checkpoint of kiln, or config.json, vocab.txt and model.safetensors or
 * pytorch_model.bin as `transformers` writes them; or a .pt file of PyTorch, or the prefix of a TensorFlow
 * checkpoint, with the other files beside it.  The model has the head that the files have: a classifier, the
 * question-answering head or the masked-word head.  Files that sentence-transformers wrote with it are for
 * kiln_embed. */
struct kiln_status kiln_model_open(struct kiln_model **model, const char *path);

struct kiln_model_options {
    size_t size;
    const char *device; /* "cpu", "cuda", or "auto", which is the cpu until cuda has been tested on a GPU */
    const char *dtype;  /* "fp32", "bf16", on cuda "fp16", on the cpu "int8": to compute in */

    /* Called in the calling thread as weights are read, with the fraction that is there, up to 1.  false: the
     * call ends with KILN_CANCELLED.  NULL: nobody is told. */
    bool (*progress)(void *context, double fraction);
    void *context;

    /* Read the vocabulary and the configuration alone: for tokens, and for kiln_model_memory before a model
     * is opened.  No session opens on it. */
    bool without_weights;
};

/* "auto", "fp32", NULL: as kiln_model_open; NULL in either of the texts means the same. */
KILN_OPTIONS(model)

/* Opens a model on a device, on which all sessions on the model compute concurrently.  KILN_USAGE: the device
 * or dtype is not available; the message says why. */
struct kiln_status kiln_model_open_on(struct kiln_model **model, const char *path,
                                      const struct kiln_model_options *options);

/* Drops the caller's hold on the model: no new session may be opened on it, but open sessions keep it until
 * the last of them is closed. */
void kiln_model_close(struct kiln_model *model);

/* Numbers in a vector of kiln_embed, as the model's files say; 0: it makes vectors in a way that kiln does
 * not support; kiln_session_open says why. */
int64_t kiln_model_width(const struct kiln_model *model);

/* The most tokens that the model reads at once, [CLS] and [SEP] included; for kiln_embed its files may give
 * another limit. */
int64_t kiln_model_max_tokens(const struct kiln_model *model);

/* The vocabulary: ids are 0 to kiln_model_vocab_size - 1. */
int32_t kiln_model_vocab_size(const struct kiln_model *model);

/* The piece of an id ("house", "##ing"), *n bytes without a NUL, borrowed from the model; NULL, and *n is 0,
 * for a number that is no id of it. */
const char *kiln_model_piece(const struct kiln_model *model, int32_t id, size_t *n);

/* Tokens by their use. */
enum kiln_special {
    KILN_TOKEN_PAD,
    KILN_TOKEN_UNKNOWN, /* a word that no piece covers */
    KILN_TOKEN_CLS,     /* before the first text of an encoder: [CLS] */
    KILN_TOKEN_SEP,     /* after each text: [SEP] */
    KILN_TOKEN_MASK,    /* stands for a token that is to be predicted: [MASK] */
    KILN_TOKEN_BEGIN,   /* before a text of a decoder */
    KILN_TOKEN_END,     /* after a text of a decoder */
};

/* The id of a special token; -1: the model has none, or is NULL. */
int32_t kiln_model_special(const struct kiln_model *model, enum kiln_special which);

/* What the model answers: bit 1 << task for each enum kiln_task that kiln_session_open opens. */
unsigned kiln_model_tasks(const struct kiln_model *model);

/* The name of a label, of "id2label", borrowed from the model; NULL for a number that is no label of it. */
const char *kiln_model_label(const struct kiln_model *model, int64_t id);

/* Memory of the device: that of the weights and of the libraries that compute with them, once; and that of
 * each session, activations and a decoder's keys and values. */
struct kiln_memory {
    size_t model_bytes, session_bytes;
};

struct kiln_generator_options;

/* The memory that the model takes with weights, and a session of a task on it, or, with options, the session
 * of a generator: those that were allocated, or would be.  Without the vocabulary, which is a few
 * MB.  Fails as kiln_session_open. */
struct kiln_status kiln_model_memory(const struct kiln_model *model, struct kiln_memory *memory,
                                     enum kiln_task task, const struct kiln_generator_options *options);

/* Allocates all that the task needs, so that calls allocate little but their results.  KILN_DATA: the model
 * has no head for the task, and the message names the model's class; or it makes vectors in a way that kiln
 * does not support. */
struct kiln_status kiln_session_open(struct kiln_session **session, struct kiln_model *model,
                                     enum kiln_task task);
void kiln_session_close(struct kiln_session *session);

/* The session's calls use at most this many threads of the cpu from now on, between two calls; 0: as many as
 * the process has, which OMP_NUM_THREADS sets.  Results do not depend on it. */
void kiln_session_set_threads(struct kiln_session *session, int n_threads);

/* From any thread, or a signal handler: the running call, if there is one, ends with KILN_CANCELLED before
 * its next layer, and so does every later call until kiln_session_resume.  kiln_tokenize, which has no
 * layers, does not start, but is not interrupted. */
void kiln_session_cancel(struct kiln_session *session);
void kiln_session_resume(struct kiln_session *session);

/* ---- tokens ---- */

struct kiln_token {
    int32_t id;
    size_t start, end; /* bytes of the text */
};

struct kiln_tokens {
    struct kiln_token *tokens; /* [n] */
    size_t n;
};

/* The text's tokens, like those of Hugging Face's BertTokenizerFast, without [CLS] and [SEP]; but "[SEP]" or
 * "[MASK]" in a text is plain text.  With a session of any task. */
struct kiln_status kiln_tokenize(struct kiln_session *session, struct kiln_tokens *tokens, const char *text,
                                 size_t n);

/* Tokenizes without a session, from any thread: one text of a model at a time. */
struct kiln_status kiln_model_tokenize(struct kiln_model *model, struct kiln_tokens *tokens, const char *text,
                                       size_t n);
void kiln_tokens_free(struct kiln_tokens *tokens);

struct kiln_string {
    const char *bytes; /* [n], then a NUL */
    size_t n;
};

/* The text of ids[n]: the bytes that byte-level BPE encoded, or WordPiece's words as they are usually spaced.
 * Special tokens are left out if `skip_special`.  From any thread.  KILN_DATA: a number is no id of the
 * vocabulary. */
struct kiln_status kiln_decode(const struct kiln_model *model, struct kiln_string *text, const int32_t *ids,
                               size_t n, bool skip_special);
void kiln_string_free(struct kiln_string *text);

/* ---- KILN_FILL: words for [MASK] ---- */

struct kiln_word {
    int32_t id;
    const char *piece;  /* NUL-terminated, part of the result */
    double probability; /* over the whole vocabulary */
};

struct kiln_words {
    struct kiln_word *words; /* [n_masks, top_k], the most probable first */
    int64_t n_masks;         /* in the order of the text */
    int64_t top_k;           /* number requested, or the size of the vocabulary if that is smaller */
};

/* Fills every "[MASK]" of the text with top_k words, from 1.  KILN_DATA: there is none, or the text is longer
 * than the model reads. */
struct kiln_status kiln_fill(struct kiln_session *session, struct kiln_words *words, const char *text,
                             size_t n, int64_t top_k);
void kiln_words_free(struct kiln_words *words);

/* ---- KILN_ASK: answers from a text ---- */

/* Numbers of tokens are 1 to 65536.  If the model reads fewer than 2 doc_stride tokens at once, the stride is
 * a quarter of what it reads. */
struct kiln_ask_options {
    size_t size;
    int64_t top_k;             /* answers, 1 to 1000 */
    int64_t doc_stride;        /* tokens from one window of the context to the next */
    int64_t max_query_length;  /* tokens of the question that are read */
    int64_t max_answer_length; /* tokens */
    /* the model was trained on questions without an answer, and may answer that there is none */
    bool may_be_none;
};

/* 1, 128, 64, 30, false: as the models were trained. */
KILN_OPTIONS(ask)

/* The text is the bytes of the context from start to end; each run of white space becomes one space. */
struct kiln_answer {
    const char *text; /* NUL-terminated, part of the result; "" means that there is no answer */
    double probability;
    int64_t start, end; /* bytes of the context; both -1 for no answer */
};

struct kiln_answers {
    struct kiln_answer *answers; /* [n], the most probable first */
    int64_t n;
    int64_t n_windows; /* in which the context was read */
};

/* Answers a question, NUL-terminated, about a context of up to 1 GiB: every token of it is read, in windows
 * that overlap if the question leaves room.  KILN_DATA: an empty context, a question that leaves no room for
 * it, or one of more than 1 MiB. */
struct kiln_status kiln_ask(struct kiln_session *session, struct kiln_answers *answers, const char *question,
                            const char *context, size_t n, const struct kiln_ask_options *options);
void kiln_answers_free(struct kiln_answers *answers);

/* ---- KILN_EMBED: vectors of texts ---- */

/* How the vectors of all tokens, [CLS] and [SEP] included, become one. */
enum kiln_pooling {
    KILN_MODEL_POOLING, /* the one in the model's files (modules.json, 1_Pooling), else KILN_MEAN */
    KILN_CLS,           /* the first token */
    KILN_MAX,           /* the maximum of each number */
    KILN_MEAN,
    KILN_MEAN_SQRT_LEN, /* the sum over the square root of the number of tokens */
    KILN_WEIGHTED_MEAN, /* the mean in which token i has weight i + 1 */
    KILN_LAST_TOKEN,
};

enum kiln_length {
    KILN_MODEL_LENGTH, /* the length that the model's files name; without them KILN_LENGTH_1 */
    KILN_LENGTH_1,
    KILN_LENGTH_FREE,
};

struct kiln_embed_options {
    size_t size;
    enum kiln_pooling pooling;
    enum kiln_length length; /* length of a vector */
    const char *prompt;      /* put before each text, "" for none; NULL: that of prompt_name */
    const char *prompt_name; /* one of config_sentence_transformers.json; NULL: the default prompt */
    int64_t max_tokens;      /* longest text, [CLS] and [SEP] included, from 2; 0: as the model's files say */
};

/* Everything as the model's files say: the same vectors as sentence-transformers. */
KILN_OPTIONS(embed)

struct kiln_text {
    const char *bytes; /* [n] */
    size_t n;
};

struct kiln_vectors {
    float *values; /* [n, width] */
    int64_t n, width;
    int64_t n_cut; /* texts with too many tokens, of which only the beginning was read */
};

/* A vector for each text.  KILN_USAGE: the model has no such prompt, fewer positions than max_tokens, or a
 * Dense module that the pooling does not fit. */
struct kiln_status kiln_embed(struct kiln_session *session, struct kiln_vectors *vectors,
                              const struct kiln_text *texts, size_t n_texts,
                              const struct kiln_embed_options *options);
void kiln_vectors_free(struct kiln_vectors *vectors);

/* ---- KILN_CLASSIFY: labels of texts ---- */

/* The kind of labels: "problem_type" of the model's config.json. */
enum kiln_problem {
    KILN_ONE_LABEL,  /* probabilities over all labels; they sum to 1 */
    KILN_ANY_LABELS, /* a probability for each label by itself */
    KILN_NUMBERS,    /* regression: numbers, not probabilities */
};

struct kiln_label {
    int64_t id;       /* in the order of the model's "id2label" */
    const char *name; /* NUL-terminated, part of the result */
    double score;     /* the probability, or the number */
    double logit;     /* what the model computed, of which the score is made */
    bool holds;       /* KILN_ONE_LABEL: the most probable; KILN_ANY_LABELS: over one half; else always */
};

struct kiln_labels {
    struct kiln_label *labels; /* [n, n_labels], the highest score first; numbers in the order of ids */
    int64_t n, n_labels;
    enum kiln_problem problem;
    int64_t n_cut; /* texts with too many tokens, of which only the beginning was read */
};

/* Classifies texts, or pairs of them: `pairs` is NULL, or has n_texts too, and pairs[i] is read after
 * texts[i]. */
struct kiln_status kiln_classify(struct kiln_session *session, struct kiln_labels *labels,
                                 const struct kiln_text *texts, const struct kiln_text *pairs,
                                 size_t n_texts);
void kiln_labels_free(struct kiln_labels *labels);

/* ---- KILN_TAG: labels of words ---- */

struct kiln_sentence {
    const struct kiln_text *words; /* [n]; NULL where n is 0 */
    size_t n;
};

struct kiln_word_label {
    int64_t id;         /* in the order of the model's "id2label" */
    const char *name;   /* NUL-terminated, part of the result: "B-PER" */
    double probability; /* among all labels */
};

/* Words [start, end) of a sentence, as seqeval reads labels like B-PER, I-PER (BIO, IOB2, and IOBES). */
struct kiln_entity {
    const char *type;   /* NUL-terminated, part of the result: "PER"; "_" where labels have no types */
    int64_t start, end; /* words are counted over all sentences of the call */
};

struct kiln_tags {
    struct kiln_word_label *words; /* [n] the most probable label of each, over all sentences */
    int64_t n;
    struct kiln_entity *entities; /* [n_entities], in the order of the text */
    int64_t n_entities;
    /* sentences with too many tokens, which were read in parts: none of their words is left out */
    int64_t n_cut;
};

/* Labels each word of the sentences by the label of its first token. */
struct kiln_status kiln_tag(struct kiln_session *session, struct kiln_tags *tags,
                            const struct kiln_sentence *sentences, size_t n_sentences);
void kiln_tags_free(struct kiln_tags *tags);

/* ---- KILN_EMBED, KILN_TAG: numbers of each token ---- */

struct kiln_rows {
    float *values;             /* [n, width] */
    struct kiln_token *tokens; /* [n]; NULL from kiln_embed_tokens */
    int64_t n, width;
};

/* KILN_EMBED: the last layer's output for each token of a text, special tokens included, neither pooled nor
 * scaled. A text with too many tokens is cut. */
struct kiln_status kiln_embed_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                     size_t n);

/* KILN_TAG: the logits of all labels, in their order, for each token of a text, special tokens left out.  A
 * text of any length is read in windows that overlap. */
struct kiln_status kiln_tag_tokens(struct kiln_session *session, struct kiln_rows *rows, const char *text,
                                   size_t n);
void kiln_rows_free(struct kiln_rows *rows);

/* ---- KILN_GENERATE: what follows a text ---- */

/* Why a text ended. */
enum kiln_end {
    KILN_AT_END = 1, /* the model ended it */
    KILN_AT_STOP,    /* one of `stops` came */
    KILN_AT_LENGTH,  /* max_new_tokens */
    KILN_AT_CANCEL,  /* kiln_generator_cancel */
    KILN_AT_FAILURE, /* its struct kiln_grown says why */
};

/* A token, and how probable the model finds it in its place, whatever the options of the choice. */
struct kiln_candidate {
    int32_t id;             /* -1: the vocabulary has no more */
    double log_probability; /* natural logarithm */
};

/* The names and meanings of `transformers`. */
struct kiln_generate_options {
    size_t size;
    int64_t max_new_tokens;    /* from 1 */
    double temperature;        /* divides the logits; 0: always the most probable token */
    int64_t top_k;             /* the most probable tokens that may be chosen; 0: all */
    double top_p;              /* the most probable tokens whose probabilities sum to it may be; 1: all */
    double min_p;              /* tokens at least this part as probable as the most probable; 0: all */
    double repetition_penalty; /* makes tokens that were there less probable; 1: off */
    double presence_penalty;   /* subtracted from logits of tokens that were generated; 0: off */
    double frequency_penalty;  /* the same, once for each time; 0: off */
    uint64_t seed;             /* seed of the choices; each prompt of a call has its own stream of it */
    bool ignore_end;           /* go on where the model would end a text */
    bool context_shift;        /* where the model's window is full, go on without the older half of it */
    bool log_probabilities;    /* say how probable each new token is */
    int64_t n_candidates;      /* and which tokens are the most probable in its place, 0 to 20 of them */

    /* [n_stops] NUL-terminated: a text ends before any of them; NULL where n_stops is 0 */
    const char *const *stops;
    size_t n_stops;

    /* Called in the calling thread after each token of a text, of prompts[text]: its id, and the
     * n bytes by which the text has grown as far as later tokens cannot change it: whole characters, no
     * beginning of a stop.  Texts that are continued at once take turns.  false: the call ends with
     * KILN_CANCELLED.  NULL: nobody is told. */
    bool (*told)(void *context, size_t text, int32_t id, const char *bytes, size_t n);
    void *context;
};

/* 64 tokens, temperature 1, top_k 50, top_p 1, repetition_penalty 1, seed 42, all else off: as
 * `kiln generate`. */
KILN_OPTIONS(generate)

struct kiln_continuation {
    const char *text; /* [n] what follows the prompt; then a NUL; part of the result */
    size_t n;
    const int32_t *ids; /* [n_ids] the new tokens, what ended the text included; part of the result */
    size_t n_ids, n_prompt_ids;
    enum kiln_end end;
    const double *log_probabilities;         /* [n_ids], or NULL: not asked for; part of the result */
    const struct kiln_candidate *candidates; /* [n_ids, n_candidates] the most probable first, or NULL */
};

struct kiln_continuations {
    struct kiln_continuation *texts; /* [n], in the order of the prompts */
    size_t n;
};

/* Continues prompts, eight at a time.  On the cpu a text does not depend on the prompts beside it.  An
 * empty prompt is the begin of a text.  KILN_DATA: a prompt is empty and the
 * model has no token that begins a text, or with max_new_tokens longer than the model reads: nothing is
 * computed then. */
struct kiln_status kiln_generate(struct kiln_session *session, struct kiln_continuations *continuations,
                                 const struct kiln_text *prompts, size_t n_prompts,
                                 const struct kiln_generate_options *options);
void kiln_continuations_free(struct kiln_continuations *continuations);

/* ---- a generator: texts come and go while others are continued ---- */

struct kiln_generator; /* a session of its own */

struct kiln_generator_options {
    size_t size;
    int64_t n_texts;    /* texts that are continued at once, from 1; others wait */
    size_t cache_bytes; /* of keys and values; 0: those of n_texts of the longest texts, in half of the free
                         * memory at most */
    int64_t n_threads;  /* threads of the cpu that a step uses at most; 0: all */
};

/* 8 texts, 0, 0. */
KILN_OPTIONS(generator)

/* Fails as kiln_session_open. */
struct kiln_status kiln_generator_open(struct kiln_generator **generator, struct kiln_model *model,
                                       const struct kiln_generator_options *options);

/* Ends all texts and frees the generator.  The step of another thread ends before; none may begin. */
void kiln_generator_close(struct kiln_generator *generator);

/* Adds a text, from any thread; *text is its number.  Prompt and options are copied, but `told` is not
 * called.  Its tokens are those of kiln_generate for the prompt alone, whatever texts are beside it: for
 * several samples of a prompt give several seeds.  Fails as kiln_generate. */
struct kiln_status kiln_generator_add(struct kiln_generator *generator, uint64_t *text, const char *prompt,
                                      size_t n, const struct kiln_generate_options *options);

/* A text is not wanted any more, from any thread: the next step says KILN_AT_CANCEL of it.  0: none is; the
 * running step ends before its next layer with KILN_CANCELLED, and so does every later one. */
void kiln_generator_cancel(struct kiln_generator *generator, uint64_t text);

/* What a step has added to a text. */
struct kiln_grown {
    uint64_t text;          /* of kiln_generator_add */
    int32_t id;             /* the new token; -1: it ended without one */
    double log_probability; /* of the token, if asked for; else 0 */
    const char *bytes; /* [n] by which the text has grown, as for kiln_generate_options.told; then a NUL */
    size_t n;
    const struct kiln_candidate *candidates; /* [n_candidates] the most probable first; NULL: not asked for */
    enum kiln_end end;                       /* 0: it goes on */
    enum kiln_code code;                     /* of KILN_AT_FAILURE; else KILN_OK */
    const char *message;                     /* of KILN_AT_FAILURE; else "" */
};

struct kiln_step {
    struct kiln_grown *texts; /* [n] */
    size_t n;
    size_t n_left; /* texts that have not ended */
};

/* Computes the next token of the texts that are continued, and parts of new prompts; nothing if there is no
 * text.  One thread at a time steps.  A failure is that of all texts, which have ended with it. */
struct kiln_status kiln_generator_step(struct kiln_generator *generator, struct kiln_step *step);
void kiln_step_free(struct kiln_step *step);

/* ---- how probable a text is ---- */

struct kiln_score_options {
    size_t size;
    bool begin; /* read the token that begins a text first, so that the text's own first one counts */
    bool next;  /* say which tokens are the most probable after the text, too */
    int64_t n_candidates; /* the most probable tokens in each place, 0 to 20 of them */
};

/* false, false, 0. */
KILN_OPTIONS(score)

struct kiln_text_score {
    const int32_t *ids; /* [n] tokens that were read; part of the result, as are the others */
    size_t n;
    double log_probability;                  /* the sum of those of tokens 2 to n */
    const double *log_probabilities;         /* [n - 1] of ids[i + 1] after ids[0] to ids[i] */
    const struct kiln_candidate *candidates; /* [n - 1, n_candidates] in the place of ids[i + 1]; with `next`
                                              * [n, n_candidates]; NULL: not asked for */
};

struct kiln_scores {
    struct kiln_text_score *texts; /* [n], in the order of the call */
    size_t n;
};

/* How probable a decoder finds each token of the texts, in a session of KILN_GENERATE.  KILN_DATA: a text is
 * longer than the model reads, or has no token; or there is no token that begins a text. */
struct kiln_status kiln_score(struct kiln_session *session, struct kiln_scores *scores,
                              const struct kiln_text *texts, size_t n_texts,
                              const struct kiln_score_options *options);
void kiln_scores_free(struct kiln_scores *scores);

/* ---- runs: what the commands that train do ---- */

/* A flag of a command, by its name in `kiln help COMMAND all` without dashes, and its value: "learning_rate",
 * "1e-3"; NULL for a flag without a value, which "true" and "false" set, too.  A setting that takes several
 * values is given once for each. */
struct kiln_setting {
    const char *name, *value;
};

struct kiln_run; /* a command in a thread of its own */

/* Begins what `kiln COMMAND` does: "train", "pretrain", "pretrain-gpt", "finetune-gpt", "squad", "classify",
 * "tag", "embed-train"; or "vocab", "prepare", "export".  Texts are copied.  A process has one run at a time.
 * It prints nothing and installs no handlers of signals; sessions may compute beside it.  Until it is closed
 * its events have all lines of the log, of which kiln_log_to gets none.
 *
 * KILN_USAGE: there is no such command; settings that are wrong end the run.  KILN_UNAVAILABLE: a run that is
 * not closed is there. */
struct kiln_status kiln_run_open(struct kiln_run **run, const char *command,
                                 const struct kiln_setting *settings, size_t n_settings);

/* Waits for the next event, but not longer than this; negative: as long as it takes.  An event is a line of
 * JSON as in the run's log.jsonl ({"event":"step","step":20,"loss":...}), or a line for people
 * ({"event":"log","level":"info","text":...}); NULL: there was none in that time.  *more is false once the
 * run has ended and all its events were taken; the status is then the run's: KILN_CANCELLED if it was
 * cancelled. */
struct kiln_status kiln_run_next_event(struct kiln_run *run, struct kiln_string *event, double timeout_s,
                                       bool *more);

/* Asks the run to end, from any thread or a signal handler: it saves its state after the micro-batch that it
 * computes; resume_from_checkpoint goes on from there. */
void kiln_run_cancel(struct kiln_run *run);

/* Cancels the run if it has not ended, waits for its end, and frees it. */
void kiln_run_close(struct kiln_run *run);

#ifdef __cplusplus
}
#endif

#endif
