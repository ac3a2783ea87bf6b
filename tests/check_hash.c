/*
 * check_hash.c - SHA-256 against the examples of FIPS 180-4 and of NIST's CAVP.
 */
#include "suite.h"

#include "base/hash/sha256.h"

#include <string.h>

static const struct { const char *text, *hex; } published[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

/* Both ways: the one for every processor, and the one that this processor has. */
static void begin(sha256 *h, int way)
{
    sha256_init(h);
    if (way == 0)
        h->blocks = hash_blocks_plain;
}

START_TEST(published_examples_are_met)
{
    char hex[65];
    sha256 h;

    for (int way = 0; way < 2; way++) {
        begin(&h, way);
        sha256_add(&h, published[_i].text, strlen(published[_i].text));
        sha256_finish(&h, hex);
        ck_assert_str_eq(hex, published[_i].hex);
    }
}
END_TEST

START_TEST(a_million_letters_in_uneven_parts_give_the_published_digest)
{
    static char letters[1000];
    char hex[65];
    size_t left = 1000000;
    sha256 h;

    memset(letters, 'a', sizeof letters);
    begin(&h, _i);
    for (size_t part = 1; left > 0; part = part * 7 % 997 + 1) {
        size_t size = part < left ? part : left;
        sha256_add(&h, letters, size);
        left -= size;
    }
    sha256_finish(&h, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    pons_error err = PONS_ERROR_INIT;
    char hex[65];

    ck_assert_int_eq(sha256_file("/nonexistent/file", hex, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "'/nonexistent/file'"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("hash");
    tcase_add_loop_test(c, published_examples_are_met, 0, 3);
    tcase_add_loop_test(c, a_million_letters_in_uneven_parts_give_the_published_digest, 0, 2);
    tcase_add_test(c, a_missing_file_is_named);
    return suite_run();
}
