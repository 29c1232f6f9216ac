/* option: one table per command; a row makes the flag, its checks, its environment variable, its help and its
 * docs.
 *
 * Accepted: `--name value`, `--name=value`; `-` and `_` are equal; `--` ends the flags.  The last value of a
 * flag that is given twice counts, with a warning; one whose value is the work itself, such as a question, is
 * refused.
 *
 * A command that starts other programs (ends_at_word) leaves all words from the first positional one on as
 * they are.
 *
 * Two rules keep a flag from swallowing its neighbour.  A flag that takes a value takes the next word unless
 * that begins with `--` (`--name=--value` gives such a value; a negative number has one dash).  A prefix of a
 * name is accepted where it is unambiguous, and a log line says which flag it stands for; every flag of the
 * replaced scripts has its own row, so that none is taken for a prefix of another.
 *
 * Slips of published command lines are read as they were meant, each with a log line, by commands that take
 * flags only: a space after `--name=`, and a backslash before a flag or at the end of a line.  A value
 * <in angle brackets> is a placeholder: an error, and in a dry run a warning. */
#ifndef KILN_CORE_OPTION_H
#define KILN_CORE_OPTION_H

#include "core/buf.h"
#include "core/json.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG, /* bool; no value, or --flag=false, which takes back what another flag would give */
    /* bool; true, yes, 1 or false, no, 0, upper or lower case; true if another flag or nothing follows, or,
     * where there are positional arguments, any other word */
    OPTION_BOOL,
    OPTION_INT,   /* int64_t; "1e3" is accepted where it is an integer */
    OPTION_REAL,  /* double */
    OPTION_PAIR,  /* double [2]: two words, or one with commas between them */
    OPTION_RANGE, /* double [2]: one number, which is both, or two with a colon between them */
    OPTION_WORDS, /* struct option_words, borrowed: all words up to the next flag, at least one */
    /* const char *, borrowed from argv, environment or table; "" is NULL if the default is "" */
    OPTION_STRING,
    OPTION_MEANS,         /* no value; stores `means` in the string of another flag */
    OPTION_SAME,          /* another name of the flag `means`, whose field, range and default it has */
    OPTION_IGNORED,       /* takes no value, has no meaning here; a log line says so */
    OPTION_IGNORED_VALUE, /* ignored, with an optional value */
    OPTION_NOT_YET,       /* a flag of the replaced scripts that kiln does not have yet: STATUS_UNAVAILABLE */
    OPTION_REFUSED, /* asks for something that kiln lacks and must not silently ignore; `help` says why */
    OPTION_ROWS,    /* no flag, but the rows of another table, whose offsets count from this one's */
};

enum { OPTION_MOST_WORDS = 512 };

struct option_words {
    const char *of[OPTION_MOST_WORDS]; /* [n] */
    int n;
};

/* The choices of an OPTION_BOOL that is true for all words but those for false, as in the replaced
 * scripts. */
#define OPTION_ANY_WORD "*"

struct option {
    const char *name; /* without dashes; NULL ends a table; "" starts a group headed by `help` */
    enum option_kind kind;
    size_t offset;            /* offset of the field in the command's argument struct */
    const char *default_text; /* parsed like a value; NULL: zero, NULL or false */
    const char *value_name;   /* name in the help, e.g. "DIR" */
    const char *help;
    bool required;       /* strings only */
    double min, max;     /* numbers only; both 0: no limits */
    const char *choices; /* "a|b|c"; NULL: anything.  OPTION_BOOL: words that mean true, or OPTION_ANY_WORD */
    const char *means;   /* OPTION_MEANS: the value that is stored; OPTION_SAME: the flag that this one is */
    const char *env;     /* the environment variable that is read if the flag is absent; NULL: none */
    bool adds;           /* an OPTION_WORDS appends a second value to the first */
    bool once;           /* a second value is refused: the flag is no setting, but the input of the command */
    bool of_rank;        /* may differ between the ranks of a run */
    bool is_text;        /* a string that may be empty, or look like a document's "<placeholder>" */
    const struct option *rows; /* OPTION_ROWS */
};

/* Flags that most commands have; a command's own struct holds them as `common`. */
struct command_flags {
    const char *config_file; /* configuration of the model */
    const char *output_dir;
    bool dry_run, disable_progress_bar;
};

/* Short forms of table rows: each leaves out the fields that its kind of flag lacks.  An empty default is
 * NULL. */
#define OPTION_GROUP_ROW(help_)                                                                              \
    {                                                                                                        \
        .name = "", .help = help_                                                                            \
    }
/* Settings that several commands have, for a struct of theirs at `at`. */
#define OPTION_ROWS_OF(rows_, at)                                                                            \
    {                                                                                                        \
        .name = "", .kind = OPTION_ROWS, .offset = at, .rows = rows_                                         \
    }
#define OPTION_SAME_ROW(name_, means_, help_)                                                                \
    {                                                                                                        \
        .name = name_, .kind = OPTION_SAME, .means = means_, .help = help_                                   \
    }
#define OPTION_FLAG_ROW(name_, at, help_)                                                                    \
    {                                                                                                        \
        .name = name_, .kind = OPTION_FLAG, .offset = at, .help = help_                                      \
    }
#define OPTION_BOOL_ROW(name_, at, default_, help_)                                                          \
    {                                                                                                        \
        .name = name_, .kind = OPTION_BOOL, .offset = at, .default_text = default_, .value_name = "BOOL",    \
        .help = help_                                                                                        \
    }
#define OPTION_MEANS_ROW(name_, at, means_, help_)                                                           \
    {                                                                                                        \
        .name = name_, .kind = OPTION_MEANS, .offset = at, .means = means_, .help = help_                    \
    }
#define OPTION_IGNORED_ROW(name_, help_)                                                                     \
    {                                                                                                        \
        .name = name_, .kind = OPTION_IGNORED, .help = help_                                                 \
    }
#define OPTION_IGNORED_VALUE_ROW(name_, value_, help_)                                                       \
    {                                                                                                        \
        .name = name_, .kind = OPTION_IGNORED_VALUE, .value_name = value_, .help = help_                     \
    }
#define OPTION_REFUSED_ROW(name_, help_)                                                                     \
    {                                                                                                        \
        .name = name_, .kind = OPTION_REFUSED, .help = help_                                                 \
    }
#define OPTION_NOT_YET_ROW(name_, help_)                                                                     \
    {                                                                                                        \
        .name = name_, .kind = OPTION_NOT_YET, .help = help_                                                 \
    }
#define OPTION_PAIR_ROW(name_, at, min_, max_, help_)                                                        \
    {                                                                                                        \
        .name = name_, .kind = OPTION_PAIR, .offset = at, .value_name = "X Y", .help = help_, .min = min_,   \
        .max = max_                                                                                          \
    }
#define OPTION_WORDS_ROW(name_, at, value_, help_)                                                           \
    {                                                                                                        \
        .name = name_, .kind = OPTION_WORDS, .offset = at, .value_name = value_, .help = help_               \
    }
/* Words of a flag that may be given several times, in a command with a struct option_given. */
#define OPTION_LIST_ROW(name_, at, value_, help_)                                                            \
    {                                                                                                        \
        .name = name_, .kind = OPTION_WORDS, .offset = at, .value_name = value_, .help = help_, .adds = true \
    }
#define OPTION_RANGE_ROW(name_, at, default_, min_, max_, help_)                                             \
    {                                                                                                        \
        .name = name_, .kind = OPTION_RANGE, .offset = at, .default_text = default_, .value_name = "X[:Y]",  \
        .help = help_, .min = min_, .max = max_                                                              \
    }
#define OPTION_INT_ROW(name_, at, default_, min_, max_, help_)                                               \
    {                                                                                                        \
        .name = name_, .kind = OPTION_INT, .offset = at, .default_text = default_, .value_name = "N",        \
        .help = help_, .min = min_, .max = max_                                                              \
    }
#define OPTION_REAL_ROW(name_, at, default_, min_, max_, help_)                                              \
    {                                                                                                        \
        .name = name_, .kind = OPTION_REAL, .offset = at, .default_text = default_, .value_name = "X",       \
        .help = help_, .min = min_, .max = max_                                                              \
    }
#define OPTION_STRING_ROW(name_, at, default_, value_, help_)                                                \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .default_text = default_, .value_name = value_,  \
        .help = help_                                                                                        \
    }
/* Read from the environment variable if the flag is absent. */
#define OPTION_ENV_ROW(name_, at, default_, value_, env_, help_)                                             \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .default_text = default_, .value_name = value_,  \
        .env = env_, .help = help_                                                                           \
    }
#define OPTION_TEXT_ROW(name_, at, help_)                                                                    \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .value_name = "TEXT", .help = help_,             \
        .is_text = true                                                                                      \
    }
#define OPTION_REQUIRED_ROW(name_, at, value_, help_)                                                        \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .value_name = value_, .help = help_,             \
        .required = true                                                                                     \
    }
/* A list with at least one word: its first one is where the string of other rows is. */
#define OPTION_REQUIRED_LIST_ROW(name_, at, value_, help_)                                                   \
    {                                                                                                        \
        .name = name_, .kind = OPTION_WORDS, .offset = at, .value_name = value_, .help = help_,              \
        .adds = true, .required = true                                                                       \
    }
/* The input of a command: given once. */
#define OPTION_INPUT_ROW(name_, at, value_, help_, required_)                                                \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .value_name = value_, .help = help_,             \
        .required = required_, .once = true                                                                  \
    }
#define OPTION_CHOICE_ROW(name_, at, default_, choices_, help_)                                              \
    {                                                                                                        \
        .name = name_, .kind = OPTION_STRING, .offset = at, .default_text = default_, .value_name = "NAME",  \
        .help = help_, .choices = choices_                                                                   \
    }

/* The flags that were given, by their rows in the table. */
struct option_given {
    uint64_t rows[4];
};

/* The help that a command line asks for. */
enum option_help {
    OPTION_NO_HELP,
    OPTION_USUAL_HELP, /* --help, -h */
    OPTION_ALL_HELP,   /* --help all */
};

struct command {
    const char *name;
    const char *summary;          /* one line, for `kiln help` */
    const char *details;          /* paragraphs for `kiln NAME --help`; may be NULL */
    const char *positional_usage; /* "FILE..."; NULL: there are none */
    int min_positional, max_positional;
    const char *meant; /* "; ...": added to errors of usage, where another command may be meant; NULL: none */
    bool ends_at_word; /* the first positional argument ends the flags: later ones are another program's */
    const struct option *options;
    const char *usual; /* "a|b|c": the flags that --help explains, by their rows' names; NULL: all of them */
    size_t given;      /* offset of a struct option_given in the argument struct; 0: the command has none */
    /* "KILN_X_": a flag that is not given is taken from KILN_X_FLAG; NULL: none is */
    const char *environment;
    size_t args_bytes; /* size of the argument struct, at most OPTION_ARGS_BYTES */
    struct status (*run)(const void *args, int n_positional, const char *const *positional);
    bool of_ranks; /* several processes that a launcher has started run it together */
};

enum { OPTION_ARGS_BYTES = 32768 };

/* A walk over the rows of a command, with those of the tables in its table. */
struct option_walk {
    struct option row; /* row, with its offset in the argument struct */
    int n;             /* rows up to the current one */
    int depth;
    struct {
        const struct option *next;
        size_t at;
    } tables[4];
};

/* The next row of a walk that began as {0}; false: there is none. */
bool option_next(struct option_walk *w, const struct command *c);

/* Parses argv[0..argc) into `args` (args_bytes, zeroed first) and compacts positional arguments to the front
 * of argv. STATUS_USAGE names the flag, the value and the limit; after --help, which sets *help, nothing else
 * is checked. */
struct status option_parse(const struct command *c, int argc, const char **argv, void *args,
                           int *n_positional, enum option_help *help);

/* Whether the command line of a command with a struct option_given had this flag, or another for the same
 * value. */
bool option_was_given(const struct command *c, const void *args, const char *name);

/* The first of these names, "a|b|c", that option_was_given has; NULL: none of them. */
const char *option_first_given(const struct command *c, const void *args, const char *names);

/* Sets the value of a flag that was not given, for a default that depends on other flags.  The text must be
 * valid. */
void option_set_default(const struct command *c, void *args, const char *name, const char *text);

/* Gives a flag a value as if it were on the command line, unless it was.  True: it was not.  The text must be
 * valid. */
bool option_give(const struct command *c, void *args, const char *name, const char *text);

/* A flag's name with '_' for '-'. */
struct option_key {
    char text[64];
};
struct option_key option_key(const struct option *o);

/* An object from option_key to the parsed values, in the order of the table; an absent
 * string is null.  The caller json_decref's it; NULL if memory runs out. */
json_t *option_values(const struct command *c, const void *args);

/* Appends "kiln NAME --flag=value ..." with the flags that were given, as a shell would read it back. */
void option_append_line(struct buf *out, const struct command *c, const void *args);

/* Writes the help of a command to standard output, wrapped to 100 columns: with all flags, or the usual ones
 * only. */
void option_print_help(const struct command *c, enum option_help which);

#endif
