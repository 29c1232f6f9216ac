/* wikitext_template_rows: which templates are expanded, and how.  They are those that occur in sentences: of
 * the sample dump of 106 articles all that occur twice, and their like. */
#include "corpus/wikitext_templates.h"

#include <inttypes.h>

static void put(struct wikitext_emit *e, const char *text)
{
    buf_puts(&e->scratch, text);
}

/* All arguments without a name, with the template's text between. */
static void write_joined(struct wikitext_emit *e, const struct wikitext_template *t)
{
    size_t first = e->frames[e->n_frames - 1].first_part;
    for (size_t i = first + 1; i < e->n_parts; i++) {
        struct wikitext_value value = wikitext_values_part(e, i, false);
        if (e->parts[i].name_end == 0 && value.n > 0) {
            buf_append(&e->scratch, t->text.text, e->scratch.n > 0 ? t->text.n : 0);
            wikitext_values_put(e, value);
        }
    }
}

/* Name of the page that is read. */
static void write_title(struct wikitext_emit *e, const struct wikitext_template *t)
{
    (void)t;
    for (size_t i = 0; i < e->title_bytes; i++) {
        buf_append(&e->scratch, &e->title[i], wikitext_emit_is_text(e->title[i]));
    }
}

/* {{#if:x|then|else}} */
static void write_if(struct wikitext_emit *e, const struct wikitext_template *t)
{
    (void)t;
    wikitext_values_put(e, wikitext_values_argument(e, wikitext_values_argument(e, 0).n > 0 ? 1 : 2));
}

/* 'l' and 'u': all letters; 'L' and 'U': the first.  Letters outside ASCII stay as they are. */
static void write_case(struct wikitext_emit *e, const struct wikitext_template *t)
{
    char how = t->text.text[0];
    wikitext_values_put(e, wikitext_values_argument(e, 0));
    size_t n = how == 'l' || how == 'u' ? e->scratch.n : e->scratch.n > 0;
    bool upper = how == 'u' || how == 'U';
    for (size_t i = 0; i < n; i++) {
        char *c = &e->scratch.data[i];
        bool letter = upper ? *c >= 'a' && *c <= 'z' : *c >= 'A' && *c <= 'Z';
        *c = (char)(letter ? *c ^ 0x20 : *c);
    }
}

/* {{ill|Name|de|Name dort}}, and before 2016 {{ill|de|Name|Name dort}}. */
static void write_link(struct wikitext_emit *e, const struct wikitext_template *t)
{
    struct wikitext_value name = wikitext_values_argument(e, 1), second = wikitext_values_argument(e, 2);
    bool is_code = name.n == 2 && name.text[0] >= 'a' && name.text[0] <= 'z' && second.n > 3;
    wikitext_templates_write(e, t, is_code ? "{lt,2}" : "{lt,1,en}");
}

static void write_music(struct wikitext_emit *e, const struct wikitext_template *t)
{
    static const char signs[] = "flat=♭|b=♭|sharp=♯|#=♯|natural=♮|doubleflat=♭♭|doublesharp=𝄪";
    (void)t;
    struct wikitext_value name = wikitext_values_argument(e, 1), sign = wikitext_values_look_up(signs, name);
    wikitext_values_put(e, sign.n > 0 ? sign : name);
}

/* {{USS|Hornet|CV-12|6}} and {{ship|French cruiser|Foch||6}}: the number says which parts are shown: 1 the
 * hull's number, 2 the name, 3 prefix and name, 6 name and hull; any other all. */
static void write_ship(struct wikitext_emit *e, const struct wikitext_template *t)
{
    enum { N = 7 };
    static const char *const of_prefix[N] = {"{} {1}< ({2})>", "{2}~{} {1}", "{1}",
                                             "{} {1}", [6] = "{1}< ({2})>"};
    static const char *const of_first[N] = {"<{1} >{2}< ({3})>", "{3}~<{1} >{2}", "{2}",
                                            "<{1} >{2}", [6] = "{2}< ({3})>"};
    bool has_prefix = t->text.n > 0; /* else it is the first argument */
    const char *const *shown = has_prefix ? of_prefix : of_first;
    int64_t parts = wikitext_values_number(wikitext_values_argument(e, has_prefix ? 3 : 4));
    wikitext_templates_write(e, t, parts > 0 && parts < N && shown[parts] != NULL ? shown[parts] : shown[0]);
}

/* "bayonet (kanji, romaji, more)". */
static void write_nihongo(struct wikitext_emit *e, const struct wikitext_template *t)
{
    static const char *const before[] = {"", " (", ", ", ", "};
    int n = 0;
    (void)t;
    for (int i = 1; i <= 4; i++) {
        struct wikitext_value word = wikitext_values_argument(e, i);
        if (word.n > 0) {
            put(e, before[n++]);
            wikitext_values_put(e, word);
        }
    }
    put(e, n > 1 ? ")" : "");
}

/* ---- languages ---- */

/* Names of the languages of {{lang-xx}}: ISO 639 with the English Wikipedia's additions. */
static const char languages[] =
    "ab=Abkhaz|af=Afrikaans|als=Alemannic German|am=Amharic|an=Aragonese|ang=Old English|ar=Arabic|"
    "arc=Aramaic|arz=Egyptian Arabic|as=Assamese|ast=Asturian|ay=Aymara|az=Azerbaijani|ba=Bashkir|"
    "bar=Bavarian|be=Belarusian|ber=Berber|bg=Bulgarian|bn=Bengali|bo=Tibetan|br=Breton|bs=Bosnian|"
    "ca=Catalan|ce=Chechen|ceb=Cebuano|chr=Cherokee|ckb=Central Kurdish|co=Corsican|cop=Coptic|cs=Czech|"
    "cu=Old Church Slavonic|cv=Chuvash|cy=Welsh|da=Danish|de=German|dv=Dhivehi|el=Greek|en=English|"
    "eo=Esperanto|es=Spanish|et=Estonian|eu=Basque|fa=Persian|fi=Finnish|fil=Filipino|fo=Faroese|fr=French|"
    "frp=Franco-Provençal|fur=Friulian|fy=West Frisian|ga=Irish|gd=Scottish Gaelic|gl=Galician|gn=Guarani|"
    "got=Gothic|grc=Ancient Greek|gsw=Alemannic German|gu=Gujarati|gv=Manx|ha=Hausa|haw=Hawaiian|he=Hebrew|"
    "hi=Hindi|hr=Croatian|hu=Hungarian|hy=Armenian|id=Indonesian|is=Icelandic|it=Italian|iu=Inuktitut|"
    "ja=Japanese|jv=Javanese|ka=Georgian|kk=Kazakh|kl=Greenlandic|km=Khmer|kn=Kannada|ko=Korean|ku=Kurdish|"
    "kw=Cornish|ky=Kyrgyz|la=Latin|lad=Judaeo-Spanish|lb=Luxembourgish|lo=Lao|lt=Lithuanian|lv=Latvian|"
    "mg=Malagasy|mi=Maori|mk=Macedonian|ml=Malayalam|mn=Mongolian|mr=Marathi|ms=Malay|mt=Maltese|"
    "my=Burmese|nah=Nahuatl|nap=Neapolitan|nb=Norwegian Bokmål|nds=Low German|ne=Nepali|nl=Dutch|"
    "nn=Norwegian Nynorsk|no=Norwegian|non=Old Norse|nv=Navajo|oc=Occitan|or=Odia|os=Ossetian|"
    "ota=Ottoman Turkish|pa=Punjabi|pl=Polish|pms=Piedmontese|ps=Pashto|pt=Portuguese|qu=Quechua|"
    "rm=Romansh|ro=Romanian|roa-rup=Aromanian|ru=Russian|rus=Russian|sa=Sanskrit|sc=Sardinian|scn=Sicilian|"
    "sco=Scots|sd=Sindhi|se=Northern Sami|sh=Serbo-Croatian|si=Sinhala|sk=Slovak|sl=Slovene|sm=Samoan|"
    "so=Somali|sq=Albanian|sr=Serbian|sr-Cyrl=Serbian Cyrillic|sv=Swedish|sw=Swahili|syc=Classical Syriac|"
    "syr=Syriac|ta=Tamil|te=Telugu|tg=Tajik|th=Thai|ti=Tigrinya|tk=Turkmen|tl=Tagalog|tr=Turkish|tt=Tatar|"
    "ug=Uyghur|uk=Ukrainian|ur=Urdu|uz=Uzbek|vec=Venetian|vi=Vietnamese|wa=Walloon|xh=Xhosa|yi=Yiddish|"
    "yo=Yoruba|zh=Chinese|zu=Zulu";

/* The language of "sr-Cyrl" is that of "sr". */
static struct wikitext_value language_name(struct wikitext_value code)
{
    struct wikitext_value name = wikitext_values_look_up(languages, code);
    const char *dash = code.n == 0 ? NULL : memchr(code.text, '-', code.n);
    code.n = dash != NULL ? (size_t)(dash - code.text) : 0;
    return name.n > 0 ? name : wikitext_values_look_up(languages, code);
}

/* {{lang-fr|mot}} and {{langx|fr|mot}}: "French: mot", "Russian: слово, romanized: slovo"; a language without a
 * name here: the word alone. */
static void write_language(struct wikitext_emit *e, const struct wikitext_template *t)
{
    static const char *const patterns[2][2] = {
        {"{2,text}", "{2,text}<, romanized: {3}><, lit. '{lit}'>"},
        {"{1,text}", "{1,text}<, romanized: {2}><, lit. '{lit}'>"},
    };
    enum { PREFIX_BYTES = 5 }; /* "lang-" */
    const struct wikitext_frame *frame = &e->frames[e->n_frames - 1];
    bool in_name = t->text.n == 0, english = wikitext_values_are_english(e);
    struct wikitext_value label = wikitext_values_find(e, "label"), code = wikitext_values_argument(e, 1);
    if (in_name) {
        code = wikitext_values_trim(e->markup + frame->name + PREFIX_BYTES, frame->name_bytes - PREFIX_BYTES);
    }
    label = label.n == 0 && english ? language_name(code) : label;
    if (label.n > 0 && !wikitext_values_equal(label, "none")) {
        wikitext_values_put(e, label);
        put(e, ": ");
    }
    wikitext_templates_write(e, t, patterns[in_name][english]);
}

/* ---- dates ---- */

static bool is_yes(struct wikitext_value value)
{
    return value.n > 0 && (value.text[0] == 'y' || value.text[0] == 'Y' || value.text[0] == '1');
}

/* Writes "14 March 1879" or "March 14, 1879" from the first three arguments; missing ones are left out. */
static void put_date(struct wikitext_emit *e, bool day_first)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    int64_t month = wikitext_values_number(wikitext_values_argument(e, 2));
    int64_t day = wikitext_values_number(wikitext_values_argument(e, 3));
    const char *name = month >= 1 && month <= 12 ? months[month - 1] : NULL;
    if (name != NULL && (day < 1 || day > 31)) {
        buf_printf(&e->scratch, "%s ", name);
    } else if (name != NULL && day_first) {
        buf_printf(&e->scratch, "%" PRId64 " %s ", day, name);
    } else if (name != NULL) {
        buf_printf(&e->scratch, "%s %" PRId64 ", ", name, day);
    }
    wikitext_values_put(e, wikitext_values_argument(e, 1));
}

/* Birthdays passed between the dates that begin at arguments 1 and 4; -1 if they are not all numbers. */
static int64_t age_at_death(const struct wikitext_emit *e)
{
    int64_t n[6];
    for (int i = 0; i < 6; i++) {
        n[i] = wikitext_values_number(wikitext_values_argument(e, i + 1));
        if (n[i] < 0) {
            return -1;
        }
    }
    bool before_birthday = n[1] < n[4] || (n[1] == n[4] && n[2] < n[5]);
    return n[0] - n[3] - before_birthday;
}

/* "March 14, 1879", of death with the age; a date that is written out stays. */
static void write_date(struct wikitext_emit *e, const struct wikitext_template *t)
{
    if (wikitext_values_number(wikitext_values_argument(e, 1)) < 0) {
        wikitext_templates_write(e, t, "{1}");
        return;
    }
    put_date(e, is_yes(wikitext_values_find(e, "df")));
    int64_t age = t->text.n > 0 ? age_at_death(e) : -1;
    if (age >= 0) {
        buf_printf(&e->scratch, " (aged %" PRId64 ")", age);
    }
}

/* {{as of|2010|3|lc=y}} */
static void write_as_of(struct wikitext_emit *e, const struct wikitext_template *t)
{
    static const char *const words[2][2] = {{"As of ", "as of "}, {"Since ", "since "}};
    struct wikitext_value order = wikitext_values_find(e, "df");
    if (wikitext_values_find(e, "alt").n > 0) {
        wikitext_templates_write(e, t, "{alt}");
        return;
    }
    if (!is_yes(wikitext_values_find(e, "bare"))) {
        put(e, words[is_yes(wikitext_values_find(e, "since"))][is_yes(wikitext_values_find(e, "lc"))]);
    }
    put_date(e, !wikitext_values_equal(order, "US") && !wikitext_values_equal(order, "us"));
    wikitext_templates_write(e, t, "{post}");
}

/* clang-format off */
const struct wikitext_template_row wikitext_template_rows[] = {
    {NULL, false, "{}",
     "\" '=\" '|\"'=\"'|'='|' \"=' \"|'\"='\"|'-='|'s='s|-\"=\"|-'='|...=...|===|\\= / |ayin=ʿ|br= |"
     "break= |bull= • |bullet= • |bulletb= • |dag=†|dagger=†|dash= – |ddag=‡|deg=°|degree=°|dot= · |"
     "dotsep= · |double dagger=‡|double-dagger=‡|ellipsis=...|em dash=—|emdash=—|emsp= |en dash=–|"
     "endash=–|ensp= |euro=€|extinct=†|female=♀|hair space= |hairsp= |hamza=ʾ|hawaiian okina=ʻ|indent= |"
     "male=♂|mdash=—|mdashb=—|middot= · |middotb= · |minus=−|nb10= |nb5= |nbsp= |ndash=–|ndashb= – |"
     "nnbsp= |okina=ʻ|pi=π|smd= — |snd= – |sndash= – |snds= – |sp= |space= |spaced em dash= — |"
     "spaced en dash= – |spaced mdash= — |spaced ndash= – |spaces= |spmd= — |spnd= – |spndash= – |"
     "thin space= |thinsp= |times=×|x mult=×|zwsp= |·= · |•= • "},
    {NULL, true, "{}",
     "arg=Argentina|aus=Australia|bc=BC|bce=BCE|bel=Belgium|bra=Brazil|can=Canada|che=Switzerland|"
     "chn=China|co2=CO2|cze=Czech Republic|den=Denmark|deu=Germany|dnk=Denmark|egy=Egypt|eng=England|"
     "esp=Spain|fin=Finland|fra=France|gbr=United Kingdom|ger=Germany|gre=Greece|h2o=H2O|hun=Hungary|"
     "ind=India|irl=Ireland|irn=Iran|isr=Israel|ita=Italy|jpn=Japan|kor=South Korea|mex=Mexico|"
     "ned=Netherlands|nld=Netherlands|nor=Norway|nzl=New Zealand|o2=O2|pak=Pakistan|pol=Poland|"
     "por=Portugal|prt=Portugal|rou=Romania|rsa=South Africa|rus=Russia|sco=Scotland|sui=Switzerland|"
     "swe=Sweden|tur=Turkey|uk=United Kingdom|ukr=Ukraine|usa=United States|wal=Wales|zaf=South Africa"},
    {NULL, true, "<{}{1,text,content}>",
     "$=$|a$=A$|ad=AD |au$=A$|aud=A$|b.=born |born=born |c$=C$|c.=c. |ca$=C$|ca.=c. |cad=C$|can$=C$|"
     "circa=c. |cny=CN¥|d.=died |died=died |dollar=$|e=×10^|eur=€|fl=fl. |fl.=fl. |floruit=fl. |gbp=£|"
     "hk$=HK$|hkd=HK$|indian rupee=₹|inr=₹|inrconvert=₹|jpy=¥|nz$=NZ$|nzd=NZ$|philippine peso=₱|php=₱|"
     "pound sterling=£|r.=r. |radic=√|reign=r. |rmb=CN¥|sqrt=√|us dollar=US$|us patent=U.S. Patent |"
     "us$=US$|usd=US$|yen=¥|£=£|¥=¥|€=€|₱=₱|₹=₹"},
    {NULL, false, "{1,text,content}",
     "\"|abbr|abbreviation|abbrv|allcaps|angbr|arabic|as written|aut|avoid wrap|bdi|big|bigmath|"
     "birth year and age|birth-date|birth-date and age|block indent|bold|button|caps|ce|center|centre|"
     "chem2|code inline|coptic|cuneiform|death year and age|death-date|death-date and age|em|end-date|"
     "flag|flag+link|flagcountry|flagg|flaglink|flagu|gloss|hebr|hebrew|highlight|hover title|huge|"
     "ipa-serif|italic|italics|kbd|key|key press|keypress|large|larger|longitem|mark|math|midsize|mono|"
     "monospace|mvar|nastaliq|nihongo foot|nihongo2|no wrap|nobold|nobr|nobreak|noitalic|noitalics|"
     "not a typo|notatypo|nowrap|nowraplinks|nq|nts|number table sorting|overline|perso-arabic|plainlink|"
     "polytonic|proper name|railgauge|resize|roman|roman numeral|runic|samp|sc|sc1|sc2|script/arabic|"
     "script/armenian|script/coptic|script/cyrillic|script/hebrew|script/nastaliq|sic|sinhala|small caps|"
     "smallcaps|smaller|smcaps|start-date|strike|strong|tooltip|typo|underline|unicode|urdu|vanchor|var|"
     "visible anchor|wikt|wiktionary"},
    {NULL, false, "{2,text,content}",
     "bdo|color|colour|font color|font colour|lang|ltr-lang|rtl-lang|sort|wikt-lang|wt-lang"},
    {NULL, false, "{3,2,1}", "tlit|transl|translit|transliteration"},
    {write_joined, false, "", "chem|gaps|linktext|unité= "},
    {write_title, false, "", "basepagename|fullpagename|pagename|rootpagename|subpagename"},
    {write_if, false, "", "#if:"},
    {write_case, false, "", "lc:=l|lcfirst:=L|uc:=u|ucfirst:=U"},
    {NULL, false, "{,0}", "formatnum:"},
    {NULL, false, "{,1}", "fnum|format number|formatnum"},
    {NULL, false, "\n{1,text,quote}\n",
     "blockquotation|blockquote|bq|cquote|poem quote|poemquote|quotation|quote"},
    {write_link, false, "", "ill|ill-multi|interlanguage link|interlanguage link multi|iw"},
    {NULL, false, "{1} {2}", "sortname"},
    {NULL, true, "lit. '{1}'", "lit.|literally"},
    {NULL, false, "<{1} {2}/{3}>~<{2}/{3}>~<{1}/{2}>~<1/{1}>", "frac|fraction|mfrac|sfrac|tfrac"},
    {NULL, false, "{#1}<±{2}><×10^{e}>< {u}>< {ul}></{up}>", "val"},
    {write_music, false, "", "music"},
    {write_ship, false, "",
     "hdms=HDMS|hmas=HMAS|hmcs=HMCS|hmnzs=HMNZS|hms=HMS|hnlms=HNLMS|mv=MV|rfa=RFA|rms=RMS|rv=RV|ship|"
     "sms=SMS|ss=SS|uscgc=USCGC|usns=USNS|uss=USS"},
    {NULL, true, "<{1}-class>< {2}>", "sclass|sclass-|sclass2|sclass2-"},
    {write_language, false, "", "lang-|langx=2"},
    {write_nihongo, false, "", "nihongo|nihongo3"},
    {NULL, true, "<;Chinese: {c}><;traditional Chinese: {t}><;simplified Chinese: {s}><;pinyin: {p}>"
     "<;Tongyong Pinyin: {tp}><;Wade–Giles: {w}><;Jyutping: {j}><;Cantonese Yale: {cy}>"
     "<;Pe̍h-ōe-jī: {poj}><;lit. {l}>~{1}",
     "lang-zh|zh|zh-full"},
    {NULL, true, "<;Korean: {hangul}><;Hanja: {hanja}><;RR: {rr}><;MR: {mr}>~{1}", "korean"},
    {write_date, true, "",
     "bda|birth date|birth date and age|birthdate|dda=death|death date|death date and age=death|dob|"
     "end date|start date|start date and age"},
    {write_as_of, true, "", "as of|asof"},
    {NULL, true, "{1}< [O.S. {3}]> {2}", "oldstyledate"},
    {wikitext_quantities_convert, false, "", "convert|cvt=symbols"},
    {NULL, false, "|", "!"},
    {NULL, false, NULL, NULL},
};
/* clang-format on */
