/* Tests of text/chat_template: templates say of messages what transformers says, by the golden file or
 * another of make_chat_templates.py that is named; what kiln does not read is refused by its name and line;
 * limits hold; and the files of a directory are found. */
#include "test.h"

#include "core/buf.h"
#include "io/file.h"
#include "text/chat_template.h"
#include "text/jinja_renderer.h"
#include "text/tokenizer_open.h"

/* ---- as transformers ---- */

static void check_case(const struct chat_template *t, const char *name, const json_t *c)
{
    struct buf out = {0};
    const json_t *wanted = json_object_get(c, "text");
    struct status s = chat_template_render(&out, t, json_object_get(c, "messages"),
                                           json_is_true(json_object_get(c, "add_generation_prompt")));
    EXPECT(failed(s) == json_is_null(wanted), "%s: %s, but transformers says '%s'", name, s.message,
           json_string_value(wanted));
    bool same = failed(s) || (out.n == json_string_length(wanted) &&
                              memcmp(buf_text(&out), json_string_value(wanted), out.n) == 0);
    EXPECT(same, "%s: '%s', but transformers says '%s'", name, buf_text(&out), json_string_value(wanted));
    buf_fini(&out);
}

static void check_golden(const char *path)
{
    json_t *root;
    size_t i, k, n_cases = 0;
    const json_t *row, *c;
    EXPECT_OK(json_read_object(&root, path));
    const json_t *templates = json_object_get(root, "templates");
    json_array_foreach(templates, i, row)
    {
        struct chat_template t;
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *text = json_object_get(row, "template");
        struct status s = chat_template_parse(&t, json_string_value(text), json_string_length(text),
                                              json_incref(json_object_get(root, "special")));
        EXPECT(!failed(s), "%s: %s", name, s.message);
        json_array_foreach(json_object_get(row, "cases"), k, c)
        {
            check_case(&t, name, c);
            n_cases++;
        }
        chat_template_fini(&t);
    }
    printf("%zu templates, %zu cases\n", json_array_size(templates), n_cases);
    json_decref(root);
}

/* ---- what is refused ---- */

static const struct {
    const char *text, *message;
} refused[] = {
    {"a\n\n{{ x|selectattr('y') }}", "chat_template, line 3: the filter selectattr is not read by kiln"},
    {"{% macro f() %}{% endmacro %}", "line 1: the tag macro is not read by kiln"},
    {"{% raw %}{% endraw %}", "the tag raw"},
    {"{{ x is divisibleby }}", "the test divisibleby"},
    {"{{ x.swapcase() }}", "the method swapcase"},
    {"{% if strftime_now is defined %}{% endif %}", "the function strftime_now is not read by kiln"},
    {"{{ f(1) }}", "the function f"},
    {"{{ 'x'(1) }}", "the call of a value"},
    {"{{ 1.5 }}", "numbers that are not whole"},
    {"{{ 99999999999999999999 }}", "too large"},
    {"{{ 1 < 2 < 3 }}", "a chain of comparisons"},
    {"{{ x|trim(1, 2) }}", "an argument of trim"},
    {"{{ x|tojson(sort_keys=true) }}", "an argument of tojson"},
    {"{{ x.split() }}", "split lacks an argument"},
    {"{% set x %}a{% endset %}", "%} is where = should be"},
    {"{% set ns = [namespace()] %}", "the function namespace"},
    {"{% break %}", "no loop to leave"},
    {"{% if x %}", "the end is where endif should be"},
    {"{% endif %}", "endif is where the end should be"},
    {"{% for x of y %}{% endfor %}", "of is where in should be"},
    {"{{ x", "a tag has no end"},
    {"{{ 'x", "has no end"},
    {"{# x", "a comment has no end"},
    {"{{ 'a\\N{DASH}' }}", "an escape"},
    {"{{ x ? y }}", "the character '?'"},
    {"{{ x }", "a tag has no end"},
    {"{{ }}", "}} is where a value should be"},
    {"{{ 1 2 }}", "2 is where }} should be"},
    {"\xFF", "UTF-8"},
};

static void check_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct chat_template t;
        struct status s = chat_template_parse(&t, refused[i].text, strlen(refused[i].text), json_object());
        EXPECT(failed(s) && strstr(s.message, refused[i].message) != NULL, "%s: '%s'", refused[i].text,
               s.message);
    }
}

/* ---- answers ---- */

static void check_answers_of(const char *text)
{
    struct chat_template t;
    struct buf out = {0}, spans = {0};
    bool are_apart;
    json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "role", "user",
                                 "content", "Is it?", "role", "assistant", "content", "No", "role", "user",
                                 "content", "And", "role", "assistant", "content", "Yes!");
    EXPECT_OK(chat_template_parse(&t, text, strlen(text), json_object()));
    EXPECT_OK(chat_template_render_answers(&out, &spans, &are_apart, &t, messages));
    EXPECT(!are_apart, "the answers are apart");
    const struct jinja_span *span = (const struct jinja_span *)(const void *)spans.data;
    EXPECT(spans.n == 2 * sizeof *span, "%zu bytes of answers", spans.n);
    for (int i = 0; i < 2; i++) {
        const char *wanted = i == 0 ? "No;" : "Yes!;";
        EXPECT(span[i].end - span[i].begin == strlen(wanted) &&
                   memcmp(buf_text(&out) + span[i].begin, wanted, strlen(wanted)) == 0,
               "answer %d is not '%s' of '%s'", i, wanted, buf_text(&out));
    }
    chat_template_fini(&t);
    json_decref(messages);
    buf_fini(&out);
    buf_fini(&spans);
}

/* An answer is what a template marks, or what its message adds to the prompt. */
static void check_answers(void)
{
    check_answers_of("{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}"
                     "{{ m.content }};{% endgeneration %}{% else %}{{ m.content }};{% endif %}{% endfor %}");
    check_answers_of("{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}"
                     "{% if add_generation_prompt %}a:{% endif %}");
}

/* ---- limits ---- */

static void put_times(struct buf *text, const char *part, int n)
{
    for (int i = 0; i < n && part != NULL; i++) {
        buf_puts(text, part);
    }
}

/* A text of n times `part`, and so often `close`, between a begin and an end. */
static struct status render_long(const char *begin, const char *part, const char *close, int n,
                                 const char *end)
{
    struct buf text = {0}, out = {0};
    struct chat_template t;
    json_t *messages = json_array();
    buf_puts(&text, begin);
    put_times(&text, part, n);
    put_times(&text, close, n);
    buf_puts(&text, end);
    struct status s = chat_template_parse(&t, buf_text(&text), text.n, json_object());
    if (!failed(s)) {
        s = chat_template_render(&out, &t, messages, true);
    }
    chat_template_fini(&t);
    json_decref(messages);
    buf_fini(&text);
    buf_fini(&out);
    return s;
}

static void check_limits(void)
{
    static const struct {
        const char *begin, *part, *close, *end, *message; /* close NULL: nothing */
        int n;
    } rows[] = {
        {"{{ 1", " + (1", ")", " }}", "nested deeper than 100", 1000},
        {"{{ ", "[", "]", " }}", "nested deeper than 100", 1000},
        {"{{ ", "{'a': ", "}", " }}", "nested deeper than 100", 1000},
        {"{{ ", "x|default(", ")", " }}", "nested deeper than 100", 1000},
        {"{{ ", "x[", "]", " }}", "nested deeper than 100", 1000},
        {"{{ ", "not ", NULL, "1 }}", "nested deeper than 100", 100000},
        {"{{ ", "- ", NULL, "1 }}", "nested deeper than 100", 100000},
        {"{{ 1", " + 1", NULL, " }}", "nested deeper than 100", 100000},
        {"{{ x", "|trim", NULL, " }}", "nested deeper than 100", 100000},
        {"", "{% if x %}", NULL, "", "nested deeper than 100", 100000},
        {"{% if x %}", "{% elif x %}", NULL, "{% endif %}", "nested deeper than 100", 100000},
        {"{{ 1", " if x else 1", NULL, " }}", "nested deeper than 100", 100000},
        {"", "{% for a in 'ab' %}", "{% endfor %}", "", "nested deeper", 200},
        /* what grows with each round */
        {"{% set ns = namespace(x='01') %}", "{% set ns.x = ns.x + ns.x %}", NULL, "", "more work", 60},
        {"{% set ns = namespace(x=[1]) %}", "{% set ns.x = ns.x + ns.x %}", NULL, "", "more work", 60},
        {"{% set ns = namespace(x=1) %}", "{% set ns.x = [ns.x] %}", NULL, "", "deeper than 32", 40},
        {"{% set ns = namespace(x=1) %}", "{% set ns.x = [ns.x, ns.x] %}", NULL, "{{ ns.x|tojson }}",
         "more work", 30},
        {"{% set x = '", "0123456789", NULL, "' %}{% for a in x %}{{ x }}{% endfor %}", "says more than",
         10000},
        {"{% set x = '01234567890123456789' %}", "{% for a in x %}", "{% endfor %}", "", "more work", 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct status s = render_long(rows[i].begin, rows[i].part, rows[i].close, rows[i].n, rows[i].end);
        EXPECT(failed(s) && strstr(s.message, rows[i].message) != NULL, "%s...: '%s'", rows[i].part,
               s.message);
    }
}

/* ---- files ---- */

static char directory[] = "test_chat_template.XXXXXX";

static void put_file(const char *name, const char *text)
{
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_OK(file_write_atomic(path, text, strlen(text)));
}

static void expect_file(const char *wanted)
{
    struct tokenizer tokenizer;
    struct chat_template t;
    struct buf out = {0};
    json_t *messages = json_array();
    int64_t max_length;
    bool exists;
    EXPECT_OK(tokenizer_open_directory(&tokenizer, &max_length, directory));
    EXPECT_OK(chat_template_open(&t, &exists, &tokenizer));
    EXPECT(exists == (wanted != NULL), "a template is found, or not: %d", exists);
    if (exists) {
        EXPECT_OK(chat_template_render(&out, &t, messages, true));
        EXPECT(strcmp(buf_text(&out), wanted) == 0, "'%s', not '%s'", buf_text(&out), wanted);
    }
    chat_template_fini(&t);
    tokenizer_fini(&tokenizer);
    json_decref(messages);
    buf_fini(&out);
}

static void check_files(void)
{
    EXPECT(mkdtemp(directory) != NULL, "no directory");
    put_file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    expect_file(NULL);
    put_file("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
    expect_file(NULL);
    put_file("tokenizer_config.json", "{\"chat_template\": \"{{ cls_token }}\"}");
    expect_file("[CLS]");
    put_file("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"{{\"}, "
                                      "{\"name\": \"default\", \"template\": \"b{{ bos_token }}\"}]}");
    expect_file("b");
    put_file("chat_template.jinja", "c\n");
    expect_file("c");
    EXPECT_OK(file_remove_tree(directory));
}

int main(int argc, char **argv)
{
    check_golden(argc > 1 ? argv[1] : KILN_SOURCE_DIR "/tests/golden/chat_templates.json");
    check_refused();
    check_answers();
    check_limits();
    check_files();
    return 0;
}
