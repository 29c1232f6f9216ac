/* The memory of a run as text and as numbers: of the host alone where the device is the host, of both where
 * the device has memory of its own. */
#include "core/json.h"
#include "report/memory_use.h"
#include "test.h"

static const struct device host = {.name = "cpu", .is_host = true}, gpu = {.name = "gpu"};

static struct memory_use use_of(const struct device *device)
{
    return (struct memory_use){.device = device,
                               .host = {(size_t)1 << 30, (size_t)2 << 30, (size_t)4 << 30},
                               .of_device = {(size_t)8 << 30, (size_t)16 << 30, (size_t)64 << 30}};
}

static void texts_name_what_there_is(void)
{
    char text[MEMORY_USE_TEXT];
    struct memory_use m = use_of(&host);
    memory_use_text(text, &m);
    EXPECT(strcmp(text, "1.000 GiB, at most 2.000 GiB (50.0 % of 4.0 GiB)") == 0, "%s", text);
    m = use_of(&gpu);
    memory_use_text(text, &m);
    EXPECT(strcmp(text,
                  "gpu 8.000 GiB, at most 16.000 GiB (25.0 % of 64.0 GiB); host 1.000 GiB, at most 2.000 "
                  "GiB (50.0 % of 4.0 GiB)") == 0,
           "%s", text);
}

static void expect_number(const json_t *fields, const char *key, json_int_t gib)
{
    const json_t *value = json_object_get(fields, key);
    EXPECT((value != NULL) == (gib > 0), "%s", key);
    EXPECT(value == NULL || json_integer_value(value) == gib << 30, "%s is %lld", key,
           (long long)json_integer_value(value));
}

static void events_have_the_numbers(const struct device *device)
{
    struct memory_use m = use_of(device);
    json_t *fields = json_object();
    memory_use_put(fields, &m);
    expect_number(fields, "memory_bytes", 1);
    expect_number(fields, "memory_peak_bytes", 2);
    expect_number(fields, "memory_limit_bytes", 4);
    expect_number(fields, "device_memory_bytes", device->is_host ? 0 : 8);
    expect_number(fields, "device_memory_peak_bytes", device->is_host ? 0 : 16);
    expect_number(fields, "device_memory_limit_bytes", device->is_host ? 0 : 64);
    json_decref(fields);
}

int main(void)
{
    texts_name_what_there_is();
    events_have_the_numbers(&host);
    events_have_the_numbers(&gpu);
    return 0;
}
