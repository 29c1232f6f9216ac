/* What the templates of the table stand for. */
#include "corpus/html_entities.h"
#include "corpus/wikitext_templates.h"
#include "wikitext_fixture.h"

#define NDASH "\342\200\223"

static const struct wikitext_case words[] = {
    {"a{{ndash}}b{{nbsp}}c{{snd}}d{{mdash}}e", "a\342\200\223b c \342\200\223 d\342\200\224e"},
    {"{{ lang | fr | mot }} a", "mot a"},
    {"{{Lang|fr|[[mot|b]]}} a", "b a"},
    {"{{subst:lang|fr|mot}} {{Template:lang|fr|mot}}", "mot mot"},
    {"{{lang-fr|mot}} a", "French: mot a"},
    {"{{lang-fr|label=none|mot}} a", "mot a"},
    {"{{lang-ru|a|b|lit=c}} d", "Russian: a, romanized: b, lit. 'c' d"},
    {"{{langx|de|Wort}} a", "German: Wort a"},
    {"{{lang-xyz|a}} b", "a b"},
    {"{{lang-sr-Latn|a}} {{lang-zh-Hans|b}}", "Serbian: a Chinese: b"},
    {"{{gaps|1|234}} {{sqrt|2}}", "1234 \342\210\2322"},
    {"{{transl|ar|DIN|a}} {{transl|ar|b}}", "a b"},
    {"{{nowrap|a {{nowrap|b}}}} c", "a b c"},
    {"{{abbr|a|b c}} d", "a d"},
    {"{{sic|a}} b", "a b"},
    {"{{color|red|a}} b", "a b"},
    {"{{nihongo|a|b|c}} d", "a (b, c) d"},
    {"{{nihongo||b|c}} d", "b (c) d"},
    {"{{nihongo3|a|b|c}} d", "a (b, c) d"},
    {"({{zh|s=a|t=b|p=c}})x", "(traditional Chinese: b; simplified Chinese: a; pinyin: c)x"},
    {"{{korean|hangul=a|rr=b}} x", "Korean: a; RR: b x"},
    {"{{ill|a|de|b}} c", "a c"},
    {"{{ill|de|Name|b}} c", "Name c"},
    {"{{ill|a|de|b|lt=c}} d", "c d"},
    {"{{linktext|a|b}} c", "ab c"},
    {"{{chem|C|2|H|6}} a", "C2H6 a"},
    {"{{flag|France}} a", "France a"},
    {"{{flagicon|France}} a", "a"},
    {"{{circa|1900}} a", "c. 1900 a"},
    {"{{US$|5}} and {{GBP|6}}", "US$5 and \302\2436"},
    {"{{literally|a}} b", "lit. 'a' b"},
    {"{{sortname|Ann|Bee}} c", "Ann Bee c"},
    {"a {{frac|1|2}} {{frac|3|1|2}} {{frac|4}} b", "a 1/2 3 1/2 1/4 b"},
    {"{{music|flat}} {{music|sharp}} {{music|E}}", "\342\231\255 \342\231\257 E"},
    {"{{USS|Hornet|CV-12}} {{USS|Hornet|CV-12|6}} {{HMS|Ark|R07|3}} {{SS|Oceanic||2}}x",
     "USS Hornet (CV-12) Hornet (CV-12) HMS Ark Oceanicx"},
    {"{{ship|French cruiser|Foch}} {{USS|Hornet|CV-12|1}} {{sclass|Nimitz|carrier}}",
     "French cruiser Foch CV-12 Nimitz-class carrier"},
    {"a{{quote|b c|d}}e", "a\nb c\ne"},
    {"{{quote|text=b c}}", "b c"},
    {"{{IPA|a}} {{pronunciation|b}} c", "c"},
    {"a {{citation needed|date=b}} c", "a c"},
    {"{{#if:a|b|c}} {{#if: |b|c}}", "b c"},
    {"{{lc:ABC}} {{uc:abc}} {{ucfirst:abc}} {{lcfirst:ABC}}", "abc ABC Abc aBC"},
    {"{{formatnum:1234567.8901}} {{formatnum:12}} {{formatnum:a1234}}", "1,234,567.8901 12 a1,234"},
    {"{{nowrap|1=a=b}} {{nowrap|a=b}}c", "a=b c"},
    {"{{nowrap}}a {{convert}} {{lang-}} {{frac}} {{val}}b", "a b"},
    {"{{val|6.241|0.005|e=18|u=kg|up=s}} {{val|12345}}", "6.241\302\2610.005\303\22710^18 kg/s 12,345"},
};

static const struct wikitext_case dates[] = {
    {"{{birth date|1879|3|14}} a", "March 14, 1879 a"},
    {"{{birth date and age|df=yes|1879|03|14}} a", "14 March 1879 a"},
    {"{{birth date|1879|3}} {{birth date|1879}} {{start date|spring}}", "March 1879 1879 spring"},
    {"{{birth date|1879|13|40}} a", "1879 a"},
    {"{{death date and age|1955|4|18|1879|3|14}} a", "April 18, 1955 (aged 76) a"},
    {"{{death date and age|1955|3|13|1879|3|14|df=y}} a", "13 March 1955 (aged 75) a"},
    {"{{death date and age|1955|88888888888888888884|18|1879|3|14}} a", "1955 a"},
    {"{{death date and age|1955}} a", "1955 a"},
    {"{{as of|2010}} {{as of|2010|3|lc=y}} {{As of|2010|3|5|df=US}}",
     "As of 2010 as of March 2010 As of March 5, 2010"},
    {"{{as of|2010|since=y|lc=y}} {{as of|2010|alt=b}} {{as of|2010|bare=y}}", "since 2010 b 2010"},
    {"{{OldStyleDate|February 2|1905|January 20}} a", "February 2 [O.S. January 20] 1905 a"},
};

/* As the documentation of Template:Convert shows them. */
static const struct wikitext_case units[] = {
    {"{{convert|5|km}}", "5 kilometres (3.1 mi)"},
    {"{{convert|5|km|mi}}", "5 kilometres (3.1 mi)"},
    {"{{convert|1|km|mi}}", "1 kilometre (0.62 mi)"},
    {"{{convert|5|km|mi|2}}", "5 kilometres (3.11 mi)"},
    {"{{convert|5|km|mi|abbr=on}}", "5 km (3.1 mi)"},
    {"{{cvt|5|km|mi}}", "5 km (3.1 mi)"},
    {"{{convert|5|km|mi|sp=us}}", "5 kilometers (3.1 mi)"},
    {"{{convert|5|km|mi|adj=on}} road", "5-kilometre (3.1 mi) road"},
    {"{{convert|5|km|mi|disp=or}}", "5 kilometres or 3.1 miles"},
    {"{{convert|5|km|mi|abbr=off}}", "5 kilometres (3.1 miles)"},
    {"{{convert|100|C|F}}", "100 \302\260C (212 \302\260F)"},
    {"{{convert|10|C|F|abbr=on}}", "10 \302\260C (50 \302\260F)"},
    {"{{convert|60|to|170|kg|lb}}", "60 to 170 kilograms (130 to 370 lb)"},
    {"{{convert|60|-|170|kg|lb|abbr=on}}", "60" NDASH "170 kg (130" NDASH "370 lb)"},
    {"{{convert|106,400,000|km2|sqmi|abbr=on}}", "106,400,000 km2 (41,100,000 sq mi)"},
    {"{{convert|2300|ft|m}}", "2,300 feet (700 m)"},
    {"{{convert|30.5|mi}}", "30.5 miles (49.1 km)"},
    {"{{convert|-40|C}}", "\342\210\22240 \302\260C (\342\210\22240 \302\260F)"},
    {"{{convert|0|km}}", "0 kilometres (0 mi)"},
    {"{{convert|5|km|mi|disp=out}}", "3.1 miles"},
    {"{{convert|5|furlong|km}}", "5 furlong"},
    {"{{convert|five|km}} {{convert|1.2.3|km}} {{convert|1|to|x|km}}", "five km 1.2.3 km 1 to x km"},
    {"{{convert|99999999999999999999999999|km}}", "99999999999999999999999999 km"},
    {"{{convert|5|km|kg}}", "5 kilometres (3.1 mi)"},
    {"{{convert|5|mi|km|order=flip}}", "8.0 kilometres (5 mi)"},
    {"{{convert|5.56|e6km2|sqmi}}", "5.56 million square kilometres (2.15 million sq mi)"},
    {"{{convert|6|ft|2|in|m}}", "6 feet 2 inches (1.88 m)"},
    {"{{convert|6|ft|2|in|cm|abbr=on}}", "6 ft 2 in (188 cm)"},
    {"{{convert|7|lb|3|oz}}", "7 pounds 3 ounces (3.3 kg)"},
    {"{{convert|3|x|4|x|5|m|ft}}", "3 by 4 by 5 metres (9.8 by 13.1 by 16.4 ft)"},
    {"{{convert|12345|mi|km|-2}}", "12,345 miles (19,900 km)"},
    {"{{convert|12345|mi|km|sigfig=2}}", "12,345 miles (20,000 km)"},
    {"{{convert|20|\302\260C}}", "20 \302\260C (68 \302\260F)"},
    {"{{convert|20|C|F|abbr=off}}", "20 degrees Celsius (68 degrees Fahrenheit)"},
    {"{{convert|5|ft|m|adj=mid|-long}} boat", "5-foot-long (1.5 m) boat"},
};

/* Tables that are searched by halves. */
static void tables_are_in_order(void)
{
    struct wikitext_emit e = {0};
    EXPECT(wikitext_templates_index(&e), "memory");
    for (size_t i = 1; i < e.n_templates; i++) {
        struct wikitext_value name = e.templates[i].name, before = e.templates[i - 1].name;
        EXPECT(name.n != before.n || memcmp(name.text, before.text, name.n) != 0, "%.*s", (int)name.n,
               name.text);
    }
    wikitext_emit_fini(&e);
    int n_entities = 0;
    for (int letter = 0; letter < HTML_ENTITY_LETTERS; letter++) {
        for (const char *at = html_entities[letter]; at != NULL; n_entities++) {
            char out[HTML_ENTITY_TEXT_BYTES], text[HTML_ENTITY_NAME_BYTES + 3];
            int name = (int)strcspn(at, "=");
            size_t bytes, n = (size_t)snprintf(text, sizeof text, "&%.*s;", name, at);
            EXPECT(at[0] == letter && html_entities_decode(out, &bytes, text, n) == n, "%s", text);
            at += name + 1;
            EXPECT(bytes == strcspn(at, " ") && memcmp(out, at, bytes) == 0, "%s", text);
            EXPECT(html_entities_decode(out, &bytes, text, n - 1) == 0, "%s without its end", text);
            at = at[bytes] == ' ' ? at + bytes + 1 : NULL;
        }
    }
    EXPECT(n_entities == 2125, "%d entities", n_entities);
}

#define CHECK_CASES(f, cases) wikitext_fixture_check(f, cases, sizeof(cases) / sizeof *(cases))

int main(void)
{
    struct wikitext_fixture f;
    wikitext_fixture_init(&f, "en", "File", "Category");
    CHECK_CASES(&f, words);
    CHECK_CASES(&f, dates);
    CHECK_CASES(&f, units);
    wikitext_fixture_fini(&f);
    tables_are_in_order();
    return 0;
}
