/* tokenizer_rate: the rate of a tokenizer, text in memory to ids in memory, of one thread.
 *
 * usage: tokenizer_rate VOCAB cased|uncased REPEATS FILE      (WordPiece)
 *        tokenizer_rate VOCAB_JSON MERGES REPEATS FILE        (byte-level BPE)
 *        tokenizer_rate DIRECTORY any REPEATS FILE            (that of a model directory)
 *
 * Cold: each repeat has a new scratch, so filling its cache is in the time.  Warm: the same scratch reads the
 * text again.  Lines are encoded one by one, as bench/peers/hf_tokenizers.py and bench/peers/bpe_peers.py do.
 * The rate is of processor time: a shared machine changes it less than the time of day.  Prints the medians
 * in MB/s, cold and warm, and on standard error a hash of the ids, which is that of the peers of BPE. */
#include "core/hash.h"
#include "io/file.h"
#include "text/tokenizer_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_REPEATS = 101 };

static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Appends the ids of all lines. */
static struct status encode_lines(struct tokenizer_scratch *scratch, struct id_list *ids, const char *text,
                                  size_t n)
{
    ids->n = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : n - at;
        TRY(tokenizer_encode_ids(scratch, ids, text + at, length));
        at += length + 1;
    }
    return status_ok();
}

static struct status measure_one(const struct tokenizer *t, struct id_list *ids, const struct file_map *file,
                                 double rates[2])
{
    struct tokenizer_scratch scratch;
    double start = processor_s();
    struct status s = tokenizer_scratch_init(&scratch, t);
    for (int warm = 0; warm < 2 && !failed(s); warm++) {
        s = encode_lines(&scratch, ids, (const char *)file->data, file->n);
        double end = processor_s();
        rates[warm] = (double)file->n / 1e6 / (end - start);
        start = end;
    }
    tokenizer_scratch_fini(&scratch);
    return s;
}

static struct status measure(const struct tokenizer *t, const struct file_map *file, int n_repeats)
{
    double cold[MAX_REPEATS], warm[MAX_REPEATS];
    struct id_list ids = {0};
    struct status s = status_ok();
    for (int i = 0; i < n_repeats && !failed(s); i++) {
        double rates[2] = {0};
        s = measure_one(t, &ids, file, rates);
        cold[i] = rates[0];
        warm[i] = rates[1];
    }
    if (!failed(s)) {
        qsort(cold, (size_t)n_repeats, sizeof *cold, by_value);
        qsort(warm, (size_t)n_repeats, sizeof *warm, by_value);
        printf("%.1f %.1f\n", cold[n_repeats / 2], warm[n_repeats / 2]);
        fprintf(stderr, "%zu ids, hash %016llx\n", ids.n,
                (unsigned long long)hash_bytes(ids.ids, ids.n * sizeof *ids.ids));
    }
    id_list_fini(&ids);
    return s;
}

static struct status open_tokenizer(struct tokenizer *t, const char *vocab, const char *how)
{
    bool lower_case = strcmp(how, "uncased") == 0;
    int64_t max_length;
    if (strcmp(how, "any") == 0) {
        return tokenizer_open_directory(t, &max_length, vocab);
    }
    return lower_case || strcmp(how, "cased") == 0 ? tokenizer_open_vocabulary(t, vocab, lower_case)
                                                   : tokenizer_open_merges(t, vocab, how);
}

static struct status run(const char *vocab, const char *how, int n_repeats, const char *path)
{
    struct tokenizer t;
    struct file_map file;
    TRY(open_tokenizer(&t, vocab, how));
    struct status s = file_map_open(&file, path);
    if (!failed(s)) {
        s = measure(&t, &file, n_repeats);
        file_map_close(&file);
    }
    tokenizer_fini(&t);
    return s;
}

int main(int n_args, char **args)
{
    int n_repeats = n_args == 5 ? atoi(args[3]) : 0;
    if (n_repeats < 1 || n_repeats > MAX_REPEATS) {
        fprintf(stderr, "usage: tokenizer_rate VOCAB cased|uncased|any|MERGES REPEATS FILE\n");
        return 64;
    }
    struct status s = run(args[1], args[2], n_repeats, args[4]);
    if (failed(s)) {
        fprintf(stderr, "tokenizer_rate: %s\n", s.message);
    }
    return failed(s);
}
