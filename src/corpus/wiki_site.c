#include "corpus/wiki_site.h"

#include "core/array.h"
#include "corpus/text_line.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct known_name {
    const char *language; /* NULL: of every wiki */
    int number;
    const char *name;
};

/* Manual:Namespace; and names that were in use before those that <siteinfo> gives, of MediaWiki's
 * languages/messages ($namespaceAliases). */
static const struct known_name known_names[] = {
    {NULL, -2, "Media"},         {NULL, -1, "Special"},
    {NULL, 1, "Talk"},           {NULL, 2, "User"},
    {NULL, 3, "User talk"},      {NULL, 4, "Project"},
    {NULL, 5, "Project talk"},   {NULL, 6, "File"},
    {NULL, 7, "File talk"},      {NULL, 6, "Image"},
    {NULL, 7, "Image talk"},     {NULL, 8, "MediaWiki"},
    {NULL, 9, "MediaWiki talk"}, {NULL, 10, "Template"},
    {NULL, 11, "Template talk"}, {NULL, 12, "Help"},
    {NULL, 13, "Help talk"},     {NULL, 14, "Category"},
    {NULL, 15, "Category talk"}, {"en", 4, "WP"},
    {"de", 6, "Bild"},           {"sv", 6, "Bild"},
    {"da", 6, "Billede"},        {"no", 6, "Bilde"},
    {"nn", 6, "Bilde"},          {"nl", 6, "Afbeelding"},
    {"es", 6, "Imagen"},         {"it", 6, "Immagine"},
    {"pt", 6, "Imagem"},         {"pt", 6, "Arquivo"},
    {"pt", 6, "Ficheiro"},       {"ca", 6, "Imatge"},
    {"ro", 6, "Imagine"},        {"pl", 6, "Grafika"},
    {"ru", 6, "Изображение"},    {"uk", 6, "Зображення"},
    {"bg", 6, "Картинка"},       {"sr", 6, "Слика"},
    {"fi", 6, "Kuva"},           {"hu", 6, "Kép"},
    {"tr", 6, "Resim"},          {"el", 6, "Εικόνα"},
    {"he", 6, "תמונה"},          {"ar", 6, "صورة"},
    {"fa", 6, "تصویر"},          {"ja", 6, "画像"},
    {"zh", 6, "图像"},           {"zh", 6, "圖像"},
    {"zh", 6, "文件"},           {"zh", 6, "檔案"},
    {"zh", 6, "档案"},           {"zh", 6, "图片"},
    {"zh", 6, "圖片"},           {"zh", 14, "分类"},
    {"zh", 14, "分類"},          {"ko", 6, "그림"},
    {"vi", 6, "Hình"},
};

/* MediaWiki's languages/converters. */
static const char *const variant_languages[] = {"ban", "crh", "gan", "iu",  "kk", "ku",  "mni", "sh",
                                                "shi", "sr",  "tg",  "tly", "uz", "wuu", "zgh", "zh"};

/* The name in the form in which names are compared; 0 if it is empty or too long. */
static size_t normalize(char out[WIKI_SITE_NAME_BYTES], const char *name, size_t n)
{
    size_t length = 0;
    bool space = false;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, name + at, n - at);
        if (c == ' ' || c == '_' || c == '\t') {
            space = length > 0;
            continue;
        }
        if (length + (size_t)space + UTF8_MAX_BYTES > WIKI_SITE_NAME_BYTES) {
            return 0;
        }
        if (space) {
            out[length++] = ' ';
            space = false;
        }
        length += (size_t)utf8_write(out + length, letter_case_lower(c));
    }
    return length;
}

static struct wiki_site_name *find_name(const struct wiki_site *site, const char *key, size_t n)
{
    for (size_t i = 0; i < site->n_namespaces; i++) {
        struct wiki_site_name *name = &site->namespaces[i];
        if (name->n == n && memcmp(site->names.data + name->begin, key, n) == 0) {
            return name;
        }
    }
    return NULL;
}

struct status wiki_site_add_namespace(struct wiki_site *site, int number, const char *name, size_t n)
{
    char key[WIKI_SITE_NAME_BYTES];
    size_t length = normalize(key, name, n);
    if (length == 0) {
        return status_ok();
    }
    struct wiki_site_name *known = find_name(site, key, length);
    if (known != NULL) {
        known->number = number;
        return status_ok();
    }
    FAIL_IF(!ARRAY_RESERVE(site->namespaces, site->capacity, site->n_namespaces + 1), STATUS_MEMORY,
            "out of memory for %zu namespaces", site->n_namespaces + 1);
    size_t begin = site->names.n;
    buf_append(&site->names, key, length);
    TRY(buf_status(&site->names));
    site->namespaces[site->n_namespaces++] = (struct wiki_site_name){number, begin, length};
    return status_ok();
}

/* The names of a language; NULL: those of every wiki. */
static struct status add_known_names(struct wiki_site *site, const char *language)
{
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++) {
        const struct known_name *k = &known_names[i];
        bool of_it = language == NULL ? k->language == NULL
                                      : k->language != NULL && strcmp(k->language, language) == 0;
        char key[WIKI_SITE_NAME_BYTES];
        if (of_it && find_name(site, key, normalize(key, k->name, strlen(k->name))) == NULL) {
            TRY(wiki_site_add_namespace(site, k->number, k->name, strlen(k->name)));
        }
    }
    return status_ok();
}

struct status wiki_site_init(struct wiki_site *site)
{
    *site = (struct wiki_site){0};
    struct status s = add_known_names(site, NULL);
    if (failed(s)) {
        wiki_site_fini(site);
    }
    return s;
}

void wiki_site_fini(struct wiki_site *site)
{
    buf_fini(&site->language);
    buf_fini(&site->base);
    buf_fini(&site->names);
    free(site->namespaces);
    *site = (struct wiki_site){0};
}

void wiki_site_free_list(struct wiki_site *first)
{
    while (first != NULL) {
        struct wiki_site *next = first->next;
        wiki_site_fini(first);
        free(first);
        first = next;
    }
}

struct status wiki_site_set_language(struct wiki_site *site, const char *language, size_t n)
{
    buf_clear(&site->language);
    buf_append(&site->language, language, n);
    TRY(buf_status(&site->language));
    site->has_variants = false;
    for (size_t i = 0; i < sizeof variant_languages / sizeof *variant_languages; i++) {
        site->has_variants |= strcmp(buf_text(&site->language), variant_languages[i]) == 0;
    }
    return add_known_names(site, buf_text(&site->language));
}

int wiki_site_namespace(const struct wiki_site *site, const char *text, size_t n)
{
    size_t limit = n < WIKI_SITE_NAME_BYTES ? n : WIKI_SITE_NAME_BYTES;
    const char *colon = limit == 0 ? NULL : memchr(text, ':', limit);
    if (colon == NULL) {
        return WIKI_SITE_NO_NAMESPACE;
    }
    char key[WIKI_SITE_NAME_BYTES];
    size_t length = normalize(key, text, (size_t)(colon - text));
    const struct wiki_site_name *name = length == 0 ? NULL : find_name(site, key, length);
    return name == NULL ? WIKI_SITE_NO_NAMESPACE : name->number;
}

bool wiki_site_is_other_wiki(const struct wiki_site *site, const char *prefix, size_t n)
{
    char key[WIKI_SITE_NAME_BYTES];
    size_t length = normalize(key, prefix, n);
    if (length == 0 || length == WIKI_SITE_NAME_BYTES || find_name(site, key, length) != NULL) {
        return false;
    }
    key[length] = '\0';
    int low = 0, high = wiki_site_n_prefixes;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(wiki_site_prefixes[middle], key);
        if (order == 0) {
            return true;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return false;
}

bool wiki_site_is_redirect(const char *markup, size_t n)
{
    size_t at = 0;
    while (at < n && text_line_is_one_of(markup[at], " \t\r\n")) {
        at++;
    }
    if (at == n || markup[at] != '#') {
        return false;
    }
    size_t word = ++at;
    while (at < n && at - word < WIKI_SITE_NAME_BYTES &&
           !text_line_is_one_of(markup[at], " \t\r\n:[]|{}<>*#")) {
        at++;
    }
    if (at == word) {
        return false;
    }
    while (at < n && at - word < WIKI_SITE_NAME_BYTES && text_line_is_one_of(markup[at], " \t:")) {
        at++;
    }
    return n - at > 2 && memcmp(markup + at, "[[", 2) == 0;
}
