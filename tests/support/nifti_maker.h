/*
 * nifti_maker.h - NIfTI files for tests, assembled byte by byte from the offsets of the format.
 * Reader and writer are tested against the standard, and not against each other.
 */
#ifndef TESTS_NIFTI_MAKER_H
#define TESTS_NIFTI_MAKER_H

#include "support/asserts.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* One change of a field: offset, storage type (b h i q f d; s: the bytes of 'text'), value. */
typedef struct edit {
    int at;
    char type;
    double value;
    const char *text;
} edit;

enum { MAKE_GZIP = 1, MAKE_BIG = 2, MAKE_NIFTI_2 = 4, MAKE_FLOAT = 8, MAKE_LABEL = 16 };

enum { MAKER_I = 5, MAKER_J = 4, MAKER_K = 3, MAKER_COUNT = MAKER_I * MAKER_J * MAKER_K };

typedef struct maker {
    unsigned char bytes[4096];
    size_t size;
    bool big;
} maker;

void maker_put(maker *m, const edit *e);

void maker_put_all(maker *m, const edit *e, int count);

/* Voxel n of the file's order holds n (label: n mod 3); spacing 1.5 2 3, origin -7 8 9, RAS. */
void maker_base(maker *m, int flags);

size_t maker_gzip(const unsigned char *in, size_t size, unsigned char *out,
                  size_t room);

void maker_write(const char *path, const void *bytes, size_t size);

#endif
