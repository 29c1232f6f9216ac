#!/usr/bin/env python3
"""Compares kiln's text of the pages of a dump with WikiExtractor's, and counts markup that is left in kiln's.

Per article, and 5 words in a row: the share of WikiExtractor's that kiln's text has ("kept"), and of kiln's that
WikiExtractor's has ("agreed"), each with its count.  Words are runs of letters and digits (Python's \\w+), and with
--punctuation whatever is between blanks.  Medians are over articles of more than 200 words in both texts.

The oracle is WikiExtractor 3.0.6 from PyPI with the rules of the version that kiln replaces: elements dropped, tags
stripped and titles of sections as in shared/spec/reference.md, section 4.2 (--as_published: as it is on PyPI). Its regular
expressions are patched for Python 3.11; templates are not expanded, as their pages are not in the dump.

usage: compare_wikitext.py DUMP.xml.bz2 build/tests/convert_wikitext [--worst 20] [--show TITLE] [--punctuation] [--as_published]
       compare_wikitext.py DUMP.xml.bz2 build/tests/convert_wikitext --rate 10      (bench/wikitext.sh: MB/s of both, on one core)
"""
import argparse
import bz2
import collections
import html
import importlib.util
import re
import statistics
import subprocess
import sys
import time
import types

DISCARDED = """gallery timeline noinclude pre table tr td th caption div form input select option textarea ul li ol dl dt dd menu
dir ref references img imagemap source small sub sup indicator""".split()
STRIPPED = """abbr b big blockquote center cite em font h1 h2 h3 h4 hiero i kbd p plaintext s span strike strong tt u var a""".split()
RESIDUES = ["[[", "]]", "{{", "}}", "<ref", "{|", "|}", "&nbsp;", "&amp;", "&lt;", "&quot;", "|thumb", "__NOTOC__", "__TOC__", "''", "==", "</",
            "<br", "<math", "<!--", "-->", "style=", "class=", "rowspan", "[http", "<nowiki"]
SHORTEST = 200  # words of an article that counts


def load_extractor(as_published):
    """WikiExtractor's module for one page, with the flags of its regular expressions where Python 3.11 wants them."""
    path = importlib.util.find_spec("wikiextractor").submodule_search_locations[0] + "/extract.py"
    with open(path, encoding="utf-8") as file:
        source = file.read()
    source = source.replace("'\\[(((?i)' + ", "'\\[((' + ").replace("\\x00-\\x08\\x0a-\\x1F]*?)\\]',\n    re.S | re.U)", "\\x00-\\x08\\x0a-\\x1F]*?)\\]',\n    re.S | re.U | re.I)")
    source = source.replace("\\.((?i)gif|png|jpg|jpeg)$", "\\.(gif|png|jpg|jpeg)$")
    if not as_published:
        source = re.sub(r"discardElements = \[.*?\]", "discardElements = %r" % DISCARDED, source, flags=re.S)
        source = re.sub(r"ignoredTags = \(.*?\)", "ignoredTags = %r" % (tuple(STRIPPED),), source, flags=re.S)
        source = source.replace("keepSections = True", "keepSections = False")
    module = types.ModuleType("extract")
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def read_dump(path):
    """The namespaces, and the articles as (id, title, text as it is in the XML)."""
    with open(path, "rb") as file:
        data, decompressor = b"", bz2.BZ2Decompressor()
        data = decompressor.decompress(file.read())
    text = data.decode("utf-8", "ignore")
    namespaces = [(key, name) for key, name in re.findall(r'<namespace key="(-?\d+)"[^>]*>([^<]+)</namespace>', text[:20000])]
    articles = []
    for page in re.findall(r"<page>(.*?)</page>", text, re.S):
        body = re.search(r"<text[^>]*>(.*?)</text>", page, re.S)
        if "<ns>0</ns>" in page and "<redirect" not in page and body:
            articles.append((re.search(r"<id>(\d+)", page)[1], html.unescape(re.search(r"<title>(.*?)</title>", page)[1]), body[1]))
    return re.search(r'xml:lang="([^"]+)"', text)[1], namespaces, articles


def pages_of(language, namespaces, articles):
    """What the program reads: the site, and each article with XML's entities decoded."""
    pieces = [("language %s\n" % language).encode()] + [("namespace %s %s\n" % names).encode() for names in namespaces]
    for _, title, body in articles:
        markup = body
        for name, character in (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'"), ("amp", "&")):
            markup = markup.replace("&%s;" % name, character)
        markup = markup.encode()
        pieces += [b"page %d %s\n" % (len(markup), title.encode()), markup]
    return b"".join(pieces)


def convert(program, pages):
    """kiln's text of each article."""
    result = subprocess.run([program], input=pages, stdout=subprocess.PIPE, check=True).stdout
    texts, at = [], 0
    while at < len(result):
        end = result.index(b"\n", at)
        n = int(result[at:end])
        texts.append(result[end + 1:end + 1 + n].decode("utf-8"))
        at = end + 1 + n
    return texts


def clean(module, article):
    number, title, body = article
    return html.unescape("\n".join(module.Extractor(number, "", "", title, [body]).clean_text(body)))


def print_rates(program, pages, module, articles, rounds):
    """The fastest of three runs of each, which take turns."""
    ours, theirs = [], []
    for _ in range(3):
        result = subprocess.run([program, str(rounds)], input=pages, capture_output=True, check=True).stdout
        ours.append(float(result.split()[0]))
        begin = time.monotonic()
        for article in articles:
            clean(module, article)
        theirs.append(len(pages) / 1e6 / (time.monotonic() - begin))
    print("markup to text, one core, MB/s: kiln %.0f, WikiExtractor %.1f, ratio %.0f" % (max(ours), max(theirs), max(ours) / max(theirs)))


def words_of(text, punctuation):
    return text.split() if punctuation else re.findall(r"\w+", text)


def five_grams(words):
    return collections.Counter(zip(*(words[i:] for i in range(5))))


def share(a, b):
    """The share of a's 5-grams that b has."""
    return sum((a & b).values()) / max(1, sum(a.values()))


def show_differences(a, b):
    """The longest runs of words that only one of them has."""
    import difflib

    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    runs = [(max(i2 - i1, j2 - j1), a[i1:i2], b[j1:j2]) for op, i1, i2, j1, j2 in matcher.get_opcodes() if op != "equal"]
    for n, left, right in sorted(runs, key=lambda run: -run[0])[:40]:
        print("%5d  WikiExtractor: %s\n       kiln:          %s" % (n, " ".join(left)[:300], " ".join(right)[:300]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    parser.add_argument("program")
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--show")
    parser.add_argument("--punctuation", action="store_true")
    parser.add_argument("--as_published", action="store_true")
    parser.add_argument("--rate", type=int)
    o = parser.parse_args()
    module = load_extractor(o.as_published)
    language, namespaces, articles = read_dump(o.dump)
    pages = pages_of(language, namespaces, articles)
    if o.rate:
        print_rates(o.program, pages, module, articles, o.rate)
        return
    ours = convert(o.program, pages)
    assert len(ours) == len(articles)
    rows, residues = [], collections.Counter()
    for (number, title, body), text in zip(articles, ours):
        if o.show and title != o.show:
            continue
        theirs = clean(module, (number, title, body))
        a, b = words_of(theirs, o.punctuation), words_of(text, o.punctuation)
        if o.show:
            show_differences(a, b)
        grams_a, grams_b = five_grams(a), five_grams(b)
        rows.append((share(grams_a, grams_b), share(grams_b, grams_a), len(a), len(b), title))
        for mark in RESIDUES:
            residues[mark] += text.count(mark)
    long = [row for row in rows if min(row[2], row[3]) > SHORTEST]
    print("%d articles, %d of more than %d words" % (len(rows), len(long), SHORTEST))
    print("left: " + ", ".join("%s %d" % item for item in residues.items() if item[1] > 0))
    if long:
        print("medians: kept %.4f, agreed %.4f" % (statistics.median(r[0] for r in long), statistics.median(r[1] for r in long)))
        print("means: kept %.4f, agreed %.4f" % (statistics.mean(r[0] for r in long), statistics.mean(r[1] for r in long)))
    print("kept    agreed  words   words of kiln   the %d worst" % o.worst)
    for row in sorted(long, key=lambda row: min(row[0], row[1]))[:o.worst]:
        print("%.4f  %.4f  %6d  %6d  %s" % row)


if __name__ == "__main__":
    sys.exit(main())
