/* Scripts of letters, of what letters share, and of the table's ends. */
#include "text/script.h"

#include "test.h"

static void expect_script(uint32_t c, const char *name)
{
    int script = script_of(c);
    const char *found = script == SCRIPT_NONE ? "none" : script_names[script];
    EXPECT(strcmp(found, name) == 0, "U+%04X is %s, not %s", (unsigned)c, found, name);
}

int main(void)
{
    static const struct {
        uint32_t c;
        const char *name;
    } cases[] = {
        {'a', "latin"},        {'Z', "latin"},      {'@', "none"},        {'[', "none"},
        {'7', "none"},         {0xAA, "latin"},     {0xD7, "none"},       {0xE9, "latin"},
        {0x3B1, "greek"},      {0x416, "cyrillic"}, {0x5D0, "hebrew"},    {0x627, "arabic"},
        {0x915, "devanagari"}, {0xE01, "thai"},     {0x3042, "hiragana"}, {0x30AB, "katakana"},
        {0x30FC, "none"},      {0x4E2D, "han"},     {0x20000, "han"},     {0xAC00, "hangul"},
        {0x301, "none"},       {0x3002, "none"},    {0x1F600, "none"},    {0x13000, "other"},
        {0x10FFFF, "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_script(cases[i].c, cases[i].name);
    }
    for (int i = 1; i < script_n_ranges; i++) {
        EXPECT(script_ranges[i - 1].last < script_ranges[i].first &&
                   script_ranges[i].first <= script_ranges[i].last,
               "row %d is out of order", i);
    }
    EXPECT(script_n <= 64, "%d scripts do not fit 64 bits", script_n);
    EXPECT(script_find("latin", 5) == 0 && script_find("lati", 4) == SCRIPT_NONE &&
               script_find("latin,", 6) == SCRIPT_NONE,
           "names");
    return 0;
}
