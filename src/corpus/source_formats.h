/* source_formats: the formats that a file of text may have, and which one it has.
 *
 *   text   a document is a file; blank lines end paragraphs, whose lines are joined (wrapped prose, books)
 *   lines  blank lines end documents; a line is a paragraph, or a sentence
 *   wiki   what WikiExtractor writes: <doc id= url= title=>, the title's line (dropped), paragraphs, </doc>
 *   json   JSON lines: a line is an object, its text is in a field
 *   dump   a MediaWiki export (XML), such as Wikipedia's pages-articles: a page is a document
 *
 * Without a choice the beginning of each file decides: dump if it begins with <mediawiki, json if its first
 * line is an object, wiki if it begins with <doc id=, lines if most lines end like a sentence and are
 * consecutive, else text. Files that corpus/not_text.h recognises are refused by name, except that XML, HTML
 * and JSON are read as prose if `text` or `lines` is asked for.  Where text is kept exactly, the name of a
 * file may say that it is lines of JSON, and each other file of plain text is a document. */
#ifndef KILN_CORPUS_SOURCE_FORMATS_H
#define KILN_CORPUS_SOURCE_FORMATS_H

#include "corpus/source.h"

/* The names, for a flag's values. */
#define SOURCE_FORMATS_NAMES "auto|text|lines|wiki|json|dump"

extern const struct source_format text_source, lines_source, wiki_source, json_source, dump_source;

/* Each is asked only if no later row recognises the file; the first, text, takes every other file. */
extern const struct source_format *const source_formats[SOURCE_N_FORMATS];

/* The format of this name; *format is NULL for "auto".  False if there is none. */
bool source_formats_find(const struct source_format **format, const char *name);

/* The row of a format. */
int source_formats_index(const struct source_format *format);

/* Whether the name of a file says that it is lines of JSON, packed or not. */
bool source_formats_names_json(const char *path);

/* Sets *format to `wanted` or, if that is NULL, to the format of a file that begins with head[0..n).
 * STATUS_DATA, naming `path`: it is not text. */
struct status source_formats_choose(const struct source_format **format, const struct source_format *wanted,
                                    const char *path, const char *head, size_t n);

#endif
