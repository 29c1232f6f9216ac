#!/usr/bin/env bash
# libkiln.so.0 as programs get it from an installation that was moved: by the flags of pkg-config, by CMake's find_package, and by
# dlopen.  It shows kiln_... only, and finds libkiln_mpi.so and libkiln_cuda.so beside it whatever program has loaded it.
. "$(dirname "$0")/begin.sh"
build=$(dirname "$kiln")
[ -e "$build/libkiln.so.0" ] || skip libkiln "this build is static; build without KILN_STATIC=ON"
export PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig
unset MAKEFLAGS CPATH C_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH

"$(dirname "$0")/../../tools/install.sh" "$dir/first" "$build" >/dev/null
mv "$dir/first" "$dir/prefix"
library=$dir/prefix/lib/libkiln.so.0
[ "$(realpath "$library")" = "$(realpath "$dir/prefix/lib/libkiln.so")" ] || fail "libkiln.so is another library"
readelf -d "$library" | grep 'SONAME.*\[libkiln.so.0\]' >/dev/null || fail "$(readelf -d "$library")"
! readelf -d "$library" | grep -E 'TEXTREL|RPATH|RUNPATH' || fail "the library has text relocations or a path"
strangers=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /^kiln_[a-z_0-9]*@@KILN_0$/')
[ -z "$strangers" ] || fail "the library also shows $strangers"

cat >"$dir/own.c" <<'C'
#include <kiln/kiln.h>
#include <stdio.h>
void log_error(void) {} /* a name that kiln uses too */
int main(void)
{
    struct kiln_model *model;
    struct kiln_model_options options = kiln_model_defaults();
    options.device = "cuda";
    log_error();
    puts(kiln_version());
    puts(kiln_model_open_on(&model, "/", &options).message);
    const struct kiln_setting settings[] = {
        {"config_file", "mini"}, {"input_dir", "none"}, {"output_dir", "none"}, {"vocab_file", "none"}, {"dry_run", NULL}};
    struct kiln_string event;
    struct kiln_run *run;
    bool more;
    puts(kiln_run_open(&run, "pretrain", settings, 5).message);
    do { /* a configuration that is installed beside the library */
        struct kiln_status s = kiln_run_next_event(run, &event, -1, &more);
        puts(more ? event.bytes : s.message);
        kiln_string_free(&event);
    } while (more);
    kiln_run_close(run);
    return 0;
}
C
read -ra flags <<<"$(pkg-config --cflags --libs kiln)"
${CC:-cc} -o "$dir/own" "$dir/own.c" "${flags[@]}" || fail "a program does not link"
LD_LIBRARY_PATH=$dir/prefix/lib "$dir/own" >"$dir/said" || fail "a program does not run"
[ "$(head -1 "$dir/said")" = "$(pkg-config --modversion kiln)" ] || fail "$(cat "$dir/said")"

grep -q 'model: bert_mini.json: 4 layers' "$dir/said" || fail "no run: $(cat "$dir/said")"

# by CMake, which also sets the path to run with
mkdir "$dir/cmake"
cat >"$dir/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.15)
project(own LANGUAGES C)
find_package(kiln 0.1 REQUIRED)
add_executable(own ../own.c)
target_link_libraries(own PRIVATE kiln::kiln)
CMAKE
sanitizer=$(grep -o -- '-fsanitize[^ ]*' "$PKG_CONFIG_PATH/kiln.pc" || true)
CFLAGS=$sanitizer cmake -S "$dir/cmake" -B "$dir/cmake/build" -DCMAKE_PREFIX_PATH="$dir/prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/cmake/build" >>"$dir/log" 2>&1 || fail "find_package: $(cat "$dir/log")"
"$dir/cmake/build/own" | cmp - "$dir/said" || fail "a program of CMake"

# by dlopen, from a program that knows nothing of kiln, and with the companions that lie beside the library
cat >"$dir/open.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <kiln/engine.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    struct kiln_status (*open)(struct kiln_model **, const char *, const struct kiln_model_options *);
    *(void **)&open = dlsym(library, "kiln_model_open_on");
    struct kiln_model *model;
    struct kiln_model_options options = {.size = sizeof options, .device = "cuda"};
    puts(open(&model, "/", &options).message);
    return 0;
}
C
read -ra flags <<<"$(pkg-config --cflags kiln) $sanitizer"
${CC:-cc} -o "$dir/open" "$dir/open.c" "${flags[@]}" -ldl
for name in libkiln_cuda.so libkiln_mpi.so; do
    printf 'not a library' >"$dir/prefix/lib/$name"
done
"$dir/open" "$library" >"$dir/said" || fail "$(cat "$dir/said")"
grep -q "no CUDA: $dir/prefix/lib/libkiln_cuda.so" "$dir/said" || fail "a companion is not found: $(cat "$dir/said")"
