/* run_fetch: `kiln fetch`, files from the network. */
#include "cmd/commands.h"
#include "core/log.h"
#include "core/stop.h"
#include "fetch/fetch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct fetch_args {
    const char *output_dir, *language, *only, *url, *sha256, *md5, *sums, *unpack, *proxy, *mirror;
    int64_t tries, stall_timeout;
    double retry_wait;
    bool dry_run;
};

#define AT(field) offsetof(struct fetch_args, field)

static const struct option options[] = {
    OPTION_STRING_ROW("output_dir", AT(output_dir), "download", "DIR", "everything lies below it"),
    OPTION_STRING_ROW("language", AT(language), "en", "CODE",
                      "of a dump or a corpus, as Wikimedia has it: en, de, simple"),
    OPTION_STRING_ROW("only", AT(only), "", "PATTERN",
                      "only files whose name matches, such as '*-v1.1*' or 'uncased_L-24*'"),
    OPTION_CHOICE_ROW("unpack", AT(unpack), "auto", "auto|yes|no",
                      "archives beside where they lie; auto: Google's only, since a dump is read as it is"),
    OPTION_GROUP_ROW("any other file"),
    OPTION_STRING_ROW("url", AT(url), "", "URL", "a file by its address, to its last name in --output_dir"),
    OPTION_STRING_ROW("sha256", AT(sha256), "", "HEX", "its checksum"),
    OPTION_STRING_ROW("md5", AT(md5), "", "HEX", "the same, if only that is known"),
    OPTION_STRING_ROW(
        "sums", AT(sums), "", "FILE",
        "checksums in place of the published ones: lines of sha256sum or md5sum, by the names of files"),
    OPTION_GROUP_ROW("the network"),
    {.name = "proxy",
     .kind = OPTION_STRING,
     .offset = AT(proxy),
     .default_text = "",
     .value_name = "URL",
     .help = "in place of what http_proxy, https_proxy and no_proxy say"},
    {.name = "mirror",
     .kind = OPTION_STRING,
     .offset = AT(mirror),
     .default_text = "",
     .value_name = "URL",
     .help = "takes https://HOST/PATH of a source from URL/HOST/PATH, as `wget -x` lays files",
     .env = "KILN_MIRROR"},
    OPTION_INT_ROW("tries", AT(tries), "5", 1, 1000,
                   "in a row without a new byte, before a file is given up"),
    OPTION_REAL_ROW("retry_wait", AT(retry_wait), "1", 0, 3600,
                    "seconds before the second try, twice as many before the next, up to 60"),
    OPTION_INT_ROW("stall_timeout", AT(stall_timeout), "60", 1, 86400,
                   "seconds with less than a KiB each after which a transfer is broken off"),
    OPTION_FLAG_ROW("dry-run", AT(dry_run),
                    "list what would be fetched, how long it is and where it goes; ask nobody"),
    {0},
};

static struct status make_request(struct fetch_request *r, const struct fetch_args *a)
{
    if (a->url == NULL && (a->sha256 != NULL || a->md5 != NULL)) {
        return status_error(STATUS_USAGE,
                            "--sha256 and --md5 are of a --url; --sums has those of several files");
    }
    if (a->sha256 != NULL && a->md5 != NULL) {
        return status_error(STATUS_USAGE,
                            "--sha256 and --md5 exclude each other; SHA-256 is the stronger one");
    }
    *r = (struct fetch_request){
        .directory = a->output_dir,
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
                   .stall_s = a->stall_timeout},
    };
    return status_ok();
}

static struct status fill_plan(struct fetch_plan *plan, const struct fetch_args *a, int n,
                               const char *const *sources)
{
    for (int i = 0; i < n; i++) {
        TRY(fetch_plan_source(plan, sources[i]));
    }
    if (a->url != NULL) {
        TRY(fetch_plan_url(plan, a->url, a->sha256 != NULL ? a->sha256 : a->md5));
    }
    if (plan->n > 0) {
        return status_ok();
    }
    if (n > 0) {
        return status_error(STATUS_USAGE, "no file of these sources is called '%s'", a->only);
    }
    return status_error(STATUS_USAGE,
                        "what to fetch is missing: a source (`kiln fetch --help` lists them) or a --url");
}

static struct status carry_out(struct fetch_plan *plan, const struct fetch_args *a)
{
    if (!a->dry_run) {
        TRY(file_check_output_directory(a->output_dir, 0, 0));
        stop_install();
        return fetch_run(plan);
    }
    TRY(file_check_directory_path(a->output_dir, 0));
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
    TRY(make_request(&request, a));
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
    .summary = "files from the network: Wikipedia's dump, Google's archives, SQuAD, OSCAR, any URL",
    .details = "Sources: wikipedia, google, squad, oscar. A file is downloaded beside its place, goes on "
               "where it broke off, also when "
               "the same command is started again, is held against its published length and checksum, and "
               "only then gets its "
               "name. What is there already is checked and kept. Without a network the command lists what is "
               "missing and where "
               "it belongs, and ends with 69: put the files there, and start it again.",
    .positional_usage = "SOURCE...",
    .min_positional = 0,
    .max_positional = 16,
    .options = options,
    .args_bytes = sizeof(struct fetch_args),
    .run = run,
};
