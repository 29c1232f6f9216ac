#include "service/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void service_metrics_init(struct service_metrics *m)
{
    *m = (struct service_metrics){0};
    pthread_mutex_init(&m->lock, NULL);
}

void service_metrics_fini(struct service_metrics *m)
{
    pthread_mutex_destroy(&m->lock);
}

/* ---- counting ---- */

static double bound(int k)
{
    return 1e-5 * pow(1.5, k + 1);
}

static void add(struct histogram *h, double seconds)
{
    int k = 0;
    while (k < METRICS_BOUNDS && seconds > bound(k)) {
        k++;
    }
    h->counts[k]++;
    h->sum += seconds;
    h->n++;
}

/* The row of a dialect, of which there are a few. */
static int row_of(struct service_metrics *m, const char *dialect)
{
    int i = 0;
    while (i < m->n_dialects && strcmp(m->dialects[i], dialect) != 0) {
        i++;
    }
    if (i == m->n_dialects && i < METRICS_DIALECTS) {
        m->dialects[m->n_dialects++] = dialect;
    }
    return i < METRICS_DIALECTS ? i : METRICS_DIALECTS - 1;
}

static void add_call(struct service_metrics *m, const struct call *c)
{
    const struct call_times times = call_times(c);
    m->texts += c->n_texts;
    m->tokens += c->n_tokens;
    m->new_tokens += c->n_new_tokens;
    m->cut += c->n_cut;
    if (c->has_timing) {
        add(&m->encode, times.encode_s);
        add(&m->queue, times.queue_s);
        add(&m->compute, times.compute_s);
    }
}

void service_metrics_count(struct service_metrics *m, const char *dialect, int status, const struct call *c,
                           double total_s)
{
    int class = status / 100;
    pthread_mutex_lock(&m->lock);
    m->calls[row_of(m, dialect)][class < METRICS_CLASSES ? class : 0]++;
    add(&m->total, total_s);
    if (c != NULL) {
        add_call(m, c);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- writing ---- */

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct buf *out, const char *name, const char *type, const char *help, double value)
{
    head(out, name, type, help);
    buf_printf(out, "%s %.17g\n", name, value);
}

static void write_histogram(struct buf *out, const char *name, const char *help, const struct histogram *h)
{
    int64_t n = 0;
    head(out, name, "histogram", help);
    for (int k = 0; k < METRICS_BOUNDS; k++) {
        n += h->counts[k];
        buf_printf(out, "%s_bucket{le=\"%.6g\"} %lld\n", name, bound(k), (long long)n);
    }
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.9g\n%s_count %lld\n", name, (long long)h->n, name,
               h->sum, name, (long long)h->n);
}

/* Resident bytes of this process (proc(5)); 0 where the system does not report them. */
static double resident_bytes(void)
{
    long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%lld %lld", &pages, &resident) != 2) {
            resident = 0;
        }
        fclose(f);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_calls(struct buf *out, const struct service_metrics *m)
{
    static const char *const classes[METRICS_CLASSES] = {"left", "1xx", "2xx", "3xx", "4xx", "5xx"};
    head(out, "kiln_requests_total", "counter", "Requests that have ended, by dialect and status.");
    for (int i = 0; i < m->n_dialects; i++) {
        for (int k = 0; k < METRICS_CLASSES; k++) {
            buf_printf(out, "kiln_requests_total{dialect=\"%s\",status=\"%s\"} %lld\n", m->dialects[i],
                       classes[k], (long long)m->calls[i][k]);
        }
    }
}

/* The names of text-embeddings-inference, without its units. */
static void write_aliases(struct buf *out, const struct service_metrics *m,
                          const struct text_engine_load *load)
{
    int64_t all = 0, good = 0;
    for (int i = 0; i < m->n_dialects; i++) {
        for (int k = 0; k < METRICS_CLASSES; k++) {
            all += m->calls[i][k];
        }
        good += m->calls[i][2];
    }
    number(out, "te_request_count", "counter", "As kiln_requests_total.", (double)all);
    number(out, "te_request_success", "counter", "Those of status 2xx.", (double)good);
    number(out, "te_request_failure", "counter", "The others.", (double)(all - good));
    number(out, "te_queue_size", "gauge", "As kiln_queue_requests.", (double)load->n_works);
    number(out, "te_batch_next_size", "gauge", "Texts of the last batch.", (double)load->last_batch_texts);
    number(out, "te_batch_next_tokens", "gauge", "Tokens of the last batch.",
           (double)load->last_batch_tokens);
    write_histogram(out, "te_request_duration", "As kiln_request_seconds.", &m->total);
    write_histogram(out, "te_request_tokenization_duration", "As kiln_encode_seconds.", &m->encode);
    write_histogram(out, "te_request_queue_duration", "As kiln_queue_seconds.", &m->queue);
    write_histogram(out, "te_request_inference_duration", "As kiln_compute_seconds.", &m->compute);
}

void service_metrics_write(struct buf *out, struct service_metrics *m, const struct text_engine_load *load,
                           int64_t n_exchanges)
{
    pthread_mutex_lock(&m->lock);
    head(out, "kiln_build_info", "gauge", "The version.");
    buf_puts(out, "kiln_build_info{version=\"" KILN_VERSION "\"} 1\n");
    write_calls(out, m);
    number(out, "kiln_texts_total", "counter", "Texts that were read.", (double)m->texts);
    number(out, "kiln_tokens_total", "counter", "Tokens that were read.", (double)m->tokens);
    number(out, "kiln_new_tokens_total", "counter", "Tokens that were generated.", (double)m->new_tokens);
    number(out, "kiln_texts_cut_total", "counter", "Texts of which a part was not read.", (double)m->cut);
    number(out, "kiln_exchanges", "gauge", "Requests that are being answered.", (double)n_exchanges);
    number(out, "kiln_queue_requests", "gauge", "Requests that wait or compute.", (double)load->n_works);
    number(out, "kiln_queue_tokens", "gauge", "Tokens of these.", (double)load->n_tokens);
    number(out, "kiln_batches_total", "counter", "Batches that were computed.", (double)load->n_batches);
    number(out, "kiln_batch_tokens_total", "counter", "Tokens of all batches.", (double)load->n_batch_tokens);
    number(out, "kiln_tokens_per_second", "gauge", "Tokens of batches, while there is work.",
           load->tokens_per_s);
    number(out, "process_resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
    write_histogram(out, "kiln_request_seconds", "From the head of a request to its answer.", &m->total);
    write_histogram(out, "kiln_encode_seconds", "Reading fields, and tokenizing.", &m->encode);
    write_histogram(out, "kiln_queue_seconds", "Waiting for the device.", &m->queue);
    write_histogram(out, "kiln_compute_seconds", "From the first batch to the last.", &m->compute);
    write_aliases(out, m, load);
    pthread_mutex_unlock(&m->lock);
}
