/* label_lines: labels each line of standard input, or each of its words, with a fine-tuned model.  It needs
 * only the files that `make install` put under a prefix.
 *
 *     label_lines classify MODEL_DIR <FILE  a line is a text, or two and a tab; prints label and score
 *     label_lines tag MODEL_DIR <FILE       a line is a sentence; prints each word and its label */
#define _GNU_SOURCE
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kiln_text text_of(const char *bytes)
{
    return (struct kiln_text){bytes, strlen(bytes)};
}

/* Prints the label that holds, all labels that hold, or the number. */
static void print_labels(const struct kiln_labels *l)
{
    const char *between = "";
    for (int64_t k = 0; k < l->n_labels; k++) {
        const struct kiln_label *label = &l->labels[k];
        if (label->holds && l->problem == KILN_NUMBERS) {
            printf("%s%.4f", between, label->score);
            between = "\t";
        } else if (label->holds) {
            printf("%s%s %.4f", between, label->name, label->score);
            between = "\t";
        }
    }
    printf("\n");
}

static struct kiln_status classify(struct kiln_session *session, char *line)
{
    char *tab = strchr(line, '\t');
    struct kiln_text pair = text_of(tab == NULL ? "" : tab + 1);
    struct kiln_labels labels;
    if (tab != NULL) {
        *tab = '\0';
    }
    struct kiln_text text = text_of(line);
    struct kiln_status s = kiln_classify(session, &labels, &text, tab == NULL ? NULL : &pair, 1);
    if (s.code == KILN_OK) {
        print_labels(&labels);
        kiln_labels_free(&labels);
    }
    return s;
}

static struct kiln_status tag(struct kiln_session *session, char *line)
{
    enum { MOST = 1024 };
    struct kiln_text words[MOST];
    struct kiln_sentence sentence = {words, 0};
    struct kiln_tags tags;
    for (char *word = strtok(line, " "); word != NULL && sentence.n < MOST; word = strtok(NULL, " ")) {
        words[sentence.n++] = text_of(word);
    }
    struct kiln_status s = kiln_tag(session, &tags, &sentence, 1);
    for (int64_t i = 0; s.code == KILN_OK && i < tags.n; i++) {
        printf("%s\t%s\n", words[i].bytes, tags.words[i].name);
    }
    if (s.code == KILN_OK) {
        printf("\n");
        kiln_tags_free(&tags);
    }
    return s;
}

int main(int argc, char **argv)
{
    struct kiln_model *model;
    struct kiln_session *session = NULL;
    char *line = NULL;
    size_t room = 0;
    int words = argc == 3 && strcmp(argv[1], "tag") == 0;
    if (argc != 3 || (!words && strcmp(argv[1], "classify") != 0)) {
        fprintf(stderr, "usage: label_lines classify|tag MODEL_DIR <FILE\n");
        return KILN_USAGE;
    }
    struct kiln_status s = kiln_model_open(&model, argv[2]);
    if (s.code == KILN_OK) {
        s = kiln_session_open(&session, model, words ? KILN_TAG : KILN_CLASSIFY);
        kiln_model_close(model); /* the session keeps it */
    }
    while (s.code == KILN_OK && getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        s = words ? tag(session, line) : classify(session, line);
    }
    free(line);
    kiln_session_close(session);
    if (s.code != KILN_OK) {
        fprintf(stderr, "label_lines: %s\n", s.message);
    }
    return (int)s.code;
}
