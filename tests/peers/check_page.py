"""The page of `kiln serve` in a browser: every tab with its result by axe-core, light, dark and narrow; keys alone; what is
never done (a request to another host, markup of text, a run that nobody asked for); a key; a server that goes and comes back;
a run that grows.
usage: check_page.py KILN DIR BROWSER, where DIR has the models of tests/golden/hf_dirs and decoders"""
import atexit
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from urllib.parse import urlencode

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

kiln, directory, browser_path = sys.argv[1:]
os.environ["OMP_NUM_THREADS"] = "1"
CONTEXT = "A man had a dog. A big dog had bad food and ran off 🐕, and a mad man had an old cab: no food, no home."
MARKUP = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
TABS = {  # what is written, and a part of what is then said
    "generate": ({"prompt": "a b", "max_tokens": "8"}, "8 tokens in "),
    "ask": ({"context": CONTEXT, "question": "had a man?"}, "3 answers in "),
    "fill": ({"text": "a [MASK] had a [MASK]"}, "2 gaps in "),
    "embed": ({"texts": "a mad dog\na man and a dog\n\nice"}, "3 texts in "),
    "classify": ({"text": "a mad dog"}, "3 labels in "),
    "tag": ({"text": "a man and a dog, in a big cage"}, " in "),
}
MODELS = {"generate": "gpt2", "ask": "question_answering", "fill": "masked_lm", "embed": "encoder", "classify": "single", "tag": "tokens"}


class Server:
    def __init__(self, port, *flags):
        self.log = open(f"{directory}/page_log", "w+")
        self.process = subprocess.Popen([kiln, "serve", "--port", str(port), *flags], stderr=self.log)
        atexit.register(self.process.kill)
        while True:  # time: between two looks, of any number
            time.sleep(0.02)
            with open(self.log.name) as log:
                found = re.search(r"serving on (http://\S+:(\d+))", log.read())
            if found:
                self.url, self.port = found[1] + "/", int(found[2])
                return
            assert self.process.poll() is None, open(self.log.name).read()

    def stop(self):
        self.process.terminate()
        assert self.process.wait() == 0
        self.log.close()


def open_page(browser, url, **options):
    """A page that fails on a message of the console, on an error and on a request to elsewhere."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.wrongs, page.posted = [], []
    host = url.split("/")[2]

    def ask(request):
        if request.method == "POST":
            page.posted.append(request.url)
        if request.url.split("/")[2] != host:
            page.wrongs.append(f"a request to {request.url}")

    page.on("request", ask)
    page.on("pageerror", lambda error: page.wrongs.append(str(error)))
    page.on("console", lambda m: page.wrongs.append(m.text) if "Failed to load resource" not in m.text else None)
    page.goto(url)
    return page


def close_page(page):
    assert page.wrongs == [], page.wrongs
    page.context.close()


def run(page, tab):
    values, said = TABS[tab]
    page.click(f"#tab-{tab}")
    page.select_option("#model", MODELS[tab])
    for details in page.locator(f"#{tab} details").all():
        details.evaluate("d => { d.open = true; }")
    for name, text in values.items():
        page.fill(f"#{tab} [name={name}]", text)
    page.click(f"#{tab} .run")
    await_said(page, tab, said)


def await_said(page, tab, part):
    try:
        page.wait_for_function("([tab, part]) => document.querySelector(`#${tab} .said`).textContent.includes(part)", arg=[tab, part])
    except Exception:
        raise AssertionError(f"{tab}: {page.inner_text(f'#{tab} .said')}") from None


def check_axe(page, what):
    found = Axe().run(page)
    assert found.violations_count == 0, f"{what}: {found.generate_report()}"
    assert any(p["id"] == "color-contrast" for p in found.response["passes"]), what
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{what}: {wide} pixels too wide"


def check_looks(browser, url):
    looks = [("light", 1100), ("dark", 1100), ("light", 320), ("dark", 320)]
    for scheme, width in looks:
        page = open_page(browser, url, color_scheme=scheme, viewport={"width": width, "height": 800})
        page.wait_for_selector("#tab-generate:visible")
        for tab in TABS:
            run(page, tab)
            check_axe(page, f"{tab}, {scheme}, {width}")
        page.click("#tab-watch")
        page.wait_for_selector("#charts figure:visible path.line")
        page.wait_for_selector("#samples .sample")
        check_axe(page, f"watch, {scheme}, {width}")
        close_page(page)
    print(f"page: {len(looks) * (len(TABS) + 1)} looks without a violation")


def check_results(browser, url):
    page = open_page(browser, url)
    page.wait_for_selector("#tab-generate:visible")
    for tab in TABS:
        run(page, tab)
        assert page.get_attribute(f"#{tab} .result", "aria-live") == "polite"
        assert page.get_attribute(f"#{tab} .result", "aria-busy") == "false"
        check_programs(page, tab)
    assert page.inner_text("#generate .text").startswith("a b")

    # a place that an answer names is the one marked, behind a character of two UTF-16 units too
    page.click("#tab-ask")
    page.click("#ask .bars button >> nth=0")
    assert page.inner_text("#ask mark.chosen") == page.inner_text("#ask .bars button >> nth=0 >> span >> nth=0")
    assert page.inner_text("#ask .place") == CONTEXT
    assert page.evaluate("document.activeElement.tagName") == "MARK"

    # a word goes into its gap
    page.click("#tab-fill")
    word = page.inner_text("#fill .bars >> nth=1 >> button >> nth=0 >> span >> nth=0")
    page.click("#fill .bars >> nth=1 >> button >> nth=0")
    assert page.input_value("#fill [name=text]") == f"a [MASK] had a {word}"
    page.click("#fill .mask")
    assert page.input_value("#fill [name=text]").count("[MASK]") == 2

    # each text is nearest to itself, but another is named
    page.click("#tab-embed")
    cells = page.locator("#embed td:not(:empty)").all_inner_texts()
    assert len(cells) == 9 and [cells[i] for i in (0, 4, 8)] == ["1.000"] * 3, cells
    assert page.locator("#embed td.nearest").count() == 3
    page.click("#tab-tag")
    assert page.locator("#tag .tagged small").count() == page.locator("#tag .tagged").count() > 0

    # text is not markup
    page.click("#tab-ask")
    page.fill("#ask [name=context]", MARKUP + " A man had a dog.")
    page.click("#ask .run")
    page.wait_for_function("() => document.querySelector('#ask .place')?.textContent.includes('<script>')")
    assert page.evaluate("window.hit") is None and page.locator("#ask img").count() == 0

    # an error is said
    page.click("#tab-generate")
    page.fill("#generate [name=max_tokens]", "90000")
    page.click("#generate .run")
    await_said(page, "generate", "It failed: ")
    close_page(page)


def check_programs(page, tab):
    curl, python = page.locator(f"#{tab} pre").all_text_contents()
    answer = subprocess.run(["bash", "-c", f"{curl} -sS --fail-with-body"], capture_output=True, text=True, check=True).stdout
    assert answer.startswith("data: " if tab == "generate" else ("{", "[")), answer
    compile(python, tab, "exec")
    module = "openai" if "openai" in python else "requests"
    if importlib.util.find_spec(module):
        subprocess.run([sys.executable, "-c", python], check=True, capture_output=True)
    else:
        print(f"left out[page]: the Python program of {tab}: there is no module {module}")


def focused(page):
    return page.evaluate("""() => { const e = document.activeElement, s = getComputedStyle(e);
        return [e.name || e.id || e.className || e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]; }""")


def check_keys(browser, url):
    page = open_page(browser, url)
    page.wait_for_selector("#tab-generate:visible")
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        name, is_seen = focused(page)
        assert is_seen, f"nothing shows that {name} has the focus"
        reached.append(name)
    assert reached[:4] == ["model", "tab-generate", "prompt", "SUMMARY"] and "run" in reached, reached
    page.focus("#tab-generate")
    for key, tab in [("ArrowRight", "ask"), ("End", "watch"), ("ArrowRight", "generate"), ("ArrowLeft", "watch"), ("Home", "generate")]:
        page.keyboard.press(key)
        assert focused(page)[0] == f"tab-{tab}" and page.is_visible(f"#{tab}"), (key, tab)
    page.keyboard.press("Tab")
    page.keyboard.type("a b\n")
    assert page.posted == []  # Enter is a new line
    held = []
    page.route("**/v1/completions", lambda route: held.append(route))  # it never answers
    page.keyboard.press("Control+Enter")
    await_said(page, "generate", "Running.")
    page.keyboard.press("Escape")
    await_said(page, "generate", "Stopped.")
    held[0].abort()
    page.unroute("**/v1/completions")
    page.evaluate("() => { document.querySelector('#generate [name=max_tokens]').value = 8; }")
    page.focus("#generate [name=prompt]")
    page.keyboard.press("Control+Enter")
    await_said(page, "generate", "8 tokens in ")
    close_page(page)


def check_address(browser, url):
    state = {"tab": "ask", "model": "question_answering", "context": CONTEXT, "question": "had a man?", "top_k": "2"}
    options = {"reduced_motion": "reduce"}
    page = open_page(browser, f"{url}#{urlencode(state)}", **options)
    page.wait_for_selector("#ask:visible")
    page.evaluate("() => { Element.prototype.scrollIntoView = (o) => { window.motion = o.behavior; }; }")
    assert page.input_value("#ask [name=context]") == CONTEXT and page.input_value("#model") == "question_answering"
    page.wait_for_timeout(500)  # time: no request may come; a slow machine shows fewer, not more
    assert page.posted == [], page.posted
    page.click("#ask .run")
    await_said(page, "ask", "2 answers in ")
    page.click("#ask .bars button >> nth=0")
    assert page.evaluate("window.motion") == "auto"
    page.fill("#ask [name=question]", "what?")
    page.wait_for_function("() => location.hash.includes('question=what')")
    close_page(page)


def check_watch(browser, url):
    page = open_page(browser, f"{url}#tab=watch")
    page.wait_for_selector("#charts figure:visible path.line")
    assert page.locator("#runs input[type=checkbox]").count() == 2
    count = "() => document.querySelector('#chart-lm_loss [data-run=first].line').getAttribute('d').split(' ').length"
    before = page.evaluate(count)
    write_steps("first", 40, 60)
    page.wait_for_function(f"(n) => ({count})() > n", arg=before)
    page.hover("#chart-lm_loss svg")
    assert "first" in page.inner_text("#chart-lm_loss .tip") and "second" in page.inner_text("#chart-lm_loss .tip")
    page.locator("#runs input").first.uncheck()
    page.wait_for_function("() => !document.querySelector('[data-run=first]')")
    page.locator("#runs input").first.check()

    # a run that is resumed at step 10 repeats what is behind
    with open(f"{directory}/first/log.jsonl", "a") as log:
        log.write('{"event":"start","time":9,"phase":1,"step":10,"global_step":10,"last_step":60}\n')
    write_steps("first", 11, 12)
    page.wait_for_function("() => document.querySelector('#runs td.step').textContent === '12'")
    page.wait_for_function(f"() => ({count})() < 30")
    close_page(page)


def check_key(browser, port):
    with open(f"{directory}/page_keys", "w") as keys:
        keys.write("sesame\n")
    server = Server(port, "--model", f"{directory}/gpt2", "--api_key_file", keys.name)
    page = open_page(browser, server.url)
    page.wait_for_selector("#key:visible")
    check_axe(page, "key")
    page.fill("[name=key]", "sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#tab-generate:visible")
    page.fill("#generate [name=prompt]", "a b")
    page.evaluate("() => { document.querySelector('#generate [name=max_tokens]').value = 8; }")
    page.keyboard.press("Control+Enter")
    await_said(page, "generate", "8 tokens in ")
    page.wait_for_function("() => location.hash.includes('prompt=')")
    programs = "".join(page.locator("#generate pre").all_text_contents())
    kept = page.evaluate("[location.href, document.cookie, JSON.stringify(localStorage)].join()")
    assert "sesame" not in programs + kept and "KILN_KEY" in programs
    assert "sesame" in page.evaluate("JSON.stringify(sessionStorage)")
    server.stop()
    return page, server.port


def check_return(page, port):
    """The server of `page` is gone."""
    page.wait_for_function("() => document.querySelector('#gone').textContent.includes('does not answer')")
    assert page.input_value("#generate [name=prompt]") == "a b"
    server = Server(port, "--model", f"{directory}/gpt2", "--api_key_file", f"{directory}/page_keys")
    page.wait_for_function("() => document.querySelector('#gone').textContent.includes('is back')")
    page.click("#generate .run")
    await_said(page, "generate", "8 tokens in ")
    close_page(page)
    server.stop()


def write_steps(run, first, last):
    with open(f"{directory}/{run}/log.jsonl", "a") as log:
        for step in range(first, last + 1):
            line = {"event": "step", "time": 1.5 + step, "phase": 1, "step": step, "global_step": step, "loss": 5 - step / 50, "lm_loss": 5 - step / 50,
                    "lm_accuracy": step / 100, "grad_norm": 1, "learning_rate": 1e-4, "tokens_per_second": 1000 + step}
            log.write(json.dumps(line, separators=(",", ":")) + "\n")
            if step % 10 == 0:
                log.write(json.dumps({"event": "evaluation", "phase": 1, "step": step, "global_step": step, "lm_loss": 5 - step / 60, "lm_accuracy": step / 90,
                                      "unigram_lm_loss": 4.5}, separators=(",", ":")) + "\n")


def first_paint(browser, url):
    times = []
    for _ in range(5):
        page = open_page(browser, url)
        page.wait_for_selector("#tab-generate:visible")
        times.append(page.evaluate("performance.getEntriesByType('paint').find((e) => e.name === 'first-contentful-paint').startTime"))
        close_page(page)
    return sorted(times)[len(times) // 2]


def main():
    for name in ("first", "second"):
        os.mkdir(f"{directory}/{name}")
        write_steps(name, 1, 30)
    os.rename(f"{directory}/runs/a/ckpt_30", f"{directory}/first/ckpt_30")
    models = [f"--model={directory}/{name}" for name in MODELS.values()]
    server = Server(0, *models, "--watch", f"{directory}/first", "--watch", f"{directory}/second", "--watch_prompt", "a b")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for check in (check_looks, check_results, check_keys, check_address, check_watch):
            check(browser, server.url)
        print(f"page: the first paint after {first_paint(browser, server.url):.0f} ms")
        server.stop()
        check_return(*check_key(browser, 0))
        browser.close()


main()
