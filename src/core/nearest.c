#include "core/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static bool same(char a, char b)
{
    return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

static int least(int a, int b, int c)
{
    int d = a < b ? a : b;
    return d < c ? d : c;
}

/* Optimal string alignment (Damerau 1964): rows of the table by letters of a, of which the last three are
 * kept. */
static int distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int rows[3][LONGEST + 1];
    for (size_t j = 0; j <= n_b; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        int *row = rows[i % 3], *last = rows[(i + 2) % 3], *second_last = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) &&
                second_last[j - 2] + 1 < row[j]) {
                row[j] = second_last[j - 2] + 1;
            }
        }
    }
    return rows[n_a % 3][n_b];
}

void nearest_try(struct nearest *best, const char *word, const char *given, size_t n)
{
    size_t n_word = strlen(word);
    if (n == 0 || n > LONGEST || n_word > LONGEST) {
        return;
    }
    int d = distance(given, n, word, n_word);
    if (3 * d <= (int)n && (best->word == NULL || d < best->distance)) {
        *best = (struct nearest){word, d};
    }
}

struct nearest_text nearest_question(const struct nearest *best, const char *dashes)
{
    struct nearest_text q = {""};
    if (best->word != NULL) {
        snprintf(q.text, sizeof q.text, "; did you mean %s%s?", dashes, best->word);
    }
    return q;
}
