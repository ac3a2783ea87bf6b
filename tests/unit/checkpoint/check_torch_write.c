/*
 * check_torch_write.c - what is written as a file of torch.save is read back value by value; other
 * values and paths are refused, and an older file stays.
 */
#include <config.h>

#include "checkpoint/torch/torch_write.h"

#include "support/suite.h"
#include "checkpoint/torch/pickle_names.h"
#include "checkpoint/torch/torch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float numbers[] = { 0, 1, 2, 3, 4, 5, -0.5f, 1e30f };
static arena *memory;
static char path[64];

static void set_up(void)
{
    memory = arena_new();
    snprintf(path, sizeof path, "written-%ld.pt", (long)getpid());
}

static void tear_down(void)
{
    arena_free(memory);
    unlink(path);
}

static torch_value *text(const char *word)
{
    return pickle_value_bytes(memory, TORCH_TEXT, word, strlen(word));
}

static torch_value *integer(int64_t value)
{
    torch_value *v = pickle_value_new(memory, TORCH_INTEGER);

    v->integer = value;
    return v;
}

static void put(torch_value *dictionary, const char *key, torch_value *value)
{
    ck_assert(pickle_value_append(memory, dictionary, text(key)));
    ck_assert(pickle_value_append(memory, dictionary, value));
}

static torch_storage *storage_of(const char *type, const void *bytes, int64_t count)
{
    torch_storage *s = arena_alloc(memory, sizeof *s);

    s->type = torch_type_find(type);
    s->count = count;
    s->size = (size_t)count * s->type->size;
    s->bytes = bytes;
    return s;
}

/* [rows, columns] at an offset, of the given strides. */
static torch_value *matrix(torch_storage *s, int64_t offset, int64_t rows, int64_t columns,
                           int64_t row, int64_t column)
{
    torch_value *v = pickle_value_new(memory, TORCH_TENSOR);
    torch_tensor *t = v->tensor = arena_alloc(memory, sizeof *t);

    *t = (torch_tensor){ .type = s->type, .rank = 2, .extent = { rows, columns },
                         .stride = { row, column }, .offset = offset, .count = rows * columns,
                         .storage = s };
    return v;
}

static torch_value *state_of_tensors(void)
{
    static const int64_t counts[] = { INT64_C(1) << 40, -7 };
    torch_value *state = pickle_value_new(memory, TORCH_DICTIONARY);
    torch_storage *s = storage_of("FloatStorage", numbers, 8);

    put(state, "whole", matrix(s, 0, 2, 4, 4, 1));
    put(state, "turned", matrix(s, 1, 3, 2, 1, 3));
    put(state, "counts", matrix(storage_of("LongStorage", counts, 2), 0, 2, 1, 1, 1));
    put(state, "empty", matrix(storage_of("FloatStorage", numbers, 0), 0, 0, 3, 3, 1));
    return state;
}

static torch_value *checkpoint(void)
{
    torch_value *root = pickle_value_new(memory, TORCH_DICTIONARY);
    torch_value *axes = pickle_value_new(memory, TORCH_TUPLE);
    torch_value *list = pickle_value_new(memory, TORCH_LIST);
    torch_value *flag = pickle_value_new(memory, TORCH_FLAG);
    torch_value *real = pickle_value_new(memory, TORCH_REAL);

    flag->flag = true;
    real->real = -0.1;
    for (int i = 0; i < 3; i++)
        ck_assert(pickle_value_append(memory, axes, integer(i)));
    ck_assert(pickle_value_append(memory, list, text("\303\244 b")));
    put(root, "weights", state_of_tensors());
    put(root, "axes", axes);
    put(root, "list", list);
    put(root, "none", pickle_value_new(memory, TORCH_NONE));
    put(root, "flag", flag);
    put(root, "real", real);
    put(root, "small", integer(INT32_MIN));
    put(root, "large", integer(INT64_MIN));
    put(root, "nothing", pickle_value_new(memory, TORCH_DICTIONARY));
    return root;
}

static void require(torch_file *f, const char *name, int count, const double *expected)
{
    const torch_value *v = torch_value_find(torch_value_find(torch_file_root(f), "weights"), name);
    pons_error err = PONS_ERROR_INIT;
    double found[16];
    char buffer[128];

    ck_assert_msg(v != NULL && v->kind == TORCH_TENSOR, "'%s' is no tensor", name);
    safetensor t = { .type = v->tensor->type->type, .count = v->tensor->count };
    ck_assert_int_eq(t.count, count);
    ck_assert_msg(torch_file_elements(f, v->tensor, buffer, &t.data, &err) == PONS_OK, "%s",
                  err.text);
    safetensor_doubles(&t, found);
    for (int i = 0; i < count; i++)
        ck_assert_msg(found[i] == expected[i], "element %d of '%s' is %g", i, name, found[i]);
}

START_TEST(tensors_are_read_back)
{
    static const double whole[] = { 0, 1, 2, 3, 4, 5, -0.5, 1e30f }, turned[] = { 1, 4, 2, 5, 3,
                                                                                  -0.5 };
    pons_error err = PONS_ERROR_INIT;
    torch_file *f = NULL;

    ck_assert_msg(torch_file_write(path, checkpoint(), NULL, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(torch_file_open(path, &f, &err) == PONS_OK, "%s", err.text);
    require(f, "whole", 8, whole);
    require(f, "turned", 6, turned);
    require(f, "counts", 2, (double[]){ 0x1p40, -7 });
    require(f, "empty", 0, NULL);
    const torch_value *w = torch_value_find(torch_file_root(f), "weights");
    ck_assert(torch_value_find(w, "whole")->tensor->storage
              == torch_value_find(w, "turned")->tensor->storage);
    torch_file_close(f);
}
END_TEST

START_TEST(plain_values_are_read_back)
{
    pons_error err = PONS_ERROR_INIT;
    torch_file *f = NULL;
    const torch_value *root, *v;

    ck_assert_msg(torch_file_write(path, checkpoint(), NULL, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(torch_file_open(path, &f, &err) == PONS_OK, "%s", err.text);
    root = torch_file_root(f);
    ck_assert_int_eq(torch_value_count(root), 9);
    v = torch_value_find(root, "axes");
    ck_assert(v->kind == TORCH_TUPLE && torch_value_count(v) == 3);
    ck_assert(torch_value_item(v, 2)->integer == 2);
    v = torch_value_find(root, "list");
    ck_assert_str_eq(torch_value_text(torch_value_item(v, 0)), "\303\244 b");
    ck_assert(torch_value_find(root, "none")->kind == TORCH_NONE);
    ck_assert(torch_value_find(root, "flag")->flag);
    ck_assert(torch_value_find(root, "real")->real == -0.1);
    ck_assert(torch_value_find(root, "small")->integer == INT32_MIN);
    ck_assert(torch_value_find(root, "large")->integer == INT64_MIN);
    ck_assert_int_eq(torch_value_count(torch_value_find(root, "nothing")), 0);
    torch_file_close(f);
}
END_TEST

/* Data begin at multiples of 64, as PyTorch maps them, and the ordered dictionary has its name. */
START_TEST(the_archive_has_the_form_of_pytorch)
{
    static unsigned char bytes[1 << 14];
    pons_error err = PONS_ERROR_INIT;
    FILE *file;
    size_t size;

    ck_assert_msg(torch_file_write(path, checkpoint(), NULL, &err) == PONS_OK, "%s", err.text);
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_ptr_nonnull(memmem(bytes, size, "ccollections\nOrderedDict\n)R(X\5\0\0\0whole", 38));
    unsigned char *data = memmem(bytes, size, numbers, sizeof numbers);
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq((data - bytes) % 64, 0);
    ck_assert_ptr_null(memmem(data + 1, size - (size_t)(data + 1 - bytes), numbers,
                              sizeof numbers));
}
END_TEST

START_TEST(other_values_are_refused_and_the_older_file_stays)
{
    pons_error err = PONS_ERROR_INIT;
    torch_value *root = pickle_value_new(memory, TORCH_LIST);
    torch_file *f = NULL;

    ck_assert_int_eq(torch_file_write(path, root, NULL, &err), PONS_OK);
    ck_assert(pickle_value_append(memory, root, pickle_value_new(memory, TORCH_SET)));
    ck_assert_int_eq(torch_file_write(path, root, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "a set cannot be written") != NULL, "%s", err.text);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(torch_file_open(path, &f, &err), PONS_OK);
    ck_assert_int_eq(torch_value_count(torch_file_root(f)), 0);
    torch_file_close(f);
}
END_TEST

START_TEST(a_type_without_a_storage_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    torch_storage *s = storage_of("uint16", numbers, 2);

    ck_assert_int_eq(torch_file_write(path, matrix(s, 0, 1, 2, 2, 1), NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "type uint16") != NULL, "%s", err.text);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_folder_in_its_place_is_refused)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(torch_file_write(".", pickle_value_new(memory, TORCH_NONE), NULL, &err),
                     PONS_FAILURE);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("torch_write");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, tensors_are_read_back);
    tcase_add_test(c, plain_values_are_read_back);
    tcase_add_test(c, the_archive_has_the_form_of_pytorch);
    tcase_add_test(c, other_values_are_refused_and_the_older_file_stays);
    tcase_add_test(c, a_type_without_a_storage_is_refused);
    tcase_add_test(c, a_folder_in_its_place_is_refused);
    return suite_run();
}
