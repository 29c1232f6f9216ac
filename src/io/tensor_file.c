#include "io/tensor_file.h"

#include <stdlib.h>
#include <string.h>

static const char index_ending[] = ".index";

const char *tensor_file_format_name(enum tensor_file_format format)
{
    static const char *const names[] = {[TENSOR_FILE_SAFETENSORS] = "safetensors",
                                        [TENSOR_FILE_TORCH] = "torch.save",
                                        [TENSOR_FILE_BUNDLE] = "TensorFlow checkpoint",
                                        [TENSOR_FILE_GGUF] = "GGUF"};
    return names[format];
}

/* Whether the path is the prefix of a bundle or its index; sets the prefix. */
static bool find_prefix(char prefix[FILE_PATH_BYTES], const char *path)
{
    char index[FILE_PATH_BYTES + sizeof index_ending];
    size_t n = strlen(path);
    size_t n_ending = sizeof index_ending - 1;
    if (n >= FILE_PATH_BYTES) {
        return false;
    }
    if (n > n_ending && strcmp(path + n - n_ending, index_ending) == 0) {
        n -= n_ending;
    }
    memcpy(prefix, path, n);
    prefix[n] = '\0';
    snprintf(index, sizeof index, "%s%s", prefix, index_ending);
    return (path[n] != '\0' || !file_exists(path)) && file_exists(index);
}

/* Sets the tensors of an open file. */
static struct status list(struct tensor_file *f, const struct stored_tensor *tensors, int n)
{
    f->tensors = tensors;
    f->n = n;
    return status_ok();
}

static struct status open_as(struct tensor_file *f, enum tensor_file_format format, const char *path)
{
    f->format = format;
    switch (format) {
    case TENSOR_FILE_TORCH:
        TRY(torch_file_open(&f->torch, path));
        return list(f, f->torch.tensors, f->torch.n);
    case TENSOR_FILE_GGUF: TRY(gguf_file_open(&f->gguf, path)); return list(f, f->gguf.tensors, f->gguf.n);
    case TENSOR_FILE_BUNDLE:
        TRY(tf_bundle_open(&f->bundle, path));
        return list(f, f->bundle.tensors, f->bundle.n);
    default:
        TRY(safetensors_open(&f->safetensors, path));
        return list(f, f->safetensors.entries, f->safetensors.n);
    }
}

bool tensor_file_recognize(enum tensor_file_format *format, const void *bytes, size_t n)
{
    *format = torch_file_is_one(bytes, n)  ? TENSOR_FILE_TORCH
              : gguf_file_is_one(bytes, n) ? TENSOR_FILE_GGUF
                                           : TENSOR_FILE_SAFETENSORS;
    return *format != TENSOR_FILE_SAFETENSORS;
}

static struct status open_by_beginning(struct tensor_file *f, const char *path)
{
    struct file_map map;
    enum tensor_file_format format;
    TRY(file_map_open(&map, path));
    (void)tensor_file_recognize(&format, map.data, map.n);
    file_map_close(&map);
    return open_as(f, format, path);
}

struct status tensor_file_open(struct tensor_file *f, const char *path)
{
    char prefix[FILE_PATH_BYTES];
    *f = (struct tensor_file){0};
    struct status s =
        find_prefix(prefix, path) ? open_as(f, TENSOR_FILE_BUNDLE, prefix) : open_by_beginning(f, path);
    if (failed(s)) {
        tensor_file_close(f);
    }
    return s;
}

struct status tensor_file_check(const struct tensor_file *f, const char *path)
{
    switch (f->format) {
    case TENSOR_FILE_SAFETENSORS: return file_map_check(&f->safetensors.map, path);
    case TENSOR_FILE_TORCH: return file_map_check(&f->torch.map, path);
    case TENSOR_FILE_GGUF: return file_map_check(&f->gguf.map, path);
    case TENSOR_FILE_BUNDLE: break;
    }
    TRY(file_map_check(&f->bundle.index, path));
    for (int i = 0; i < f->bundle.n_shards; i++) {
        if (f->bundle.shards[i].data != NULL) {
            TRY(file_map_check(&f->bundle.shards[i], path));
        }
    }
    return status_ok();
}

void tensor_file_close(struct tensor_file *f)
{
    switch (f->format) {
    case TENSOR_FILE_SAFETENSORS: safetensors_close(&f->safetensors); break;
    case TENSOR_FILE_TORCH: torch_file_close(&f->torch); break;
    case TENSOR_FILE_BUNDLE: tf_bundle_close(&f->bundle); break;
    case TENSOR_FILE_GGUF: gguf_file_close(&f->gguf); break;
    }
    *f = (struct tensor_file){0};
}
