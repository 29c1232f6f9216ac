/* kiln ask: answers questions about a text, from arguments, standard input or a prompt. */
#define _GNU_SOURCE
#include "cmd/ask_passages.h"
#include "cmd/commands.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "corpus/text_file.h"
#include "serve/answer_json.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ask_args {
    struct session_flags session;
    struct ask_passages_flags text;
    int64_t top_k, doc_stride, max_answer_length;
    bool version_2_with_negative, json;
};

#define AT(field) offsetof(struct ask_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(
        AT(session),
        "answer with this model: the output of `kiln squad`, or a directory as `transformers` writes it"),
    OPTION_INPUT_ROW(
        "context", AT(text.context), "PATH",
        "read the text from this file, or the files of this folder; by default standard input is "
        "the text",
        false),
    OPTION_WORDS_ROW("contexts", AT(text.contexts), "PATH...",
                     "read several files and folders; questions stand before it, or after another flag"),
    ENCODING_ROW(AT(text.encoding), "the text"),
    OPTION_INT_ROW("top_k", AT(top_k), "1", 1, 100, "number of answers to each question"),
    OPTION_INT_ROW("doc_stride", AT(doc_stride), "128", 1, 65536,
                   "number of tokens from one window of the text to the next; a model that reads fewer than "
                   "twice as many takes a quarter of what it reads"),
    OPTION_INT_ROW("max_answer_length", AT(max_answer_length), "30", 1, 65536,
                   "maximum number of tokens of an answer"),
    OPTION_FLAG_ROW("version_2_with_negative", AT(version_2_with_negative),
                    "let the model say that there is no answer, if it was trained on such questions"),
    OPTION_FLAG_ROW("json", AT(json), "print a JSON object for each question"),
    OPTION_GROUP_ROW("which passages are read"),
    OPTION_INT_ROW(
        "passages", AT(text.n), "0", 0, 100000,
        "read the N passages that fit the question best, each of twice --doc_stride tokens; 0: all "
        "of one text, 20 of several"),
    OPTION_STRING_ROW("retriever", AT(text.model), NULL, "DIR",
                      "choose passages by the vectors of this model (`kiln embed`), by default by the words "
                      "that they share with the question (BM25)"),
    RETRIEVER_ROWS(AT(text.retriever)),
    {0},
};

/* A text and the model that answers questions about it. */
struct reading {
    struct session session;
    struct ask_options options;
    bool json;
    const char *context;
    size_t n;
    struct ask_passages *passages; /* NULL: all of the context is read */
};

static struct status print_answers(const struct reading *r, const char *question,
                                   const struct ask_result *result)
{
    if (r->json) {
        return standard_streams_put_json(answer_json_ask(question, r->context, result));
    }
    for (int64_t k = 0; k < result->n; k++) {
        const struct ask_answer *a = &result->answers[k];
        if (a->start < 0) {
            printf("%.4f  (no answer)\n", a->probability);
        } else {
            printf("%.4f  %s  [bytes %d to %d]\n", a->probability, result->texts.data + a->text, a->start,
                   a->end);
        }
    }
    return status_ok();
}

static struct status answer(struct reading *r, const char *question)
{
    struct ask_result result = {0};
    struct progress progress = progress_begin(true);
    r->options.progress = &progress;
    struct status s = r->passages != NULL
                          ? ask_passages_answer(r->passages, &r->session, question, &r->options, r->json)
                          : ask_question(&r->session, question, r->context, r->n, &r->options, &result);
    progress_end(&progress);
    r->options.progress = NULL;
    if (!failed(s) && r->passages == NULL) {
        s = print_answers(r, question, &result);
    }
    ask_result_fini(&result);
    return s;
}

/* Reads questions from standard input, one per line, with a prompt on a terminal.  A question that cannot be
 * answered does not end the loop. */
static struct status answer_lines(struct reading *r)
{
    bool terminal = isatty(STDIN_FILENO) == 1;
    char *line = NULL;
    size_t capacity = 0;
    int64_t n_lines = 0;
    struct status last = status_ok(), output = status_ok();
    for (;;) {
        if (terminal) {
            fputs("question> ", stdout);
        }
        output = standard_streams_flush();
        if (failed(output) || getline(&line, &capacity, stdin) < 0) {
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        n_lines++;
        if (line[0] == '\0') {
            continue;
        }
        struct status s = standard_streams_check_line(line, strlen(line), n_lines);
        s = failed(s) ? s : answer(r, line);
        if (failed(s)) {
            log_warning("%s", s.message);
            last = s;
        }
    }
    last = failed(output) ? output : failed(last) ? last : standard_streams_check_input();
    free(line);
    return last;
}

static struct status answer_all(struct reading *r, int n_questions, const char *const *questions)
{
    if (n_questions == 0) {
        return answer_lines(r);
    }
    for (int i = 0; i < n_questions; i++) {
        if (n_questions > 1 && !r->json) {
            printf("%s\n", questions[i]);
        }
        TRY(answer(r, questions[i]));
        TRY(standard_streams_flush());
    }
    return status_ok();
}

static struct status read_standard_input(struct buf *text)
{
    enum { CHUNK = 65536 };
    for (size_t n = CHUNK; n == CHUNK;) {
        char *room = buf_extend(text, CHUNK);
        TRY(buf_status(text));
        n = fread(room, 1, CHUNK, stdin);
        text->n -= CHUNK - n;
    }
    return standard_streams_check_input();
}

static struct status ask_of_passages(const struct ask_args *a, struct reading *r, int n_questions,
                                     const char *const *questions)
{
    struct ask_passages p;
    TRY(ask_passages_open(&p, &r->session, &r->options, &a->session, &a->text));
    r->passages = &p;
    struct status s = answer_all(r, n_questions, questions);
    s = failed(s) ? s : passage_files_check(&p.files);
    ask_passages_close(&p);
    r->passages = NULL;
    return s;
}

static struct status ask(const struct ask_args *a, struct reading *r, int n_questions,
                         const char *const *questions)
{
    struct text_file file = {0};
    struct buf text = {0};
    struct status s = a->text.context != NULL ? status_ok() : read_standard_input(&text);
    if (!failed(s)) {
        s = a->text.context != NULL
                ? text_file_open(&file, a->text.context, a->text.encoding)
                : text_file_view(&file, "the text", buf_text(&text), text.n, a->text.encoding);
    }
    r->context = file.text;
    r->n = file.n;
    s = failed(s) ? s : answer_all(r, n_questions, questions);
    s = failed(s) ? s : text_file_check(&file);
    text_file_close(&file);
    buf_fini(&text);
    return s;
}

static struct status check(const struct ask_passages_flags *f, int n_questions)
{
    int n_sources = (f->context != NULL) + (f->contexts.n > 0) + (f->retriever.index != NULL);
    FAIL_IF(n_sources > 1, STATUS_USAGE, "--context, --contexts and --index contradict each other");
    FAIL_IF(n_sources == 0 && n_questions == 0, STATUS_USAGE,
            "standard input cannot be both the text and the questions: give --context FILE, or the questions "
            "as arguments");
    FAIL_IF(n_sources == 0 && ask_passages_wanted(f), STATUS_USAGE,
            "passages are chosen from files: give --context, --contexts or --index");
    FAIL_IF(f->retriever.index != NULL && f->model == NULL, STATUS_USAGE,
            "--index needs the model that made it: give --retriever DIR");
    return status_ok();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct ask_args *a = args;
    if (a->session.common.dry_run) {
        return session_flags_plan(&a->session, ANSWER_ASK);
    }
    TRY(check(&a->text, n_positional));
    struct reading r = {.options = ask_defaults(), .json = a->json};
    r.options.top_k = a->top_k;
    r.options.doc_stride = a->doc_stride;
    r.options.max_answer_length = a->max_answer_length;
    r.options.may_be_none = a->version_2_with_negative;
    for (int i = 0; i < n_positional; i++) {
        TRY(standard_streams_check_argument(positional[i], i + 1));
    }
    TRY(session_flags_open(&r.session, &a->session, ANSWER_ASK));
    struct status s = ask_passages_wanted(&a->text) ? ask_of_passages(a, &r, n_positional, positional)
                                                    : ask(a, &r, n_positional, positional);
    session_close(&r.session);
    return s;
}

const struct command command_ask = {
    .name = "ask",
    .summary = "answer questions about a text of any length",
    .details = "Give questions as arguments, or as lines of standard input if --context names the text; a "
               "terminal shows a prompt.  Each answer comes with its probability and its place in the text. "
               "Of several files, or of a folder, the passages that fit a question best are read, and an "
               "answer names its file and place. "
               "The text may have up to 1 GiB. A line on standard error shows the progress in a long text; a "
               "larger --doc_stride is faster.",
    .positional_usage = "[QUESTION...]",
    .max_positional = 1000,
    .options = options,
    .args_bytes = sizeof(struct ask_args),
    .run = run,
};
