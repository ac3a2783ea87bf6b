/*
 * code_text.h - a growing text buffer, and literals and type names of CUDA C.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODE_TEXT_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODE_TEXT_H

#include <pons/device.h>

typedef struct text {
    char *at;              /* NUL-terminated; NULL if empty                                       */
    size_t length, room;
    bool failed;           /* out of memory: the text is unchanged from then on                   */
} text;

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(text *t);
uint64_t text_hash(const char *at, uint64_t hash); /* FNV-1a; the initial 'hash' is TEXT_HASH */
#define TEXT_HASH UINT64_C(0xcbf29ce484222325)

/* The literal of a float; infinities and NaN by their bits. */
void text_number(text *t, double number);

/* "float", "unsigned short", ...: the type of a tensor's elements in memory. */
const char *text_type(pons_type type);
/* "f32", "bf16", ...: suffixes of the load and store functions. */
const char *text_word(pons_type type);
/* "int" if 'most' fits, else "long long". */
const char *text_index(int64_t most);

/* The begin of every translation unit, which includes no headers. */
extern const char *const text_preamble;

#endif
