/*
 * fuzz_file.h - shared code of the fuzz targets: a violated requirement aborts the program, and the
 * input becomes a file.
 */
#ifndef TESTS_FUZZ_FILE_H
#define TESTS_FUZZ_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

/* The text of a refusal is one line, optionally followed by a hint. */
static inline bool is_one_refusal(const char *text)
{
    const char *end = strchr(text, '\n');

    return end == NULL || (strncmp(end + 1, "hint: ", 6) == 0 && strchr(end + 1, '\n') == NULL);
}

static inline void fuzz_write(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    require(f && fwrite(data, 1, size, f) == size && !fclose(f), "the file could be written");
}

#endif
