/* The predictions of a fine-tuned model, and their scores. */
#include "task/finetune_job.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "serve/predict.h"

struct batch_limits finetune_predict_limits(const struct finetune_job *j)
{
    int64_t longest = j->open.predict.source.max_length;
    return packer_limits(j->options->predict_batch_size * longest, longest);
}

void finetune_keep_score(const struct finetune_job *j, const char *name, double value)
{
    if (j->options->scores != NULL) {
        score_list_add(j->options->scores, name, value);
    }
}

/* Runs the request.  With training the profile is of training, not of predictions. */
static struct status run_request(struct finetune_job *j, struct packer *p, struct request *r)
{
    const struct finetune_options *o = j->options;
    struct profile profile = {0};
    struct profile_options times = o->run.profile;
    times.enabled = times.enabled && !o->do_train;
    struct status s = profile_open(&profile, &times, o->run.common.output_dir, &j->run.trainer.net.x);
    j->run.trainer.net.profile = &profile;
    if (!failed(s)) {
        stop_begin_work();
        s = predict_run(p, r, &(struct predict_options){&j->run.metrics.progress, stop_requested});
    }
    profile_close(&profile);
    j->run.trainer.net.profile = NULL;
    return s;
}

static struct status compute(struct finetune_job *j, struct request *r)
{
    struct packer p;
    struct status s = packer_init(&p, &j->run.trainer.net, finetune_predict_limits(j),
                                  tokenizer_tail_id(&j->open.model.tokenizer), r->outputs);
    s = failed(s) ? s : run_request(j, &p, r);
    packer_fini(&p);
    return s;
}

/* Scores the predictions, for people, for programs and for a series. */
static struct status score(struct finetune_job *j)
{
    struct score_list scores = {0};
    struct buf line = {0};
    json_t *fields = json_object(), *tables = json_array();
    struct status scored = j->task->score(j->open.self, &scores, tables);
    for (int i = 0; i < scores.n; i++) {
        const struct score *s = &scores.scores[i];
        buf_printf(&line, "%s%s %.4f", i == 0 ? "" : ", ", s->name, s->value);
        json_object_set_new(fields, s->name, json_real(s->value));
        finetune_keep_score(j, s->name, s->value);
    }
    if (!failed(scored) && scores.n > 0) {
        log_info("%s", buf_text(&line));
        json_object_set(fields, "tables", tables);
        metrics_event(&j->run.metrics, "score", json_incref(fields));
    }
    json_decref(fields);
    json_decref(tables);
    buf_fini(&line);
    return scored;
}

struct status finetune_predict(void *self)
{
    struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    if (!o->do_predict) {
        return status_ok();
    }
    const struct finetune_data *data = &j->open.predict;
    struct buf written = {0};
    struct request request = j->task->prediction(j->open.self);
    metrics_event(&j->run.metrics, "predicting",
                  json_pack("{s:I, s:I, s:I}", data->unit, (json_int_t)data->n_examples, "features",
                            (json_int_t)data->source.n, "batch_size", (json_int_t)o->predict_batch_size));
    int64_t start = clock_ns();
    TRY(compute(j, &request));
    double seconds = clock_since_s(start), rate = (double)data->source.n / seconds;
    struct status s = j->task->write(j->open.self, &written);
    if (!failed(s)) {
        log_info("e2e_inference_time %.1f s, inference_sequences_per_second %.2f; wrote %s", seconds, rate,
                 buf_text(&written));
        metrics_event(&j->run.metrics, "predicted",
                      json_pack("{s:I, s:f, s:f}", "features", (json_int_t)data->source.n,
                                "e2e_inference_time", seconds, "inference_sequences_per_second", rate));
    }
    buf_fini(&written);
    return failed(s) || !o->do_eval ? s : score(j);
}
