/*
 * check_safetensors.c - every rule of the format has a broken file and a valid twin. Written files
 * are read back, and so are golden files of another writer.
 */
#include <config.h>

#include "checkpoint/safetensors.h"

#include "integration/gallery/gallery_safetensors.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory: header length, header, and data bytes that count up. */
static char *compose_file(const char *header, size_t data, size_t *size)
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
    char *bytes = compose_file(header, data, &size);
    pons_status status = safetensors_read(bytes, size, "file", &file, err);

    free(bytes);
    safetensors_close(file);
    return status;
}

START_TEST(broken_file_is_refused_and_its_twin_accepted)
{
    const broken_safetensors *b = &safetensors_gallery[_i];
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
    char *bytes = compose_file("{\"a\":" ENTRY("F32", "1", 0, 4) "}", 4, &size);

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
    char *bytes = compose_file("{\"__metadata__\":{\"k\":\"v\"},\"a\":" ENTRY("F32", "1,2", 0, 8)
                               ",\"b\\u00e9\":" ENTRY("I64", "", 8, 16) "}", 16, &size);
    uint32_t state = 1;

    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (int change = 0; change < 1 + round % 3; change++) {
            state = state * 1664525u + 1013904223u;
            copy[(state >> 8) % size] = (uint8_t)(state >> 24 ^ (uint32_t)round);
        }
        LLVMFuzzerTestOneInput(copy, size - (round % 7 == 0)); /* aborts on a fault */
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

START_TEST(elements_of_every_type_are_converted)
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
        char *bytes = compose_file(cases[i].header, data, &size);
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
                        (int)(sizeof safetensors_gallery / sizeof safetensors_gallery[0]));
    tcase_add_test(c, length_beyond_the_file_or_the_cap_is_refused);
    tcase_add_test(c, every_prefix_of_a_file_is_refused);
    tcase_add_test(c, changed_bytes_never_break_the_reader);
    tcase_add_test(c, written_file_is_read_back);
    tcase_add_test(c, elements_of_every_type_are_converted);
    tcase_add_test(c, folder_and_absent_file_are_refused);
    return suite_run();
}
