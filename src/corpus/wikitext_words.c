#include "corpus/wikitext_words.h"

#include "corpus/wikitext_values.h"

#include <string.h>

/* Names of the languages of {{lang-xx}}, in the order of strcmp; ISO 639 with the English Wikipedia's
 * additions. */
static const struct {
    const char *code, *name;
} languages[] = {
    {"ab", "Abkhaz"},
    {"af", "Afrikaans"},
    {"als", "Alemannic German"},
    {"am", "Amharic"},
    {"an", "Aragonese"},
    {"ang", "Old English"},
    {"ar", "Arabic"},
    {"arc", "Aramaic"},
    {"arz", "Egyptian Arabic"},
    {"as", "Assamese"},
    {"ast", "Asturian"},
    {"ay", "Aymara"},
    {"az", "Azerbaijani"},
    {"ba", "Bashkir"},
    {"bar", "Bavarian"},
    {"be", "Belarusian"},
    {"ber", "Berber"},
    {"bg", "Bulgarian"},
    {"bn", "Bengali"},
    {"bo", "Tibetan"},
    {"br", "Breton"},
    {"bs", "Bosnian"},
    {"ca", "Catalan"},
    {"ce", "Chechen"},
    {"ceb", "Cebuano"},
    {"chr", "Cherokee"},
    {"ckb", "Central Kurdish"},
    {"co", "Corsican"},
    {"cop", "Coptic"},
    {"cs", "Czech"},
    {"cu", "Old Church Slavonic"},
    {"cv", "Chuvash"},
    {"cy", "Welsh"},
    {"da", "Danish"},
    {"de", "German"},
    {"dv", "Dhivehi"},
    {"el", "Greek"},
    {"en", "English"},
    {"eo", "Esperanto"},
    {"es", "Spanish"},
    {"et", "Estonian"},
    {"eu", "Basque"},
    {"fa", "Persian"},
    {"fi", "Finnish"},
    {"fil", "Filipino"},
    {"fo", "Faroese"},
    {"fr", "French"},
    {"frp", "Franco-Proven\303\247al"},
    {"fur", "Friulian"},
    {"fy", "West Frisian"},
    {"ga", "Irish"},
    {"gd", "Scottish Gaelic"},
    {"gl", "Galician"},
    {"gn", "Guarani"},
    {"got", "Gothic"},
    {"grc", "Ancient Greek"},
    {"gsw", "Alemannic German"},
    {"gu", "Gujarati"},
    {"gv", "Manx"},
    {"ha", "Hausa"},
    {"haw", "Hawaiian"},
    {"he", "Hebrew"},
    {"hi", "Hindi"},
    {"hr", "Croatian"},
    {"hu", "Hungarian"},
    {"hy", "Armenian"},
    {"id", "Indonesian"},
    {"is", "Icelandic"},
    {"it", "Italian"},
    {"iu", "Inuktitut"},
    {"ja", "Japanese"},
    {"jv", "Javanese"},
    {"ka", "Georgian"},
    {"kk", "Kazakh"},
    {"kl", "Greenlandic"},
    {"km", "Khmer"},
    {"kn", "Kannada"},
    {"ko", "Korean"},
    {"ku", "Kurdish"},
    {"kw", "Cornish"},
    {"ky", "Kyrgyz"},
    {"la", "Latin"},
    {"lad", "Judaeo-Spanish"},
    {"lb", "Luxembourgish"},
    {"lo", "Lao"},
    {"lt", "Lithuanian"},
    {"lv", "Latvian"},
    {"mg", "Malagasy"},
    {"mi", "Maori"},
    {"mk", "Macedonian"},
    {"ml", "Malayalam"},
    {"mn", "Mongolian"},
    {"mr", "Marathi"},
    {"ms", "Malay"},
    {"mt", "Maltese"},
    {"my", "Burmese"},
    {"nah", "Nahuatl"},
    {"nap", "Neapolitan"},
    {"nb", "Norwegian Bokm\303\245l"},
    {"nds", "Low German"},
    {"ne", "Nepali"},
    {"nl", "Dutch"},
    {"nn", "Norwegian Nynorsk"},
    {"no", "Norwegian"},
    {"non", "Old Norse"},
    {"nv", "Navajo"},
    {"oc", "Occitan"},
    {"or", "Odia"},
    {"os", "Ossetian"},
    {"ota", "Ottoman Turkish"},
    {"pa", "Punjabi"},
    {"pl", "Polish"},
    {"pms", "Piedmontese"},
    {"ps", "Pashto"},
    {"pt", "Portuguese"},
    {"qu", "Quechua"},
    {"rm", "Romansh"},
    {"ro", "Romanian"},
    {"roa-rup", "Aromanian"},
    {"ru", "Russian"},
    {"rus", "Russian"},
    {"sa", "Sanskrit"},
    {"sc", "Sardinian"},
    {"scn", "Sicilian"},
    {"sco", "Scots"},
    {"sd", "Sindhi"},
    {"se", "Northern Sami"},
    {"sh", "Serbo-Croatian"},
    {"si", "Sinhala"},
    {"sk", "Slovak"},
    {"sl", "Slovene"},
    {"sm", "Samoan"},
    {"so", "Somali"},
    {"sq", "Albanian"},
    {"sr", "Serbian"},
    {"sr-Cyrl", "Serbian Cyrillic"},
    {"sv", "Swedish"},
    {"sw", "Swahili"},
    {"syc", "Classical Syriac"},
    {"syr", "Syriac"},
    {"ta", "Tamil"},
    {"te", "Telugu"},
    {"tg", "Tajik"},
    {"th", "Thai"},
    {"ti", "Tigrinya"},
    {"tk", "Turkmen"},
    {"tl", "Tagalog"},
    {"tr", "Turkish"},
    {"tt", "Tatar"},
    {"ug", "Uyghur"},
    {"uk", "Ukrainian"},
    {"ur", "Urdu"},
    {"uz", "Uzbek"},
    {"vec", "Venetian"},
    {"vi", "Vietnamese"},
    {"wa", "Walloon"},
    {"xh", "Xhosa"},
    {"yi", "Yiddish"},
    {"yo", "Yoruba"},
    {"zh", "Chinese"},
    {"zu", "Zulu"},
};

static const char *find_language(const char *code, size_t n)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (strlen(languages[i].code) == n && memcmp(languages[i].code, code, n) == 0) {
            return languages[i].name;
        }
    }
    return NULL;
}

/* The language of "sr-Cyrl" is that of "sr". */
static const char *language_name(const char *code, size_t n)
{
    const char *name = find_language(code, n), *dash = n == 0 ? NULL : memchr(code, '-', n);
    return name == NULL && dash != NULL ? find_language(code, (size_t)(dash - code)) : name;
}

static void put(struct wikitext_emit *e, const char *text)
{
    buf_puts(&e->scratch, text);
}

static void put_after(struct wikitext_emit *e, const char *label, struct wikitext_value value,
                      const char *after)
{
    if (value.n > 0) {
        put(e, label);
        wikitext_values_put(e, value);
        put(e, after);
    }
}

/* "French: mot", "Russian: слово, romanized: slovo"; a language without a name here: the word alone. */
void wikitext_words_language(struct wikitext_emit *e, const char *code, size_t n, int first)
{
    while (n > 0 && (code[n - 1] == ' ' || code[n - 1] == '\n')) {
        n--;
    }
    struct wikitext_value label = wikitext_values_find(e, "label");
    const char *name = language_name(code, n);
    if (label.n > 0 && !wikitext_values_equal(label, "none")) {
        put_after(e, "", label, ": ");
    } else if (label.n == 0 && name != NULL && wikitext_values_are_english(e)) {
        put(e, name);
        put(e, ": ");
    }
    struct wikitext_value text = wikitext_values_argument(e, first);
    wikitext_values_put(e, text.n > 0 ? text : wikitext_values_find(e, "text"));
    if (!wikitext_values_are_english(e)) {
        return;
    }
    put_after(e, ", romanized: ", wikitext_values_argument(e, first + 1), "");
    put_after(e, ", lit. '", wikitext_values_find(e, "lit"), "'");
}

void wikitext_words_nihongo(struct wikitext_emit *e, bool romaji_first)
{
    struct wikitext_value english = wikitext_values_argument(e, romaji_first ? 3 : 1);
    struct wikitext_value kanji = wikitext_values_argument(e, 2);
    struct wikitext_value romaji = wikitext_values_argument(e, romaji_first ? 1 : 3);
    struct wikitext_value extra = wikitext_values_argument(e, 4);
    struct wikitext_value words[] = {romaji_first ? romaji : english, kanji, romaji_first ? english : romaji,
                                     extra};
    bool inside = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].n > 0) {
            bool first = e->scratch.n == 0;
            put(e, first ? "" : inside ? ", " : " (");
            inside = inside || !first;
            wikitext_values_put(e, words[i]);
        }
    }
    put(e, inside ? ")" : "");
}

void wikitext_words_labels(struct wikitext_emit *e, bool korean)
{
    static const char *const chinese[][2] = {
        {"c", "Chinese: "},  {"t", "traditional Chinese: "}, {"s", "simplified Chinese: "},
        {"p", "pinyin: "},   {"tp", "Tongyong Pinyin: "},    {"w", "Wade\342\200\223Giles: "},
        {"j", "Jyutping: "}, {"cy", "Cantonese Yale: "},     {"poj", "Pe\314\215h-\305\215e-j\304\253: "},
        {"l", "lit. "},
    };
    static const char *const of_korea[][2] = {
        {"hangul", "Korean: "},
        {"hanja", "Hanja: "},
        {"rr", "RR: "},
        {"mr", "MR: "},
    };
    const char *const(*labels)[2] = korean ? of_korea : chinese;
    size_t n = korean ? sizeof of_korea / sizeof *of_korea : sizeof chinese / sizeof *chinese;
    for (size_t i = 0; i < n; i++) {
        struct wikitext_value value = wikitext_values_find(e, labels[i][0]);
        if (value.n > 0) {
            put(e, e->scratch.n > 0 ? "; " : "");
            put_after(e, labels[i][1], value, "");
        }
    }
    if (e->scratch.n == 0) {
        wikitext_values_put(e, wikitext_values_argument(e, 1));
    }
}

/* {{USS|Hornet|CV-12|6}}: the last says which parts are shown. */
void wikitext_words_ship(struct wikitext_emit *e, const char *template, int first)
{
    struct wikitext_value name = wikitext_values_argument(e, first),
                          hull = wikitext_values_argument(e, first + 1);
    int64_t parts = wikitext_values_number(wikitext_values_argument(e, first + 2));
    enum { HULL = 1, NAME = 2, PREFIX_AND_NAME = 3, NAME_AND_HULL = 6 };
    if (parts == HULL && hull.n > 0) {
        wikitext_values_put(e, hull);
        return;
    }
    if (parts != NAME && parts != NAME_AND_HULL) {
        if (first == 2) {
            put_after(e, "", wikitext_values_argument(e, 1), " ");
        } else {
            for (const char *c = template; *c != '\0'; c++) {
                buf_putc(&e->scratch, (char)(*c & ~0x20));
            }
            put(e, " ");
        }
    }
    wikitext_values_put(e, name);
    if (parts != NAME && parts != PREFIX_AND_NAME) {
        put_after(e, " (", hull, ")");
    }
}

void wikitext_words_ship_class(struct wikitext_emit *e)
{
    put_after(e, "", wikitext_values_argument(e, 1), "-class");
    put_after(e, " ", wikitext_values_argument(e, 2), "");
}

void wikitext_words_music(struct wikitext_emit *e)
{
    static const char *const signs[][2] = {
        {"flat", "\342\231\255"},
        {"b", "\342\231\255"},
        {"sharp", "\342\231\257"},
        {"#", "\342\231\257"},
        {"natural", "\342\231\256"},
        {"doubleflat", "\342\231\255\342\231\255"},
        {"doublesharp", "\360\235\204\252"},
    };
    struct wikitext_value sign = wikitext_values_argument(e, 1);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (wikitext_values_equal(sign, signs[i][0])) {
            put(e, signs[i][1]);
            return;
        }
    }
    wikitext_values_put(e, sign);
}
