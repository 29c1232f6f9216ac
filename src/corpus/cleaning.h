/* cleaning: which documents and lines are left out because the user asked for it; by default none.
 *
 * The rule: decisions are made in the order of the corpus, by one thread at a time, and what they depend on
 * can be saved and loaded, so they are the same for any number of threads and however often a run was
 * interrupted.
 *
 * Of a document that comes in pieces (of about DOCUMENT_BYTES), the first decides for all; but a piece with
 * text of an evaluation is left out by itself.  Memory is bounded: lines are counted by corpus/repeats.h, and
 * CLEANING_MOST_DOCUMENTS documents are remembered, or CLEANING_MOST_NEAR_DOCUMENTS for near duplicates;
 * later ones are still compared with these. */
#ifndef KILN_CORPUS_CLEANING_H
#define KILN_CORPUS_CLEANING_H

#include "corpus/evaluation_words.h"
#include "corpus/near_hashes.h"
#include "corpus/quality.h"
#include "corpus/repeats.h"

/* Twice the articles of the largest Wikipedia; their hashes take 512 MiB. */
enum { CLEANING_MOST_DOCUMENTS = 1 << 24 };

/* To find near duplicates fewer are remembered: their hashes take 1 GiB. */
enum { CLEANING_MOST_NEAR_DOCUMENTS = 1 << 22 };

struct cleaning_config {
    bool drop_duplicates, drop_near_duplicates;
    int64_t drop_repeated_lines; /* lines that occurred more often than this are left out; 0: none */
    int64_t min_document_chars;  /* code points */
    uint64_t scripts;            /* at least half of a document's letters must be of these; 0: of any */
    struct quality_limits quality;
    const struct evaluation_words *evaluation; /* no document may share words with it; NULL, borrowed */
};

struct cleaning_counts {
    int64_t documents[DOCUMENT_N_FATES]; /* left out, and why */
    int64_t n_lines;                     /* left out */
    int64_t n_unremembered;              /* documents that came when the memory of them was full */
};

/* What the decisions have to know of a document: a function of the document alone, and of one in pieces, of
 * the first.  Any thread computes it. */
/* The facts that are asked for; the others are 0. */
struct document_facts_config {
    bool hash, near, chars;
    uint64_t scripts; /* a bit for each of text/script.h; 0: letters are not counted */
    struct quality_limits quality;
    const struct evaluation_words *evaluation; /* NULL: nobody asks; borrowed */
};

enum { DOCUMENT_HASH_BYTES = 16 };

struct document_facts {
    unsigned char hash[DOCUMENT_HASH_BYTES]; /* MD5 of the paragraphs, with an end of line after each */
    uint64_t near[NEAR_HASHES_BANDS];        /* near_hashes_make's */
    int64_t n_chars;                         /* code points */
    int64_t n_letters, n_wanted;             /* code points of any script, and of the scripts asked for */
    enum document_fate quality;              /* the limit that it exceeds, or DOCUMENT_KEPT */
    bool is_contaminated;
};

struct cleaning {
    struct cleaning_config config;
    struct cleaning_counts counts;
    struct repeats repeats;
    bool drops;                  /* the document whose pieces follow */
    struct hash_set known, near; /* hashes of documents, and of their bands */
};

/* The part of a saved state that belongs to cleaning. */
struct cleaning_place {
    struct append_mark documents, near_documents;
    struct cleaning_counts counts;
    bool drops;
};

/* The facts that the decisions need. */
struct document_facts_config cleaning_facts(const struct cleaning_config *config);

/* Makes the facts of a document that the configuration asks for.  STATUS_MEMORY. */
struct status cleaning_make_facts(struct document_facts *f, const struct document_facts_config *config,
                                  const struct document *d);

/* `directory` is where the hashes of documents are kept between runs; NULL: nowhere.  `in` has what
 * cleaning_save appended; NULL: the beginning.  STATUS_MEMORY, STATUS_IO, STATUS_DATA. */
struct status cleaning_open(struct cleaning *c, struct cleaning_config config, const char *directory,
                            const struct cleaning_place *from, struct span *in);
void cleaning_close(struct cleaning *c);

/* Decides on a document or piece: DOCUMENT_KEPT, or why it is left out.  STATUS_MEMORY. */
struct status cleaning_judge(struct cleaning *c, enum document_fate *fate, const struct document_facts *facts,
                             bool begins);

/* Counts a line of a document that is kept, and decides on it. */
bool cleaning_keeps_line(struct cleaning *c, uint64_t hash, const char *line, size_t n);

/* Makes the hashes on disk durable, fills in *place and appends the rest of the state to `out`. */
struct status cleaning_save(struct cleaning *c, struct cleaning_place *place, struct buf *out);

/* Bytes of memory that n_documents take, or as many as are remembered. */
size_t cleaning_memory_bytes(const struct cleaning_config *config, double n_documents);

/* Whether anything is left out at all. */
bool cleaning_is_on(const struct cleaning_config *config);

#endif
