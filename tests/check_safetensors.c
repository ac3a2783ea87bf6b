/*
 * check_safetensors.c - every rule of the format, each with a broken file and its valid twin; a
 * file that is written is read back; files of another writer (golden) are read.
 */
#include <config.h>

#include "train/safetensors.h"

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRY(dtype, shape, begin, end)                                                           \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

typedef struct broken {
    const char *header; /* with its twin: differs in what is broken                               */
    size_t data;        /* bytes behind the header                                                */
    const char *phrase; /* in the message                                                         */
    const char *twin;
    size_t twin_data;
} broken;

#define A4 "{\"a\":" ENTRY("F32", "1", 0, 4) "}"
#define DEEP "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["

static const broken gallery[] = {
    { "", 0, "does not begin with '{'", "{}", 0 },
    { " " A4, 4, "does not begin with '{'", A4 " ", 4 },
    { "[]", 0, "does not begin with '{'", "{}", 0 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4), 4, "expected ',' or '}'", A4, 4 },
    { A4 "x", 4, "something behind the end", A4 "  ", 4 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",}", 4, "expected a string", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"a\":" ENTRY("F32", "1", 4, 8) "}", 8,
      "duplicate key 'a'",
      "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 4, 8) "}", 8 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"\\u0061\":" ENTRY("F32", "1", 4, 8) "}", 8,
      "duplicate key 'a'",
      "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"\\u0062\":" ENTRY("F32", "1", 4, 8) "}", 8 },
    { "{\"__metadata__\":{\"x\":1}}", 0, "__metadata__ holds 'x' that is not a string",
      "{\"__metadata__\":{\"x\":\"1\"}}", 0 },
    { "{\"__metadata__\":\"x\"}", 0, "__metadata__ is not an object", "{\"__metadata__\":{}}", 0 },
    { "{\"__metadata__\":{\"x\":\"1\",\"x\":\"2\"}}", 0, "duplicate key 'x'",
      "{\"__metadata__\":{\"x\":\"1\",\"y\":\"2\"}}", 0 },
    { "{\"a\":" ENTRY("F33", "1", 0, 4) "}", 4, "dtype 'F33', expected F32", A4, 4 },
    { "{\"a\":" ENTRY("f32", "1", 0, 4) "}", 4, "dtype 'f32', expected F32", A4, 4 },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "has no dtype", A4, 4 },
    { "{\"a\":{\"dtype\":5,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "has no dtype", A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "has no shape", A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "has no shape", A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "has no data_offsets", A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "has no data_offsets",
      A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4,
      "has no data_offsets", A4, 4 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4,
      "has key 'x', expected dtype", A4, 4 },
    { "{\"a\":7}", 0, "entry 'a' is not an object", A4, 4 },
    { "{\"a\":" ENTRY("F32", "-1", 0, 4) "}", 4, "holds '-1', expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1.0", 0, 4) "}", 4, "holds '1.0', expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1e0", 0, 4) "}", 4, "holds '1e0', expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "\"1\"", 0, 4) "}", 4, "holds '1', expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "01", 0, 4) "}", 4, "expected ',' or ']'", A4, 4 },
    { "{\"a\":" ENTRY("F32", "4294967296,4294967296", 0, 4) "}", 4, "too large for 63 bits",
      A4, 4 },
    { "{\"a\":" ENTRY("F32", "4611686018427387904", 0, 4) "}", 4, "too large for 63 bits", A4, 4 },
    { "{\"a\":" ENTRY("F32", "18446744073709551616", 0, 4) "}", 4, "expected whole numbers",
      A4, 4 },
    { "{\"a\":" ENTRY("F32", "1,1,1,1,1,1,1,1,1", 0, 4) "}", 4, "9 axes, expected at most 8",
      "{\"a\":" ENTRY("F32", "1,1,1,1,1,1,1,1", 0, 4) "}", 4 },
    { "{\"a\":" ENTRY("F32", "2", 0, 4) "}", 4, "4 bytes of data, expected 8 for F32 [2]",
      "{\"a\":" ENTRY("F32", "2", 0, 8) "}", 8 },
    { "{\"a\":" ENTRY("F16", "2", 0, 8) "}", 8, "8 bytes of data, expected 4 for F16 [2]",
      "{\"a\":" ENTRY("F16", "2", 0, 4) "}", 4 },
    { "{\"a\":" ENTRY("F32", "2", 0, 8) "}", 4, "expected a range within 4 bytes",
      "{\"a\":" ENTRY("F32", "2", 0, 8) "}", 8 },
    { "{\"a\":" ENTRY("F32", "1", 4, 0) "}", 4, "are 4 to 0, expected a range", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1", 4, 8) "}", 8, "begin at 4, expected 0 (there is a hole)", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 2, 6) "}", 6,
      "begin at 2, expected 4 (they overlap",
      "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 4, 8) "}", 8 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 8, 12) "}", 12,
      "begin at 8, expected 4 (there is a hole)",
      "{\"b\":" ENTRY("F32", "1", 4, 8) ",\"a\":" ENTRY("F32", "1", 0, 4) "}", 8 },
    { A4, 5, "end at byte 4 of the data, expected 5", A4, 4 },
    { "{}", 1, "end at byte 0 of the data, expected 1", "{}", 0 },
    { "{\"a\xff\":" ENTRY("F32", "1", 0, 4) "}", 4, "not UTF-8",
      "{\"a\xc3\xa9\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\xc0\x80\":" ENTRY("F32", "1", 0, 4) "}", 4, "not UTF-8", A4, 4 },
    { "{\"a\n\":" ENTRY("F32", "1", 0, 4) "}", 4, "control character",
      "{\"a\\n\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\\u0000\":" ENTRY("F32", "1", 0, 4) "}", 4, "zero character", A4, 4 },
    { "{\"a\\ud800\":" ENTRY("F32", "1", 0, 4) "}", 4, "surrogate",
      "{\"a\\ud83d\\ude00\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\\x\":" ENTRY("F32", "1", 0, 4) "}", 4, "unknown escape", A4, 4 },
    { "{\"a", 0, "cut off", A4, 4 },
    { "{\"a\":" DEEP, 0, "nested deeper than 64", A4, 4 },
    { "{\"a\":nul}", 0, "expected a value", "{}", 0 },
};

/* A file in memory: length, header, data that count up. */
static char *compose(const char *header, size_t data, size_t *size)
{
    size_t length = strlen(header);
    char *bytes = malloc(8 + length + data + 1);

    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        bytes[8 + length + i] = (char)i;
    *size = 8 + length + data;
    return bytes;
}

static pons_status read_text(const char *header, size_t data, pons_error *err)
{
    safetensors *file = NULL;
    size_t size;
    char *bytes = compose(header, data, &size);
    pons_status status = safetensors_read(bytes, size, "file", &file, err);

    free(bytes);
    safetensors_close(file);
    return status;
}

START_TEST(broken_file_is_refused_and_its_twin_accepted)
{
    const broken *b = &gallery[_i];
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;

    ck_assert_int_eq(read_text(b->header, b->data, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, b->phrase) != NULL, "'%s' lacks '%s'", err.text, b->phrase);
    ck_assert_msg(strchr(err.text, '\n') == NULL, "'%s' is not one line", err.text);
    ck_assert_msg(read_text(b->twin, b->twin_data, &none) == PONS_OK, "twin: %s", none.text);
}
END_TEST

START_TEST(length_beyond_the_file_or_the_cap_is_refused)
{
    static const unsigned char lengths[][9] = {
        "\x03\0\0\0\0\0\0\0", "\x01\xe1\xf5\x05\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff"
    };
    static const char *const phrases[] = { "only 2 follow", "expected at most 100000000",
                                           "expected at most 100000000" };
    for (int i = 0; i < 3; i++) {
        pons_error err = PONS_ERROR_INIT;
        safetensors *file = NULL;
        char bytes[10];
        memcpy(bytes, lengths[i], 8);
        memcpy(bytes + 8, "{}", 2);
        ck_assert_int_eq(safetensors_read(bytes, 10, "file", &file, &err), PONS_DATA);
        ck_assert_msg(strstr(err.text, phrases[i]) != NULL, "%s", err.text);
    }
}
END_TEST

START_TEST(every_prefix_of_a_file_is_refused)
{
    size_t size;
    char *bytes = compose("{\"a\":" ENTRY("F32", "1", 0, 4) "}", 4, &size);

    for (size_t n = 0; n <= size; n++) {
        pons_error err = PONS_ERROR_INIT;
        safetensors *file = NULL;
        char *part = malloc(n + 1);
        memcpy(part, bytes, n);
        pons_status status = safetensors_read(part, n, "file", &file, &err);
        ck_assert_int_eq(status, n < size ? PONS_DATA : PONS_OK);
        safetensors_close(file);
        free(part);
    }
    free(bytes);
}
END_TEST

START_TEST(changed_bytes_never_break_the_reader)
{
    size_t size;
    char *bytes = compose("{\"__metadata__\":{\"k\":\"v\"},\"a\":" ENTRY("F32", "1,2", 0, 8)
                          ",\"b\\u00e9\":" ENTRY("I64", "", 8, 16) "}", 16, &size);
    uint32_t state = 1;

    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (int change = 0; change < 1 + round % 3; change++) {
            state = state * 1664525u + 1013904223u;
            copy[(state >> 8) % size] = (uint8_t)(state >> 24 ^ (uint32_t)round);
        }
        LLVMFuzzerTestOneInput(copy, size - (round % 7 == 0)); /* aborts when it finds a fault */
        free(copy);
    }
    free(bytes);
}
END_TEST

START_TEST(written_file_is_read_back)
{
    float a[6] = { 1, -2, 3.5f, 0, 1e-40f, 5 };
    int64_t b = 1234567890123;
    const safetensor items[] = {
        { .name = "z.weight", .type = SAFETENSORS_F32, .rank = 2, .extent = { 2, 3 }, .data = a },
        { .name = "count \"quoted\"", .type = SAFETENSORS_I64, .rank = 0, .data = &b },
        { .name = "empty", .type = SAFETENSORS_F32, .rank = 1, .extent = { 0 }, .data = a },
    };
    const char *const metadata[][2] = { { "format", "pt" } };
    char path[] = "/tmp/check-safetensors-XXXXXX";
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;

    close(mkstemp(path));
    const safetensors_content content = { .count = 3, .item = items, .metadata_count = 1,
                                          .metadata = metadata };
    ck_assert_int_eq(safetensors_write(path, &content, &err), PONS_OK);
    FILE *raw = fopen(path, "rb");
    ck_assert_int_eq(fgetc(raw) % 8, 0);
    fclose(raw);
    ck_assert_msg(safetensors_open(path, &file, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(safetensors_count(file), 3);
    ck_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    const safetensor *t = safetensors_find(file, "z.weight");
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->rank, 2);
    ck_assert_int_eq((int)t->extent[1], 3);
    ck_assert_mem_eq(t->data, a, sizeof a);
    t = safetensors_find(file, "count \"quoted\"");
    ck_assert_ptr_nonnull(t);
    ck_assert_mem_eq(t->data, &b, sizeof b);
    ck_assert_ptr_null(safetensors_find(file, "absent"));
    safetensors_close(file);
    unlink(path);
}
END_TEST

START_TEST(numbers_of_every_type_are_converted)
{
    static const struct { const char *header; unsigned char data[8]; double value; } cases[] = {
        { "{\"a\":" ENTRY("F16", "", 0, 2) "}", { 0x00, 0x3e }, 1.5 },
        { "{\"a\":" ENTRY("F16", "", 0, 2) "}", { 0x01, 0x00 }, 0x1p-24 },
        { "{\"a\":" ENTRY("F16", "", 0, 2) "}", { 0xff, 0xfb }, -65504 },
        { "{\"a\":" ENTRY("BF16", "", 0, 2) "}", { 0xc0, 0xbf }, -1.5 },
        { "{\"a\":" ENTRY("F64", "", 0, 8) "}", { 0, 0, 0, 0, 0, 0, 0xf8, 0x3f }, 1.5 },
        { "{\"a\":" ENTRY("U8", "", 0, 1) "}", { 0xff }, 255 },
        { "{\"a\":" ENTRY("I8", "", 0, 1) "}", { 0xff }, -1 },
        { "{\"a\":" ENTRY("I32", "", 0, 4) "}", { 0xfe, 0xff, 0xff, 0xff }, -2 },
        { "{\"a\":" ENTRY("I64", "", 0, 8) "}", { 3, 0, 0, 0, 1, 0, 0, 0 }, 4294967299.0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pons_error err = PONS_ERROR_INIT;
        safetensors *file = NULL;
        size_t size, data = 8;
        double value;
        char *bytes = compose(cases[i].header, data, &size);
        memcpy(bytes + 8 + strlen(cases[i].header), cases[i].data, data);
        const char *comma = strrchr(cases[i].header, ',');
        size -= data - (size_t)(comma[1] - '0');
        ck_assert_msg(safetensors_read(bytes, size, "file", &file, &err) == PONS_OK, "%s",
                      err.text);
        safetensor_doubles(safetensors_item(file, 0), &value);
        ck_assert_double_eq(value, cases[i].value);
        safetensors_close(file);
        free(bytes);
    }
}
END_TEST

START_TEST(folder_and_absent_file_are_refused)
{
    pons_error err = PONS_ERROR_INIT, other = PONS_ERROR_INIT;
    safetensors *file = NULL;

    ck_assert_int_eq(safetensors_open("/tmp", &file, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
    ck_assert_int_eq(safetensors_open("/tmp/there/is/none", &file, &other), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(other.text, "cannot open"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("safetensors");

    tcase_add_loop_test(c, broken_file_is_refused_and_its_twin_accepted, 0,
                        (int)(sizeof gallery / sizeof gallery[0]));
    tcase_add_test(c, length_beyond_the_file_or_the_cap_is_refused);
    tcase_add_test(c, every_prefix_of_a_file_is_refused);
    tcase_add_test(c, changed_bytes_never_break_the_reader);
    tcase_add_test(c, written_file_is_read_back);
    tcase_add_test(c, numbers_of_every_type_are_converted);
    tcase_add_test(c, folder_and_absent_file_are_refused);
    return suite_run();
}
