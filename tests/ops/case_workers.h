/* case_workers: runs the numbered cases of a test in a process of its own, so that one that fails, crashes,
 * hangs or leaves a device that no longer answers costs no other case its verdict: the next process begins
 * behind it. */
#ifndef KILN_TESTS_CASE_WORKERS_H
#define KILN_TESTS_CASE_WORKERS_H

struct case_workers {
    void (*work)(void *context,
                 int first); /* runs the cases from `first` on, each after case_workers_begin */
    const char *(*title)(void *context, int i);
    void *context;
    int seconds; /* of one case; it is killed then; 0: no limit */
};

/* Runs all cases and returns how many failed.  Ends the program, as the process did, where one ends before
 * its first case: what ended it would end every other.  The caller has started no thread and opened no
 * device. */
int case_workers_run(const struct case_workers *w);

/* Case i begins, in the process that runs it; nothing where cases are run without case_workers_run. */
void case_workers_begin(int i);

#endif
