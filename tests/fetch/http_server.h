/* http_server: a server of files on this machine that can misbehave, for tests of src/fetch.
 *
 * /PATH is the file below its root, served as it should be: Range, If-Range, ETag, Content-Length.
 * /~NAME/PATH is the same file by a server that has the habit of that name; /~codeNNN/PATH is answered by the
 * code NNN the first time.  The habits: */
#ifndef KILN_TESTS_FETCH_HTTP_SERVER_H
#define KILN_TESTS_FETCH_HTTP_SERVER_H

#include <pthread.h>
#include <stdint.h>

enum habit {
    HABIT_NONE,
    HABIT_CUT,           /* breaks off after half of what is left, until little is */
    HABIT_NO_RANGE,      /* sends all of it whatever was asked for; breaks off the first time */
    HABIT_NEVER_ALL,     /* sends all from the beginning, and breaks off at half, each time */
    HABIT_CHANGES,       /* breaks off, and has another version (other bytes, another ETag) the next time */
    HABIT_CHANGES_MUTE,  /* the same with the same ETag */
    HABIT_CHANGES_BLIND, /* the same, and it sends the rest of the other version whatever If-Range says */
    HABIT_LONGER,        /* says that it is 100 bytes longer than it is */
    HABIT_SHORTER,       /* says that it is 100 bytes shorter */
    HABIT_ENORMOUS,      /* says that it has as many bytes as no disk */
    HABIT_TOO_MUCH,      /* breaks off; then says where the rest begins and sends more than that */
    HABIT_OTHER_PART,    /* breaks off; then sends another part than it was asked for, as 206 */
    HABIT_NO_SUCH_PART,  /* breaks off; then answers 416, and to a question without Range with all of it */
    HABIT_WRONG,         /* one byte of it is wrong */
    HABIT_NO_LENGTH,     /* says no length, and closes at the end */
    HABIT_CHUNKED,       /* in chunks */
    HABIT_CHUNKED_CUT,   /* in chunks, the first time without the last one */
    HABIT_REDIRECT,      /* to the same path without the habit */
    HABIT_REDIRECT_LOOP, /* to itself */
    HABIT_REDIRECT_FILE, /* to file:///etc/passwd */
    HABIT_GONE,          /* 404 */
    HABIT_BUSY,          /* 503 with Retry-After: 1, the first time */
    HABIT_CLOSED,        /* 503 with Retry-After: 86400 */
    HABIT_HANGS,         /* half of it, then nothing more; the next time it is honest */
    HABIT_SILENT,        /* half of it, then nothing more, whoever asks for the rest */
    HABIT_DEAF,          /* takes the connection and says nothing */
    HABIT_VANISH,        /* half of it, then nobody listens any more */
    N_HABITS,
};

struct http_server {
    int listener, port;
    char root[512];
    pthread_t thread;
    int n_requests;     /* answered so far; set it to 0 between cases */
    char seen[64][512]; /* [n_seen] paths with habits that were asked for since then */
    int n_seen;
    int64_t from; /* of the last request; 0: it had no Range */
};

/* Listens at a free port of 127.0.0.1. */
void http_server_open(struct http_server *s, const char *root);

/* Answers, one connection after the other, until nobody listens any more. */
void *http_server_serve(void *server);

/* In a thread of its own; ended by http_server_end. */
void http_server_begin(struct http_server *s, const char *root);
void http_server_end(struct http_server *s);

/* The name that stands in a path: "cut". */
const char *http_server_habit_name(enum habit habit);

#endif
