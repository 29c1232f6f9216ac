# A server of the files below $dir/www, for scripts that fetch; sourced with $kiln and $dir set, after expect.sh.

# need_curl: skips in a build that cannot fetch or unpack.
need_curl()
{
    ! "$kiln" doctor --dry_run | grep -E '^(network|archives) *not built in' >/dev/null || skip curl \
        "this build has no libcurl or no libarchive; install libcurl4-openssl-dev and libarchive-dev, and build without KILN_CURL=OFF and KILN_ARCHIVE=OFF"
}

# start_server: $server is its address, $server_pid its process, which the caller ends.
start_server()
{
    unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
    mkdir -p "$dir/www"
    "$(dirname "$kiln")/tests/serve_files" "$dir/www" "$dir/port" &
    server_pid=$!
    await "$server_pid" test -s "$dir/port"
    server=http://127.0.0.1:$(cat "$dir/port")
}

# publish URL [TEXT]: what a mirror has of it: the text, or standard input
publish()
{
    local file=$dir/www/${1#*://}
    [ "${file%/}" = "$file" ] || file+=index # as the server takes a path that ends with a slash
    mkdir -p "$(dirname "$file")"
    if [ $# -gt 1 ]; then printf '%s' "$2" >"$file"; else cat >"$file"; fi
}
