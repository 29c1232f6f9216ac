/* Tests of io/dllog: the lines that dllogger writes, to the byte, with values spelt as Python spells them;
 * and the file, begun anew or gone on with. */
#include "test.h"

#include "io/dllog.h"
#include "io/file.h"

#include <time.h>

static void expect_text(struct buf *b, const char *wanted)
{
    EXPECT(strcmp(buf_text(b), wanted) == 0, "\n%s\nwanted\n%s", buf_text(b), wanted);
    buf_fini(b);
}

/* Local time is UTC here. */
static const double WALL = 1700000000.25, START = 1699999990;
static const struct dllog_step iteration = {DLLOG_ITERATION, 1, 200}, parameter = {DLLOG_PARAMETER, 0, 0},
                               summary = {DLLOG_SUMMARY, 0, 0};

static void lines_are_dlloggers(void)
{
    struct buf b = {0};
    json_t *data = json_pack("{s:f, s:f, s:i}", "average_loss", 11.25, "learning_rate", 1e-5, "n", 3);
    dllog_append_printed(&b, WALL, iteration, data);
    expect_text(
        &b,
        "DLL 2023-11-14 22:13:20.250000 - Training Epoch: 1 Training Iteration: 200  average_loss : 11.25  "
        "learning_rate : 1e-05  n : 3 ");
    dllog_append_line(&b, WALL, START, iteration, data);
    expect_text(&b,
                "DLLL {\"timestamp\": \"1700000000.250000\", \"datetime\": \"2023-11-14 22:13:20.250000\", "
                "\"elapsedtime\": \"10.250000\", \"type\": \"LOG\", \"step\": [1, 200], \"data\": "
                "{\"average_loss\": 11.25, \"learning_rate\": 1e-05, \"n\": 3}}");
    json_decref(data);

    data = json_pack("{s:b}", "train_start", 1);
    dllog_append_printed(&b, WALL, parameter, data);
    expect_text(&b, "DLL 2023-11-14 22:13:20.250000 - PARAMETER train_start : True ");
    dllog_append_line(&b, WALL, WALL, parameter, data);
    expect_text(&b,
                "DLLL {\"timestamp\": \"1700000000.250000\", \"datetime\": \"2023-11-14 22:13:20.250000\", "
                "\"elapsedtime\": \"0.000000\", \"type\": \"LOG\", \"step\": \"PARAMETER\", \"data\": "
                "{\"train_start\": true}}");
    json_decref(data);

    data = json_pack("{s:f, s:f}", "e2e_train_time", 2313.8302, "final_loss", 2.0);
    dllog_append_printed(&b, WALL, summary, data);
    expect_text(&b, "DLL 2023-11-14 22:13:20.250000 -  e2e_train_time : 2313.8302  final_loss : 2.0 ");
    json_decref(data);
}

/* Wanted: what Python 3 prints for str(value). */
static void reals_are_pythons(void)
{
    static const struct {
        double value;
        const char *wanted;
    } cases[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {0.0001, "0.0001"},
        {0.00005, "5e-05"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.5e300, "1.5e+300"},
        {123456.789, "123456.789"},
        {5e-324, "5e-324"},
        {1700000000.25, "1700000000.25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf b = {0};
        char wanted[64];
        json_t *data = json_pack("{s:f}", "v", cases[i].value);
        snprintf(wanted, sizeof wanted, "v : %s ", cases[i].wanted);
        dllog_append_printed(&b, WALL, summary, data);
        EXPECT(strstr(buf_text(&b), wanted) != NULL, "%s lacks %s", buf_text(&b), wanted);
        buf_fini(&b);
        json_decref(data);
    }
}

static void command_lines_are_namespaces(void)
{
    struct buf b = {0};
    json_t *flags = json_pack("{s:s, s:n, s:b, s:f, s:s, s:s}", "input_dir", "a b", "init_checkpoint",
                              "phase2", 0, "learning_rate", 0.006, "quote", "it's", "both", "it's \"\\\n");
    dllog_append_namespace(&b, flags);
    expect_text(&b, "Namespace(input_dir='a b', init_checkpoint=None, phase2=False, learning_rate=0.006, "
                    "quote=\"it's\", both='it\\'s \"\\\\\\n')");
    json_decref(flags);
}

static size_t n_lines(const char *path)
{
    struct file_map m;
    size_t n = 0;
    EXPECT_OK(file_map_open(&m, path));
    for (size_t i = 0; i < m.n; i++) {
        n += m.data[i] == '\n';
    }
    file_map_close(&m);
    return n;
}

static void files_begin_anew_or_go_on(void)
{
    static const char path[] = "test_dllog.dir/deep/dllogger.json";
    struct dllog d;
    json_t *data = json_pack("{s:i}", "n", 1);
    for (int run = 0; run < 2; run++) {
        EXPECT_OK(dllog_open(&d, path, false, false));
        EXPECT_OK(dllog_write(&d, parameter, data));
        dllog_close(&d);
        EXPECT(n_lines(path) == 1, "%zu lines of a run that begins", n_lines(path));
    }
    FILE *f = fopen(path, "a");
    EXPECT(f != NULL && fputs("DLLL {\"cut\": ", f) >= 0 && fclose(f) == 0, "a line that a crash cut");
    EXPECT_OK(dllog_open(&d, path, true, false));
    EXPECT_OK(dllog_write(&d, parameter, data));
    dllog_close(&d);
    EXPECT(n_lines(path) == 3, "%zu lines of a run that went on", n_lines(path));

    EXPECT_OK(dllog_open(&d, NULL, false, false)); /* no file: nothing happens */
    EXPECT_OK(dllog_write(&d, parameter, data));
    EXPECT_ERROR(dllog_open(&d, "/proc/none/d.json", false, false), STATUS_IO, "/proc/none");
    json_decref(data);
    EXPECT_OK(file_remove_tree("test_dllog.dir"));
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    lines_are_dlloggers();
    reals_are_pythons();
    command_lines_are_namespaces();
    files_begin_anew_or_go_on();
    return 0;
}
