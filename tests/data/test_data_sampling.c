/* Tests of data/bert/sample_map, data/bert/nsp and data/bert/masking: exact invariants on random stores, and
 * statistics within four standard deviations. */
#include "fixture_store.h"

#include "data/bert/masking.h"
#include "data/bert/nsp.h"
#include "data/bert/sample_map.h"

enum { VOCAB = 60000 };

/* Checks a count of successes among n trials of probability p. */
#define EXPECT_SHARE(count, n, p)                                                                            \
    EXPECT_NEAR((double)(count), (n) * (p), 4 * sqrt((n) * (p) * (1 - (p))) + 1e-9)

static int64_t n_tokens_of(const struct indexed *store, int64_t first, int64_t n_sentences)
{
    return indexed_offset(store, first + n_sentences) - indexed_offset(store, first);
}

static void samples_tile_the_store(const struct indexed *store)
{
    static const int64_t lengths[] = {5, 16, 32, 128, 512, 100000};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        struct sample_map m;
        EXPECT_OK(sample_map_build(&m, store, lengths[k] - 3));
        int64_t next = 0;
        for (int64_t i = 0; i < m.n_samples; i++) {
            struct sample s = sample_map_at(&m, i);
            int64_t end = indexed_first_sequence(store, s.document + 1);
            EXPECT(s.first == next && s.n_sentences >= 1 &&
                       s.first >= indexed_first_sequence(store, s.document) && s.first + s.n_sentences <= end,
                   "sample %lld", (long long)i);
            next = s.first + s.n_sentences;
            bool full = n_tokens_of(store, s.first, s.n_sentences) >= lengths[k] - 3;
            EXPECT(full || next == end, "sample %lld stops too early", (long long)i);
            EXPECT(n_tokens_of(store, s.first, s.n_sentences - 1) < lengths[k] - 3,
                   "sample %lld stops too late", (long long)i);
        }
        EXPECT(next == store->n_sequences, "the samples end at sentence %lld", (long long)next);
        sample_map_fini(&m);
    }
}

static void damaged_stores_have_no_map(void)
{
    struct indexed x;
    struct indexed_writer w;
    struct sample_map m;
    EXPECT_OK(indexed_writer_open(&w, fixture_path("none"), 100));
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&x, fixture_path("none")));
    EXPECT_ERROR(sample_map_build(&m, &x, 29), STATUS_DATA, "is empty");
    indexed_close(&x);
    EXPECT_OK(indexed_writer_open(&w, fixture_path("hollow"), 100));
    indexed_writer_add(&w, (int32_t[]){5}, 1);
    indexed_writer_end_document(&w);
    indexed_writer_end_document(&w);
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&x, fixture_path("hollow")));
    EXPECT_ERROR(sample_map_build(&m, &x, 29), STATUS_DATA, "document 1 of the token store has no sentences");
    indexed_close(&x);
    EXPECT_OK(indexed_writer_open(&w, fixture_path("silent"), 100));
    indexed_writer_add(&w, (int32_t[]){5}, 1);
    indexed_writer_add(&w, NULL, 0);
    indexed_writer_end_document(&w);
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&x, fixture_path("silent")));
    EXPECT_ERROR(sample_map_build(&m, &x, 29), STATUS_DATA, "sentence 1 of the token store has no tokens");
    indexed_close(&x);
}

static bool is_sentence_start(const struct indexed *store, int64_t token)
{
    int64_t low = 0, high = store->n_sequences;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (indexed_offset(store, middle) < token) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return indexed_offset(store, low) == token;
}

static bool is_inside(const struct indexed *store, int64_t document, struct nsp_range range)
{
    return range.begin >= indexed_offset(store, indexed_first_sequence(store, document)) &&
           range.end <= indexed_offset(store, indexed_first_sequence(store, document + 1));
}

static int64_t length(struct nsp_range range)
{
    return range.end - range.begin;
}

static void pairs_obey_their_rules(const struct indexed *store, int64_t max_tokens)
{
    struct sample_map m;
    EXPECT_OK(sample_map_build(&m, store, max_tokens));
    for (int64_t i = 0; i < 20000; i++) {
        struct sample s = sample_map_at(&m, i % m.n_samples);
        struct rng_stream r = rng_stream(rng_key(5, (uint64_t)i));
        struct nsp_pair p = nsp_draw(store, s, max_tokens, 0.1, &r);
        EXPECT(length(p.a) >= 1 && length(p.b) >= 1 && length(p.a) + length(p.b) <= max_tokens, "pair %lld",
               (long long)i);
        EXPECT(is_inside(store, s.document, p.a), "A lies in its document");
        EXPECT(p.a.begin >= indexed_offset(store, s.first) &&
                   p.a.end <= indexed_offset(store, s.first + s.n_sentences),
               "A lies in its sample");
        bool whole = length(p.a) + length(p.b) < max_tokens; /* nothing was cut */
        if (whole) {
            EXPECT(p.a.begin == indexed_offset(store, s.first) && is_sentence_start(store, p.a.end) &&
                       is_sentence_start(store, p.b.begin) && is_sentence_start(store, p.b.end),
                   "segments are sentences");
        }
        if (p.label == NSP_IS_NEXT) {
            EXPECT(p.b.begin >= p.a.end && is_inside(store, s.document, p.b) && s.n_sentences > 1,
                   "B comes after A");
            EXPECT(!whole || p.b.begin == p.a.end, "B follows A at once");
        } else {
            EXPECT(!is_inside(store, s.document, p.b), "a random B is of another document");
            int64_t document = 0;
            while (indexed_offset(store, indexed_first_sequence(store, document + 1)) <= p.b.begin) {
                document++;
            }
            EXPECT(is_inside(store, document, p.b), "B lies in one document");
        }
    }
    sample_map_fini(&m);
}

/* 40 documents of 10 sentences of 10 tokens: every probability can be written down. */
static void pairs_have_their_statistics(void)
{
    enum { N_DOCUMENTS = 40, N_SENTENCES = 10, N_TOKENS = 10, N = 40000, MAX = 100 };
    struct indexed_writer w;
    struct indexed store;
    EXPECT_OK(indexed_writer_open(&w, fixture_path("regular"), VOCAB));
    for (int64_t k = 0; k < N_DOCUMENTS * N_SENTENCES; k++) {
        int32_t ids[N_TOKENS] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
        indexed_writer_add(&w, ids, N_TOKENS);
        if ((k + 1) % N_SENTENCES == 0) {
            indexed_writer_end_document(&w);
        }
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    EXPECT_OK(indexed_open(&store, fixture_path("regular")));

    int64_t n_random = 0, n_short = 0, splits[N_SENTENCES] = {0}, starts[N_SENTENCES] = {0},
            lengths[N_SENTENCES] = {0};
    int64_t documents[N_DOCUMENTS] = {0};
    struct sample s = {.document = 3, .first = 30, .n_sentences = N_SENTENCES};
    for (int64_t i = 0; i < N; i++) {
        struct rng_stream r = rng_stream(rng_key(6, (uint64_t)i));
        struct nsp_pair whole =
            nsp_draw(&store, s, MAX, 0, &r); /* the 100 tokens fit: nothing is cut from A */
        splits[length(whole.a) / N_TOKENS]++;
        n_random += whole.label == NSP_IS_RANDOM;
        if (whole.label == NSP_IS_RANDOM) {
            documents[whole.b.begin / (N_SENTENCES * N_TOKENS)]++;
            starts[whole.b.begin / N_TOKENS % N_SENTENCES]++;
        }
        r = rng_stream(rng_key(7, (uint64_t)i));
        struct nsp_pair some = nsp_draw(&store, s, MAX, 0.1, &r);
        if (some.label == NSP_IS_NEXT) {
            int64_t n = (length(some.a) + length(some.b)) / N_TOKENS;
            lengths[n - 1]++;
            n_short += n < N_SENTENCES;
        }
    }
    EXPECT_SHARE(n_random, N, 0.5);
    for (int k = 1; k < N_SENTENCES; k++) {
        EXPECT_SHARE(splits[k], N, 1.0 / (N_SENTENCES - 1));
    }
    for (int k = 0; k < N_SENTENCES; k++) {
        EXPECT_SHARE(starts[k], n_random, 1.0 / N_SENTENCES);
    }
    for (int k = 0; k < N_DOCUMENTS; k++) {
        EXPECT_SHARE(documents[k], n_random, k == s.document ? 0.0 : 1.0 / (N_DOCUMENTS - 1));
    }
    /* Targets are uniform in 2..100: 10 of the 99 end in each sentence but the first, whose 9 give one
     * sentence and so never a next one. */
    EXPECT(lengths[0] == 0, "one sentence has no next one");
    for (int k = 1; k < N_SENTENCES - 1; k++) {
        EXPECT_SHARE(lengths[k], N, 0.5 * 0.1 * 10 / 99);
    }
    EXPECT(n_short > 0, "short sequences");
    indexed_close(&store);
}

/* Sentences of one token: a pair of consecutive segments is as long as its target. */
static void short_targets_are_uniform(void)
{
    enum { MAX = 4, N = 30000 };
    struct indexed store;
    fixture_store(&store, "words", 20, 30, 1, VOCAB);
    int64_t lengths[MAX + 1] = {0}, document = 0;
    while (indexed_first_sequence(&store, document + 1) - indexed_first_sequence(&store, document) < MAX) {
        document++;
    }
    struct sample s = {document, indexed_first_sequence(&store, document), MAX};
    for (int64_t i = 0; i < N; i++) {
        struct rng_stream r = rng_stream(rng_key(10, (uint64_t)i));
        struct nsp_pair p = nsp_draw(&store, s, MAX, 1, &r);
        if (p.label == NSP_IS_NEXT) {
            lengths[length(p.a) + length(p.b)]++;
        }
    }
    for (int target = 2; target <= MAX; target++) {
        EXPECT_SHARE(lengths[target], N, 0.5 / (MAX - 1));
    }
    indexed_close(&store);
}

static void one_document_is_never_random(void)
{
    struct indexed store;
    fixture_store(&store, "single", 1, 30, 12, VOCAB);
    struct sample_map m;
    EXPECT_OK(sample_map_build(&m, &store, 29));
    for (int64_t i = 0; i < 2000; i++) {
        struct rng_stream r = rng_stream(rng_key(8, (uint64_t)i));
        struct nsp_pair p = nsp_draw(&store, sample_map_at(&m, i % m.n_samples), 29, 0.1, &r);
        EXPECT(p.label == NSP_IS_NEXT && length(p.b) >= 1, "the sample's own document is not a random one");
    }
    sample_map_fini(&m);
    indexed_close(&store);
}

static void truncation_is_fair(void)
{
    enum { N = 20000 };
    int64_t n_front = 0, n_cut = 0;
    for (int64_t i = 0; i < N; i++) {
        struct rng_stream r = rng_stream(rng_key(9, (uint64_t)i));
        struct nsp_range a = {100, 107}, b = {500, 520};
        nsp_truncate(&a, &b, 13, &r);
        EXPECT(a.end - a.begin == 7 && b.end - b.begin == 6, "27 to 13: the longer gives, B on the tie at 7");
        EXPECT(a.begin == 100 && a.end == 107 && b.begin >= 500 && b.end <= 520, "ranges only shrink");
        n_front += b.begin - 500;
        n_cut += 14;
    }
    EXPECT_SHARE(n_front, (double)n_cut, 0.5);
}

static void masks_obey_their_rules(void)
{
    const struct masking_rules rules = {.masked_lm_prob = 0.15,
                                        .max_predictions = 20,
                                        .cls_id = FIXTURE_CLS,
                                        .sep_id = FIXTURE_SEP,
                                        .mask_id = FIXTURE_MASK,
                                        .vocab_size = VOCAB};
    /* min(20, max(1, round-half-even(0.15 n))) with the binary 0.15: 10 gives 1.5, 30 gives 4.5, 50 gives 7.5
     * */
    static const int64_t wanted[][2] = {{5, 1},    {10, 2},   {30, 4},   {50, 8},   {70, 10}, {90, 14},
                                        {110, 16}, {128, 19}, {130, 20}, {133, 20}, {200, 20}};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        int64_t n = wanted[k][0];
        for (uint64_t seed = 0; seed < 200; seed++) {
            int32_t ids[256], before[256], positions[20], labels[20];
            for (int64_t i = 0; i < n; i++) {
                before[i] = ids[i] = (int32_t)(1000 + i);
            }
            before[0] = ids[0] = FIXTURE_CLS;
            before[n / 2] = ids[n / 2] = before[n - 1] = ids[n - 1] = FIXTURE_SEP;
            struct rng_stream r = rng_stream(seed);
            int64_t m = masking_apply(&rules, ids, n, positions, labels, &r);
            EXPECT(m == wanted[k][1], "%lld predictions of %lld tokens", (long long)m, (long long)n);
            for (int64_t i = 0, j = 0; i < n; i++) {
                bool chosen = j < m && positions[j] == i;
                if (chosen) {
                    EXPECT(labels[j] == before[i] && labels[j] >= 1000, "label %lld", (long long)j);
                    EXPECT(j == 0 || positions[j] > positions[j - 1], "ascending");
                    j++;
                } else {
                    EXPECT(ids[i] == before[i], "token %lld changed", (long long)i);
                }
                EXPECT(i < n - 1 || j == m, "positions lie in the sequence");
            }
        }
    }
}

static struct masking_rules masking_of(double rate, int64_t most, int32_t vocab_size,
                                       const uint8_t *continues)
{
    return (struct masking_rules){.masked_lm_prob = rate,
                                  .max_predictions = most,
                                  .cls_id = FIXTURE_CLS,
                                  .sep_id = FIXTURE_SEP,
                                  .mask_id = FIXTURE_MASK,
                                  .vocab_size = vocab_size,
                                  .continues = continues};
}

static void everything_can_be_masked(void)
{
    struct masking_rules rules = masking_of(1.0, 50, 10, NULL);
    int32_t ids[] = {FIXTURE_CLS, 5, FIXTURE_SEP, 6, FIXTURE_SEP}, positions[50], labels[50];
    struct rng_stream r = rng_stream(1);
    EXPECT(masking_apply(&rules, ids, 5, positions, labels, &r) == 2, "two candidates");
    EXPECT(positions[0] == 1 && positions[1] == 3 && labels[0] == 5 && labels[1] == 6, "both of them");
    int32_t bare[] = {7, 8, FIXTURE_SEP}; /* no special token in front */
    EXPECT(masking_apply(&rules, bare, 3, positions, labels, &r) == 2, "two candidates");
    EXPECT(positions[0] == 0 && positions[1] == 1 && labels[0] == 7 && labels[1] == 8, "the first, too");
}

static void masks_have_their_statistics(void)
{
    enum { N = 20000, LENGTH = 40, SMALL = 14 };
    const struct masking_rules rules = {.masked_lm_prob = 0.15,
                                        .max_predictions = 20,
                                        .cls_id = FIXTURE_CLS,
                                        .sep_id = FIXTURE_SEP,
                                        .mask_id = FIXTURE_MASK,
                                        .vocab_size = SMALL};
    int64_t n_chosen = 0, n_mask = 0, n_kept = 0, at[LENGTH] = {0}, drawn[SMALL] = {0};
    for (uint64_t seed = 0; seed < N; seed++) {
        int32_t ids[LENGTH], positions[20], labels[20];
        for (int i = 0; i < LENGTH; i++) {
            ids[i] = 9;
        }
        ids[0] = FIXTURE_CLS;
        ids[20] = ids[LENGTH - 1] = FIXTURE_SEP;
        struct rng_stream r = rng_stream(rng_key(12, seed));
        int64_t m = masking_apply(&rules, ids, LENGTH, positions, labels, &r);
        for (int64_t j = 0; j < m; j++) {
            int32_t id = ids[positions[j]];
            at[positions[j]]++;
            n_mask += id == FIXTURE_MASK;
            n_kept += id == 9;
            drawn[id]++;
        }
        n_chosen += m;
    }
    EXPECT(n_chosen == 6 * (int64_t)N, "round(0.15 * 40) each");
    EXPECT_SHARE(n_mask, (double)n_chosen, 0.8 + 0.1 / SMALL);
    EXPECT_SHARE(n_kept, (double)n_chosen, 0.1 + 0.1 / SMALL);
    for (int id = 0; id < SMALL; id++) {
        if (id != 9 && id != FIXTURE_MASK) {
            EXPECT_SHARE(drawn[id], (double)n_chosen, 0.1 / SMALL); /* special tokens too */
        }
    }
    for (int i = 0; i < LENGTH; i++) {
        bool special = i == 0 || i == 20 || i == LENGTH - 1;
        EXPECT_SHARE(at[i], (double)N, special ? 0.0 : 6.0 / 37);
    }
}

/* ---- whole words ---- */

/* A vocabulary in which ids that are odd and above 1000 go on with a word. */
static const uint8_t *continuing(void)
{
    static uint8_t table[VOCAB];
    for (int32_t id = 1001; id < VOCAB; id += 2) {
        table[id] = 1;
    }
    return table;
}

/* Fills a sequence of two segments whose words have 1 to 4 pieces. */
static void fill_with_words(int32_t *ids, int64_t n, struct rng_stream *r)
{
    for (int64_t i = 0; i < n; i++) {
        bool goes_on = rng_below(r, 3) == 0;
        ids[i] = 1000 + 2 * (int32_t)rng_below(r, 5000) + goes_on;
    }
    ids[0] = FIXTURE_CLS;
    ids[n / 2] = ids[n - 1] = FIXTURE_SEP;
}

/* Where the word that token i belongs to begins. */
static int64_t word_of(const int32_t *ids, int64_t i)
{
    while (i > 0 && ids[i] % 2 == 1 && ids[i - 1] >= 1000) {
        i--;
    }
    return i;
}

static void words_are_masked_whole(void)
{
    enum { MOST = 256, TRIES = 3000 };
    static const double rates[] = {0.02, 0.15, 0.4, 1};
    const uint8_t *continues = continuing();
    for (int k = 0; k < 4; k++) {
        int64_t n_tokens = 0, n_chosen = 0, longest = 0;
        const struct masking_rules rules = masking_of(rates[k], 60, VOCAB, continues);
        for (uint64_t seed = 0; seed < TRIES; seed++) {
            int32_t ids[MOST], before[MOST], positions[60], labels[60];
            bool chosen[MOST] = {false};
            struct rng_stream r = rng_stream(rng_key(21, seed));
            int64_t n = 5 + rng_below(&r, MOST - 5), limit = (int64_t)nearbyint((double)n * rates[k]);
            fill_with_words(before, n, &r);
            memcpy(ids, before, sizeof ids);
            int64_t m = masking_apply(&rules, ids, n, positions, labels, &r);
            limit = limit < 1 ? 1 : limit > 60 ? 60 : limit;
            EXPECT(m <= limit, "%lld of %lld", (long long)m, (long long)limit);
            for (int64_t j = 0; j < m; j++) {
                EXPECT(j == 0 || positions[j] > positions[j - 1], "places ascend");
                EXPECT(labels[j] == before[positions[j]] && labels[j] >= 1000, "label %lld", (long long)j);
                chosen[positions[j]] = true;
            }
            for (int64_t i = 0; i < n; i++) {
                EXPECT(before[i] < 1000 || chosen[i] == chosen[word_of(before, i)], "half a word at %lld",
                       (long long)i);
                EXPECT(chosen[i] || ids[i] == before[i], "token %lld changed", (long long)i);
                longest = i - word_of(before, i) >= longest ? i - word_of(before, i) + 1 : longest;
            }
            n_tokens += limit;
            n_chosen += m;
        }
        printf("whole words, rate %g: %lld of %lld tokens that were wanted, words of up to %lld pieces\n",
               rates[k], (long long)n_chosen, (long long)n_tokens, (long long)longest);
        EXPECT((double)n_chosen > (k == 0 ? 0.75 : 0.97) * (double)n_tokens, "too few");
    }
}

/* Words of one piece each are tokens: every word is as likely as any other, and 80 %, 10 % and 10 % hold. */
static void words_have_their_statistics(void)
{
    enum { N = 20000, LENGTH = 42, PAIRS = (LENGTH - 2) / 2 };
    const struct masking_rules rules = masking_of(0.15, 20, VOCAB, continuing());
    int64_t at[PAIRS] = {0}, n_chosen = 0, n_mask = 0, n_kept = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        int32_t ids[LENGTH], positions[20], labels[20];
        for (int i = 1; i < LENGTH - 1; i++) {
            ids[i] = 2000 + (i + 1) % 2; /* words of two pieces */
        }
        ids[0] = FIXTURE_CLS, ids[LENGTH - 1] = FIXTURE_SEP;
        struct rng_stream r = rng_stream(rng_key(23, seed));
        int64_t m = masking_apply(&rules, ids, LENGTH, positions, labels, &r);
        EXPECT(m == 6, "%lld: round(0.15 * 42), of pairs", (long long)m);
        for (int64_t j = 0; j < m; j++) {
            at[(positions[j] - 1) / 2]++;
            n_mask += ids[positions[j]] == FIXTURE_MASK;
            n_kept += ids[positions[j]] == labels[j];
        }
        n_chosen += m;
    }
    for (int i = 0; i < PAIRS; i++) {
        EXPECT_SHARE(at[i] / 2, (double)N, 3.0 / PAIRS);
    }
    EXPECT_SHARE(n_mask, (double)n_chosen, 0.8);
    EXPECT_SHARE(n_kept, (double)n_chosen, 0.1);
}

/* ---- windows ---- */

static void windows_obey_their_rules(const struct indexed *store, int64_t max_tokens)
{
    struct sample_map m;
    int64_t n_short = 0, n = 20000, n_full = 0;
    EXPECT_OK(sample_map_build(&m, store, max_tokens));
    for (int64_t i = 0; i < n; i++) {
        struct sample s = sample_map_at(&m, i % m.n_samples);
        struct rng_stream r = rng_stream(rng_key(31, (uint64_t)i));
        struct nsp_range w = nsp_draw_window(store, s, max_tokens, 0.1, &r);
        int64_t all = n_tokens_of(store, s.first, s.n_sentences);
        EXPECT(length(w) >= 1 && length(w) <= max_tokens, "%lld tokens", (long long)length(w));
        EXPECT(w.begin >= indexed_offset(store, s.first) &&
                   w.end <= indexed_offset(store, s.first + s.n_sentences),
               "a window lies in its sample");
        n_full += all >= max_tokens;
        n_short += all >= max_tokens && length(w) < max_tokens;
    }
    EXPECT(n_full == 0 || (double)n_short < 0.1 * (double)n_full + 4 * sqrt(0.09 * (double)n_full),
           "%lld of %lld are short", (long long)n_short, (long long)n_full);
    sample_map_fini(&m);
}

int main(void)
{
    struct indexed store;
    fixture_store(&store, "store", 200, 12, 40, VOCAB);
    samples_tile_the_store(&store);
    damaged_stores_have_no_map();
    pairs_obey_their_rules(&store, 13);
    pairs_obey_their_rules(&store, 125);
    pairs_obey_their_rules(&store, 2);
    pairs_have_their_statistics();
    short_targets_are_uniform();
    one_document_is_never_random();
    truncation_is_fair();
    masks_obey_their_rules();
    everything_can_be_masked();
    masks_have_their_statistics();
    words_are_masked_whole();
    words_have_their_statistics();
    windows_obey_their_rules(&store, 13);
    windows_obey_their_rules(&store, 126);
    indexed_close(&store);
    fixture_remove();
    return 0;
}
