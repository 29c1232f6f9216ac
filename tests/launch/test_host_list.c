/* Hostfiles, --world_info, DeepSpeed's filters and environment files: what is read, and what is refused with
 * which words. */
#include "launch/host_filter.h"
#include "launch/rank_environment.h"
#include "test.h"

#include <unistd.h>

static char path[] = "/tmp/kiln_hosts_XXXXXX";

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
}

static struct status read_hosts(struct host_list *l, const char *text)
{
    host_list_fini(l);
    write_file(text);
    return host_list_read(l, path);
}

static void test_hostfile(void)
{
    struct host_list l = {0};
    EXPECT_OK(
        read_hosts(&l, "# the cluster\n\n10.10.100.101 slots=8\n  node-2.local\tslots=4   # half of it\r\n"));
    EXPECT(l.n == 2 && host_list_n_ranks(&l) == 12, "%d hosts", l.n);
    EXPECT(strcmp(l.hosts[1].name, "node-2.local") == 0 && l.hosts[1].slots[3] == 3, "%s", l.hosts[1].name);
    EXPECT(host_list_find(&l, "10.10.100.101") == 0 && host_list_find(&l, "10.10.100.10") == -1, "found");

    static const struct {
        const char *text, *part;
    } bad[] = {
        {"a\n", "line 1: 'a' is not a host and its slots; write it as \"a slots=8\""},
        {"a slots=2\nb 4\n", "line 2"},
        {"a slots=\n", "is not a host"},
        {"a slots=2x\n", "is not a host"},
        {"a slots=99999999999999999999\n", "is not a host"},
        {"a slots=2 max_slots=4\n", "is not a host"},
        {"a slots=0\n", "a has 0 slots, but must have 1 to 256"},
        {"a slots=-1\n", "must have 1 to 256"},
        {"a slots=257\n", "must have 1 to 256"},
        {"a slots=2\na slots=2\n", "a occurs twice"},
        {"-oProxyCommand=x slots=2\n", "is not a host"},
        {"a;reboot slots=2\n", "is not a host"},
        {"$(reboot) slots=2\n", "is not a host"},
        {"root@a slots=2\n", "--ssh_port"},
        {"# nothing\n\n", "names no host"},
        {"", "names no host"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_ERROR(read_hosts(&l, bad[i].text), STATUS_USAGE, bad[i].part);
    }
    host_list_fini(&l);
    EXPECT_ERROR(host_list_read(&l, "/nowhere/hosts"), STATUS_DATA, "--hostfile: cannot open /nowhere/hosts");
    host_list_fini(&l);
}

static void test_long_names(void)
{
    struct host_list l = {0};
    char name[300];
    memset(name, 'h', sizeof name);
    name[253] = '\0';
    EXPECT_OK(host_list_add(&l, name, 1, "test"));
    name[253] = 'h';
    name[254] = '\0';
    EXPECT_ERROR(host_list_add(&l, name, 1, "test"), STATUS_USAGE, "is not a host");
    EXPECT_ERROR(host_list_add(&l, "", 1, "test"), STATUS_USAGE, "is not a host");
    host_list_fini(&l);
}

static void test_world_info(void)
{
    struct host_list l = {0};
    EXPECT_OK(
        host_list_decode(&l, "eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgMywgNCwgNSwgNiwgN119")); /* document 002 */
    EXPECT(l.n == 1 && l.hosts[0].n_slots == 8 && strcmp(l.hosts[0].name, "localhost") == 0, "%d hosts", l.n);
    host_list_fini(&l);
    EXPECT_OK(host_list_decode(&l, "eyJhIjogWzEsIDNdLCAiYiI6IFswXX0=")); /* {"a": [1, 3], "b": [0]} */
    EXPECT(l.n == 2 && l.hosts[0].slots[1] == 3 && host_list_n_ranks(&l) == 3, "%d hosts", l.n);
    host_list_fini(&l);
    static const char *const bad[] = {"*",
                                      "",
                                      "e30=" /* {} */,
                                      "eyJhIjogWzMsIDFdfQ==" /* {"a": [3, 1]} */,
                                      "eyJhIjogW119" /* {"a": []} */,
                                      "eyJhIjogWy0xXX0=" /* {"a": [-1]} */,
                                      "eyI7IjogWzBdfQ==" /* {";": [0]} */};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_ERROR(host_list_decode(&l, bad[i]), STATUS_USAGE, "--world_info");
        host_list_fini(&l);
    }
}

/* The hosts and slots left of three hosts of four slots, as "h1:0,1 h3:2". */
static const char *filtered(struct host_filter f, struct status *s)
{
    static char text[256];
    struct host_list l = {0};
    EXPECT_OK(host_list_add(&l, "h1", 4, "test"));
    EXPECT_OK(host_list_add(&l, "h2", 4, "test"));
    EXPECT_OK(host_list_add(&l, "h3", 4, "test"));
    *s = host_filter_apply(&f, &l);
    text[0] = '\0';
    for (int i = 0; i < l.n; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:", i == 0 ? "" : " ",
                 l.hosts[i].name);
        for (int k = 0; k < l.hosts[i].n_slots; k++) {
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", k == 0 ? "" : ",",
                     l.hosts[i].slots[k]);
        }
    }
    host_list_fini(&l);
    return text;
}

static void test_filter(void)
{
    static const struct {
        struct host_filter filter;
        const char *left, *error;
    } cases[] = {
        {{0}, "h1:0,1,2,3 h2:0,1,2,3 h3:0,1,2,3", NULL},
        {{.include = "h3@h1:0,2"}, "h1:0,2 h3:0,1,2,3", NULL},
        {{.exclude = "h2@h3:1"}, "h1:0,1,2,3 h3:0,2,3", NULL},
        {{.exclude = "h2:0,1,2,3"}, "h1:0,1,2,3 h3:0,1,2,3", NULL},
        {{.num_nodes = 2, .num_gpus = 1}, "h1:0 h2:0", NULL},
        {{.num_nodes = -1, .num_gpus = -1}, "h1:0,1,2,3 h2:0,1,2,3 h3:0,1,2,3", NULL},
        {{.include = "h4"}, NULL, "--include names the host 'h4', which is not among the hosts"},
        {{.include = "h1:4"}, NULL, "h1 has no slot '4'; it has 4, numbered 0 to 3"},
        {{.include = "h1:+1"}, NULL, "no slot '+1'"},
        {{.include = "h1:"}, NULL, "lacks a slot"},
        {{.include = "h1:0,"}, NULL, "lacks a slot"},
        {{.include = "h1:0,,1"}, NULL, "lacks a slot"},
        {{.include = "h1@"}, NULL, "the host ''"},
        {{.include = "h1:0@h1:1"}, NULL, "names h1 twice"},
        {{.include = "h1", .exclude = "h2"}, NULL, "cannot be combined"},
        {{.include = "h1", .num_gpus = 2}, NULL, "cannot be given with"},
        {{.exclude = "h1@h2@h3"}, NULL, "leaves no slot"},
        {{.num_nodes = 4}, NULL, "--num_nodes is 4, but there are 3 hosts"},
        {{.num_gpus = 5}, NULL, "--num_gpus is 5, but h1 has 4 slots"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct status s;
        const char *left = filtered(cases[i].filter, &s);
        if (cases[i].error != NULL) {
            EXPECT_ERROR(s, STATUS_USAGE, cases[i].error);
        } else {
            EXPECT(s.code == STATUS_OK && strcmp(left, cases[i].left) == 0, "case %zu: %s %s", i, left,
                   s.message);
        }
    }
}

static void test_env_file(void)
{
    struct words w = {0};
    write_file("# for all\n\nHCCL_OVER_OFI=1\nLIBS=/a:/b=c d\n  EMPTY=\n");
    EXPECT_OK(env_file_read(&w, path));
    EXPECT(w.n == 3 && strcmp(w.list[1], "LIBS=/a:/b=c d") == 0 && strcmp(w.list[2], "EMPTY=") == 0, "%d",
           w.n);
    static const char *const bad[] = {"A=1\nexport B=2\n",
                                      "A=1\nB\n",
                                      "A=1\n=2\n",
                                      "A=1\nB =2\n",
                                      "A=1\n1B=2\n",
                                      "A=1\nB-C=2\n",
                                      "A=1\nOMPI_COMM_WORLD_RANK=0\n",
                                      "A=1\nPMIX_RANK=0\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(bad[i]);
        EXPECT_ERROR(env_file_read(&w, path), STATUS_USAGE, "line 2: ");
    }
    EXPECT_ERROR(env_file_read(&w, "/nowhere/env"), STATUS_DATA,
                 "environment file: cannot open /nowhere/env");
    words_fini(&w);
}

int main(void)
{
    int fd = mkstemp(path);
    EXPECT(fd >= 0, "no temporary file");
    close(fd);
    test_hostfile();
    test_long_names();
    test_world_info();
    test_filter();
    test_env_file();
    unlink(path);
    return 0;
}
