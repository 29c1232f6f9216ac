/* kiln: the table of commands, and the only place that ends the process. */
#define _GNU_SOURCE
#include "cmd/build_facts.h"
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "cmd/completion.h"
#include "cmd/standard_streams.h"
#include "core/log.h"
#include "core/nearest.h"
#include "core/parallel.h"
#include "data/shard_process.h"
#include "io/file.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Commands, and the group of `kiln --help` that begins with one. */
#define ROW(NAME, GROUP) {&command_##NAME, GROUP},
static const struct {
    const struct command *command;
    const char *group;
} commands[] = {COMMANDS(ROW){NULL, NULL}};

static void print_usage(void)
{
    puts("kiln trains, fine-tunes and runs transformers from raw text.\n\nusage: kiln COMMAND [flags]");
    for (int i = 0; commands[i].command != NULL; i++) {
        if (commands[i].group != NULL) {
            printf("\n%s:\n", commands[i].group);
        }
        printf("  %-12s %s\n", commands[i].command->name, commands[i].command->summary);
    }
    puts("\n`kiln help COMMAND` explains the usual flags of a command, `kiln help COMMAND all` all of them; "
         "every command has --dry-run. `kiln completion bash`, zsh or fish prints what completes them.");
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; commands[i].command != NULL; i++) {
        if (strcmp(commands[i].command->name, name) == 0) {
            return commands[i].command;
        }
    }
    return NULL;
}

static struct status run_command(const char *name, int argc, const char **argv)
{
    struct nearest best = {0};
    const struct command *c = find_command(name);
    if (c != NULL) {
        return command_run(c, argc, argv);
    }
    for (int i = 0; commands[i].command != NULL; i++) {
        nearest_try(&best, commands[i].command->name, name, strlen(name));
    }
    return status_error(STATUS_USAGE, "unknown command '%s'%s `kiln help` lists them", name,
                        best.word == NULL ? ";" : nearest_question(&best, "").text);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static struct status run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage();
        return status_error(STATUS_USAGE, "a command is missing");
    }
    if (asks_for_help(argv[1]) && argc > 2) {
        return run_command(argv[2], argc > 3 ? 2 : 1, (const char *[]){"--help", argv[3]});
    }
    if (asks_for_help(argv[1])) {
        print_usage();
        return status_ok();
    }
    if (strcmp(argv[1], "--version") == 0) {
        build_facts_print();
        return status_ok();
    }
    if (strcmp(argv[1], "completion") == 0) {
        return completion_print_script(argc > 2 ? argv[2] : "");
    }
    if (strcmp(argv[1], "complete") == 0) {
        completion_print_words(argc - 2, (const char *const *)(argv + 2));
        return status_ok();
    }
    return run_command(argv[1], argc - 2, (const char **)(argv + 2));
}

/* If another process truncates a mapped file, or the disk fails to read it, the program ends with the file's
 * name, as for any file that cannot be read.  Nothing can be cleaned up here, as after kill -9; the next run
 * removes what is left.  Any other bus error is a bug of kiln's own, and the signal ends the program. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char begin[] = "kiln: error: ";
    static const char end[] = " was cut short, or its disk failed, while it was read\n";
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char line[sizeof begin + PATH_MAX + sizeof end];
    (void)context;
    memcpy(line, begin, sizeof begin - 1);
    if (info->si_code != BUS_ADRERR || !map_fault_find(line + sizeof begin - 1, PATH_MAX, info->si_addr)) {
        signal(number, SIG_DFL); /* the access is repeated, which ends the program */
        return;
    }
    if (atomic_flag_test_and_set(&told)) { /* another thread is already here */
        for (;;) {
            pause();
        }
    }
    memcpy(line + strlen(line), end, sizeof end);
    (void)!write(STDERR_FILENO, line, strlen(line));
    _exit(STATUS_IO);
}

/* Touches the pages of the stack that a command may need: under a limit of addresses (`ulimit -v`) a stack
 * that cannot grow is a signal, where memory that cannot be had is an error. */
static __attribute__((noinline)) void grow_stack(void)
{
    enum { BYTES = 256 << 10, PAGE = 4096 };
    char pages[BYTES];
    volatile char *touched = pages;
    for (int i = BYTES - 1; i >= 0; i -= PAGE) { /* from the end that is in use */
        touched[i] = 0;
    }
}

int main(int argc, char **argv)
{
    grow_stack();
    if (shard_process_is_wanted(argc, argv)) {
        return shard_process_serve();
    }
    struct sigaction bus_error = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &bus_error, NULL);
    log_set_level(LOG_INFO);
    parallel_keep_to_quota();
    struct status s = standard_streams_open();
    if (!failed(s)) {
        s = run(argc, argv);
    }
    struct status closed = standard_streams_close();
    if (!failed(s)) {
        s = closed;
    }
    if (failed(s)) {
        log_error(s);
    }
    return (int)s.code;
}
