"""metrics_format: the rules of Prometheus' text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats), as far as a scraper
relies on them."""
import re

from server import expect

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)$')


def parse(text):
    """{family: (type, {name and labels: value})}; fails where the text breaks a rule."""
    expect(text.endswith("\n"), "the last line has no end")
    families, helps = {}, set()
    name = None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            expect(name not in helps and len(line.split(" ", 3)) == 4, f"HELP: {line}")
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            expect(name in helps and name not in families, f"TYPE: {line}")
            expect(kind in ("counter", "gauge", "histogram"), line)
            families[name] = (kind, {})
        else:
            m = SAMPLE.match(line)
            expect(m, f"no sample: {line!r}")
            suffixes = ("_bucket", "_sum", "_count") if families[name][0] == "histogram" else ("",)
            expect(m[1] in [name + s for s in suffixes], f"{line} under {name}")
            key = m[1] + "{" + (m[2] or "") + "}"
            expect(key not in families[name][1], f"twice: {line}")
            families[name][1][key] = float(m[3])
    for name, (kind, samples) in families.items():
        expect(samples, f"{name} has no sample")
        if kind == "histogram":
            check_histogram(name, samples)
    return families


def check_histogram(name, samples):
    buckets = [(float(re.search(r'le="([^"]+)"', k)[1]), v) for k, v in samples.items() if k.startswith(name + "_bucket")]
    expect(buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets), f"{name} is not cumulative")
    expect(buckets[-1][0] == float("inf") and buckets[-1][1] == samples[name + "_count{}"], f"{name} and its +Inf")
    expect(name + "_sum{}" in samples, f"{name} has no sum")


def value(families, name, labels=""):
    return families[name][1][name + "{" + labels + "}"]
