/* Tests of report/drop_in_logs: each event has the keys of the replaced scripts, in dllogger's lines and in
 * TensorBoard's event files, for pre-training and for fine-tuning. */
#include "test.h"

#include "core/buf.h"
#include "core/json.h"
#include "io/file.h"
#include "report/drop_in_logs.h"

static const char DIRECTORY[] = "test_drop_in_logs.dir", LINES[] = "test_drop_in_logs.dir/dllogger.json";

enum { MOST_TAGS = 12, STEP = 5, GLOBAL_STEP = 9, TIME = 100 };

static const struct model model = {.n_sums = 2, .sums = {{.name = "words_loss"}, {.name = "words_accuracy"}}};

static void log_event(enum drop_in_task task, const char *event, const char *fields,
                      struct tfevents streams[])
{
    struct drop_in_logs l;
    json_t *values;
    EXPECT_OK(json_parse_text(&values, fields, strlen(fields), "fields"));
    drop_in_logs_open(
        &l, &(struct drop_in_options){
                .task = task, .dllogger_file = LINES, .tensorboard_in = DIRECTORY, .model = &model});
    drop_in_logs_event(&l, event, values, 0, STEP, GLOBAL_STEP);
    memcpy(streams, l.streams, sizeof l.streams);
    drop_in_logs_close(&l);
    json_decref(values);
}

/* ---- dllogger ---- */

/* What the records of an event have, each behind "DLLL ". */
static const struct {
    enum drop_in_task task;
    const char *event, *fields, *records;
} lines[] = {
    {DROP_IN_PRETRAINING, "start",
     "{\"seed\": 42, \"micro_batch_size\": 4, \"learning_rate\": 0.5, \"x\": 1}",
     "[{\"SEED\": 42}, {\"train_start\": true}, {\"batch_size_per_pu\": 4}, {\"learning_rate\": 0.5}]"},
    {DROP_IN_PRETRAINING, "saved", "{\"global_step\": 7}", "[{\"checkpoint_step\": 7}]"},
    {DROP_IN_PRETRAINING, "step",
     "{\"loss\": 1, \"step_loss\": 2, \"learning_rate\": 3, \"seconds_per_step\": 4, "
     "\"sequences_per_second\": 5}",
     "[{\"average_loss\": 1, \"step_loss\": 2, \"learning_rate\": 3, \"average_training_time_step\": 4, "
     "\"average_perf_per_step\": 5}]"},
    {DROP_IN_PRETRAINING, "end",
     "{\"final_loss\": 1, \"seconds_per_step\": 2, \"sequences_per_second\": 3, \"process_seconds\": 4, "
     "\"seconds\": 7, \"training_seconds\": 5, \"memory_usage\": 6}",
     "[{\"final_loss\": 1, \"average_training_time_step\": 2, \"average_perf_per_step\": 3}, "
     "{\"e2e_train_time\": 4, \"training_sequences_per_second\": 3, \"final_loss\": 1, \"raw_train_time\": "
     "5, "
     "\"memory usage\": 6}]"},
    {DROP_IN_PRETRAINING, "evaluation", "{\"loss\": 1}", "[]"},
    {DROP_IN_FINETUNING, "start", "{\"seed\": 1, \"parameters\": 2}",
     "[{\"SEED\": 1}, {\"loading_checkpoint\": true}, {\"loaded_checkpoint\": true}, {\"model_weights_num\": "
     "2}]"},
    {DROP_IN_FINETUNING, "training",
     "{\"questions\": 1, \"features\": 2, \"micro_batch_size\": 3, \"steps\": 4}",
     "[{\"train_start\": true}, {\"training_samples\": 1}, {\"training_features\": 2}, "
     "{\"train_batch_size\": 3}, "
     "{\"steps\": 4}]"},
    {DROP_IN_FINETUNING, "predicting", "{\"texts\": 1, \"features\": 2, \"batch_size\": 3}",
     "[{\"infer_start\": true}, {\"eval_samples\": 1}, {\"eval_features\": 2}, {\"predict_batch_size\": 3}, "
     "{\"eval_start\": true}]"},
    {DROP_IN_FINETUNING, "saved", "{\"global_step\": 7}", "[{\"checkpoint_step\": 7}]"},
    {DROP_IN_FINETUNING, "step", "{\"step_loss\": 1, \"learning_rate\": 2, \"loss\": 3}",
     "[{\"step_loss\": 1, \"learning_rate\": 2}]"},
    {DROP_IN_FINETUNING, "trained",
     "{\"e2e_train_time\": 1, \"training_sequences_per_second\": 2, \"final_loss\": 3, \"memory_usage\": 4}",
     "[{\"e2e_train_time\": 1, \"training_sequences_per_second\": 2, \"final_loss\": 3, \"memory usage\": "
     "4}]"},
    {DROP_IN_FINETUNING, "predicted",
     "{\"features\": 1, \"e2e_inference_time\": 2, \"inference_sequences_per_second\": 3}",
     "[{\"sample_number\": 1}, {\"e2e_inference_time\": 2, \"inference_sequences_per_second\": 3}]"},
    {DROP_IN_FINETUNING, "score", "{\"exact_match\": 1, \"F1\": 2, \"mse\": 3}",
     "[{\"exact_match\": 1, \"F1\": 2, \"mse\": 3}]"},
};

/* The data of all records of the file. */
static json_t *read_records(void)
{
    struct file_map m;
    json_t *records = json_array();
    EXPECT_OK(file_map_open(&m, LINES));
    const char *text = (const char *)m.data, *end = text + m.n;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        json_t *line;
        EXPECT(line_end != NULL && strncmp(text, "DLLL {", 6) == 0, "'%.40s' is no record", text);
        EXPECT_OK(json_parse_text(&line, text + 5, (size_t)(line_end - text) - 5, LINES));
        json_array_append(records, json_object_get(line, "data"));
        json_decref(line);
        text = line_end + 1;
    }
    file_map_close(&m);
    return records;
}

static void lines_have_the_scripts_keys(void)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct tfevents streams[N_STREAMS];
        log_event(lines[i].task, lines[i].event, lines[i].fields, streams);
        json_t *found = read_records(), *wanted;
        EXPECT_OK(json_parse_text(&wanted, lines[i].records, strlen(lines[i].records), "records"));
        char *text = json_dumps(found, 0);
        EXPECT(json_equal(found, wanted), "%s: %s, not %s", lines[i].event, text, lines[i].records);
        free(text);
        json_decref(found);
        json_decref(wanted);
    }
}

/* ---- TensorBoard ---- */

static const struct {
    enum drop_in_task task;
    const char *event, *fields;
    enum drop_in_stream stream;
    struct tfevents_scalar scalars[MOST_TAGS]; /* in their order, ended by one without a tag */
} events[] = {
    {DROP_IN_PRETRAINING, "start", "{\"time\": 100}", STREAM_TRAIN, {{"_hparams_/session_start_info", TIME}}},
    {DROP_IN_PRETRAINING,
     "step",
     "{\"time\": 100, \"loss\": 1, \"sequences_per_second\": 2, \"learning_rate\": 3, \"grad_norm\": 4, "
     "\"words_loss\": 5, \"words_accuracy\": 6, \"tokens_per_second\": 7, \"step_loss\": 8}",
     STREAM_TRAIN,
     {{"Loss", 1},
      {"performance", 2},
      {"learning_rate", 3},
      {"grad_norm", 4},
      {"train/words_loss", 5},
      {"train/words_accuracy", 6},
      {"tokens_per_second", 7}}},
    {DROP_IN_PRETRAINING,
     "evaluation",
     "{\"time\": 100, \"words_loss\": 5, \"words_accuracy\": 6}",
     STREAM_TRAIN,
     {{"heldout/words_loss", 5}, {"heldout/words_accuracy", 6}}},
    {DROP_IN_FINETUNING,
     "step",
     "{\"time\": 100, \"loss\": 9, \"step_loss\": 1, \"steps_per_second\": 2, \"learning_rate\": 3, "
     "\"grad_norm\": 4}",
     STREAM_TRAIN,
     {{"Loss", 1}, {"iters_per_sec", 2}, {"learning_rate", 3}, {"grad_norm", 4}}},
    {DROP_IN_FINETUNING,
     "score",
     "{\"time\": 100, \"exact_match\": 1, \"F1\": 2}",
     STREAM_EVAL,
     {{"exact_match", 1}, {"F1", 2}}},
    {DROP_IN_FINETUNING,
     "score",
     "{\"time\": 100, \"accuracy\": 1, \"precision\": 2, \"recall\": 3, \"f1\": 4, \"f1_micro\": 5, "
     "\"f1_macro\": 6, \"matthews_correlation\": 7, \"pearson\": 8, \"spearmanr\": 9, \"mse\": 10}",
     STREAM_EVAL,
     {{"accuracy", 1},
      {"precision", 2},
      {"recall", 3},
      {"f1", 4},
      {"f1_micro", 5},
      {"f1_macro", 6},
      {"matthews_correlation", 7},
      {"pearson", 8},
      {"spearmanr", 9},
      {"mse", 10}}},
};

/* Behind the records of version and start, whose sizes are known, the file has these bytes. */
static void expect_scalars(const char *path, const struct tfevents_scalar *scalars)
{
    struct buf wanted = {0}, version = {0};
    struct file_map m;
    size_t n = 0;
    while (n < MOST_TAGS && scalars[n].tag != NULL) {
        n++;
    }
    tfevents_append_version(&version, 0);
    tfevents_append_start(&version, 1, 0);
    tfevents_append_scalars(&wanted, GLOBAL_STEP, TIME, scalars, n);
    EXPECT_OK(file_map_open(&m, path));
    EXPECT(m.n == version.n + wanted.n && memcmp(m.data + version.n, wanted.data, wanted.n) == 0,
           "%s has other scalars than %s", path, scalars[0].tag);
    file_map_close(&m);
    buf_fini(&wanted);
    buf_fini(&version);
}

static void event_files_have_the_scripts_tags(void)
{
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct tfevents streams[N_STREAMS];
        EXPECT_OK(file_remove_tree(DIRECTORY));
        EXPECT_OK(file_make_directories(DIRECTORY));
        log_event(events[i].task, events[i].event, events[i].fields, streams);
        const char *path = streams[events[i].stream].log.path;
        EXPECT(strstr(path, "/worker_0/") != NULL, "an event file is %s", path);
        EXPECT((strstr(path, "/eval/") != NULL) == (events[i].stream == STREAM_EVAL), "another stream: %s",
               path);
        EXPECT(streams[!events[i].stream].log.path[0] == '\0', "two streams of one event");
        expect_scalars(path, events[i].scalars);
    }
}

int main(void)
{
    EXPECT_OK(file_make_directories(DIRECTORY));
    lines_have_the_scripts_keys();
    event_files_have_the_scripts_tags();
    EXPECT_OK(file_remove_tree(DIRECTORY));
    return 0;
}
