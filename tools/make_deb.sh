#!/usr/bin/env bash
# Makes dist/*.deb, for the Debian or Ubuntu that it runs on, from the tracked files as they are; compiled in build-deb/, without tests
# and without libkiln_cuda.so.  lintian judges them where it is installed.  usage: tools/make_deb.sh
set -euo pipefail
export CCACHE_BASEDIR= # with one, ccache gives the compiler paths that -ffile-prefix-map does not know
cd "$(dirname "$0")/.."
source=build-deb/kiln
rm -rf build-deb dist/*.deb
mkdir -p "$source" dist
git -c safe.directory='*' ls-files -z CMakeLists.txt LICENSE ':(glob)*.md' cmake configs debian deploy docs examples include python src tools |
    xargs -0 cp --parents --preserve=timestamps -t "$source"
(cd "$source" && dpkg-buildpackage --build=binary --no-sign --no-pre-clean >../log 2>&1) || { tail -n 30 build-deb/log >&2 && exit 1; }
cp build-deb/*.deb dist
! command -v lintian >/dev/null || lintian --fail-on error,warning --allow-root dist/*.deb
ls -l dist/*.deb
