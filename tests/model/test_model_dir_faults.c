/* A model that replaces an older one, cut short at every system call by death, by a power cut and by an
 * error. Where the file system can exchange two names, a whole model stands in the place at every instant;
 * where it cannot, the next save puts the older one back.  Either way nothing is left behind it.  The same in
 * every form. */
#define _GNU_SOURCE
#include "faults.h"

#include "core/log.h"
#include "text/wordpiece.h"
#include "model/bert/bert_family.h"
#include "bert_params.h"

#include <dirent.h>

enum { OLD = 1, NEW = 2, LATER = 3 };

struct model_case {
    struct bert_config config;
    struct param_table params;
    struct tokenizer tokenizer;
    float *flat;
    struct model_dir_form form;
    bool no_exchange;
    char directory[256], place[300];
};

static void case_init(struct model_case *k)
{
    static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n";
    *k = (struct model_case){0};
    EXPECT_OK(wordpiece_tokenizer_init(&k->tokenizer, pieces, sizeof pieces - 1, "the test's", true));
    k->config = (struct bert_config){.vocab_size = k->tokenizer.n,
                                     .hidden_size = 16,
                                     .num_hidden_layers = 1,
                                     .num_attention_heads = 2,
                                     .intermediate_size = 16,
                                     .max_position_embeddings = 8,
                                     .type_vocab_size = 2,
                                     .initializer_range = 0.02,
                                     .layer_norm_eps = 1e-12};
    EXPECT_OK(bert_declare(&k->params, &k->config, MODEL_TASK_ENCODER));
    k->flat = malloc((size_t)k->params.n_elements * sizeof *k->flat);
    EXPECT(k->flat != NULL, "memory");
    const char *parent = file_is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    snprintf(k->directory, sizeof k->directory, "%s/kiln_model_XXXXXX", parent);
    EXPECT(mkdtemp(k->directory) != NULL, "%s", k->directory);
    snprintf(k->place, sizeof k->place, "%s/model", k->directory);
    log_set_level(LOG_QUIET);
}

/* A model whose weights are all `value`. */
static struct model_dir_contents contents_of(const struct model_case *k, float value)
{
    for (int64_t i = 0; i < k->params.n_elements; i++) {
        k->flat[i] = value;
    }
    return (struct model_dir_contents){.family = &bert_family,
                                       .task = MODEL_TASK_ENCODER,
                                       .params = &k->params,
                                       .master = tensor_1d(k->flat, DTYPE_F32, k->params.n_elements),
                                       .config = &k->config,
                                       .tokenizer = &k->tokenizer,
                                       .form = k->form};
}

static struct status save(const struct model_case *k, float value)
{
    struct model_dir_contents c = contents_of(k, value);
    return model_dir_save(k->place, &c);
}

static int save_new(void *context)
{
    const struct model_case *k = context;
    faults.no_exchange = k->no_exchange;
    return (int)save(k, NEW).code;
}

/* The value of the whole model that stands there; 0 if none does. */
static int value_of_place(const struct model_case *k)
{
    struct model_dir m;
    if (!file_exists(k->place)) {
        EXPECT_ERROR(model_dir_open(&m, k->place), STATUS_DATA, ".old; rename that");
        return 0;
    }
    for (int value = OLD; value <= LATER; value++) {
        struct model_dir_contents c = contents_of(k, (float)value);
        struct status s = model_dir_verify(k->place, &c);
        if (!failed(s)) {
            return value;
        }
        EXPECT(s.code == STATUS_IO && strstr(s.message, "differs") != NULL, "%s", s.message);
    }
    EXPECT(false, "%s holds no model that was saved", k->place);
    return -1;
}

static int count_entries(const struct model_case *k)
{
    DIR *dir = opendir(k->directory);
    int n = -2;
    EXPECT(dir != NULL, "%s", k->directory);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

static int test_kind(struct model_case *k, enum fault_kind kind)
{
    bool dies = kind != FAULT_ERROR;
    const char *what = fault_names[kind];
    EXPECT_OK(save(k, OLD));
    struct fault_outcome whole = fault_run(FAULT_NONE, 0, 0, save_new, k);
    EXPECT(whole.code == STATUS_OK && whole.n_points > 10, "code %d, %d calls", whole.code, whole.n_points);
    for (int point = 1; point <= whole.n_points; point++) {
        EXPECT_OK(save(k, OLD));
        struct fault_outcome o = fault_run(kind, point, EIO, save_new, k);
        EXPECT(o.killed == dies && *o.call != '\0', "%s at %d: code %d", what, point, o.code);
        int value = value_of_place(k);
        EXPECT(value == OLD || value == NEW || (dies && k->no_exchange && value == 0), "%s at %d (%s): %d",
               what, point, o.call, value);
        EXPECT(dies || o.code == STATUS_IO || value == NEW, "%s at %d (%s): unseen", what, point, o.call);
        EXPECT(dies || o.code != STATUS_IO || value == OLD, "%s at %d (%s): replaced, and an error", what,
               point, o.call);
        temporary_clean(k->place);
        value = value_of_place(k);
        EXPECT(value == OLD || value == NEW, "%s at %d (%s): lost", what, point, o.call);
        EXPECT_OK(save(k, LATER));
        EXPECT(value_of_place(k) == LATER && count_entries(k) == 1, "%s at %d (%s): %d entries", what, point,
               o.call, count_entries(k));
    }
    return whole.n_points;
}

int main(void)
{
    static const enum fault_kind kinds[] = {FAULT_KILL_BEFORE, FAULT_KILL_AFTER, FAULT_POWER_CUT,
                                            FAULT_ERROR};
    struct model_case k;
    int n = 0;
    case_init(&k);
    for (int i = 0; i < 4; i++) {
        k.no_exchange = i % 2 == 1;
        k.form.kind = (enum model_dir_kind)(i / 2);
        for (size_t f = 0; f < sizeof kinds / sizeof kinds[0]; f++) {
            n += test_kind(&k, kinds[f]);
        }
        EXPECT_OK(file_remove_tree(k.place));
    }
    printf("%d faults survived\n", n);
    EXPECT_OK(file_remove_tree(k.directory));
    free(k.flat);
    param_table_fini(&k.params);
    tokenizer_fini(&k.tokenizer);
    return 0;
}
