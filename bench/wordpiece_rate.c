/* wordpiece_rate: the rate of WordPiece, text in memory to ids in memory, of one thread.
 *
 * usage: wordpiece_rate VOCAB cased|uncased REPEATS FILE
 *
 * Each repeat has a new scratch, so filling its caches is in the time.  Lines are encoded one by one, as
 * bench/peers/hf_tokenizers.py does.  The rate is of processor time: a shared machine changes it less than
 * the time of day.  Prints the median in MB/s, and a hash of the ids on standard error. */
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

/* Encodes all lines; the ids of the last are left in the list. */
static struct status encode_lines(const struct tokenizer *t, struct id_list *ids, const char *text, size_t n,
                                  uint64_t *n_ids)
{
    struct tokenizer_scratch scratch;
    struct status s = tokenizer_scratch_init(&scratch, t);
    *n_ids = 0;
    for (size_t at = 0; at < n && !failed(s);) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : n - at;
        ids->n = 0;
        s = tokenizer_encode_ids(&scratch, ids, text + at, length);
        *n_ids += ids->n;
        at += length + 1;
    }
    tokenizer_scratch_fini(&scratch);
    return s;
}

static struct status measure(const struct tokenizer *t, const struct file_map *file, int n_repeats)
{
    double rates[MAX_REPEATS];
    struct id_list ids = {0};
    struct status s = status_ok();
    for (int i = 0; i < n_repeats && !failed(s); i++) {
        uint64_t n_ids;
        double start = processor_s();
        s = encode_lines(t, &ids, (const char *)file->data, file->n, &n_ids);
        rates[i] = (double)file->n / 1e6 / (processor_s() - start);
        fprintf(stderr, "%.1f MB/s, %llu ids\n", rates[i], (unsigned long long)n_ids);
    }
    if (!failed(s)) {
        qsort(rates, (size_t)n_repeats, sizeof *rates, by_value);
        printf("%.1f\n", rates[n_repeats / 2]);
    }
    id_list_fini(&ids);
    return s;
}

static struct status run(const char *vocab, bool lower_case, int n_repeats, const char *path)
{
    struct tokenizer t;
    struct file_map file;
    TRY(tokenizer_open_vocabulary(&t, vocab, lower_case));
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
        fprintf(stderr, "usage: wordpiece_rate VOCAB cased|uncased REPEATS FILE\n");
        return 64;
    }
    struct status s = run(args[1], strcmp(args[2], "uncased") == 0, n_repeats, args[4]);
    if (failed(s)) {
        fprintf(stderr, "wordpiece_rate: %s\n", s.message);
    }
    return failed(s);
}
