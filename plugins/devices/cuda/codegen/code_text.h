/*
 * code_text.h - a growing text, and the small words of CUDA C that every kernel is written with.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODE_TEXT_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODE_TEXT_H

#include <pons/device.h>

typedef struct text {
    char *at;              /* ends with 0; NULL: nothing was added                                */
    size_t length, room;
    bool failed;           /* out of memory: stays as it was                                      */
} text;

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(text *t);
uint64_t text_hash(const char *at, uint64_t hash); /* FNV-1a; the first 'hash' is TEXT_HASH */
#define TEXT_HASH UINT64_C(0xcbf29ce484222325)

/* A float's literal; what is not finite by its bits. */
void text_number(text *t, double number);

/* "float", "unsigned short", ...: how a tensor lies in memory. */
const char *text_type(pons_type type);
/* "f32", "bf16", ...: the ends of the names of the loading and storing functions. */
const char *text_word(pons_type type);
/* "int" where 'most' fits, else "long long". */
const char *text_index(int64_t most);

/* What a translation unit begins with: it includes nothing. */
extern const char *const text_preamble;

#endif
