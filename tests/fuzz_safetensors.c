/*
 * fuzz_safetensors.c - any bytes at all as a weights file: refused with one line, or read into tensors
 * that lie inside it. check_safetensors feeds it changed files; to search for more, with clang:
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icore tests/fuzz_safetensors.c \
 *         core/train/safetensors.c core/base/json.c core/base/error.c
 */
#include "train/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;
    size_t sum = 0;

    if (safetensors_read(data, size, "file", &file, &err) != PONS_OK) {
        if (err.status != PONS_DATA || err.text[0] == '\0' || strchr(err.text, '\n') != NULL)
            abort();
        return 0;
    }
    for (int i = 0; i < safetensors_count(file); i++) {
        const safetensor *t = safetensors_item(file, i);
        double *values = malloc((size_t)(t->count + 1) * sizeof *values);
        sum += t->size;
        safetensor_doubles(t, values);
        if (safetensors_find(file, t->name) != t || sum > size)
            abort();
        free(values);
    }
    safetensors_close(file);
    return 0;
}
