/*
 * root.h - the test's own folder, and files in it.
 */
#ifndef TESTS_ROOT_H
#define TESTS_ROOT_H

#include "support/asserts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char root[64];

/* Make the folder in TMPDIR. */
void make_root(void);

void remove_root(void);

/* Run a shell command in the folder; it must succeed. */
void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A path in the folder. The last 16 results stay valid. */
const char *in_root(const char *name);

void write_text(const char *name, const char *text);

#endif
