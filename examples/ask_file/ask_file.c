/* ask_file: asks a model about a text file.  It needs only the files that `make install` put under a prefix.
 *
 *     ask_file MODEL_DIR FILE QUESTION...
 *
 * Ctrl-C ends the current question. */
#include <kiln/kiln.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct kiln_session *session;

static void cancel(int signal_number)
{
    (void)signal_number;
    kiln_session_cancel(session);
}

/* The file's bytes, which the caller frees, or NULL. */
static char *read_file(const char *path, size_t *n)
{
    char *text = NULL;
    FILE *f = fopen(path, "rb");
    *n = 0;
    for (size_t n_read = 1; f != NULL && n_read > 0; *n += n_read) {
        char *more = realloc(text, *n + 65536);
        if (more == NULL) {
            free(text);
            text = NULL;
            break;
        }
        text = more;
        n_read = fread(text + *n, 1, 65536, f);
    }
    if (f != NULL && fclose(f) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static int complain(struct kiln_status s)
{
    fprintf(stderr, "ask_file: %s\n", s.message);
    return (int)s.code;
}

static int ask_all(const char *text, size_t n, int n_questions, char **questions)
{
    for (int i = 0; i < n_questions; i++) {
        struct kiln_answers found;
        struct kiln_status s = kiln_ask(session, &found, questions[i], text, n, NULL);
        if (s.code != KILN_OK) {
            return complain(s);
        }
        printf("%s\n%.4f  %s  [bytes %lld to %lld]\n", questions[i], found.answers[0].probability,
               found.answers[0].text, (long long)found.answers[0].start, (long long)found.answers[0].end);
        kiln_answers_free(&found);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct kiln_model *model;
    size_t n;
    if (argc < 4) {
        fprintf(stderr, "usage: ask_file MODEL_DIR FILE QUESTION...\n");
        return KILN_USAGE;
    }
    char *text = read_file(argv[2], &n);
    if (text == NULL) {
        perror(argv[2]);
        return KILN_DATA;
    }
    struct kiln_status s = kiln_model_open(&model, argv[1]);
    if (s.code == KILN_OK) {
        s = kiln_session_open(&session, model, KILN_ASK);
        kiln_model_close(model); /* the session keeps it */
    }
    int code;
    if (s.code == KILN_OK) {
        signal(SIGINT, cancel);
        code = ask_all(text, n, argc - 3, argv + 3);
        signal(SIGINT, SIG_DFL);
        kiln_session_close(session);
    } else {
        code = complain(s);
    }
    free(text);
    return code;
}
