#!/usr/bin/env bash
# Opens report pages in headless Chromium. Fails on an error of their script, on a page wider than its window,
# at 1280 and at 390 pixels, and on a chart that shows no values under the pointer. Skips with 77 without
# Chromium.  usage: tools/check_report.sh REPORT.html...
set -euo pipefail
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    . "$(dirname "$0")/../tests/cli/expect.sh"
    skip chromium "there is no Chromium; install chromium"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Runs before the page's own script and records its errors.
before='<script>window.failures = []; window.onerror = (message) => { window.failures.push(message); };</script>'
# Runs after it: moves a pointer over every chart, measures, and sends the verdict to the page around it.
after='<script>
let bare = 0, widest = 0;
const page = document.documentElement, charts = document.querySelectorAll(".plot");
for (const plot of charts) {
    const svg = plot.querySelector("svg"), box = svg.getBoundingClientRect();
    for (const part of [0.02, 0.35, 0.5, 0.65, 0.98]) {
        const at = { clientX: box.left + part * box.width, clientY: box.top + box.height / 2 };
        svg.dispatchEvent(new PointerEvent("pointermove", at));
        bare += plot.querySelectorAll(".tip div").length === 0 || /NaN|undefined/.test(plot.textContent);
        widest = Math.max(widest, page.scrollWidth);
    }
    svg.dispatchEvent(new PointerEvent("pointerleave"));
}
parent.postMessage(`verdict: errors ${failures.length} ${failures.join(" ")}; charts ${charts.length}, places without values ${bare}; ` +
    `width ${widest} of ${page.clientWidth}; ${failures.length + bare === 0 && widest <= page.clientWidth ? "good" : "bad"}`, "*");
</script>'

bad=0
for report in "$@"; do
    awk -v before="$before" -v after="$after" '/^<head>$/ { print; print before; next } /^<\/body>$/ { print after } { print }' \
        "$report" >"$dir/page.html"
    for width in 1280 390; do
        # a window has a least width, so the page stands in a frame of the wanted one
        echo "<title></title><script>onmessage = (event) => { document.title = event.data; };</script>" \
            "<iframe src=page.html width=$width height=800 style='border: 0'></iframe>" >"$dir/frame.html"
        "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom "file://$dir/frame.html" 2>/dev/null >"$dir/dom"
        verdict=$(sed -n 's|.*<title>verdict: \(.*\)</title>.*|\1|p' "$dir/dom")
        echo "$report at $width px: ${verdict:-no verdict}"
        [[ $verdict == *good ]] || bad=1
    done
done
exit "$bad"
