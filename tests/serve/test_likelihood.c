/* Pseudo-log-likelihoods against masking by hand: a batch of one sequence for each token, and the logits read
 * one by one. */
#define _GNU_SOURCE
#include "session_case.h"

#include "data/text_batch.h"
#include "dev/host_view.h"
#include "serve/likelihood.h"

#include <math.h>

enum { N_TEXTS = 3 };
static const char *const texts[N_TEXTS] = {"a mad dog", "a man and a dog, in a big cage", "ice"};

/* log p(ids[position]) with masks at [position, end). */
static double predict_by_hand(struct session *s, const struct id_list *ids, size_t position, size_t end)
{
    struct host_view view;
    struct batch batch;
    EXPECT_OK(batch_init(&batch, &s->model->layout, s->net.config.limits));
    int32_t *out = text_batch_add(&batch, (int64_t)ids->n, (int64_t)ids->n, -1, 0);
    memcpy(out, ids->ids, ids->n * sizeof *out);
    for (size_t i = position; i < end; i++) {
        out[i] = s->tokenizer->special[SPECIAL_MASK];
    }
    text_batch_masked_positions(&batch)[0] = (int32_t)position;
    text_batch_masked_labels(&batch)[0] = -1;
    text_batch_take_masked(&batch, 1);
    batch_finish(&batch, s->tokenizer->special[SPECIAL_PAD]);
    stage_infer(&s->net.stage, &batch);
    EXPECT_OK(host_view_open(&view, &s->net.x, stage_head_output(&s->net.stage, MODEL_WORD_LOGITS)));
    const float *logits = view.host.data;
    double sum = 0, wanted = logits[ids->ids[position]];
    for (int32_t i = 0; i < s->tokenizer->n; i++) {
        sum += exp((double)logits[i]);
    }
    host_view_close(&view);
    batch_fini(&batch);
    return wanted - log(sum);
}

static double sum_by_hand(struct session *s, const char *text, enum likelihood_masking masking)
{
    struct id_list ids = {0};
    double sum = 0;
    EXPECT(id_list_append(&ids, s->tokenizer->special[SPECIAL_CLASS]), "memory");
    EXPECT_OK(tokenizer_encode_ids(&s->scratch, &ids, text, strlen(text)));
    EXPECT(id_list_append(&ids, s->tokenizer->special[SPECIAL_SEPARATOR]), "memory");
    for (size_t i = 1; i + 1 < ids.n; i++) {
        size_t end = i + 1;
        while (masking == LIKELIHOOD_WITHIN_WORD &&
               tokenizer_piece(s->tokenizer, ids.ids[end], &(size_t){0})[0] == '#') {
            end++;
        }
        sum += predict_by_hand(s, &ids, i, end);
    }
    id_list_fini(&ids);
    return sum;
}

static void answer(struct likelihood *l, struct session *s)
{
    EXPECT_OK(likelihood_make(l));
    EXPECT_OK(packer_answer(&s->packer, &l->request));
}

/* Enough copies for several batches; each has the sum of the text alone, but for rounding. */
static void sums_are_those_by_hand(const char *path, enum likelihood_masking masking, double sums[N_TEXTS])
{
    enum { COPIES = 40 };
    struct session_options options = session_defaults();
    struct session plain, s;
    struct likelihood l, alone;
    EXPECT_OK(session_open(&plain, path, MODEL_TASK_MASKED_LM, &options));
    options.batching = BATCHING_FEW_ASKED;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_MASKED_LM, &options));
    EXPECT_OK(likelihood_init(&l, &s, masking));
    for (int i = 0; i < COPIES * N_TEXTS; i++) {
        EXPECT_OK(likelihood_add(&l, &s.scratch, texts[i % N_TEXTS], strlen(texts[i % N_TEXTS])));
    }
    answer(&l, &s);
    for (int i = 0; i < N_TEXTS; i++) {
        sums[i] = likelihood_get(&l, i);
        EXPECT_NEAR(sums[i], sum_by_hand(&plain, texts[i], masking), 1e-5 * fabs(sums[i]));
        EXPECT_OK(likelihood_init(&alone, &plain, masking));
        EXPECT_OK(likelihood_add(&alone, &plain.scratch, texts[i], strlen(texts[i])));
        answer(&alone, &plain);
        EXPECT_NEAR(likelihood_get(&alone, 0), sums[i], 1e-5 * fabs(sums[i]));
        for (int k = 1; k < COPIES; k++) {
            EXPECT_NEAR(likelihood_get(&l, i + k * N_TEXTS), sums[i], 1e-5 * fabs(sums[i]));
        }
        EXPECT(likelihood_tokens(&alone, 0) == likelihood_tokens(&l, i), "tokens");
        likelihood_fini(&alone);
    }
    EXPECT(likelihood_same_tokens(&l, 0, N_TEXTS) && !likelihood_same_tokens(&l, 0, 1), "same tokens");
    likelihood_fini(&l);
    session_close(&s);
    session_close(&plain);
}

static void what_is_wrong_is_said(const char *path)
{
    static const char longer[] = "a a a a a a a a a a a a a a a a a a a a a a a";
    struct session_options options = session_defaults();
    struct session s;
    struct likelihood l;
    options.batching = BATCHING_FEW_ASKED;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_MASKED_LM, &options));
    EXPECT_OK(likelihood_init(&l, &s, LIKELIHOOD_TOKEN));
    EXPECT_ERROR(likelihood_add(&l, &s.scratch, " ", 1), STATUS_DATA, "no token to predict");
    EXPECT_ERROR(likelihood_add(&l, &s.scratch, longer, sizeof longer - 1), STATUS_DATA,
                 "25 tokens with the special ones, but the model reads at most 24");
    EXPECT(l.n == 0 && l.ids.n == 0, "texts that were refused are kept");
    EXPECT_OK(likelihood_add(&l, &s.scratch, longer, sizeof longer - 3));
    answer(&l, &s);
    EXPECT(likelihood_tokens(&l, 0) == 22, "%lld tokens", (long long)likelihood_tokens(&l, 0));
    likelihood_fini(&l);
    s.dir.tokenizer.special[SPECIAL_MASK] = -1;
    EXPECT_ERROR(likelihood_init(&l, &s, LIKELIHOOD_TOKEN), STATUS_DATA, "has no mask token");
    session_close(&s);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    double token[N_TEXTS], word[N_TEXTS];
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/masked_lm", directory);
    sums_are_those_by_hand(path, LIKELIHOOD_TOKEN, token);
    sums_are_those_by_hand(path, LIKELIHOOD_WITHIN_WORD, word);
    EXPECT(token[1] != word[1], "no word has several pieces");
    what_is_wrong_is_said(path);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
