#include "cmd/passage_files.h"

#include "core/log.h"

#include <stdlib.h>

static struct status open_files(struct passage_files *p, const char *encoding)
{
    int64_t n_out = 0;
    struct status first = status_ok();
    for (int64_t i = 0; i < p->list.n; i++) {
        const struct input_file *file = &p->list.files[i];
        struct status s = text_file_open(&p->files[i], file->path, encoding);
        s = failed(s) ? s : text_file_refuse_nul(&p->files[i]);
        if (failed(s) && (!file->in_directory || s.code != STATUS_DATA)) {
            return s;
        }
        if (failed(s)) {
            text_file_close(&p->files[i]); /* it is empty now */
            first = n_out++ == 0 ? s : first;
        }
    }
    if (n_out > 0) {
        log_warning("%lld files of folders are left out, the first since %s", (long long)n_out,
                    first.message);
    }
    return status_ok();
}

struct status passage_files_open(struct passage_files *p, const char *const *paths, int n_paths,
                                 const char *encoding)
{
    *p = (struct passage_files){0};
    struct status s = input_files_list(&p->list, paths, n_paths);
    p->files = failed(s) ? NULL : calloc((size_t)p->list.n + 1, sizeof *p->files);
    if (!failed(s)) {
        s = p->files == NULL ? status_error(STATUS_MEMORY, "out of memory for a list of files")
                             : open_files(p, encoding);
    }
    if (failed(s)) {
        passage_files_close(p);
    }
    return s;
}

void passage_files_close(struct passage_files *p)
{
    for (int64_t i = 0; i < p->list.n && p->files != NULL; i++) {
        text_file_close(&p->files[i]);
    }
    free(p->files);
    input_files_fini(&p->list);
    passages_fini(&p->passages);
    *p = (struct passage_files){0};
}

struct status passage_files_cut(struct passage_files *p, struct tokenizer_scratch *scratch, int64_t room,
                                int64_t step)
{
    for (int64_t i = 0; i < p->list.n; i++) {
        const struct text_file *f = &p->files[i];
        TRY(passages_cut(&p->passages, scratch, p->list.files[i].path, f->text, f->n, room, step));
    }
    return p->passages.n > 0 ? status_ok()
                             : status_error(STATUS_DATA, "the files hold no text that the model can read");
}

struct status passage_files_check(const struct passage_files *p)
{
    for (int64_t i = 0; i < p->list.n; i++) {
        TRY(text_file_check(&p->files[i]));
    }
    return status_ok();
}
