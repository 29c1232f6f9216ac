/* The table of timed ops, to the character: times, shares and rates, with the peaks of the machine and
 * without them. */
#include "test.h"
#include "watch/op_report.h"

enum { WIDTH = 36 };

static void expect_row(const struct buf *table, const char *op, const char *numbers)
{
    char row[160];
    snprintf(row, sizeof row, "\n%-*s%s\n", WIDTH, op, numbers);
    EXPECT(strstr(buf_text(table), row) != NULL, "'%s' is not in\n%s", row + 1, buf_text(table));
}

/* Half a second of products at 2 TFLOP/s and a quarter of copies, of two seconds in all. */
static struct buf table_of(const struct op_ceilings *ceilings)
{
    struct op_total totals[OP_WATCH_N_OPS] = {0};
    struct buf table = {0};
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        totals[i].op = "none";
    }
    totals[1] = (struct op_total){.op = "copy", .n_calls = 2, .ns = 250000000, .bytes = 1e9};
    totals[3] = (struct op_total){.op = "linear", .n_calls = 3, .ns = 500000000, .flops = 1e12, .bytes = 2e9};
    op_report_append(&table, totals, 2, ceilings);
    EXPECT_OK(buf_status(&table));
    EXPECT(strstr(buf_text(&table), "none") == NULL, "an op that was not called has a row");
    EXPECT(strstr(buf_text(&table), "linear") < strstr(buf_text(&table), "copy"), "the slowest is not first");
    return table;
}

int main(void)
{
    struct buf table = table_of(NULL);
    expect_row(&table, "linear", "       3     500.00   25.0 %   2000.0      4.0");
    expect_row(&table, "copy", "       2     250.00   12.5 %               4.0");
    expect_row(&table, "all ops", "       5     750.00   37.5 %   1333.3      4.0");
    buf_fini(&table);
    table = table_of(&(struct op_ceilings){.products = 4e12, .copy = 8e9});
    expect_row(&table, "linear", "       3     500.00   25.0 %   2000.0   50 %      4.0   50 %");
    expect_row(&table, "copy", "       2     250.00   12.5 %                      4.0   50 %");
    buf_fini(&table);
    table = table_of(&(struct op_ceilings){.products = 2e13, .copy = 4e10});
    expect_row(&table, "linear", "       3     500.00   25.0 %      2.0   10 %      4.0   10 %");
    buf_fini(&table);
    return 0;
}
