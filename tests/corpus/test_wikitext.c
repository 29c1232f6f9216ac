/* Each rule by which markup becomes paragraphs: what is dropped, what is kept, and how it is put in order. */
#include "wikitext_fixture.h"

static const struct wikitext_case links[] = {
    {"a [[b]] c", "a b c"},
    {"a [[b|c]] d", "a c d"},
    {"[[bus]]es run", "buses run"},
    {"[[b|c|d]] e", "d e"},
    {"[[b#c|d]] e", "d e"},
    {"[[#c|d]] e", "d e"},
    {"[[:b]] c", "b c"},
    {"[[ b | c]] d", "c d"},
    {"[[2001: A Space Odyssey]] is", "2001: A Space Odyssey is"},
    {"[[Boston (city)|]] is", "Boston is"},
    {"[[Boston, England|]] is", "Boston is"},
    {"[[b|''c'']] d", "\"c\" d"},
    {"[[b|c [http://x.y d]]] e", "c d e"},
    {"[[b|c\nd]] e", "c d e"},
    {"[[a\nb]] c", "a\nb c"}, /* not the name of a page */
    {"a [[File:x.jpg|thumb|200px|A [[b|c]] {{d}} [http://e.f g]]] h", "a h"},
    {"[[image:x.jpg]]a", "a"},
    {"[[Media:x.ogg|a]] b", "b"},
    {"[[:File:x.jpg|a]] b", "b"},
    {"a [[Category:b]][[category:c|d]]", "a"},
    {"[[:Category:b|c]] d", "d"},
    {"[[Help:a|b]] c", "c"},
    {"[[User talk:a]] c", "c"},
    {"a [[de:b]] c", "a c"},
    {"[[:fr:b|c]] d", "d"},
    {"[[commons:b|c]] d", "d"},
    {"[[wikt:a|b]] c", "b c"},
    {"[[wikt:a]] c", "a c"},
    {"[[w:a|b]] c", "b c"},
    {"a [[b c", "a b c"},
    {"a ]] b", "a b"},
    {"[[a\n\n[[b]] c", "a\nb c"},
    {"[[File:a|b\n\nc]] d", "d"},
    {"[[a|b [[c|d]] e]] f", "b d e f"},
    {"[http://a.b c d] e", "c d e"},
    {"a [http://b.c] d", "a d"},
    {"a [//b.c d] e", "a d e"},
    {"a [mailto:b@c.d e] f", "a e f"},
    {"a [HTTPS://b.c d] e", "a d e"},
    {"[http://a.b/{{c|d e}}/f g] h", "g h"},
    {"a [b] c", "a [b] c"},
    {"a [[http://b.c d]] e", "a d e"},
    {"[[[a]]] b", "[a] b"},
    {"http://a.b c", "http://a.b c"},
    {"a [http://b.c d", "a d"},
};

static const struct wikitext_case elements[] = {
    {"a<ref>b</ref> c", "a c"},
    {"a<ref name=x /> c", "a c"},
    {"a<ref name=\"x\">{{cite|[[b]]}}\n\nc</ref> d", "a d"},
    {"a<REF>b</Ref > c", "a c"},
    {"a<ref>{{b</ref> c}}", "a c"},
    {"a<ref>b", "ab"}, /* without an end only the tag goes */
    {"a <references><ref>b</ref></references> c", "a c"},
    {"<gallery>\na.jpg|b\n</gallery>c", "c"},
    {"<pre>''a''</pre>b", "b"},
    {"<source lang=c>a</source>b", "b"},
    {"<syntaxhighlight>a</syntaxhighlight>b", "b"},
    {"<timeline>a</timeline>b", "b"},
    {"a <math>x^2</math> and <math>y</math>", "a formula_1 and formula_2"},
    {"a <code>b</code> c", "a codice_1 c"},
    {"<nowiki>[[a]] '''b''' &amp; {{c}}</nowiki> d", "[[a]] '''b''' & {{c}} d"},
    {"<nowiki>*</nowiki> a", "* a"},
    {"a<nowiki/>b", "ab"},
    {"a <!-- b\n\n{{c --> d", "a d"},
    {"a <!-- b", "a"},
    {"<div class=x>a <div>b</div> c</div> d", "d"},
    {"<small>a</small> b", "b"},
    {"x<sup>2</sup> and H<sub>2</sub>O", "x and HO"},
    {"<ul><li>a<li>b</ul> c", "c"},
    {"<table><tr><td>a<td>b</table> c", "c"},
    {"<b>a</b> <span style=\"b\">c</span> <font color=red>d</font> <u>e</u>", "a c d e"},
    {"<abbr title=\"a b\">c</abbr> d", "c d"},
    {"a<br>b<br />c<BR/>d", "a b c d"},
    {"a<blockquote>b</blockquote>c", "a\nb\nc"},
    {"<p>a</p><p>b</p>", "a\nb"},
    {"<small>a\n\nb</small> c", "a\nb c"}, /* a small does not go on behind a blank line */
    {"<div>a", "a"},
    {"a</div> b", "a b"},
    {"a <b c", "a c"},
    {"a < b > c", "a < b > c"},
    {"a <foo> b", "a <foo> b"},
    {"a </foo b", "a foo b"},
    {"<ruby>a<rt>b</rt></ruby> c", "a c"},
    {"a <<bc>> d", "a \302\253bc\302\273 d"},
    {"a &lt;&lt;b&gt;&gt; c", "a \302\253b\302\273 c"},
    {"a<includeonly>b</includeonly> c", "a c"},
    {"<noinclude>a</noinclude>b", "b"},
    {"{{a|<div>}} b</div> c", "b c"}, /* not across the end of a template */
};

static const struct wikitext_case quotes[] = {
    {"'''a''' is", "a is"},
    {"''a'' is", "\"a\" is"},
    {"''\"a\"'' is", "\"a\" is"},
    {"'''''a''''' is", "a is"},
    {"'''''a'' b''' is", "\"a\" b is"},
    {"'''''a''' b'' is", "\"a b\" is"},
    {"'''a''b''c''' is", "a\"b\"c is"},
    {"l''''a''' b", "l'a b"},
    {"a's b'", "a's b'"},
    {"''a is", "a is"},
    {"''a\nb'' c", "a\nb c"},
    {"a '' '' b", "a \" \" b"},
    {"'' a b", "a b"},
    {"a '' b", "a b"},
    {"a '''' b", "a ' b"},
};

static const struct wikitext_case characters[] = {
    {"a&nbsp;b&amp;c", "a b&c"},
    {"a&amp;nbsp;b", "a b"},
    {"a&amp;lt;ref&amp;gt;", "a<ref>"},
    {"&eacute;&#233;&#xE9;", "\303\251\303\251\303\251"},
    {"a &bogus; &; &#; &#x; b", "a &bogus; &; &#; &#x; b"},
    {"a&#0;b&#xD800;c&#x110000;d", "abcd"},
    {"a&ndash;b&mdash;c&hellip;", "a\342\200\223b\342\200\224c\342\200\246"},
    {"a&#10;b", "a b"},
    {"a\tb  c   d", "a b c d"},
    {"a\302\240 b", "a b"},
    {"\303\251\302\260 \302", "\303\251\302\260 \302"},
    {"a\001\002b\003\004\005\006c", "abc"},
    {"a\rb\177c <nowiki>d\001\177e</nowiki>", "abc de"},
    {"a .... b ......", "a ... b ..."},
    {"a .. b", "a .. b"},
    {"a,, b,. c", "a, b. c"},
    {"a {{b}}, c {{d}}.", "a, c."},
    {"a ({{b}}; born 1900) c", "a (born 1900) c"},
    {"a ({{b}}) c", "a c"},
    {"a ( {{b}}, {{c}} ) d", "a d"},
    {"a (b {{c}}) d", "a (b) d"},
    {"a .NET b", "a .NET b"},
};

static const struct wikitext_case lines[] = {
    {"a\n\n\n\nb\nc", "a\nb\nc"},
    {"== a ==\nb\n=== c ===\n====d====\ne\n= f =", "b\ne"},
    {"==a== <!-- b -->\nc", "c"},
    {"a = b\n=", "a = b"},
    {"* a\n# b\n; c\n: d\n:: e\nf", "f"},
    {"*[[a]]\n*{{b|c\nd}}\ne", "e"},
    {" a\nb", "b"},
    {"a\n b\n c", "a"},
    {"{{a}} b", "b"}, /* the space is not the line's first */
    {"{| class=x\n|-\n| a || b\n|}\nc", "c"},
    {"a\n{|\n| b\n{|\n| c\n|}\n|}\nd", "a\nd"},
    {":{|\n| a\n|}\nb", "b"},
    {"{|\n| a\n", ""},
    {"{|\n! a\n| {{b|}}\n|}\nc", "c"},
    {"{{clear}}{|\n| a\n|}\nb", "b"},
    {"| a\nb", "b"},
    {"{ a\nb", "b"},
    {"a }\nb", "b"},
    {"(a)\nb", "b"},
    {"(a) b", "(a) b"},
    {"...\n----\n-.\n!?\nb", "b"},
    {"\342\200\224\nb", "b"},
    {"----a", "----a"},
    {"\343\201\202", "\343\201\202"},
    {"__NOTOC__ a __TOC__", "a"},
    {"a __NOTOC____NOEDITSECTION__ b", "a b"},
    {"__KEIN_INHALTSVERZEICHNIS__a", "a"},
    {"a __init__ b", "a __init__ b"},
    {"a _ b __ c", "a _ b __ c"},
    {"", ""},
    {"\n\n", ""},
    {"#", ""},
    {"'''a''' may refer to:\n* [[b]]\n* [[c]]", "a may refer to:"},
};

static const struct wikitext_case braces[] = {
    {"a {{b}} c", "a c"},
    {"a {{b|c=d|{{e|f}}|[[g|h]]}} i", "a i"},
    {"{{Infobox a\n| b = c\n| d = {{e}}\n}}\nf", "f"},
    {"a {{b", "a b"},
    {"a }} b", "a b"},
    {"{{a|[[b}} c", "c"},
    {"{{a|{{b}} c", "a| c"},
    {"a {{{1|b}}} c", "a b c"},
    {"a {{{1}}} c", "a c"},
    {"a {{{1|}}} c", "a c"},
    {"a {{{{{1}}}|b}} c", "a c"},
    {"a {{nowrap|{{{1|b}}}}} c", "a b c"},
    {"a {b} c", "a {b} c"},
    {"a {{b|<nowiki>}}</nowiki>}} c", "a c"},
    {"a {{b|<!-- }} -->}} c", "a c"},
    {"a {{b|<ref>}}</ref>}} c", "a c"},
    {"a -{b}- c", "a -{b}- c"}, /* English has no variants */
    {"{{PAGENAME}} is", "Page name is"},
    {"[[{{PAGENAME}} b|c]] d", "c d"},
    {"{{DISPLAYTITLE:a}}{{DEFAULTSORT:b}}c", "c"},
    {"a{{!}}b{{=}}c", "a|b=c"},
    {"a {{#tag:ref|b}} c", "a c"},
};

static void other_languages(void)
{
    static const struct wikitext_case german[] = {
        {"[[Datei:a.jpg|mini|b]] c", "c"},
        {"[[Bild:a.jpg|mini|b]] c", "c"},
        {"[[File:a.jpg]]c", "c"},
        {"a [[Kategorie:b]]", "a"},
        {"[[Bundestag|Bundestags]]wahl", "Bundestagswahl"},
        {"{{formatnum:1234567}}", "1234567"},
        {"[[en:a]] b", "b"},
        {"{{lang-fr|mot}} {{lang|fr|mot}} {{\"|a}}", "mot mot a"},
        {"{{convert|5|km}}", "5 km (3.1 mi)"},
        {"a{{ndash}}b {{as of|2010}}{{e|3}}{{USA}}{{birth date|1900|1|2}}", "a\342\200\223b"},
    };
    static const struct wikitext_case chinese[] = {
        {"[[\346\226\207\344\273\266:a.jpg|b]] c", "c"},
        {"a [[\345\210\206\347\261\273:b]]", "a"},
        {"a -{zh-hans:b;zh-hant:c}- d", "a b d"},
        {"a -{b}- c", "a b c"},
        {"a -{H|zh-cn:b;zh-tw:c}- d", "a d"},
        {"a -{A|zh-cn:b;zh-tw:c}- d", "a b d"},
        {"a -{zh-hans;zh-hant|b}- d", "a b d"},
        {"a -{{{b}}}- c -{ d", "a -- c -{ d"},
        {"__\347\233\256\345\275\225__a", "a"},
    };
    struct wikitext_fixture f;
    wikitext_fixture_init(&f, "de", "Datei", "Kategorie");
    wikitext_fixture_check(&f, german, sizeof german / sizeof *german);
    wikitext_fixture_fini(&f);
    wikitext_fixture_init(&f, "zh", "File", "Category");
    wikitext_fixture_check(&f, chinese, sizeof chinese / sizeof *chinese);
    wikitext_fixture_fini(&f);
}

static void pages_are_counted(void)
{
    static const char markup[] = "a<ref>b</ref> {{nowrap|c}} {{d}}\n{|\n|}\n{{e";
    struct wikitext_fixture f;
    wikitext_fixture_init(&f, "en", "File", "Category");
    wikitext_fixture_convert(&f, markup, strlen(markup));
    struct wikitext_counts *c = &f.counts;
    EXPECT(c->n_pages[WIKITEXT_KEPT] == 1 && c->n_refs == 1 && c->n_tables == 1 && c->n_unclosed == 1,
           "kept");
    EXPECT(c->n_templates_expanded == 1 && c->n_templates_dropped == 1, "templates");
    EXPECT(c->n_text_bytes == (int64_t)f.document.text.n && c->n_work >= c->n_bytes, "bytes");
    wikitext_fixture_convert(&f, "* a", 3);
    EXPECT(f.counts.n_pages[WIKITEXT_EMPTY] == 1 && f.document.n_paragraphs == 0, "empty");
    wikitext_fixture_fini(&f);
}

#define CHECK_CASES(f, cases) wikitext_fixture_check(f, cases, sizeof(cases) / sizeof *(cases))

int main(void)
{
    struct wikitext_fixture f;
    wikitext_fixture_init(&f, "en", "File", "Category");
    CHECK_CASES(&f, links);
    CHECK_CASES(&f, elements);
    CHECK_CASES(&f, quotes);
    CHECK_CASES(&f, characters);
    CHECK_CASES(&f, lines);
    CHECK_CASES(&f, braces);
    wikitext_fixture_fini(&f);
    other_languages();
    pages_are_counted();
    return 0;
}
