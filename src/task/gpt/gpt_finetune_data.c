#include "task/gpt/gpt_finetune_data.h"

#include "core/integers.h"
#include "core/log.h"
#include "corpus/document_output.h"
#include "corpus/source_formats.h"
#include "data/gpt/answer_examples.h"
#include "data/text_ids.h"

#include <inttypes.h>

/* Tokens of a piece: documents are cut, so that the split, which never cuts a sequence, can hold out a part
 * of one long text. */
enum { PIECE = 256 };

/* A store that is being made, or in a dry run only counted. */
struct making_store {
    const struct gpt_finetune_data *data;
    struct tokenizer_scratch scratch;
    struct document_output output;
    bool counts_only, has_answers, shown;
    int64_t n_documents, n_tokens; /* counts of texts, without ends of documents */
    int64_t n_stored;              /* tokens of the store */
    struct buf ends;               /* ends of all its sequences, int64; in a dry run only */
    struct answer_reading answers;
    struct chat_template chat;
};

static void add_sequence(struct making_store *m, const int32_t *ids, int64_t n)
{
    m->n_stored += n;
    if (m->counts_only) {
        buf_append(&m->ends, &m->n_stored, sizeof m->n_stored);
    } else {
        document_output_add(&m->output, ids, n);
    }
}

static struct status end_document(struct making_store *m)
{
    if (m->counts_only) {
        return buf_status(&m->ends);
    }
    document_output_end_document(&m->output);
    return document_output_status(&m->output);
}

static struct status take_text(void *self, const int32_t *ids, int64_t n, int64_t n_bytes)
{
    struct making_store *m = self;
    int32_t end = m->scratch.tokenizer->special[SPECIAL_END];
    (void)n_bytes;
    for (int64_t i = 0; i < n; i += PIECE) {
        add_sequence(m, ids + i, int_smaller(PIECE, n - i));
    }
    if (n > 0 && end >= 0) {
        add_sequence(m, &end, 1);
    }
    m->n_documents += n > 0;
    m->n_tokens += n;
    return n > 0 ? end_document(m) : status_ok();
}

static struct status take_example(void *self, const struct answer_example *e)
{
    struct making_store *m = self;
    for (int64_t k = 0, at = 0; k < e->n_parts; at = e->ends[k++]) {
        add_sequence(m, e->ids + at, e->ends[k] - at);
    }
    if (!m->shown) {
        struct buf text = {0};
        struct status s = answer_examples_show(&text, m->scratch.tokenizer, e);
        log_info("the first example, with what is learned between >>> and <<<: %s", buf_text(&text));
        buf_fini(&text);
        m->shown = true;
        TRY(s);
    }
    return end_document(m);
}

/* ---- files ---- */

static struct status find_kind(struct making_store *m, const struct input_files *files)
{
    for (int64_t i = 0; i < files->n; i++) {
        const char *path = files->files[i].path;
        if (source_formats_names_json(path)) {
            return answer_examples_found(&m->has_answers, path, m->data->text_field);
        }
    }
    return status_ok();
}

/* Whether a file of a folder is neither text nor examples. */
static bool leaves_out(const struct making_store *m, const struct input_file *file)
{
    bool is_json = source_formats_names_json(file->path);
    struct status s =
        is_json || !file->in_directory ? status_ok()
        : m->has_answers
            ? status_error(STATUS_DATA, "%s is not lines of JSON, as the examples are", file->path)
            : text_ids_look(file->path);
    if (failed(s)) {
        log_warning("%s; it is left out", s.message);
    }
    return failed(s);
}

static struct status read_file(struct making_store *m, const char *path)
{
    FAIL_IF(m->has_answers && !source_formats_names_json(path), STATUS_DATA,
            "%s is not lines of JSON (.jsonl), as the examples are: fine-tune on texts in a run of its own",
            path);
    return m->has_answers ? answer_examples_read(&m->answers, path)
                          : text_ids_read(&m->scratch, path, m->data->text_field, take_text, m);
}

static struct status read_files(struct making_store *m)
{
    const struct option_words *words = m->data->files;
    struct input_files files;
    char output[FILE_PATH_BYTES];
    file_parent(output, m->output.prefix);
    TRY(input_files_list(&files, words->of, words->n));
    struct status s = input_files_check_output_directory(&files, words->of, words->n, "--output_dir", output);
    s = failed(s) ? s : find_kind(m, &files);
    for (int64_t i = 0; i < files.n && !failed(s); i++) {
        s = leaves_out(m, &files.files[i]) ? s : read_file(m, files.files[i].path);
    }
    input_files_fini(&files);
    return s;
}

static struct status open_chat(struct making_store *m)
{
    bool exists;
    struct status s = chat_template_open(&m->chat, &exists, m->data->tokenizer);
    m->answers.chat = exists && !failed(s) ? &m->chat : NULL;
    m->answers.no_chat =
        failed(s) ? s
                  : status_error(STATUS_DATA, "the model has no chat template, which makes a text of "
                                              "\"messages\": give one by --chat_template, or lines with "
                                              "\"prompt\" and \"completion\"");
    return s.code == STATUS_MEMORY ? s : status_ok();
}

static struct status read(struct making_store *m)
{
    m->answers = (struct answer_reading){
        .scratch = &m->scratch, .limit = m->data->length, .take = take_example, .self = m};
    TRY(tokenizer_scratch_init(&m->scratch, m->data->tokenizer));
    struct status s = open_chat(m);
    s = failed(s) ? s : read_files(m);
    chat_template_fini(&m->chat);
    tokenizer_scratch_fini(&m->scratch);
    return s;
}

/* ---- what is told ---- */

static void tell_answers(const struct making_store *m)
{
    const struct answer_counts *c = &m->answers.counts;
    log_info("%" PRId64 " examples, %" PRId64 " tokens, of which %" PRId64 " are answers and have a loss",
             c->n_examples, c->n_tokens, c->n_learned);
    if (c->n_cut > 0) {
        log_warning("%" PRId64 " examples are longer than %" PRId64 " tokens, and lose their ends", c->n_cut,
                    m->data->length);
    }
    if (c->n_without > 0) {
        log_warning("%" PRId64 " examples are left out: no answer begins in their first %" PRId64 " tokens",
                    c->n_without, m->data->length);
    }
}

/* Says what was read.  STATUS_DATA: it was nothing. */
static struct status finish_reading(const struct making_store *m, struct status s)
{
    TRY(s);
    if (m->has_answers) {
        tell_answers(m);
    } else if (m->data->tokenizer->special[SPECIAL_END] < 0) {
        log_warning("the documents of %s have nothing between them: no file of the model says which token "
                    "ends a text (\"eos_token\" of tokenizer_config.json)",
                    m->data->files->of[0]);
    }
    FAIL_IF(m->n_documents == 0 && m->answers.counts.n_examples == 0, STATUS_DATA, "%s has no %s",
            m->data->files->of[0], m->has_answers ? "example with an answer to learn" : "text");
    return status_ok();
}

/* ---- a store ---- */

/* A store that is there is one of an earlier run, or must be of the same text. */
static struct status claim_store(struct document_output *o, const char *prefix, bool dry_run)
{
    static const struct input_files none = {0};
    TRY(document_output_name(o, prefix));
    o->maker = "finetune-gpt";
    return document_output_claim(o, &none, DOCUMENT_OUTPUT_OWN, dry_run);
}

static struct status write(struct making_store *m)
{
    static const struct document_shuffle_config in_order = {.seed = -1};
    const struct tokenizer *t = m->data->tokenizer;
    TRY(document_output_open(&m->output, t->n, &in_order));
    TRY(finish_reading(m, read(m)));
    struct token_store_info info = {.vocab_hash = t->hash,
                                    .vocab_size = t->n,
                                    .lower_case = t->lower_case,
                                    .has_answers = m->has_answers};
    return document_output_finish(&m->output, &info);
}

struct status gpt_finetune_data_write(const struct gpt_finetune_data *d, const char *prefix)
{
    struct making_store m = {.data = d};
    struct status s = claim_store(&m.output, prefix, false);
    s = failed(s) ? s : write(&m);
    document_output_close(&m.output);
    return s;
}

static struct status measure(const struct making_store *m, struct gpt_samples *samples, const char *split)
{
    int64_t bounds[4], length = m->data->length;
    const int64_t *ends = (const int64_t *)(const void *)m->ends.data;
    const struct answer_counts *c = &m->answers.counts;
    TRY(sample_order_split(bounds, split,
                           m->has_answers ? c->n_examples : (int64_t)(m->ends.n / sizeof *ends)));
    struct token_windows w = {.of_answers = m->has_answers,
                              .end = m->has_answers  ? bounds[1]
                                     : bounds[1] > 0 ? ends[bounds[1] - 1]
                                                     : 0,
                              .length = length};
    *samples = (struct gpt_samples){.n_train = token_windows_count(&w),
                                    .n_longest = m->has_answers ? int_larger(c->longest - 1, 1) : length,
                                    .of_answers = m->has_answers,
                                    .n_examples = c->n_examples};
    return status_ok();
}

struct status gpt_finetune_data_count(const struct gpt_finetune_data *d, struct gpt_samples *samples,
                                      const char *prefix, const char *split)
{
    struct making_store m = {.data = d, .counts_only = true};
    TRY(claim_store(&m.output, prefix, true));
    struct status s = finish_reading(&m, read(&m));
    s = failed(s) ? s : measure(&m, samples, split);
    buf_fini(&m.ends);
    TRY(s);
    if (m.has_answers) {
        log_info("%s.bin and .idx would be made of them", prefix);
    } else {
        log_info("%s: %" PRId64 " documents, %" PRId64 " tokens, of which %s.bin and .idx would be made",
                 d->files->of[0], m.n_documents, m.n_tokens, prefix);
    }
    return status_ok();
}
