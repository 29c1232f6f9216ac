/* Nothing of the public library is of the whole process: of two models in two threads one is cancelled and
 * the other goes on to the same bits, and signals, their handlers and masks stay the program's. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { ROUNDS = 30, CANCEL_AT = 10, N_SIGNALS = 31 };

static char directory[SESSION_CASE_PATH];
static const char *const words[] = {"a", "mad", "dog", "had", "a", "big", "cake"};
enum { N_WORDS = sizeof words / sizeof words[0] };

static struct kiln_session *open_session(const char *name, enum kiln_task task, const char *dtype)
{
    char path[SESSION_CASE_PATH + 32];
    struct kiln_model *m;
    struct kiln_session *s;
    struct kiln_model_options o = {.size = sizeof o, .device = "cpu", .dtype = dtype};
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open_on(&m, path, &o));
    EXPECT_KILN_OK(kiln_session_open(&s, m, task));
    kiln_model_close(m);
    return s;
}

/* Asks until it is told to stop, or fails. */
struct asker {
    struct kiln_session *session;
    struct kiln_status last;
    atomic_int n_answers;
    atomic_bool enough;
};

static void *ask_on(void *argument)
{
    struct asker *a = argument;
    do {
        struct kiln_answers answers;
        a->last = kiln_ask(a->session, &answers, session_case_question, session_case_context,
                           sizeof session_case_context - 1, NULL);
        kiln_answers_free(&answers);
        atomic_fetch_add(&a->n_answers, 1);
    } while (a->last.code == KILN_OK && !atomic_load(&a->enough));
    return NULL;
}

static struct kiln_tags tag(struct kiln_session *s)
{
    struct kiln_text texts[N_WORDS];
    struct kiln_sentence sentence = {texts, N_WORDS};
    struct kiln_tags tags;
    for (int i = 0; i < N_WORDS; i++) {
        texts[i] = (struct kiln_text){words[i], strlen(words[i])};
    }
    struct kiln_status status = kiln_tag(s, &tags, &sentence, 1);
    EXPECT(status.code == KILN_OK && tags.n == N_WORDS, "the model that was not cancelled: %s",
           status.message);
    return tags;
}

static void expect_same(const struct kiln_tags *a, const struct kiln_tags *b, int round)
{
    for (int i = 0; i < N_WORDS; i++) {
        EXPECT(a->words[i].id == b->words[i].id && a->words[i].probability == b->words[i].probability,
               "round %d: word %d differs", round, i);
    }
}

static void test_two_models(void)
{
    struct asker asker = {.session = open_session("question_answering", KILN_ASK, "bf16")}, again;
    struct kiln_session *other = open_session("tokens", KILN_TAG, "fp32");
    struct kiln_tags alone = tag(other);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, ask_on, &asker) == 0, "no thread");
    for (int i = 0; i < ROUNDS; i++) {
        struct kiln_tags beside = tag(other);
        expect_same(&alone, &beside, i);
        kiln_tags_free(&beside);
        while (i == CANCEL_AT && atomic_load(&asker.n_answers) == 0) {
            sched_yield(); /* it is to be cancelled while it computes */
        }
        if (i == CANCEL_AT) {
            kiln_session_cancel(asker.session);
        }
    }
    pthread_join(thread, NULL);
    EXPECT(asker.last.code == KILN_CANCELLED, "code %d: %s", (int)asker.last.code, asker.last.message);
    kiln_session_resume(asker.session);
    again = (struct asker){.session = asker.session, .enough = true};
    ask_on(&again);
    EXPECT(again.last.code == KILN_OK, "the cancelled session does not go on: %s", again.last.message);
    kiln_tags_free(&alone);
    kiln_session_close(other);
    kiln_session_close(asker.session);
}

struct signals {
    struct sigaction actions[N_SIGNALS + 1];
    sigset_t mask;
};

static struct signals signals_now(void)
{
    struct signals s;
    memset(&s, 0, sizeof s);
    for (int i = 1; i <= N_SIGNALS; i++) {
        EXPECT(sigaction(i, NULL, &s.actions[i]) == 0, "signal %d", i);
    }
    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &s.mask) == 0, "mask");
    return s;
}

static void expect_same_signals(const struct signals *before)
{
    struct signals now = signals_now();
    for (int i = 1; i <= N_SIGNALS; i++) {
        EXPECT(now.actions[i].sa_handler == before->actions[i].sa_handler &&
                   now.actions[i].sa_flags == before->actions[i].sa_flags &&
                   sigismember(&now.mask, i) == sigismember(&before->mask, i),
               "the library has taken signal %d", i);
    }
}

int main(void)
{
    struct signals before = signals_now();
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_classifiers(directory);
    test_two_models();
    expect_same_signals(&before);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
