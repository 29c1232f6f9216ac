#include "ops/cuda/choice/product_cache.h"

#include "core/hash.h"
#include "core/log.h"
#include "io/file.h"
#include "io/file_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HEAD[] = "kiln products 1\n";
static const char CHECKSUM[] = "crc32c ";

enum {
    MOST_FILE_BYTES = 64 << 20,
    CHECKSUM_BYTES = sizeof CHECKSUM - 1 + 8 + 1, /* the last line */
    ROW_BYTES = PRODUCT_KEY_BYTES + 2 * PRODUCT_ALGORITHM_BYTES + 64,
    MOST_FORMS = 256,
};

static const double MOST_MICROS = 1e9;

/* The file is in the user's cache (XDG base directory specification 0.8): "" if no absolute path names
 * that. */
void product_cache_shared_path(char path[PRODUCT_PATH_BYTES])
{
    static const char NAME[] = "kiln/cublaslt.cache";
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(path, PRODUCT_PATH_BYTES, "%s/%s", cache, NAME);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, PRODUCT_PATH_BYTES, "%s/.cache/%s", home, NAME);
    }
    if (length <= 0 || length >= PRODUCT_PATH_BYTES) {
        path[0] = '\0';
    }
}

/* The index of a key, or where to insert it. */
static int64_t place_of(const struct product_rows *r, const char *key, bool *found)
{
    int64_t low = 0, high = r->n;
    *found = false;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(r->rows[middle].key, key);
        if (order == 0) {
            *found = true;
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return low;
}

/* The row of `row->key`, inserted if there was none; NULL if memory runs out. */
static struct product_row *add_row(struct product_rows *r, const struct product_row *row, bool replaces)
{
    bool found;
    int64_t at = place_of(r, row->key, &found);
    if (!found && r->n == r->capacity) {
        int64_t capacity = r->capacity > 0 ? 2 * r->capacity : 64;
        struct product_row *rows = realloc(r->rows, (size_t)capacity * sizeof *rows);
        if (rows == NULL) {
            return NULL;
        }
        r->rows = rows;
        r->capacity = capacity;
    }
    CHECK(r->rows != NULL, "a row is found among none");
    if (!found) {
        memmove(r->rows + at + 1, r->rows + at, (size_t)(r->n - at) * sizeof *r->rows);
        r->n++;
    }
    if (!found || replaces) {
        r->rows[at] = *row;
    }
    return &r->rows[at];
}

static void free_rows(struct product_rows *r)
{
    free(r->rows);
    *r = (struct product_rows){0};
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_algorithm(unsigned char *bytes, const char *text)
{
    if (strlen(text) != 2 * PRODUCT_ALGORITHM_BYTES) {
        return false;
    }
    for (int i = 0; i < PRODUCT_ALGORITHM_BYTES; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool is_possible(long form, double micros)
{
    return form >= 0 && form < MOST_FORMS && micros >= 0 && micros <= MOST_MICROS; /* false for a NaN */
}

/* Parses machine, shape, form, microseconds and algorithm, separated by tabs; modifies `line`. */
static bool parse_row(struct product_row *row, char *line)
{
    char *shape = strchr(line, '\t');
    char *form = shape == NULL ? NULL : strchr(shape + 1, '\t');
    char *micros = form == NULL ? NULL : strchr(form + 1, '\t');
    char *algorithm = micros == NULL ? NULL : strchr(micros + 1, '\t');
    if (algorithm == NULL || form - line >= PRODUCT_KEY_BYTES || shape == line || form == shape + 1) {
        return false;
    }
    *form++ = *micros++ = *algorithm++ = '\0';
    *row = (struct product_row){0};
    memcpy(row->key, line, strlen(line));
    char *form_end, *micros_end;
    long f = strtol(form, &form_end, 10);
    row->choice.form = (int)f;
    row->choice.micros = strtod(micros, &micros_end);
    return form_end != form && *form_end == '\0' && micros_end != micros && *micros_end == '\0' &&
           is_possible(f, row->choice.micros) && parse_algorithm(row->choice.algorithm, algorithm);
}

/* Checks head and checksum; *end is where the rows end. */
static struct status check_file(const char *text, size_t n, size_t *end)
{
    size_t head = sizeof HEAD - 1;
    if (n < head + CHECKSUM_BYTES || memcmp(text, HEAD, head) != 0) {
        return status_error(STATUS_DATA, "it does not begin with \"%.*s\"", (int)head - 1, HEAD);
    }
    char last[CHECKSUM_BYTES + 1];
    *end = n - CHECKSUM_BYTES;
    snprintf(last, sizeof last, "%s%08x\n", CHECKSUM, hash_crc32c(0, text, *end));
    if (text[*end - 1] != '\n' || memcmp(text + *end, last, CHECKSUM_BYTES) != 0 || strlen(text) != n) {
        return status_error(STATUS_DATA, "it is damaged: its checksum is wrong");
    }
    return status_ok();
}

/* Adds the rows of a file's text [n + 1], which it modifies.  Rows that cannot be read are counted and
 * skipped. */
static struct status parse_rows(struct product_rows *r, char *text, size_t n, bool of_run,
                                int64_t *n_malformed)
{
    size_t end = 0;
    TRY(check_file(text, n, &end));
    text[end] = '\0';
    char *save, *line = strtok_r(text + sizeof HEAD - 1, "\n", &save);
    for (; line != NULL; line = strtok_r(NULL, "\n", &save)) {
        struct product_row row;
        if (!parse_row(&row, line)) {
            ++*n_malformed;
            continue;
        }
        row.of_run = of_run;
        if (add_row(r, &row, of_run) == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for its rows");
        }
    }
    return status_ok();
}

/* Adds the rows of bytes [n] as parse_rows does, from a copy: the bytes are only read. */
static struct status parse_copy(struct product_rows *r, const void *bytes, size_t n, bool of_run,
                                int64_t *n_malformed)
{
    char *copy = malloc(n + 1);
    if (copy == NULL) {
        return status_error(STATUS_MEMORY, "out of memory");
    }
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    struct status s = parse_rows(r, copy, n, of_run, n_malformed);
    free(copy);
    return s;
}

/* Adds the rows of a file as parse_rows does, if the file exists. */
static struct status read_rows(struct product_rows *r, const char *path, bool of_run, int64_t *n_malformed)
{
    struct file_map m;
    *n_malformed = 0;
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(file_map_open(&m, path));
    struct status s = m.n == 0 || m.n > MOST_FILE_BYTES
                          ? status_error(STATUS_DATA, "it has %zu bytes, not 1 to %d", m.n, MOST_FILE_BYTES)
                          : parse_copy(r, m.data, m.n, of_run, n_malformed);
    file_map_close(&m);
    return s;
}

/* Warns of what could not be read: that only costs time. */
static void tell_of(struct status s, int64_t n_malformed, const char *path)
{
    if (failed(s)) {
        log_warning("kiln does not use %s and times all shapes again: %s", path, s.message);
    } else if (n_malformed > 0) {
        log_warning("%lld rows of %s cannot be read; their shapes are timed again", (long long)n_malformed,
                    path);
    }
}

static void take_rows(struct product_rows *r, const char *path, bool of_run)
{
    int64_t n_malformed;
    struct status s = read_rows(r, path, of_run, &n_malformed);
    tell_of(s, n_malformed, path);
}

static void take_path(char to[PRODUCT_PATH_BYTES], const char *path)
{
    if ((size_t)snprintf(to, PRODUCT_PATH_BYTES, "%s", path) >= PRODUCT_PATH_BYTES) {
        log_warning("choices are not kept: the path %.60s... is longer than %d bytes", path,
                    PRODUCT_PATH_BYTES - 1);
        to[0] = '\0';
    }
}

void product_cache_open(struct product_cache *c, const char *path)
{
    *c = (struct product_cache){0};
    take_path(c->shared_path, path);
    if (c->shared_path[0] != '\0') {
        take_rows(&c->rows, c->shared_path, false);
    }
}

void product_cache_follow(struct product_cache *c, const char *path)
{
    take_path(c->run_path, path);
    if (c->run_path[0] != '\0') {
        take_rows(&c->rows, c->run_path, true);
    }
}

void product_cache_take(struct product_cache *c, const void *text, size_t n, const char *source)
{
    int64_t n_malformed = 0;
    struct status s = parse_copy(&c->rows, text, n, true, &n_malformed);
    c->run_changed = true;
    tell_of(s, n_malformed, source);
}

void product_cache_close(struct product_cache *c)
{
    free_rows(&c->rows);
}

const struct product_choice *product_cache_find(struct product_cache *c, const char *key)
{
    bool found;
    int64_t at = place_of(&c->rows, key, &found);
    if (!found) {
        return NULL;
    }
    struct product_row *row = &c->rows.rows[at];
    c->run_changed = c->run_changed || !row->used;
    row->used = true;
    return &row->choice;
}

struct status product_cache_keep(struct product_cache *c, const char *key,
                                 const struct product_choice *choice)
{
    struct product_row row = {.choice = *choice, .used = true, .made = choice->micros > 0};
    CHECK(is_possible(choice->form, choice->micros), "form %d in %g us", choice->form, choice->micros);
    if (strlen(key) >= sizeof row.key || strchr(key, '\n') != NULL || strchr(key, '\t') == NULL) {
        return status_error(STATUS_USAGE, "\"%.60s...\" cannot name a product", key);
    }
    memcpy(row.key, key, strlen(key));
    place_of(&c->rows, key, &row.remade);
    if (add_row(&c->rows, &row, true) == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the choice of an algorithm");
    }
    c->shared_changed = c->run_changed = true;
    return status_ok();
}

/* The text of a file with these rows; the caller frees it. */
static char *make_text(const struct product_rows *r, size_t *n)
{
    char *text = malloc(sizeof HEAD + (size_t)r->n * ROW_BYTES + CHECKSUM_BYTES + 1);
    if (text == NULL) {
        return NULL;
    }
    char *p = text + sprintf(text, "%s", HEAD);
    for (int64_t i = 0; i < r->n; i++) {
        const struct product_choice *c = &r->rows[i].choice;
        p += sprintf(p, "%s\t%d\t%.3f\t", r->rows[i].key, c->form, c->micros);
        for (int b = 0; b < PRODUCT_ALGORITHM_BYTES; b++) {
            p += sprintf(p, "%02x", c->algorithm[b]);
        }
        *p++ = '\n';
    }
    p += sprintf(p, "%s%08x\n", CHECKSUM, hash_crc32c(0, text, (size_t)(p - text)));
    *n = (size_t)(p - text);
    return text;
}

struct status product_cache_text_of_run(const struct product_cache *c, char **text, size_t *n)
{
    struct product_rows of_run = {0};
    bool fits = true;
    *text = NULL;
    *n = 0;
    for (int64_t i = 0; i < c->rows.n && fits; i++) {
        struct product_row row = c->rows.rows[i];
        row.choice.micros = 0; /* equal runs write equal bytes */
        fits = !(row.used || row.of_run) || add_row(&of_run, &row, false) != NULL;
    }
    if (fits && of_run.n > 0) {
        *text = make_text(&of_run, n);
        fits = *text != NULL;
    }
    free_rows(&of_run);
    return fits ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the choices of a run");
}

/* Merges the file's rows with ours: a row of the file is kept unless it could not be used. */
static struct status merge(const struct product_cache *c, const char *path, bool shared)
{
    struct product_rows all = {0};
    int64_t n_malformed;
    if (read_rows(&all, path, false, &n_malformed).code == STATUS_MEMORY) {
        free_rows(&all);
        return status_error(STATUS_MEMORY, "out of memory");
    }
    bool fits = true;
    for (int64_t i = 0; i < c->rows.n && fits; i++) {
        const struct product_row *row = &c->rows.rows[i];
        if (shared ? row->made : row->used || row->of_run) {
            fits = add_row(&all, row, shared ? row->remade : true) != NULL;
        }
    }
    size_t n = 0;
    char *text = fits ? make_text(&all, &n) : NULL;
    free_rows(&all);
    struct status s =
        text == NULL ? status_error(STATUS_MEMORY, "out of memory") : file_write_atomic(path, text, n);
    free(text);
    return s;
}

static struct status merge_locked(const struct product_cache *c, const char *path, bool shared)
{
    char lock[PRODUCT_PATH_BYTES + 8], parent[FILE_PATH_BYTES];
    int fd;
    snprintf(lock, sizeof lock, "%s.lock", path);
    file_parent(parent, path);
    TRY(file_make_directories(parent));
    TRY(file_lock_open(&fd, lock));
    struct status s = file_lock_wait(fd)
                          ? merge(c, path, shared)
                          : status_error(STATUS_IO, "cannot lock %s: %s", lock, strerror(errno));
    close(fd);
    return s;
}

static void write_one(const struct product_cache *c, char *path, bool shared, bool *changed)
{
    if (!*changed || path[0] == '\0') {
        return;
    }
    struct status s = merge_locked(c, path, shared);
    *changed = false;
    if (failed(s)) {
        log_warning("choices are not kept in %s: %s", path, s.message);
        path[0] = '\0';
    }
}

void product_cache_write(struct product_cache *c)
{
    write_one(c, c->run_path, false, &c->run_changed);
    write_one(c, c->shared_path, true, &c->shared_changed);
}

int64_t product_cache_count(const struct product_cache *c, const char *machine, const char *shape)
{
    int64_t n = 0;
    size_t length = strlen(machine);
    for (int64_t i = 0; i < c->rows.n; i++) {
        const char *key = c->rows.rows[i].key;
        n += strncmp(key, machine, length) == 0 && key[length] == '\t' &&
             strncmp(key + length + 1, shape, strlen(shape)) == 0;
    }
    return n;
}

void product_cache_tell_of_machine(const struct product_cache *c, const char *machine, const char *source)
{
    const char *other = NULL;
    size_t length = strlen(machine);
    bool found = false;
    for (int64_t i = 0; i < c->rows.n; i++) {
        const struct product_row *row = &c->rows.rows[i];
        bool is_of = strncmp(row->key, machine, length) == 0 && row->key[length] == '\t';
        found |= row->of_run && is_of;
        other = row->of_run && !is_of ? row->key : other;
    }
    if (other != NULL && !found) {
        log_warning("%s: its algorithms were chosen on %.*s, but this is %s; kiln times them again, so "
                    "results may differ in their last bits from a run that stays on one machine",
                    source, (int)strcspn(other, "\t"), other, machine);
    }
}
