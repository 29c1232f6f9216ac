#!/usr/bin/env bash
# Shows that a build depends on its source alone: the commit that is checked out is built again in a folder of another name, without
# ccache, and its packages have the bytes of those in dist/, which tools/make_deb.sh made.  usage: tools/check_reproducible.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -c safe.directory='*' clone --quiet --no-local "$PWD" "$work/another/name"
CCACHE_DISABLE=1 "$work/another/name/tools/make_deb.sh" >/dev/null
for file in dist/*.deb; do
    cmp "$file" "$work/another/name/$file"
    echo "same bytes: $file, sha256 $(sha256sum "$file" | cut -c1-16)"
done
