#!/usr/bin/env bash
# kiln serve as it is operated and as it is misused: tests/service, by the models of goldens.
. "$(dirname "$0")/begin.sh"
unset "${!KILN_SERVE_@}" LISTEN_PID LISTEN_FDS NOTIFY_SOCKET
! "$kiln" doctor --dry_run | grep '^server *not built in' >/dev/null ||
    skip microhttpd "this build has no libmicrohttpd; install libmicrohttpd-dev, and build without KILN_MICROHTTPD=OFF"
command -v python3 >/dev/null || skip python "there is no python3 on PATH; install python3"
for golden in decoders hf_dirs classify; do unpack_golden $golden; done
for test in operation bad_input; do
    "${patient[@]}" python3 "$(dirname "$0")/../service/test_$test.py" "$kiln" "$dir"
done
