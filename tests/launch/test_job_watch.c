/* What is understood of what mpirun, srun and ranks print, which exit codes mean "again", and the lines of
 * mpirun and srun. */
#include "launch/host_check.h"
#include "launch/job_watch.h"
#include "launch/mpi_command.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static void take(struct job_watch *w, const char *text)
{
    *w = (struct job_watch){.rank = -1};
    for (const char *p = text; *p != '\0'; p++) { /* as slowly as a pipe may be */
        job_watch_take(w, p, 1);
    }
}

static void test_words(void)
{
    static const struct {
        const char *text;
        int64_t rank;
        const char *host, *cause;
    } cases[] = {
        {"step 10\rstep 11\r\n", -1, "", ""},
        {"mpirun noticed that process rank 3 with PID 0 on node h2 exited on signal 9 (Killed).\n", 3, "h2",
         "exited on signal 9 (Killed)."},
        {"  Process name: [[28370,1],2]\n  Exit code:    74\n", 2, "h2", ""},
        {"kiln: error: cannot write ckpt_10: No space left on device\nkiln: error: another\n"
         "mpirun noticed that process rank 1 with PID 0 on node h1 exited on signal 15\n",
         1, "h1", "cannot write ckpt_10: No space left on device"},
        {"kiln: error: rank 3 on node7 ended by signal 9, Killed\nkiln: error: rank 0 on h1 ended by signal "
         "15, Terminated\n"
         "mpirun noticed that process rank 0 with PID 0 on node h1 exited on signal 15\n",
         3, "node7", "exited on signal 15"},
        {"ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on node h1\n"
         "  Remote daemon: [[1,0],1] on node h3\nkiln: error: rank 1 on h2 ended by signal 15, Terminated\n",
         -1, "h3", "the host does not answer any more"},
        {"kiln: error: rank 2 of 4 on h3 has been silent for 10.0 s: it is stopped\n"
         "kiln: error: rank 0 on h1 ended with exit code 74\n",
         2, "h3", "rank 2 of 4 on h3 has been silent for 10.0 s: it is stopped"},
        {"srun: error: h2: task 1: Killed\n", 1, "h2", "Killed"},
        {"srun: error: task 2 launch failed: Unspecified error\n", 2, "h2",
         "task 2 launch failed: Unspecified error"},
        {"srun: error: Node failure on h2\n", -1, "h2", "the host does not answer any more"},
    };
    struct host_list hosts = {0};
    EXPECT_OK(host_list_add(&hosts, "h1", 2, "test"));
    EXPECT_OK(host_list_add(&hosts, "h2", 2, "test"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_watch w;
        take(&w, cases[i].text);
        job_watch_find_host(&w, &hosts);
        EXPECT(w.rank == cases[i].rank && strcmp(w.host, cases[i].host) == 0 &&
                   strcmp(w.cause, cases[i].cause) == 0,
               "case %zu: rank %d, host '%s', cause '%s'", i, (int)w.rank, w.host, w.cause);
        job_watch_fini(&w);
    }
    host_list_fini(&hosts);
}

/* Ranks that srun ends after the first failure have higher codes than it. */
static void test_code(void)
{
    static const struct {
        const char *text;
        int code, wanted;
    } cases[] = {
        {"kiln: error: rank 0 on h1 ended with exit code 75\n"
         "kiln: error: rank 1 on h1 ended by signal 15, Terminated\n",
         143, 75},
        {"kiln: error: rank 2 on h2 ended with exit code 65\n", 143, 65},
        {"kiln: error: rank 2 on h2 ended by signal 11, Segmentation fault\n", 143, 139},
        {"kiln: error: rank 2 on h2 ended by signal 9, Killed\n", 74, 74},
        {"kiln: error: rank 0 on h1 ended with exit code 75\n", 0, 0},
        {"srun: error: h2: task 1: Killed\n", 143, 143},
        {"srun: error: task 2 launch failed: Unspecified error\n", 0, 74},
        {"srun: error: task 2 launch failed: Unspecified error\n", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_watch w;
        take(&w, cases[i].text);
        int code = job_watch_code(&w, cases[i].code);
        EXPECT(code == cases[i].wanted, "case %zu: %d", i, code);
        job_watch_fini(&w);
    }
}

static void test_next(void)
{
    static const int again[] = {74, 75, 97, 98, 129, 137, 139, 143, 205, 255},
                     never[] = {1, 2, 64, 65, 66, 69, 70, 71, 99, 134};
    struct job_watch w = {.rank = -1};
    EXPECT(job_watch_next(&w, 0) == JOB_DONE, "0");
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        EXPECT(job_watch_next(&w, again[i]) == JOB_AGAIN, "%d", again[i]);
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        EXPECT(job_watch_next(&w, never[i]) == JOB_NEVER, "%d", never[i]);
    }
    take(&w,
         "mpirun was unable to find the specified executable file, and therefore did not launch the job.\n");
    EXPECT(job_watch_next(&w, 213) == JOB_NEVER, "a program that is missing stays so");
    job_watch_fini(&w);
}

static void test_output_dir(void)
{
    char dir[] = "/tmp/kiln_watch_XXXXXX", path[64];
    EXPECT(mkdtemp(dir) != NULL, "no directory");
    EXPECT(job_watch_newest_checkpoint(dir, "squad") == -1 && job_watch_last_step(dir, 0) == -1, "empty");
    EXPECT(job_watch_newest_checkpoint(NULL, NULL) == -1 && job_watch_last_step(NULL, 0) == -1, "unknown");
    static const char *const names[] = {"ckpt_9", "ckpt_20", "ckpt_30.tmp", "ckpt_", "tag", "tag/ckpt_3"};
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        EXPECT(mkdir(path, 0700) == 0, "%s", path);
    }
    EXPECT(job_watch_newest_checkpoint(dir, "squad") == 20, "newest");
    EXPECT(job_watch_newest_checkpoint(dir, "tag") == 3, "its own, where another kind's are beside");
    snprintf(path, sizeof path, "%s/log.jsonl", dir);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 3000; i++) { /* more than the end that is read */
        fprintf(f, "{\"event\":\"step\",\"step\":%d,\"loss\":1.0}\n", i);
    }
    fprintf(f, "{\"event\":\"saved\"}\n{\"event\":\"step\",\"st");
    fclose(f);
    EXPECT(job_watch_last_step(dir, 0) == 2999, "%d", (int)job_watch_last_step(dir, 0));
    EXPECT(job_watch_last_step(dir, job_watch_log_bytes(dir)) == -1, "a step of an older log");
    unlink(path);
    for (int i = 5; i >= 0; i--) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        rmdir(path);
    }
    rmdir(dir);
}

static void expect_line(const struct launch_job *job, bool resume, const char *wanted)
{
    struct words line = {0};
    struct buf text = {0};
    EXPECT_OK(mpi_command_make(&line, job, resume));
    words_print(&text, &line);
    EXPECT(strstr(buf_text(&text), wanted) != NULL, "'%s' lacks '%s'", buf_text(&text), wanted);
    buf_fini(&text);
    words_fini(&line);
}

static void test_lines(void)
{
    struct launch_job job = {.cores = 25, .is_remote = true, .ssh_port = 3022, .more = " --tag-output  -v "};
    EXPECT_OK(host_list_add(&job.hosts, "h1", 4, "test"));
    EXPECT_OK(host_list_add(&job.hosts, "h2", 4, "test"));
    words_add(&job.program, "kiln");
    words_add(&job.program, "it's");
    words_add(&job.variables, "A=1");
    words_add(&job.exported, "NCCL_DEBUG");
    expect_line(&job, false,
                "--mca plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=5 -p 3022' --mca "
                "orte_keep_fqdn_hostnames 1 --mca oob_tcp_keepalive_time 4 ");
    expect_line(&job, false,
                " --bind-to core --map-by ppr:4:node:PE=6 --tag-output -v -n 8 -H h1:4,h2:4 -x NCCL_DEBUG -x "
                "A kiln 'it'\\''s'");
    expect_line(&job, true, " --resume_from_checkpoint");
    job.cores = 3;
    expect_line(&job, false, " --bind-to none --map-by slot --oversubscribe --mca mpi_yield_when_idle 1 ");
    job.kind = LAUNCH_SRUN;
    job.cores = 8;
    expect_line(
        &job, false,
        "srun --mpi=pmix --kill-on-bad-exit=1 --nodes=2 --ntasks=8 --nodelist=h1,h2 --ntasks-per-node=4 "
        "--cpus-per-task=2 --cpu-bind=cores ");
    words_add(&job.program, "--resume-from-checkpoint");
    struct words line = {0};
    EXPECT_OK(mpi_command_make(&line, &job, true));
    EXPECT(strcmp(line.list[line.n - 1], "--resume-from-checkpoint") == 0, "twice");
    words_fini(&line);
    launch_job_fini(&job);
}

static void test_ssh_causes(void)
{
    static const struct {
        const char *said, *name, *cure;
    } cases[] = {
        {"ssh: Could not resolve hostname h9: Name or service not known\n", "unknown host", "/etc/hosts"},
        {"ssh: connect to host h2 port 3022: Connection refused\n", "port closed", "port 3022 of h2"},
        {"ssh: connect to host h2 port 22: Connection timed out\n", "timeout", "ip link set dev eth0 up"},
        {"ssh: connect to host h2 port 22: No route to host\n", "no route", "ip link"},
        {"Host key verification failed.\n", "unknown host key",
         "ssh-keyscan -p 3022 -H h2 >> ~/.ssh/known_hosts"},
        {"root@h2: Permission denied (publickey).\n", "login refused", "ssh-copy-id -p 3022 h2"},
        {"odd\n", "failed", "says: odd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child_job job = {.code = 255};
        buf_puts(&job.output, cases[i].said);
        struct ssh_problem p = host_check_explain(&job, "h2", 3022);
        size_t n = strlen(cases[i].name);
        EXPECT(strncmp(p.text, cases[i].name, n) == 0 && p.text[n] == ':' &&
                   strstr(p.text, cases[i].cure) != NULL,
               "%s", p.text);
        buf_fini(&job.output);
    }
}

int main(void)
{
    test_words();
    test_code();
    test_next();
    test_output_dir();
    test_lines();
    test_ssh_causes();
    return 0;
}
