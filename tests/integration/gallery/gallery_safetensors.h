/*
 * gallery_safetensors.h - the rules of the safetensors format. Each has a broken header, the phrase
 * of the message and a valid twin.
 */
#ifndef TESTS_GALLERY_SAFETENSORS_H
#define TESTS_GALLERY_SAFETENSORS_H

#include <stddef.h>

#define ENTRY(dtype, shape, begin, end)                                                           \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

typedef struct broken_safetensors {
    const char *header; /* the twin differs only in the error                                     */
    size_t data;        /* bytes after the header                                                 */
    const char *phrase; /* part of the message                                                    */
    const char *twin;
    size_t twin_data;
} broken_safetensors;

#define A4 "{\"a\":" ENTRY("F32", "1", 0, 4) "}"
#define DEEP_64 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
#define DEEP_512 DEEP_64 DEEP_64 DEEP_64 DEEP_64 DEEP_64 DEEP_64 DEEP_64 DEEP_64
#define DEEP DEEP_512 DEEP_512 DEEP_512 DEEP_512 DEEP_64

static const broken_safetensors safetensors_gallery[] = {
    { "", 0, "does not begin with '{'", "{}", 0 },
    { " " A4, 4, "does not begin with '{'", A4 " ", 4 },
    { "[]", 0, "does not begin with '{'", "{}", 0 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4), 4, "'}' expected near end of file", A4, 4 },
    { A4 "x", 4, "end of file expected near 'x'", A4 "  ", 4 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",}", 4, "string or '}' expected near '}'", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"a\":" ENTRY("F32", "1", 4, 8) "}", 8,
      "duplicate object key near '\"a\"'",
      "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 4, 8) "}", 8 },
    { "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"\\u0061\":" ENTRY("F32", "1", 4, 8) "}", 8,
      "duplicate object key",
      "{\"a\":" ENTRY("F32", "1", 0, 4) ",\"\\u0062\":" ENTRY("F32", "1", 4, 8) "}", 8 },
    { "{\"__metadata__\":{\"x\":1}}", 0, "__metadata__ holds 'x' that is not a string",
      "{\"__metadata__\":{\"x\":\"1\"}}", 0 },
    { "{\"__metadata__\":\"x\"}", 0, "__metadata__ is not an object", "{\"__metadata__\":{}}", 0 },
    { "{\"__metadata__\":{\"x\":\"1\",\"x\":\"2\"}}", 0, "duplicate object key near '\"x\"'",
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
    { "{\"a\":" ENTRY("F32", "-1", 0, 4) "}", 4, "holds -1, expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1.0", 0, 4) "}", 4, "holds 1.0, expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "1e0", 0, 4) "}", 4, "holds 1.0, expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "\"1\"", 0, 4) "}", 4, "holds \"1\", expected whole numbers", A4, 4 },
    { "{\"a\":" ENTRY("F32", "01", 0, 4) "}", 4, "invalid token near '0' at line 1, column 30",
      A4, 4 },
    { "{\"a\":" ENTRY("F32", "4294967296,4294967296", 0, 4) "}", 4, "too large for 63 bits",
      A4, 4 },
    { "{\"a\":" ENTRY("F32", "4611686018427387904", 0, 4) "}", 4, "too large for 63 bits", A4, 4 },
    { "{\"a\":" ENTRY("F32", "18446744073709551616", 0, 4) "}", 4, "too big integer",
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
    { "{\"a\xff\":" ENTRY("F32", "1", 0, 4) "}", 4, "unable to decode byte 0xff",
      "{\"a\xc3\xa9\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\xc0\x80\":" ENTRY("F32", "1", 0, 4) "}", 4, "unable to decode byte 0xc0", A4, 4 },
    { "{\"a\n\":" ENTRY("F32", "1", 0, 4) "}", 4, "unexpected newline",
      "{\"a\\n\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\\u0000\":" ENTRY("F32", "1", 0, 4) "}", 4, "NUL byte in object key", A4, 4 },
    { "{\"a\\ud800\":" ENTRY("F32", "1", 0, 4) "}", 4, "invalid Unicode '\\uD800'",
      "{\"a\\ud83d\\ude00\":" ENTRY("F32", "1", 0, 4) "}", 4 },
    { "{\"a\\x\":" ENTRY("F32", "1", 0, 4) "}", 4, "invalid escape", A4, 4 },
    { "{\"a", 0, "premature end of input", A4, 4 },
    { "{\"a\":" DEEP, 0, "maximum parsing depth reached", A4, 4 },
    { "{\"a\":nul}", 0, "invalid token near 'nul'", "{}", 0 },
};

#endif
