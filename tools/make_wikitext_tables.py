#!/usr/bin/env python3
"""Makes the tables of src/corpus that come from elsewhere: HTML's named characters, and the prefixes of other wikis.

usage: make_wikitext_tables.py entities > src/corpus/html_entities_table.c
       make_wikitext_tables.py prefixes > src/corpus/wiki_prefixes_table.c      (needs pywikibot, from PyPI)
Made with Python 3.11 (html.entities.html5: the HTML standard, section 13.5) and pywikibot 11.9.
"""
import html.entities
import itertools
import re
import sys
import textwrap
import unicodedata

# Prefixes of the sister projects and of the pages about the wikis, as Manual:Interwiki and Meta's interwiki map write them.
PROJECTS = """w wikipedia wikt wiktionary b wikibooks q wikiquote n wikinews s wikisource v wikiversity voy wikivoyage
species wikispecies c commons d wikidata f wikifunctions m meta metawikipedia mw mediawikiwiki wmf foundation wikimedia
incubator outreach phab phabricator bugzilla mediazilla gerrit toollabs toolforge tools mailarchive mail otrswiki ticket
wikitech strategy testwiki translatewiki betawiki wikilivres wikia nost nostalgia sep11 dbdump oldwikisource""".split()


def c_text(text):
    """What stands in a literal: octal escapes for what cannot be seen; they cannot run into a digit behind them."""
    return "".join("".join("\\%03o" % b for b in c.encode()) if unicodedata.category(c)[0] in "CZM" or c in '"\\?' else c for c in text)


def entities():
    table = sorted(((name[:-1], value) for name, value in html.entities.html5.items() if name.endswith(";")), key=lambda row: row[0] + "=")
    assert all(re.fullmatch("[A-Za-z0-9]+", name) and len(value.encode()) <= 6 and " " not in value for name, value in table)
    print("/* html_entities_table: HTML's named characters; made by tools/make_wikitext_tables.py. */")
    print('#include "corpus/html_entities.h"\n')
    print("/* clang-format off */")
    print("const char *const html_entities[HTML_ENTITY_LETTERS] = {")
    for letter, rows in itertools.groupby(table, lambda row: row[0][0]):
        text = " ".join("%s=%s" % (name, c_text(value)) for name, value in rows)
        lines = textwrap.wrap(text, 98, break_on_hyphens=False, break_long_words=False)
        print("    ['%s'] =\n        \"%s\"," % (letter, ' "\n        "'.join(lines)))
    print("};")


def prefixes():
    from pywikibot.families import wikipedia_family

    family = wikipedia_family.Family
    codes = set(family.codes) | set(family.closed_wikis) | set(getattr(family, "removed_wikis", ()))
    codes |= set(family.code_aliases)
    table = sorted({c for c in codes if re.fullmatch("[a-z][a-z0-9-]*", c)} | set(PROJECTS))
    print("/* wiki_prefixes_table: what links to other wikis begin with, sorted; made by tools/make_wikitext_tables.py. */")
    print('#include "corpus/wiki_site.h"\n')
    print("/* clang-format off */")
    print("const char *const wiki_site_prefixes[] = {")
    line = "   "
    for prefix in table:
        if len(line) + len(prefix) > 100:
            print(line)
            line = "   "
        line += ' "%s",' % prefix
    print(line)
    print("};")
    print("const int wiki_site_n_prefixes = sizeof wiki_site_prefixes / sizeof wiki_site_prefixes[0];")


if len(sys.argv) != 2 or sys.argv[1] not in ("entities", "prefixes"):
    sys.exit(__doc__)
{"entities": entities, "prefixes": prefixes}[sys.argv[1]]()
