/*
 * code_text.c - append to a text; type names and literals of CUDA C.
 */
#include "cuda/codegen/code_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(text *t, size_t more)
{
    size_t room = t->room > 0 ? t->room : 1024;
    char *at;

    while (room < t->length + more + 1)
        room *= 2;
    if (room == t->room)
        return true;
    at = realloc(t->at, room);
    if (at == NULL)
        return false;
    t->at = at;
    t->room = room;
    return true;
}

void text_add(text *t, const char *format, ...)
{
    va_list list;
    int size;

    va_start(list, format);
    size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (t->failed || size < 0 || !text_reserve(t, (size_t)size)) {
        t->failed = true;
        return;
    }
    va_start(list, format);
    vsnprintf(t->at + t->length, (size_t)size + 1, format, list);
    va_end(list);
    t->length += (size_t)size;
}

void text_free(text *t)
{
    free(t->at);
    *t = (text){ .at = NULL };
}

uint64_t text_hash(const char *at, uint64_t hash)
{
    for (; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return hash;
}

void text_number(text *t, double number)
{
    float x = (float)number;
    char digits[32];
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if (!isfinite(x)) {
        text_add(t, "__int_as_float(0x%08x)", bits);
        return;
    }
    snprintf(digits, sizeof digits, "%.9g", (double)x);
    text_add(t, "%s%s%s%sf", x < 0 || (x == 0 && signbit(x)) ? "(" : "", digits,
             strpbrk(digits, ".e") == NULL ? ".0" : "", "");
    if (x < 0 || (x == 0 && signbit(x)))
        text_add(t, ")");
}

const char *text_type(pons_type type)
{
    static const char *const name[] = {
        [PONS_F32] = "float", [PONS_BF16] = "unsigned short", [PONS_F16] = "unsigned short",
        [PONS_U8] = "unsigned char", [PONS_I32] = "int", [PONS_F64] = "double"
    };

    return name[type];
}

const char *text_word(pons_type type)
{
    static const char *const name[] = {
        [PONS_F32] = "f32", [PONS_BF16] = "bf16", [PONS_F16] = "f16", [PONS_U8] = "u8",
        [PONS_I32] = "i32", [PONS_F64] = "f64"
    };

    return name[type];
}

const char *text_index(int64_t most)
{
    return most < INT32_MAX / 2 ? "int" : "long long";
}
