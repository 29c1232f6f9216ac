/* continue_text: continues texts with a decoder, and prints each as its tokens come.  It needs only the
 * files that `make install` put under a prefix.
 *
 *     continue_text MODEL_DIR PROMPT...
 *
 * Ctrl-C ends the texts. */
#include <kiln/kiln.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct kiln_session *session;

static void cancel(int signal_number)
{
    (void)signal_number;
    kiln_session_cancel(session);
}

static int complain(struct kiln_status s)
{
    fprintf(stderr, "continue_text: %s\n", s.message);
    return (int)s.code;
}

static bool print(void *context, size_t text, int32_t id, const char *bytes, size_t n)
{
    (void)context, (void)text, (void)id;
    fwrite(bytes, 1, n, stdout);
    return fflush(stdout) == 0;
}

/* One after the other, since they are printed as they come. */
static int continue_all(int n, char **prompts)
{
    struct kiln_generate_options o = kiln_generate_defaults();
    o.told = print;
    for (int i = 0; i < n; i++) {
        struct kiln_text prompt = {prompts[i], strlen(prompts[i])};
        struct kiln_continuations found;
        fputs(prompts[i], stdout);
        struct kiln_status s = kiln_generate(session, &found, &prompt, 1, &o);
        putchar('\n');
        if (s.code != KILN_OK) {
            return complain(s);
        }
        kiln_continuations_free(&found);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct kiln_model *model;
    int code;
    if (argc < 3) {
        fprintf(stderr, "usage: continue_text MODEL_DIR PROMPT...\n");
        return KILN_USAGE;
    }
    struct kiln_status s = kiln_model_open(&model, argv[1]);
    if (s.code == KILN_OK) {
        s = kiln_session_open(&session, model, KILN_GENERATE);
        kiln_model_close(model); /* the session keeps it */
    }
    if (s.code != KILN_OK) {
        return complain(s);
    }
    signal(SIGINT, cancel);
    code = continue_all(argc - 2, argv + 2);
    signal(SIGINT, SIG_DFL);
    kiln_session_close(session);
    return code;
}
