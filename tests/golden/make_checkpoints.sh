#!/bin/bash
# Makes tests/golden/checkpoints.safetensors: checkpoints of versions 1, 2 and 3 of the format, as the builds wrote them that
# knew no other.  One file holds them all: the tensor "ckpt_1/config.json" (U8) is a file of a directory.  The values are those
# of tests/fixtures/checkpoint_case.h: ckpt_1 has nothing optional, ckpt_2 the choices of a device, ckpt_3 choices and histories
# of fp8, ckpt_4 histories alone, at the end of a phase.
#
# usage: make_checkpoints.sh TREE   (a checkout of kiln at commit 416cf09, built in TREE/build without CUDA or with)
set -eu
tree=$1
out=$(cd "$(dirname "$0")" && pwd)/checkpoints.safetensors
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/make.c" <<'C'
#include "checkpoint_case.h"

enum { N_FILES = 9, N_STEPS = 4 };

static const char *const names[N_FILES] = {"model.safetensors", "optimizer.safetensors", "config.json",
                                           "vocab.txt",         "tokenizer_config.json", "trainer_state.json",
                                           "cublaslt.cache",    "fp8.safetensors",       "manifest.json"};

int main(int argc, char **argv)
{
    static struct checkpoint_case k;
    static struct file_map maps[N_STEPS * N_FILES];
    static char tensors[N_STEPS * N_FILES][64];
    struct safetensors_item items[N_STEPS * N_FILES];
    struct safetensors_writer w;
    int n = 0;
    EXPECT(argc == 2, "no place to write to");
    case_init(&k);
    for (int step = 1; step <= N_STEPS; step++) {
        struct checkpoint_contents c = case_contents(&k, step);
        if (step == 2 || step == 3) {
            c.choices = "kiln products 1\n";
            c.choices_bytes = strlen(c.choices);
        }
        if (step >= 3) {
            c.histories = tensor_2d(case_histories, DTYPE_F32, CASE_HISTORIES, 2);
        }
        c.phase_end = step == 4;
        EXPECT_OK(checkpoint_save(k.directory, &c));
        for (int i = 0; i < N_FILES; i++) {
            char path[CHECKPOINT_PATH_BYTES];
            EXPECT_OK(checkpoint_path(path, "%s/ckpt_%d/%s", k.directory, step, names[i]));
            if (file_exists(path)) {
                EXPECT_OK(file_map_open(&maps[n], path));
                snprintf(tensors[n], sizeof tensors[n], "ckpt_%d/%s", step, names[i]);
                items[n] = (struct safetensors_item){
                    tensors[n], tensor_1d((void *)maps[n].data, DTYPE_U8, (int64_t)maps[n].n)};
                n++;
            }
        }
    }
    EXPECT_OK(safetensors_writer_open(&w, argv[1], items, n));
    for (int i = 0; i < n; i++) {
        safetensors_writer_put(&w, items[i].shape);
        file_map_close(&maps[i]);
    }
    EXPECT_OK(safetensors_writer_commit(&w));
    case_fini(&k);
    return 0;
}
C
# What the program needs of the library: rooms without oneDNN, BLAS or CUDA.
${CC:-cc} -std=c17 -D_GNU_SOURCE -DKILN_VERSION='"0.1.0"' -I"$tree/src" -I"$tree/tests" -I"$tree/tests/fixtures" \
    "$dir/make.c" "$tree/build/libkiln.a" -ljansson -lutf8proc -lm -lpthread -ldl -fopenmp -o "$dir/make"
"$dir/make" "$out"
