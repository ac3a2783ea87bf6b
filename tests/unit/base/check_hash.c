/*
 * check_hash.c - SHA-256 against the examples of FIPS 180-4 and NIST's CAVP, HMAC-SHA-256 against
 * those of RFC 4231, XXH3-128 against its published values.
 */
#include "support/suite.h"

#include "base/hash/hash128.h"
#include "base/hash/hmac_sha256.h"
#include "base/hash/sha256.h"

#include <string.h>

static const struct { const char *text, *hex; } published[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

/* Way 0 is the portable implementation, way 1 the fastest that this processor supports. */
static void begin_hash(sha256 *h, int way)
{
    sha256_init(h);
    if (way == 0)
        h->blocks = hash_blocks_plain;
}

START_TEST(published_sha256_digests_are_reproduced)
{
    char hex[65];
    sha256 h;

    for (int way = 0; way < 2; way++) {
        begin_hash(&h, way);
        sha256_add(&h, published[_i].text, strlen(published[_i].text));
        sha256_finish(&h, hex);
        ck_assert_str_eq(hex, published[_i].hex);
    }
}
END_TEST

START_TEST(a_digest_does_not_depend_on_the_parts_of_its_input)
{
    static char letters[1000];
    char hex[65];
    size_t left = 1000000;
    sha256 h;

    memset(letters, 'a', sizeof letters);
    begin_hash(&h, _i);
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

#define TEN(BYTE) BYTE BYTE BYTE BYTE BYTE BYTE BYTE BYTE BYTE BYTE
#define TWENTY(BYTE) TEN(BYTE) TEN(BYTE)
#define FIFTY(BYTE) TWENTY(BYTE) TWENTY(BYTE) TEN(BYTE)
#define LONG_KEY FIFTY("\xaa") FIFTY("\xaa") TWENTY("\xaa") TEN("\xaa") "\xaa"

/* Test cases of RFC 4231, section 4; the code of case 5 is given up to its 16th byte. */
static const struct { const char *key, *text, *hex; } authenticated[] = {
    { TWENTY("\x0b"), "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
    { "Jefe", "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
    { TWENTY("\xaa"), FIFTY("\xdd"),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
    { "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
      "\x11\x12\x13\x14\x15\x16\x17\x18\x19",
      FIFTY("\xcd"), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
    { TWENTY("\x0c"), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b" },
    { LONG_KEY, "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
    { LONG_KEY,
      "This is a test using a larger than block-size key and a larger than block-size data. "
      "The key needs to be hashed before being used by the HMAC algorithm.",
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

START_TEST(hmac_codes_of_rfc_4231_are_reproduced)
{
    const char *text = authenticated[_i].text;
    uint8_t code[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    hmac_sha256 h;

    hmac_sha256_init(&h, authenticated[_i].key, strlen(authenticated[_i].key));
    hmac_sha256_add(&h, text, 5);
    hmac_sha256_add(&h, text + 5, strlen(text) - 5);
    hmac_sha256_finish(&h, code);
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", code[i]);
    ck_assert_int_eq(strncmp(hex, authenticated[_i].hex, strlen(authenticated[_i].hex)), 0);
}
END_TEST

START_TEST(hash128_is_xxh3)
{
    const hash128 empty = hash128_of("", 0), abc = hash128_of("abc", 3);

    ck_assert_uint_eq(empty.high, UINT64_C(0x99aa06d3014798d8));
    ck_assert_uint_eq(empty.low, UINT64_C(0x6001c324468d497f));
    ck_assert_uint_eq(abc.high, UINT64_C(0x06b05ab6733a6185));
    ck_assert_uint_eq(abc.low, UINT64_C(0x78af5f94892f3950));
}
END_TEST

START_TEST(hash128_of_blocks_depends_on_their_bounds)
{
    static const struct { size_t first, second; } parts[] = { { 2, 1 }, { 1, 2 }, { 3, 0 } };
    hash128 total[3] = { { 0 } };

    for (int i = 0; i < 3; i++) {
        hash128_add(&total[i], "abc", parts[i].first);
        hash128_add(&total[i], "abc" + parts[i].first, parts[i].second);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(memcmp(&total[i], &total[(i + 1) % 3], sizeof *total), 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("hash");
    tcase_add_loop_test(c, published_sha256_digests_are_reproduced, 0, 3);
    tcase_add_loop_test(c, a_digest_does_not_depend_on_the_parts_of_its_input, 0, 2);
    tcase_add_test(c, a_missing_file_is_named);
    tcase_add_loop_test(c, hmac_codes_of_rfc_4231_are_reproduced, 0, 7);
    tcase_add_test(c, hash128_is_xxh3);
    tcase_add_test(c, hash128_of_blocks_depends_on_their_bounds);
    return suite_run();
}
