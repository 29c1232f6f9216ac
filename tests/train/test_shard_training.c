/* The same samples as a token store, as padded and as packed HDF5 shards give the same losses and the same
 * gradients within 1e-6 in fp32, whatever the cut into micro-batches; dropout, which follows the place in the
 * batch, is off. */
#include "bert_fixture.h"
#include "fixture_loader.h"
#include "result_mean.h"

#include "data/bert/shard_loader.h"
#include "data/shard_writer.h"

#include <sys/stat.h>

enum { S = 16, P = 4 };

static struct bert_loader_config samples_of(const struct indexed *store)
{
    struct bert_loader_config c = fixture_loader(store, FIXTURE_VOCAB);
    c.seed = 2;
    c.batch.max_seq_length = S;
    c.max_predictions_per_seq = P;
    c.short_seq_prob = 0.5;
    return c;
}

static void gradients_of(struct trainer *t, const struct batch_source *source, struct trainer_result *r)
{
    struct batch_step step;
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, source->limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0;
    fixture_bert_changed(bert);
    EXPECT_OK(batch_step_init(&step, source->n_micro, &text_batch_layout, source->limits));
    EXPECT_OK(source->fill(source->self, 1, &step));
    EXPECT_OK(trainer_init(t, &config));
    EXPECT_OK(trainer_gradients(t, &step, 1, r));
    batch_step_fini(&step);
}

static void compare(const char *form, struct trainer *a, const struct trainer_result *ra,
                    const struct batch_source *source)
{
    struct trainer b;
    struct trainer_result rb;
    gradients_of(&b, source, &rb);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < a->net.params.n_elements; i++) {
        largest = fmax(largest, fabs(tensor_get(a->grad, i)));
        worst = fmax(worst, fabs(tensor_get(a->grad, i) - tensor_get(b.grad, i)));
    }
    printf("%s: MLM loss differs by %.2g, NSP loss by %.2g, gradients by %.2g of %.3g\n", form,
           fabs(result_mean(ra, "mlm_loss") - result_mean(&rb, "mlm_loss")),
           fabs(result_mean(ra, "nsp_loss") - result_mean(&rb, "nsp_loss")), worst, largest);
    EXPECT_NEAR(result_mean(&rb, "mlm_loss"), result_mean(ra, "mlm_loss"),
                1e-6 * result_mean(ra, "mlm_loss"));
    EXPECT_NEAR(result_mean(&rb, "nsp_loss"), result_mean(ra, "nsp_loss"),
                1e-6 * result_mean(ra, "nsp_loss"));
    EXPECT(worst <= 1e-6 * largest, "%s: gradients differ by %g", form, worst);
    trainer_fini(&b);
}

/* One epoch of the shards is one step. */
static void compare_shards(const char *name, bool packed, const struct bert_loader_config *samples,
                           struct trainer *a, const struct trainer_result *ra)
{
    struct shard_writer_report report;
    struct shard_loader l;
    char directory[256];
    snprintf(directory, sizeof directory, "%s", fixture_path(name));
    EXPECT(mkdir(directory, 0777) == 0, "mkdir");
    struct shard_writer_config c = {.samples = *samples,
                                    .directory = directory,
                                    .word = "training",
                                    .dupe_factor = 1,
                                    .n_shards = 2,
                                    .packed = packed};
    EXPECT_OK(shard_writer_run(&report, &c));
    EXPECT_OK(
        shard_loader_open(&l, (struct shard_loader_config){.directory = directory,
                                                           .word = "training",
                                                           .vocab_size = FIXTURE_VOCAB,
                                                           .seed = 4,
                                                           .batch.train_batch_size = report.packing.n_packs,
                                                           .batch.gradient_accumulation_steps = 1,
                                                           .allow_packed = true}));
    struct batch_source source = shard_loader_source(&l);
    compare(name, a, ra, &source);
    shard_loader_close(&l);
}

int main(int argc, char **argv)
{
    struct indexed store;
    struct bert_loader l;
    struct trainer a;
    struct trainer_result ra;
    if (shard_process_is_wanted(argc, argv)) {
        return shard_process_serve();
    }
    if (hdf5_file_version() == NULL) {
        test_skip("hdf5", TEST_NO_HDF5);
    }
    fixture_store(&store, "store", 40, 9, 6, FIXTURE_VOCAB);
    struct bert_loader_config samples = samples_of(&store), whole = samples;
    EXPECT_OK(bert_loader_open(&l, samples));
    whole.batch.train_batch_size = l.map.n_samples;
    l.config = whole;
    struct batch_source source = bert_loader_source(&l);
    gradients_of(&a, &source, &ra);
    compare_shards("padded", false, &samples, &a, &ra);
    compare_shards("packed", true, &samples, &a, &ra);
    trainer_fini(&a);
    bert_loader_close(&l);
    indexed_close(&store);
    fixture_remove();
    return 0;
}
