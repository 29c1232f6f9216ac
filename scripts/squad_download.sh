#!/usr/bin/env bash
# SQuAD v1.1 and v2.0 with their evaluation scripts, to HL_DATA_DIR_ROOT/squad (by default data/squad, or the current folder
# if it is called squad), checked against the published checksums.  usage: scripts/squad_download.sh [--dry-run] [flags of kiln
# fetch]
set -euo pipefail
. "$(dirname "$0")/document_script.sh"
data=$(data_folder squad ..)
for word in "$@"; do
    case $word in --dry-run | --dry-run) dry_run=true ;; esac
done
need_kiln
[ ${#missing[@]} -eq 0 ] || tell
show "$kiln" fetch squad --output_dir "$data" "$@"
exec "$kiln" fetch squad --output_dir "$data" "$@"
