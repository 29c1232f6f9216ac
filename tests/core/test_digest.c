/* MD5 and SHA-256: the vectors of their standards, every way to cut the input, and which digits are a
 * digest. */
#include "test.h"

#include "core/digest.h"

static struct digest_text digest_of(enum digest_kind kind, const char *text, size_t n, size_t piece)
{
    struct digest d;
    struct digest_text hex;
    digest_init(&d, kind);
    for (size_t i = 0; i < n; i += piece) {
        digest_put(&d, text + i, n - i < piece ? n - i : piece);
    }
    digest_end(&d, &hex);
    return hex;
}

/* RFC 1321 appendix A.5; NIST's examples of SHA-256 */
static void test_vectors(void)
{
    static const struct {
        enum digest_kind kind;
        const char *text, *hex;
    } cases[] = {
        {DIGEST_MD5, "", "d41d8cd98f00b204e9800998ecf8427e"},
        {DIGEST_MD5, "abc", "900150983cd24fb0d6963f7d28e17f72"},
        {DIGEST_MD5, "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
        {DIGEST_SHA256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {DIGEST_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {DIGEST_SHA256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = digest_of(cases[i].kind, cases[i].text, strlen(cases[i].text), 1000).text;
        EXPECT(strcmp(got, cases[i].hex) == 0, "%s of '%s' is %s", digest_name(cases[i].kind), cases[i].text,
               got);
    }
}

static void test_million(void)
{
    static char text[1000000];
    memset(text, 'a', sizeof text);
    EXPECT(strcmp(digest_of(DIGEST_SHA256, text, sizeof text, sizeof text).text,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0,
           "a million times a");
    EXPECT(strcmp(digest_of(DIGEST_MD5, text, sizeof text, 12345).text, "7707d6ae4e027c70eea2a935c2296f21") ==
               0,
           "a million times a");
}

static void test_pieces(void)
{
    char text[200];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)(i * 7);
    }
    for (int kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind++) {
        for (size_t n = 0; n <= sizeof text; n++) {
            struct digest_text whole = digest_of((enum digest_kind)kind, text, n, sizeof text);
            for (size_t piece = 1; piece < 130; piece += 9) {
                struct digest_text cut = digest_of((enum digest_kind)kind, text, n, piece);
                EXPECT(strcmp(whole.text, cut.text) == 0, "%zu bytes by %zu", n, piece);
            }
        }
    }
}

static void test_kinds(void)
{
    enum digest_kind kind;
    EXPECT(digest_kind_of(&kind, "981b29407e0affa3b1b156f72073b945") && kind == DIGEST_MD5, "32 digits");
    EXPECT(digest_kind_of(&kind, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3") &&
               kind == DIGEST_SHA256,
           "64 digits");
    EXPECT(!digest_kind_of(&kind, ""), "none");
    EXPECT(!digest_kind_of(&kind, "981b29407e0affa3b1b156f72073b94"), "31 digits");
    EXPECT(!digest_kind_of(&kind, "981b29407e0affa3b1b156f72073b94g"), "no digit");
}

/* RFC 4231, test cases 1 and 2: keys are filled up with zeros, as HMAC does itself */
static void test_keyed(void)
{
    static const struct {
        const char *key, *text, *hex;
    } cases[] = {
        {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char key[DIGEST_KEY_BYTES] = {0}, out[DIGEST_KEYED_BYTES];
        char hex[2 * DIGEST_KEYED_BYTES + 1];
        memcpy(key, cases[i].key, strlen(cases[i].key));
        digest_keyed(out, key, cases[i].text, strlen(cases[i].text));
        for (size_t k = 0; k < sizeof out; k++) {
            snprintf(hex + 2 * k, 3, "%02x", out[k]);
        }
        EXPECT(strcmp(hex, cases[i].hex) == 0, "'%s' with a key is %s", cases[i].text, hex);
    }
}

int main(void)
{
    test_keyed();
    test_vectors();
    test_million();
    test_pieces();
    test_kinds();
    return 0;
}
