/* What a wiki says of itself tells files, categories and other wikis from articles, in any language. */
#include "corpus/wiki_site.h"

#include "test.h"

static int namespace_of(const struct wiki_site *site, const char *text)
{
    return wiki_site_namespace(site, text, strlen(text));
}

static void add(struct wiki_site *site, int number, const char *name)
{
    EXPECT_OK(wiki_site_add_namespace(site, number, name, strlen(name)));
}

static void english_names_hold_everywhere(void)
{
    struct wiki_site site;
    EXPECT_OK(wiki_site_init(&site));
    const struct {
        const char *text;
        int number;
    } cases[] = {
        {"File:a.jpg", WIKI_SITE_FILE},
        {"image:a.jpg", WIKI_SITE_FILE},
        {"CATEGORY:x", WIKI_SITE_CATEGORY},
        {" user__talk : x", 3},
        {"Media:x.ogg", WIKI_SITE_MEDIA},
        {"Special:Log", WIKI_SITE_SPECIAL},
        {"Wikipedia:x", WIKI_SITE_NO_NAMESPACE}, /* until <siteinfo> names it */
        {"2001: A Space Odyssey", WIKI_SITE_NO_NAMESPACE},
        {"File", WIKI_SITE_NO_NAMESPACE},
        {":x", WIKI_SITE_NO_NAMESPACE},
        {"", WIKI_SITE_NO_NAMESPACE},
        {"Bild:a.jpg", WIKI_SITE_NO_NAMESPACE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EXPECT(namespace_of(&site, cases[i].text) == cases[i].number, "'%s': %d", cases[i].text,
               namespace_of(&site, cases[i].text));
    }
    wiki_site_fini(&site);
}

static void a_dump_names_its_own(void)
{
    struct wiki_site site;
    EXPECT_OK(wiki_site_init(&site));
    EXPECT_OK(wiki_site_set_language(&site, "de", 2));
    add(&site, WIKI_SITE_FILE, "Datei");
    add(&site, WIKI_SITE_CATEGORY, "Kategorie");
    add(&site, WIKI_SITE_ARTICLE, "");
    add(&site, 100, "Überblick  Übersicht");
    EXPECT(namespace_of(&site, "datei:x") == WIKI_SITE_FILE, "Datei");
    EXPECT(namespace_of(&site, "Bild:x") == WIKI_SITE_FILE, "an old name");
    EXPECT(namespace_of(&site, "File:x") == WIKI_SITE_FILE, "English");
    EXPECT(namespace_of(&site, "KATEGORIE:x") == WIKI_SITE_CATEGORY, "Kategorie");
    EXPECT(namespace_of(&site, "überblick_übersicht:x") == 100, "letters outside ASCII, and spaces");
    add(&site, 200, "image"); /* a name can be given away */
    EXPECT(namespace_of(&site, "Image:x") == 200, "a known name");
    EXPECT(!site.has_variants, "German");
    EXPECT_OK(wiki_site_set_language(&site, "zh", 2));
    EXPECT(site.has_variants && namespace_of(&site, "图像:x") == WIKI_SITE_FILE, "Chinese");
    wiki_site_fini(&site);
}

static void long_names_are_none(void)
{
    struct wiki_site site;
    EXPECT_OK(wiki_site_init(&site));
    size_t before = site.n_namespaces;
    char name[300];
    memset(name, 'x', sizeof name);
    EXPECT_OK(wiki_site_add_namespace(&site, 5, name, sizeof name));
    name[sizeof name - 1] = ':';
    EXPECT(site.n_namespaces == before, "%zu names", site.n_namespaces);
    EXPECT(wiki_site_namespace(&site, name, sizeof name) == WIKI_SITE_NO_NAMESPACE, "long");
    EXPECT(!wiki_site_is_other_wiki(&site, name, sizeof name), "long");
    wiki_site_fini(&site);
}

static void prefixes_of_other_wikis(void)
{
    struct wiki_site site;
    EXPECT_OK(wiki_site_init(&site));
    const char *yes[] = {"de",  "zh-min-nan", "wikt", "Wiktionary", "commons",
                         " s ", "simple",     "w",    "zu",         "ab"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        EXPECT(wiki_site_is_other_wiki(&site, yes[i], strlen(yes[i])), "%s", yes[i]);
    }
    const char *no[] = {"2001", "Star Trek", "File", "", "dee", "zzz", "a"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        EXPECT(!wiki_site_is_other_wiki(&site, no[i], strlen(no[i])), "%s", no[i]);
    }
    for (int i = 1; i < wiki_site_n_prefixes; i++) {
        EXPECT(strcmp(wiki_site_prefixes[i - 1], wiki_site_prefixes[i]) < 0, "%s", wiki_site_prefixes[i]);
    }
    add(&site, 4, "w"); /* a namespace goes before another wiki */
    EXPECT(!wiki_site_is_other_wiki(&site, "w", 1), "w");
    wiki_site_fini(&site);
}

static void redirects_in_any_language(void)
{
    const char *yes[] = {"#REDIRECT [[A]]", "#redirect[[A]]", "\n #WEITERLEITUNG: [[A]]", "#重定向 [[A]]",
                         "#перенаправление [[A]]\n\n{{x}}"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        EXPECT(wiki_site_is_redirect(yes[i], strlen(yes[i])), "%s", yes[i]);
    }
    const char *no[] = {
        "", "#", "# [[A]]", "#REDIRECT A", "x #REDIRECT [[A]]", "#one two [[A]]", "#REDIRECT [A]", "#x ["};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        EXPECT(!wiki_site_is_redirect(no[i], strlen(no[i])), "%s", no[i]);
    }
}

int main(void)
{
    english_names_hold_everywhere();
    a_dump_names_its_own();
    long_names_are_none();
    prefixes_of_other_wikis();
    redirects_in_any_language();
    return 0;
}
