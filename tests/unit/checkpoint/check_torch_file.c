/*
 * check_torch_file.c - files that PyTorch wrote in three forms are read value by value; damaged
 * files, bombs and pickles that call are refused.
 */
#include <config.h>

#include "checkpoint/torch/torch_file.h"
#include "checkpoint/weights/weights_file.h"

#include "fuzz/fuzz_file.h"
#include "support/data/golden_file.h"
#include "support/data/torch_maker.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Made by tests/golden/torch/state.py. */
static const char *const files[] = { "state.pt", "state_protocol4.pt", "state_old.pt" };

enum { FILES = sizeof files / sizeof files[0] };

static unsigned char *file_bytes(int index, size_t *size)
{
    static unsigned char bytes[1 << 16];
    char name[64];
    FILE *f;

    snprintf(name, sizeof name, "torch/%s", files[index]);
    f = fopen(golden_path(name), "rb");
    ck_assert_ptr_nonnull(f);
    *size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return bytes;
}

static torch_file *open_file(int index)
{
    pons_error err = PONS_ERROR_INIT;
    torch_file *f = NULL;
    char name[64];

    snprintf(name, sizeof name, "torch/%s", files[index]);
    ck_assert_msg(torch_file_open(golden_path(name), &f, &err) == PONS_OK, "%s", err.text);
    return f;
}

/* All elements of a tensor as double. */
static int elements_of(torch_file *f, const torch_value *v, double *out)
{
    pons_error err = PONS_ERROR_INIT;
    char buffer[1024];
    safetensor t;

    ck_assert_ptr_nonnull(v);
    ck_assert_int_eq(v->kind, TORCH_TENSOR);
    t = (safetensor){ .type = v->tensor->type->type, .count = v->tensor->count };
    ck_assert_msg(torch_file_elements(f, v->tensor, buffer, &t.data, &err) == PONS_OK, "%s",
                  err.text);
    safetensor_doubles(&t, out);
    return (int)t.count;
}

static void require_elements(torch_file *f, const torch_value *v, int count, const double *expected)
{
    double found[64];

    ck_assert_int_eq(elements_of(f, v, found), count);
    for (int i = 0; i < count; i++)
        ck_assert_msg(found[i] == expected[i], "element %d is %g, expected %g", i, found[i],
                      expected[i]);
}

#define REQUIRE(NAME, ...) \
    require_elements(f, torch_value_find(w, NAME), \
                     sizeof (double[]){ __VA_ARGS__ } / sizeof(double), (double[]){ __VA_ARGS__ })

START_TEST(tensors_of_every_type_and_stride_are_read)
{
    torch_file *f = open_file(_i);
    const torch_value *w = torch_value_find(torch_file_root(f), "network_weights"), *b;
    double found[64];

    ck_assert_int_eq(elements_of(f, torch_value_find(w, "a.weight"), found), 24);
    for (int i = 0; i < 24; i++)
        ck_assert(found[i] == i);
    b = torch_value_find(w, "b.weight"); /* [4, 2, 3] = 2 a[j, k, i] */
    ck_assert_int_eq(elements_of(f, b, found), 24);
    ck_assert(!torch_tensor_is_contiguous(b->tensor) && b->tensor->extent[0] == 4);
    for (int i = 0; i < 24; i++)
        ck_assert(found[i] == 2 * (i % 6 * 4 + i / 6));
    ck_assert(torch_value_find(w, "alias.weight")->tensor->storage
              == torch_value_find(w, "a.weight")->tensor->storage);
    REQUIRE("row", 16, 17, 18, 19, 20, 21, 22, 23);
    REQUIRE("half", 1.5, -2, 0.25);
    REQUIRE("brain", 1.5, -2, 3);
    REQUIRE("double", 0.1, 1e300);
    REQUIRE("bias", 7, 8);
    REQUIRE("num_batches_tracked", 5);
    REQUIRE("u16", 1, 65535);
    ck_assert_int_eq(elements_of(f, torch_value_find(w, "empty"), found), 0);
    ck_assert_int_eq(torch_value_count(w), 11);
    torch_file_close(f);
}
END_TEST

static double real_at(const torch_value *root, const char *key)
{
    double value = NAN;

    ck_assert_msg(torch_value_real(torch_value_find(root, key), &value), "no number '%s'", key);
    return value;
}

START_TEST(plain_values_are_read)
{
    torch_file *f = open_file(_i);
    const torch_value *w = torch_file_root(f), *v;
    int64_t integer;

    ck_assert(real_at(w, "epoch") == 3 && real_at(w, "big") == 0x1p70 && real_at(w, "best") == 0.5);
    ck_assert(real_at(w, "count") == -3 && real_at(w, "flag") == 1 && real_at(w, "rate") == 0.01);
    ck_assert(real_at(w, "negative") == -70000 && real_at(w, "yes") == 1);
    ck_assert(torch_value_integer(torch_value_find(w, "count"), &integer) && integer == -3);
    ck_assert(!torch_value_integer(torch_value_find(w, "rate"), &integer));
    REQUIRE("array", 0, 1, 2, 3, 4, 5);
    REQUIRE("fortran", 0, 1, 2, 3, 4, 5);
    ck_assert_str_eq(torch_value_text(torch_value_find(w, "name")), "nnUNetTrainer");
    ck_assert_str_eq(torch_value_text(torch_value_find(w, "device")), "cuda:1");
    v = torch_value_find(w, "axes");
    ck_assert(v->kind == TORCH_TUPLE && torch_value_count(v) == 3);
    ck_assert(torch_value_item(v, 2)->integer == 2);
    ck_assert(torch_value_find(w, "none")->kind == TORCH_NONE);
    v = torch_value_find(w, "bytes");
    ck_assert(v->kind == TORCH_BYTES && v->text.size == 3 && !memcmp(v->text.bytes, "ab\xff", 3));
    v = torch_value_find(w, "set");
    ck_assert(v->kind == TORCH_SET && torch_value_count(v) == 1);
    ck_assert(torch_value_count(torch_value_find(w, "size")) == 2);
    v = torch_value_find(torch_value_find(w, "init_args"), "plans");
    ck_assert(torch_value_item(torch_value_find(v, "spacing"), 0)->real == 3);
    ck_assert_ptr_null(torch_value_find(torch_value_find(w, "missing"), "x"));
    torch_file_close(f);
}
END_TEST

static pons_status read_bytes(const void *bytes, size_t size, pons_error *err)
{
    torch_file *f = NULL;
    pons_status status = torch_file_read(bytes, size, "a.pt", &f, err);

    if (status == PONS_OK)
        torch_file_close(f);
    return status;
}

START_TEST(every_prefix_of_a_file_is_refused)
{
    size_t size;
    unsigned char *bytes = file_bytes(_i, &size);

    for (size_t n = 0; n < size; n++) {
        pons_error err = PONS_ERROR_INIT;
        unsigned char *part = malloc(n + 1); /* a sanitizer sees a read behind the end */
        memcpy(part, bytes, n);
        ck_assert_msg(read_bytes(part, n, &err) == PONS_DATA, "%zu bytes are read", n);
        ck_assert_msg(strchr(err.text, '\n') == NULL, "'%s' is not one line", err.text);
        free(part);
    }
}
END_TEST

START_TEST(flipped_bytes_never_break_the_reader)
{
    size_t size;
    unsigned char *bytes = file_bytes(_i, &size);

    for (size_t n = 0; n < size; n++) {
        for (int bit = 0; bit < 8; bit += 3) {
            bytes[n] ^= (unsigned char)(1 << bit);
            LLVMFuzzerTestOneInput(bytes, size); /* aborts on a fault */
            bytes[n] ^= (unsigned char)(1 << bit);
        }
        bytes[n] ^= 255;
        LLVMFuzzerTestOneInput(bytes, size);
        bytes[n] ^= 255;
    }
}
END_TEST

/* The older format has no checksums. */
START_TEST(a_flipped_byte_of_a_pickle_or_a_tensor_is_found)
{
    size_t size, pickle, data;
    unsigned char *bytes = file_bytes(0, &size);
    pons_error err = PONS_ERROR_INIT;
    torch_file *f = open_file(0);
    const torch_value *a = torch_value_find(torch_value_find(torch_file_root(f), "network_weights"),
                                            "a.weight");
    double found[64];

    elements_of(f, a, found);
    torch_file_close(f);
    data = (size_t)((unsigned char *)memmem(bytes, size, "\0\0\x80\x3f\0\0\0\x40", 8) - bytes);
    pickle = (size_t)((unsigned char *)memmem(bytes, size, "nnUNetTrainer", 13) - bytes);
    bytes[pickle] ^= 32;
    ck_assert_int_eq(read_bytes(bytes, size, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "checksum of 'data.pkl'") != NULL, "%s", err.text);
    bytes[pickle] ^= 32;
    bytes[data] ^= 1;
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(torch_file_read(bytes, size, "a.pt", &f, &err), PONS_OK);
    a = torch_value_find(torch_value_find(torch_file_root(f), "network_weights"), "a.weight");
    const void *elements;
    ck_assert_int_eq(torch_file_elements(f, a->tensor, NULL, &elements, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "checksum of '") != NULL, "%s", err.text);
    torch_file_close(f);
}
END_TEST

/* ---- pickles --------------------------------------------------------------------------------- */

typedef struct pickle_case {
    const char *bytes;
    size_t size;
    const char *phrase; /* NULL: it is read */
} pickle_case;

#define CASE(BYTES, PHRASE) { BYTES, sizeof BYTES - 1, PHRASE }
#define SIX TORCH_STORAGE("FloatStorage", "\6")

static const pickle_case cases[] = {
    CASE("\x80\2}.", NULL),
    CASE("\x80\2cos\nsystem\nX\4\0\0\0true\x85R.", "it names 'os.system'"),
    CASE("\x80\4\x8c\5posix\x8c\6system\x93\x8c\4true\x85R.", "it names 'posix.system'"),
    CASE("\x80\2c__builtin__\neval\nX\1\0\0\0" "1\x85R.", "it names '__builtin__.eval'"),
    CASE("\x80\2ctorch\nload\nX\1\0\0\0x\x85R.", "it names 'torch.load'"),
    CASE("\x80\2ctorch._utils\nos.system\n.", "it names 'torch._utils.os.system'"),
    CASE("\x80\2(cos\nsystem\no.", "it names 'os.system'"),
    CASE("\x80\2(X\4\0\0\0truei", "instruction INST is not one"),
    CASE("\x80\2\x82\1.", "instruction EXT1 is not one"),
    CASE("\x80\2\xff.", "0xff is no instruction"),
    CASE("\x80\6}.", "newer than 5"),
    CASE("\x80\2ctorch\nfloat32\n)R.", "uses torch.float32 as a function"),
    CASE("\x80\2X\1\0\0\0x)R.", "uses a text as a function"),
    CASE("\x80\2]q\0h\0a.", "it holds itself"),
    CASE("\x80\2]q\0]h\0ah\0\x85h\0Na.", "it holds itself"),
    CASE("\x80\2]q\0]q\1h\0ah\1h\0h\1a.", "it holds itself"),
    CASE("\x80\2h\7.", "used before it is made"),
    CASE("\x80\2Nr\xff\xff\xff\x7f.", "remembers more values"),
    CASE("\x80\2X\xff\xff\xff\xff", "ends too early"),
    CASE("\x80\2\x8b\xff\xff\xff\x7f", "ends too early"),
    CASE("\x80\2(Nd.", "a key without a value"),
    CASE("\x80\2t.", "a mark is missing"),
    CASE("\x80\2a.", "stack is empty"),
    CASE("\x80\2(Na.", "stack is empty"),
    CASE("\x80\2Nb.", "stack is empty"),
    CASE("\x80\2N}b.", "has a state for none"),
    CASE("\x80\2cnumpy\ndtype\nX\2\0\0\0O8\x89\x88\x87R.", "type 'O8'"),
    CASE("\x80\2cnumpy\ndtype\nX\2\0\0\0f8\x89\x88\x87R(K\3X\1\0\0\0>tb.", "not little endian"),
    CASE("\x80\2cnumpy._core.multiarray\nscalar\ncnumpy\ndtype\nX\2\0\0\0f8\x89\x88\x87R"
         "C\3abc\x86R.", "arguments of a NumPy scalar"),
    CASE("\x80\2" SIX ".", NULL),
    CASE("\x80\2" TORCH_STORAGE("FloatStorage", "\7") ".", "has 24 bytes, expected 28"),
    CASE("\x80\2" TORCH_STORAGE("Size", "\6") ".", "id of a storage is damaged"),
    CASE("\x80\2NQ.", "id of a storage is damaged"),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "K\2K\3\x86", "K\3K\1\x86") ".", NULL),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "K\2K\3\x86", "K\1K\2\x86") ".", NULL),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\1", "K\2K\3\x86", "K\3K\1\x86") ".", "beyond its"),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "K\2K\3\x86", "K\0K\1\x86") ".", NULL),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "K\2K\3\x86", "K\1K\1\x86") ".", NULL),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\5", "K\2K\3\x86", "J\xff\xff\xff\xffK\1\x86") ".",
         "arguments of a tensor"),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\3\x86",
                                    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\1\x86") ".",
         "beyond its"),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "J\xff\xff\xff\xff", "K\1\x85", "K\1\x85") ".",
         "arguments of a tensor"),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "K\0K\3\x86", "K\3K\1\x86") ".", NULL),
    CASE("\x80\2" TORCH_TENSOR_OVER(SIX, "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
                                    "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t") ".", "arguments of a tensor"),
};

START_TEST(a_pickle_is_plain_data_or_refused)
{
    const pickle_case *c = &cases[_i];
    pons_error err = PONS_ERROR_INIT;
    size_t size;
    unsigned char *bytes = torch_maker_file(c->bytes, c->size, 24, &size);
    pons_status status = read_bytes(bytes, size, &err);

    ck_assert_msg((status == PONS_OK) == (c->phrase == NULL), "case %d: '%s'", _i, err.text);
    ck_assert_msg(c->phrase == NULL || strstr(err.text, c->phrase) != NULL, "'%s' lacks '%s'",
                  err.text, c->phrase);
    ck_assert_msg(is_one_refusal(err.text), "'%s' is not one line", err.text);
    free(bytes);
}
END_TEST

/* A pickle that repeats a text 'count' times between a head and a tail. */
static pons_status read_repeated(const char *head, const char *text, size_t count, const char *tail,
                                 pons_error *err)
{
    size_t length = strlen(text), first = strlen(head), size, used = first;
    char *pickle = malloc(first + count * length + strlen(tail));

    memcpy(pickle, head, first);
    for (size_t i = 0; i < count; i++, used += length)
        memcpy(pickle + used, text, length);
    memcpy(pickle + used, tail, strlen(tail));
    unsigned char *bytes = torch_maker_file(pickle, used + strlen(tail), 0, &size);
    pons_status status = read_bytes(bytes, size, err);
    free(bytes);
    free(pickle);
    return status;
}

/* Eight copies of a text. */
#define EIGHT COPY COPY COPY COPY COPY COPY COPY COPY
#define COPY "h\2h\1h\3\x86R"

START_TEST(a_bomb_is_refused_early)
{
    static const struct {
        const char *head, *text;
        size_t count;
        const char *tail, *phrase;
    } c[] = {
        { "\x80\2]", "]", 200, ".", "values are left over" },
        { "\x80\2N", "\x85", 200, ".", "too deep" },
        { "\x80\2N", "2\x86", 40, ".", "too large" },                   /* 2^40 values            */
        { "\x80\2(", "N", 5 << 20, "t.", "more values" },
        { "\x80\2", "(", 5 << 20, ".", "more values" },
        { "\x80\2X\1\1\1\1", "x", 0x01010101, "q\1" "c_codecs\nencode\nq\2"
          "\x8c\6latin1q\3(" EIGHT "t.", "more values" },
    };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(read_repeated(c[_i].head, c[_i].text, c[_i].count, c[_i].tail, &err),
                     PONS_DATA);
    ck_assert_msg(strstr(err.text, c[_i].phrase) != NULL, "'%s' lacks '%s'", err.text,
                  c[_i].phrase);
}
END_TEST

/* A key of a storage is compared for each tensor over it. */
START_TEST(a_long_key_of_a_storage_is_refused)
{
    /* The NUL of 'head' is the last byte of the key's length. */
    static const char head[] = "\x80\2(X\7\0\0\0storagectorch\nFloatStorage\nX\x81\0\0";
    static const char tail[] = "X\3\0\0\0cpuK\6tQ.";
    pons_error err = PONS_ERROR_INIT;
    char pickle[512];
    size_t size;

    memcpy(pickle, head, sizeof head);
    memset(pickle + sizeof head, '0', 129);
    memcpy(pickle + sizeof head + 129, tail, sizeof tail - 1);
    unsigned char *bytes = torch_maker_file(pickle, sizeof head + 129 + sizeof tail - 1, 24, &size);
    ck_assert_int_eq(read_bytes(bytes, size, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "id of a storage is damaged") != NULL, "%s", err.text);
    free(bytes);
}
END_TEST

/* One text may be the key of each of many values. */
START_TEST(a_text_is_not_read_by_its_look_up)
{
    torch_value text = { .kind = TORCH_TEXT, .text = { .bytes = "abc", .size = SIZE_MAX } };

    ck_assert_ptr_eq(torch_value_text(&text), text.text.bytes);
    text.text.has_nul = true;
    ck_assert_ptr_null(torch_value_text(&text));
}
END_TEST

START_TEST(a_text_with_a_nul_is_no_name)
{
    static const char pickle[] = "\x80\2}X\3\0\0\0a\0bK\1s.";
    pons_error err = PONS_ERROR_INIT;
    torch_file *f = NULL;
    size_t size;
    unsigned char *bytes = torch_maker_file(pickle, sizeof pickle - 1, 0, &size);

    ck_assert_int_eq(torch_file_read(bytes, size, "a.pt", &f, &err), PONS_OK);
    ck_assert_int_eq(torch_value_count(torch_file_root(f)), 1);
    ck_assert_ptr_null(torch_value_text(torch_value_key(torch_file_root(f), 0)));
    torch_file_close(f);
    free(bytes);
}
END_TEST

/* ---- state dictionaries ---------------------------------------------------------------------- */

enum { STORAGE_SIZE = 1 << 16, VIEW_SIZE = 1 << 15 };

/* A state dictionary in work, and the file of it. */
typedef struct state {
    char *pickle;
    size_t length;
    FILE *out;
    unsigned char *bytes;
    weights_file weights;
} state;

static void state_begin(state *s)
{
    *s = (state){ .pickle = NULL };
    s->out = open_memstream(&s->pickle, &s->length);
    ck_assert_ptr_nonnull(s->out);
    fwrite("\x80\2}(", 1, 4, s->out);
}

static void add_name(const state *s, const char *name)
{
    size_t size = strlen(name);

    fputc('X', s->out);
    for (int i = 0; i < 4; i++)
        fputc((int)(size >> 8 * i & 255), s->out);
    fwrite(name, 1, size, s->out);
}

/* Every second one of 16384 elements from 'first' < 256 on, as two rows or overlapping rows. */
static void add_view(const state *s, const char *name, int first, bool overlaps)
{
    static const char storage[] = "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n"
        "FloatStorage\nX\1\0\0\0" "0X\3\0\0\0cpuM\0\x40tQK";
    static const char apart[] = "K\2M\0\x10\x86K\1K\2\x86\x89" "ccollections\nOrderedDict\n)RtR";
    static const char same[] = "K\2M\0\x10\x86K\0K\2\x86\x89" "ccollections\nOrderedDict\n)RtR";

    add_name(s, name);
    fwrite(storage, 1, sizeof storage - 1, s->out);
    fputc(first, s->out);
    fwrite(overlaps ? same : apart, 1, sizeof apart - 1, s->out);
}

static pons_status state_open(state *s, pons_error *err)
{
    static const unsigned char storage[STORAGE_SIZE];
    torch_file *f = NULL;
    size_t size;

    fwrite("u.", 1, 2, s->out);
    fclose(s->out);
    s->bytes = torch_maker_archive(2, (torch_entry[]){ { "a/data.pkl", s->pickle, s->length },
                                                       { "a/data/0", storage, STORAGE_SIZE } },
                                   &size);
    if (torch_file_read(s->bytes, size, "a.pt", &f, err) != PONS_OK)
        return err->status;
    return weights_file_of_torch(f, NULL, "a.pt", &s->weights, err);
}

static void state_close(state *s)
{
    weights_file_close(&s->weights);
    free(s->bytes);
    free(s->pickle);
}

START_TEST(marks_of_wrappers_are_removed_from_names)
{
    pons_error err = PONS_ERROR_INIT;
    state s;
    char name[600] = "module.";

    state_begin(&s);
    for (int i = 0; i < 50; i++)
        strcat(name, "_orig_mod.");
    add_view(&s, strcat(name, "w"), 0, false);
    add_view(&s, "module.a._orig_mod._orig_mod.b_orig_mod.c", 1, false);
    ck_assert_msg(state_open(&s, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(safetensors_count(s.weights.tensors), 2);
    ck_assert_ptr_nonnull(safetensors_find(s.weights.tensors, "w"));
    ck_assert_ptr_nonnull(safetensors_find(s.weights.tensors, "a.b_orig_mod.c"));
    state_close(&s);
}
END_TEST

START_TEST(a_name_of_512_bytes_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    state s;
    char name[513] = "";

    state_begin(&s);
    memset(name, 'x', 512);
    add_view(&s, name, 0, false);
    ck_assert_int_eq(state_open(&s, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "has 512 bytes, expected at most 511") != NULL, "%s", err.text);
    state_close(&s);
}
END_TEST

START_TEST(names_of_one_view_share_a_copy)
{
    pons_error err = PONS_ERROR_INIT;
    state s;
    char name[32];

    state_begin(&s);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        add_view(&s, name, i % 2, false);
    }
    ck_assert_msg(state_open(&s, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_eq(safetensors_item(s.weights.tensors, i)->data,
                         safetensors_item(s.weights.tensors, i % 2)->data);
    ck_assert_ptr_ne(safetensors_item(s.weights.tensors, 0)->data,
                     safetensors_item(s.weights.tensors, 1)->data);
    state_close(&s);
}
END_TEST

START_TEST(views_of_many_times_the_file_are_refused)
{
    pons_error err = PONS_ERROR_INIT;
    state s;
    char name[32];

    state_begin(&s);
    for (int i = 0; i < 20 * STORAGE_SIZE / VIEW_SIZE; i++) {
        snprintf(name, sizeof name, "%d", i);
        add_view(&s, name, i, false);
    }
    ck_assert_int_eq(state_open(&s, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "more than 4 times the bytes") != NULL, "%s", err.text);
    state_close(&s);
}
END_TEST

START_TEST(an_overlapping_tensor_has_no_data)
{
    pons_error err = PONS_ERROR_INIT;
    const void *elements;
    state s;

    state_begin(&s);
    add_view(&s, "good", 0, false);
    add_view(&s, "expanded", 0, true);
    ck_assert_msg(state_open(&s, &err) == PONS_OK, "%s", err.text);
    ck_assert_ptr_nonnull(safetensors_find(s.weights.tensors, "good")->data);
    ck_assert_ptr_null(safetensors_find(s.weights.tensors, "expanded")->data);
    const torch_value *v = torch_value_find(torch_file_root(s.weights.torch), "expanded");
    ck_assert_int_eq(torch_file_elements(s.weights.torch, v->tensor, NULL, &elements, &err),
                     PONS_DATA);
    ck_assert_msg(strstr(err.text, "elements of a tensor over storage '0' overlap") != NULL, "%s",
                  err.text);
    state_close(&s);
}
END_TEST

/* ---- archives -------------------------------------------------------------------------------- */

#define ENTRY(NAME, TEXT) { NAME, TEXT, sizeof TEXT - 1 }
#define PICKLE ENTRY("a/data.pkl", "\x80\2}.")

START_TEST(an_archive_of_something_else_is_refused)
{
    static const struct { torch_entry entry[2]; const char *phrase; } c[] = {
        { { PICKLE, ENTRY("a/version", "3\n") }, NULL },
        { { ENTRY("a/x.npy", ""), ENTRY("b", "") }, "has no data.pkl" },
        { { PICKLE, ENTRY("b/data.pkl", "\x80\2}.") }, "two files data.pkl" },
        { { PICKLE, PICKLE }, "two entries 'a/data.pkl'" },
        { { PICKLE, ENTRY("a/byteorder", "big") }, "not little endian" },
        { { PICKLE, ENTRY("a/constants.pkl", "") }, "a TorchScript program" },
        { { ENTRY("a/data.pkl", ""), ENTRY("a/version", "3\n") }, "ends too early" },
    };
    pons_error err = PONS_ERROR_INIT;
    size_t size;
    unsigned char *bytes = torch_maker_archive(2, c[_i].entry, &size);

    ck_assert_int_eq(read_bytes(bytes, size, &err), c[_i].phrase ? PONS_DATA : PONS_OK);
    ck_assert_msg(!c[_i].phrase || strstr(err.text, c[_i].phrase) != NULL, "%s", err.text);
    free(bytes);
}
END_TEST

/* The checksum of each entry is computed over all of its bytes. */
START_TEST(overlapping_entries_are_refused)
{
    static const char long_entry[1000];
    size_t size;
    unsigned char *bytes = torch_maker_archive(2, (torch_entry[]){
        PICKLE, { "a/data/0", long_entry, sizeof long_entry } }, &size);
    unsigned char *entry = memmem(bytes, size, "PK\1\2", 4);
    pons_error err = PONS_ERROR_INIT;

    entry[20] = entry[24] = sizeof long_entry & 255;
    entry[21] = entry[25] = sizeof long_entry >> 8;
    ck_assert_int_eq(read_bytes(bytes, size, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "entries of the zip archive overlap") != NULL, "%s", err.text);
    free(bytes);
}
END_TEST

START_TEST(a_compressed_or_encrypted_entry_is_refused)
{
    size_t size;
    unsigned char *bytes = torch_maker_archive(1, (torch_entry[]){ PICKLE }, &size);
    unsigned char *entry = memmem(bytes, size, "PK\1\2", 4);
    pons_error compressed = PONS_ERROR_INIT, encrypted = PONS_ERROR_INIT;

    entry[10] = 8;
    ck_assert_int_eq(read_bytes(bytes, size, &compressed), PONS_DATA);
    ck_assert_msg(strstr(compressed.text, "is compressed") != NULL, "%s", compressed.text);
    entry[10] = 0;
    entry[8] = 1;
    ck_assert_int_eq(read_bytes(bytes, size, &encrypted), PONS_DATA);
    ck_assert_msg(strstr(encrypted.text, "is encrypted") != NULL, "%s", encrypted.text);
    free(bytes);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("torch_file");

    tcase_add_loop_test(c, tensors_of_every_type_and_stride_are_read, 0, FILES);
    tcase_add_loop_test(c, plain_values_are_read, 0, FILES);
    tcase_add_loop_test(c, every_prefix_of_a_file_is_refused, 0, FILES);
    tcase_add_loop_test(c, flipped_bytes_never_break_the_reader, 0, FILES);
    tcase_add_test(c, a_flipped_byte_of_a_pickle_or_a_tensor_is_found);
    tcase_add_loop_test(c, a_pickle_is_plain_data_or_refused, 0, sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(c, a_bomb_is_refused_early, 0, 6);
    tcase_add_test(c, a_long_key_of_a_storage_is_refused);
    tcase_add_test(c, a_text_is_not_read_by_its_look_up);
    tcase_add_test(c, a_text_with_a_nul_is_no_name);
    tcase_add_test(c, marks_of_wrappers_are_removed_from_names);
    tcase_add_test(c, a_name_of_512_bytes_is_refused);
    tcase_add_test(c, names_of_one_view_share_a_copy);
    tcase_add_test(c, views_of_many_times_the_file_are_refused);
    tcase_add_test(c, an_overlapping_tensor_has_no_data);
    tcase_add_loop_test(c, an_archive_of_something_else_is_refused, 0, 7);
    tcase_add_test(c, overlapping_entries_are_refused);
    tcase_add_test(c, a_compressed_or_encrypted_entry_is_refused);
    return suite_run();
}
