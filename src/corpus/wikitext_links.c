/* wikitext_links: what of a link is text: the label, or the name of the page; nothing of links to files,
 * categories, other namespaces and other wikis.  Source: WikiExtractor's makeInternalLink, MediaWiki's
 * Help:Links. */
#include "corpus/wikitext_emit.h"

#include "corpus/text_line.h"

#include <string.h>
#include <strings.h>

/* MediaWiki's $wgUrlProtocols. */
static const char *const protocols[] = {
    "http://",  "https://", "//",        "ftp://",       "ftps://",   "mailto:", "news:",
    "irc://",   "ircs://",  "gopher://", "nntp://",      "telnet://", "svn://",  "git://",
    "mms://",   "sftp://",  "ssh://",    "worldwind://", "bitcoin:",  "geo:",    "magnet:",
    "redis://", "sip:",     "sips:",     "sms:",         "tel:",      "urn:",    "xmpp:",
};

/* Other wikis whose links stay, as WikiExtractor's acceptedNamespaces. */
static const char *const accepted[] = {"w", "wiktionary", "wikt"};

/* Whether text[0..n) begins with a protocol and something after it. */
static bool is_url(const char *text, size_t n)
{
    for (size_t i = 0; n > 0 && i < sizeof protocols / sizeof *protocols; i++) {
        if ((text[0] | 0x20) != (protocols[i][0] | 0x20)) {
            continue;
        }
        size_t length = strlen(protocols[i]);
        if (n > length && strncasecmp(text, protocols[i], length) == 0) {
            return !text_line_is_one_of(text[length], " ]\n[");
        }
    }
    return false;
}

/* Moves past an address and the spaces that follow it; templates and comments in it are passed over. */
static void skip_url(struct wikitext_emit *e, size_t limit)
{
    while (e->at < limit && (unsigned char)e->markup[e->at] > ' ' &&
           !text_line_is_one_of(e->markup[e->at], "]<>\"[")) {
        while (e->span < e->n_spans && e->spans[e->span].begin < e->at) {
            e->span++;
        }
        const struct wikitext_span *span = e->span < e->n_spans ? &e->spans[e->span] : NULL;
        bool inside = span != NULL && span->begin == e->at && span->kind != WIKITEXT_SPAN_UNCLOSED;
        e->at = inside ? span->end : e->at + 1;
    }
    while (e->at < limit && e->markup[e->at] == ' ') {
        e->at++;
    }
}

bool wikitext_links_open_external(struct wikitext_emit *e)
{
    size_t limit = e->n_frames > 0 ? e->frames[e->n_frames - 1].close : e->n;
    if (!is_url(e->markup + e->at + 1, limit - e->at - 1)) {
        return false;
    }
    e->at++;
    skip_url(e, limit);
    e->external = true;
    return true;
}

/* Moves *begin past the prefix of a link to a wiki whose links stay; false: the link is dropped. */
static bool take_prefix(const struct wikitext_emit *e, size_t *begin, size_t end)
{
    size_t n = end - *begin;
    const char *target = e->markup + *begin;
    const char *colon =
        n == 0 ? NULL : memchr(target, ':', n < WIKI_SITE_NAME_BYTES ? n : WIKI_SITE_NAME_BYTES);
    if (colon == NULL) {
        return true;
    }
    int number = wiki_site_namespace(e->site, target, n);
    if (number != WIKI_SITE_NO_NAMESPACE) {
        return number == WIKI_SITE_ARTICLE;
    }
    size_t length = (size_t)(colon - target);
    if (!wiki_site_is_other_wiki(e->site, target, length)) {
        return true;
    }
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (strlen(accepted[i]) == length && strncasecmp(target, accepted[i], length) == 0) {
            *begin += length + 1;
            return true;
        }
    }
    return false;
}

void wikitext_links_open(struct wikitext_emit *e, const struct wikitext_span *span)
{
    size_t begin = span->begin + 2, limit = span->end - 2;
    while (begin < limit && e->markup[begin] == ' ') {
        begin++;
    }
    begin += begin < limit && e->markup[begin] == ':';
    const char *bar = memchr(e->markup + begin, '|', limit - begin);
    size_t end = bar == NULL ? limit : (size_t)(bar - e->markup);
    e->counts->n_work += (int64_t)(end - begin);
    if (is_url(e->markup + begin, limit - begin)) { /* a link of one bracket, written with two */
        e->at = begin;
        skip_url(e, limit);
        wikitext_emit_push(e, span, e->at, 2)->target = begin;
        return;
    }
    if (!take_prefix(e, &begin, end)) {
        e->at = span->end;
        return;
    }
    if (memchr(e->markup + begin, '\n', end - begin) != NULL) { /* not the name of a page */
        e->at = span->begin + 2;
        return;
    }
    wikitext_emit_push(e, span, begin, 2)->target = begin;
}

/* [[Help:Boston (city)|]] and [[Boston, England|]] read "Boston". */
static void write_short_name(struct wikitext_emit *e, const struct wikitext_frame *frame)
{
    const char *name = e->markup + frame->target;
    size_t n = (size_t)((const char *)memchr(name, '|', frame->close - frame->target) - name);
    while (n > 0 && name[n - 1] == ' ') {
        n--;
    }
    const char *end = NULL;
    if (n > 0 && name[n - 1] == ')') {
        end = memchr(name, '(', n);
    }
    end = end == NULL && n > 0 ? memchr(name, ',', n) : end;
    if (end != NULL && end > name) {
        n = (size_t)(end - name);
    }
    while (n > 0 && name[n - 1] == ' ') {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        bool text = wikitext_emit_is_text(name[i]) && !text_line_is_one_of(name[i], "[]{}<>");
        buf_append(&e->text, &name[i], text);
    }
}

void wikitext_links_close(struct wikitext_emit *e)
{
    struct wikitext_frame *frame = &e->frames[e->n_frames - 1];
    size_t n = e->text.n - frame->text;
    char *label = n == 0 ? NULL : e->text.data + frame->text;
    if (n == 0 && frame->has_bar) {
        write_short_name(e, frame);
    }
    for (char *at = label; at != NULL && (at = memchr(at, '\n', n - (size_t)(at - label))) != NULL; at++) {
        *at = ' ';
    }
    e->counts->n_work += (int64_t)n;
    e->n_frames--;
    e->n_parts = frame->first_part;
    e->at = frame->end;
}

/* ---- -{ }- ---- */

/* The text of one variant of "zh-hans:a;zh-hant:b": the first.  Without names of variants, all of it. */
static void write_first_variant(struct wikitext_emit *e, const char *rules, size_t n)
{
    const char *colon = n == 0 ? NULL : memchr(rules, ':', n < 16 ? n : 16);
    size_t length = colon == NULL ? 0 : (size_t)(colon - rules), at = 0;
    while (at < length &&
           ((rules[at] >= 'a' && rules[at] <= 'z') || text_line_is_one_of(rules[at], "- \n"))) {
        at++;
    }
    if (length > 0 && at == length) {
        const char *text = colon + 1, *end = memchr(text, ';', n - length - 1);
        buf_append(&e->scratch, text, end == NULL ? n - length - 1 : (size_t)(end - text));
    } else {
        buf_append(&e->scratch, rules, n);
    }
}

void wikitext_links_close_variant(struct wikitext_emit *e)
{
    const struct wikitext_frame *frame = &e->frames[e->n_frames - 1];
    const struct wikitext_part *first = &e->parts[frame->first_part], *last = &e->parts[e->n_parts - 1];
    bool hidden = first != last && first->end - first->begin == 1 && e->text.data[first->begin] == '-';
    for (size_t i = first->begin; first != last && i < first->end;
         i++) { /* names of variants are in lower case */
        hidden = hidden || e->text.data[i] == 'H' || e->text.data[i] == 'T';
    }
    if (!hidden) {
        write_first_variant(e, e->text.data + last->begin, last->end - last->begin);
    }
    wikitext_emit_replace(e);
}
