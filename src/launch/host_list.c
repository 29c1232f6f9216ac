#define _GNU_SOURCE
#include "launch/host_list.h"

#include "core/array.h"
#include "core/base64.h"
#include "core/json.h"
#include "launch/line_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void host_list_fini(struct host_list *l)
{
    free(l->hosts);
    *l = (struct host_list){0};
}

struct status host_list_check_name(const char *name, const char *source)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t n = strlen(name);
    FAIL_IF(n == 0 || n >= HOST_NAME_BYTES || name[0] == '-' || name[strspn(name, allowed)] != '\0',
            STATUS_USAGE,
            "%s: '%.80s' is not a host: give a name of 1 to %d letters, digits and .-_, or an IPv4 address; "
            "set the user in ssh_config and the port with --ssh_port",
            source, name, HOST_NAME_BYTES - 1);
    return status_ok();
}

int host_list_find(const struct host_list *l, const char *name)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->hosts[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

struct status host_list_add(struct host_list *l, const char *name, int64_t n_slots, const char *source)
{
    TRY(host_list_check_name(name, source));
    FAIL_IF(n_slots < 1 || n_slots > HOST_MAX_SLOTS, STATUS_USAGE,
            "%s: %s has %" PRId64 " slots, but must have 1 to %d", source, name, n_slots, HOST_MAX_SLOTS);
    FAIL_IF(host_list_find(l, name) >= 0, STATUS_USAGE, "%s: %s occurs twice; give all its slots in one line",
            source, name);
    FAIL_IF(!ARRAY_RESERVE(l->hosts, l->capacity, l->n + 1), STATUS_MEMORY, "out of memory for %d hosts",
            l->n + 1);
    struct host *h = &l->hosts[l->n++];
    *h = (struct host){.n_slots = (int)n_slots};
    snprintf(h->name, sizeof h->name, "%s", name);
    for (int i = 0; i < h->n_slots; i++) {
        h->slots[i] = (int16_t)i;
    }
    return status_ok();
}

/* One line of a hostfile, which is cut up. */
static struct status add_line(void *context, char *line, const char *source)
{
    char *rest, *end;
    line[strcspn(line, "#")] = '\0';
    const char *name = strtok_r(line, " \t", &rest);
    if (name == NULL) {
        return status_ok();
    }
    const char *slots = strtok_r(NULL, " \t", &rest), *more = strtok_r(NULL, " \t", &rest);
    bool has_number = slots != NULL && strncmp(slots, "slots=", 6) == 0;
    errno = 0;
    long long n = has_number ? strtoll(slots + 6, &end, 10) : 0;
    FAIL_IF(!has_number || end == slots + 6 || *end != '\0' || errno != 0 || more != NULL, STATUS_USAGE,
            "%s: '%.60s%s%.60s' is not a host and its slots; write it as \"%.60s slots=8\"", source, name,
            slots == NULL ? "" : " ",
            more != NULL    ? more
            : slots == NULL ? ""
                            : slots,
            name);
    return host_list_add(context, name, n, source);
}

struct status host_list_read(struct host_list *l, const char *path)
{
    TRY(line_file_read(path, "--hostfile", add_line, l));
    return l->n > 0
               ? status_ok()
               : status_error(STATUS_USAGE, "--hostfile %s names no host; a line is \"HOST slots=8\"", path);
}

/* The slots of the last host of the list, from a JSON array of rising numbers. */
static struct status set_slots(struct host *h, const json_t *slots)
{
    for (size_t i = 0; i < json_array_size(slots); i++) {
        const json_t *slot = json_array_get(slots, i);
        json_int_t number = json_is_integer(slot) ? json_integer_value(slot) : -1;
        FAIL_IF(number < 0 || number > INT16_MAX || (i > 0 && number <= h->slots[i - 1]), STATUS_USAGE,
                "--world_info: the slots of %s must be whole numbers in ascending order", h->name);
        h->slots[i] = (int16_t)number;
    }
    return status_ok();
}

struct status host_list_decode(struct host_list *l, const char *world_info)
{
    static const char source[] = "--world_info, decoded from base64,";
    struct buf decoded = {0};
    json_t *hosts = NULL, *slots;
    const char *name;
    if (!base64_decode(&decoded, world_info)) {
        buf_clear(&decoded); /* the empty text is not JSON, so it is refused below */
    }
    struct status s = buf_status(&decoded);
    s = failed(s) ? s : json_parse(&hosts, buf_text(&decoded), decoded.n, source);
    buf_fini(&decoded);
    if (!failed(s) && json_object_size(hosts) == 0) {
        s = status_error(STATUS_USAGE, "%s must be an object of hosts and their slots", source);
    }
    json_object_foreach(hosts, name, slots)
    {
        s = failed(s) ? s : host_list_add(l, name, (int64_t)json_array_size(slots), source);
        s = failed(s) ? s : set_slots(&l->hosts[l->n - 1], slots);
    }
    json_decref(hosts);
    s.code = s.code == STATUS_DATA ? STATUS_USAGE : s.code;
    return s;
}

int64_t host_list_n_ranks(const struct host_list *l)
{
    int64_t n = 0;
    for (int i = 0; i < l->n; i++) {
        n += l->hosts[i].n_slots;
    }
    return n;
}

void host_list_remove(struct host_list *l, int index)
{
    memmove(&l->hosts[index], &l->hosts[index + 1], (size_t)(l->n - index - 1) * sizeof l->hosts[0]);
    l->n--;
}
