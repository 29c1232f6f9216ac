/* run_fetch: `kiln fetch`, downloads. */
#include "cmd/commands.h"
#include "cmd/model_store.h"
#include "cmd/settings.h"
#include "core/log.h"
#include "core/stop.h"
#include "fetch/fetch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct fetch_args {
    const char *hub, *revision, *language, *only, *url, *sha256, *md5, *sums, *unpack, *proxy, *mirror;
    int64_t tries, stall_timeout, max_bytes;
    double retry_wait;
    struct command_flags common;
};

#define AT(field) offsetof(struct fetch_args, field)

static const struct option options[] = {
    OPTION_STRING_ROW("output_dir", AT(common.output_dir), NULL, "DIR",
                      "directory for all files; default: download, and of --hub the directory of models, "
                      "KILN_MODELS or ~/.cache/kiln/models, where --model of every command finds NAME"),
    OPTION_STRING_ROW("hub", AT(hub), NULL, "NAME",
                      "download this model of huggingface.co, such as intfloat/e5-small-v2: configuration, "
                      "tokenizer and safetensors, never a pickle; large files have checksums"),
    OPTION_STRING_ROW("revision", AT(revision), "main", "NAME", "branch, tag or commit of --hub"),
    OPTION_STRING_ROW("language", AT(language), "en", "CODE",
                      "language of the dump or corpus, by Wikimedia's code: en, de, simple"),
    OPTION_STRING_ROW("only", AT(only), "", "PATTERN",
                      "download only files whose name matches, such as '*-v1.1*' or 'uncased_L-24*'"),
    OPTION_CHOICE_ROW("unpack", AT(unpack), "auto", "auto|yes|no",
                      "unpack archives into their directory; auto: Google's archives only, since kiln reads "
                      "compressed dumps"),
    OPTION_GROUP_ROW("other files"),
    OPTION_STRING_ROW("url", AT(url), "", "URL", "download this file; it keeps its name"),
    OPTION_STRING_ROW("sha256", AT(sha256), "", "HEX", "SHA-256 of the file at --url"),
    OPTION_STRING_ROW("md5", AT(md5), "", "HEX", "MD5 of the file at --url"),
    OPTION_STRING_ROW(
        "sums", AT(sums), "", "FILE",
        "read checksums from this file, lines of sha256sum or md5sum, instead of the published ones"),
    OPTION_GROUP_ROW("the network"),
    OPTION_STRING_ROW("proxy", AT(proxy), "", "URL",
                      "use this proxy for every host, whatever http_proxy, https_proxy and no_proxy say"),
    OPTION_ENV_ROW("mirror", AT(mirror), "", "URL", "KILN_MIRROR",
                   "download https://HOST/PATH from URL/HOST/PATH instead, the layout of `wget -x`"),
    OPTION_INT_ROW("tries", AT(tries), "5", 1, 1000,
                   "number of attempts in a row without a new byte before giving up"),
    OPTION_REAL_ROW("retry_wait", AT(retry_wait), "1", 0, 3600,
                    "number of seconds before the second attempt; it doubles each time, up to 60"),
    OPTION_INT_ROW("stall_timeout", AT(stall_timeout), "60", 1, 86400,
                   "number of seconds below 1 KiB/s after which an attempt ends"),
    OPTION_INT_ROW("max_bytes", AT(max_bytes), "0", 0, 1e15,
                   "refuse a file of more bytes; 0: off, but a file of unknown length must leave a twentieth "
                   "of the disk free"),
    DRY_RUN_ROW(AT(common.dry_run),
                "list the files, their sizes and where they go, without using the network"),
    {0},
};

/* Where files go: models to the directory of models. */
static struct status find_directory(char path[FILE_PATH_BYTES], const struct fetch_args *a)
{
    if (a->common.output_dir != NULL) {
        return file_make_path(path, "%s", a->common.output_dir);
    }
    return a->hub != NULL ? model_store_directory(path) : file_make_path(path, "download");
}

static struct status make_request(struct fetch_request *r, const struct fetch_args *a, const char *directory)
{
    FAIL_IF(a->hub != NULL && a->url != NULL, STATUS_USAGE, "--hub and --url cannot be combined");
    FAIL_IF(a->url == NULL && (a->sha256 != NULL || a->md5 != NULL), STATUS_USAGE,
            "--sha256 and --md5 need a --url; --sums lists the checksums of several files");
    FAIL_IF(a->sha256 != NULL && a->md5 != NULL, STATUS_USAGE,
            "--sha256 and --md5 cannot be combined; SHA-256 is the stronger one");
    *r = (struct fetch_request){
        .directory = directory,
        .language = a->language,
        .mirror = a->mirror,
        .only = a->only,
        .sums_file = a->sums,
        .unpack = a->unpack[0] == 'y'   ? FETCH_UNPACK_YES
                  : a->unpack[0] == 'n' ? FETCH_UNPACK_NO
                                        : FETCH_UNPACK_AUTO,
        .manner = {.proxy = a->proxy,
                   .tries = a->tries,
                   .retry_wait_s = a->retry_wait,
                   .stall_s = a->stall_timeout,
                   .most_bytes = a->max_bytes},
    };
    return status_ok();
}

static struct status fill_plan(struct fetch_plan *plan, const struct fetch_args *a, int n,
                               const char *const *sources)
{
    for (int i = 0; i < n; i++) {
        TRY(fetch_plan_source(plan, sources[i]));
    }
    if (a->hub != NULL) {
        TRY(fetch_plan_hub(plan, a->hub, a->revision));
    }
    if (a->url != NULL) {
        TRY(fetch_plan_url(plan, a->url, a->sha256 != NULL ? a->sha256 : a->md5));
    }
    if (plan->n > 0) {
        return status_ok();
    }
    FAIL_IF(n > 0, STATUS_USAGE, "no file of these sources matches '%s'", a->only);
    return status_error(STATUS_USAGE,
                        "name a source (`kiln fetch --help` lists them) or give a --url or --hub");
}

static struct status carry_out(struct fetch_plan *plan, const struct fetch_args *a)
{
    const char *directory = plan->request.directory;
    if (!a->common.dry_run) {
        TRY(file_check_output_directory(directory, 0, 0));
        stop_install();
        return fetch_run(plan);
    }
    TRY(file_check_directory_path(directory, 0));
    for (size_t i = 0; i < plan->n; i++) {
        fetch_print_item(&plan->items[i]);
    }
    return status_ok();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct fetch_args *a = args;
    struct fetch_request request;
    struct fetch_plan plan;
    char directory[FILE_PATH_BYTES];
    TRY(find_directory(directory, a));
    TRY(make_request(&request, a, directory));
    struct status s = fetch_plan_init(&plan, &request);
    if (!failed(s)) {
        s = fill_plan(&plan, a, n_positional, positional);
    }
    if (!failed(s)) {
        s = carry_out(&plan, a);
    }
    fetch_plan_fini(&plan);
    return s;
}

const struct command command_fetch = {
    .name = "fetch",
    .summary =
        "download Wikipedia's dump, Google's archives, SQuAD, OSCAR, a model of Hugging Face or any URL",
    .details = "Sources: wikipedia, google, squad, oscar. A download resumes where it stopped, also when the "
               "command is started again, and a file gets its name only when it is complete and its "
               "published length and checksum are right. Files that already exist are checked and kept. "
               "Without a network the command lists which files are missing and where they belong, and ends "
               "with 69: put them there and start it again.",
    .positional_usage = "SOURCE...",
    .max_positional = 16,
    .options = options,
    .args_bytes = sizeof(struct fetch_args),
    .run = run,
};
