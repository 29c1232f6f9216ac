#include "train/pretrain_inputs.h"

#include "train/checkpoint.h"

/* The model's vocabulary is the file's; a configuration that gives another size is for another file. */
static struct status read_model(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    json_t *object;
    TRY(json_read_object(&object, o->config_file));
    struct status s = bert_config_parse(&in->model, object, o->config_file);
    json_decref(object);
    TRY(s);
    if (in->model.vocab_size == 0) {
        in->model.vocab_size = in->vocab.n;
    }
    if (in->model.vocab_size != in->vocab.n) {
        return status_error(
            STATUS_DATA,
            "%s says \"vocab_size\" %lld, but %s/vocab.txt has %d pieces; leave \"vocab_size\" out or "
            "use the vocabulary that the configuration was made for",
            o->config_file, (long long)in->model.vocab_size, o->input_dir, in->vocab.n);
    }
    if (in->model.max_position_embeddings < o->max_seq_length) {
        return status_error(
            STATUS_DATA, "%s has \"max_position_embeddings\" %lld, fewer than --max_seq_length %lld",
            o->config_file, (long long)in->model.max_position_embeddings, (long long)o->max_seq_length);
    }
    return status_ok();
}

/* Phase 2 draws other pairs and masks than phase 1; --seed is below 2^31, so no two seeds meet. */
static uint64_t data_seed(const struct pretrain_options *o)
{
    const uint64_t phase2 = UINT64_C(1) << 31;
    return (uint64_t)o->seed + (o->phase2 ? phase2 : 0);
}

static struct status open_loader(struct bert_loader *l, const struct indexed *store,
                                 const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    return bert_loader_open(l, (struct bert_loader_config){
                                   .store = store,
                                   .vocab_size = in->vocab.n,
                                   .pad_id = in->vocab.pad,
                                   .cls_id = in->vocab.cls,
                                   .sep_id = in->vocab.sep,
                                   .mask_id = in->vocab.mask,
                                   .seed = data_seed(o),
                                   .max_seq_length = o->max_seq_length,
                                   .max_predictions_per_seq = o->max_predictions_per_seq,
                                   .train_batch_size = o->train_batch_size,
                                   .gradient_accumulation_steps = o->gradient_accumulation_steps,
                                   .masked_lm_prob = o->masked_lm_prob,
                                   .short_seq_prob = o->short_seq_prob,
                               });
}

static struct status open_store(struct token_store *store, struct bert_loader *loader, const char *name,
                                const struct pretrain_inputs *in, const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", o->input_dir, name));
    TRY(token_store_open(store, path));
    TRY(token_store_check_vocab(store, path, in->vocab.hash, in->vocab.n));
    return status_context(open_loader(loader, &store->index, in, o), "%s", path);
}

static struct status open_all(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/vocab.txt", o->input_dir));
    TRY(status_context(vocab_open(&in->vocab, path), "--input_dir wants a directory made by `kiln prepare`"));
    TRY(read_model(in, o));
    TRY(open_store(&in->train, &in->loader, "train", in, o));
    TRY(checkpoint_path(path, "%s/heldout.idx", o->input_dir));
    in->has_heldout = o->eval_steps > 0 && file_exists(path);
    return in->has_heldout ? open_store(&in->heldout, &in->heldout_loader, "heldout", in, o) : status_ok();
}

struct status pretrain_inputs_open(struct pretrain_inputs *in, const struct pretrain_options *o)
{
    *in = (struct pretrain_inputs){0};
    struct status s = open_all(in, o);
    if (failed(s)) {
        pretrain_inputs_close(in);
    }
    return s;
}

void pretrain_inputs_close(struct pretrain_inputs *in)
{
    bert_loader_close(&in->heldout_loader);
    bert_loader_close(&in->loader);
    token_store_close(&in->heldout);
    token_store_close(&in->train);
    vocab_fini(&in->vocab);
    *in = (struct pretrain_inputs){0};
}
