/*
 * fuzz_safetensors.c - arbitrary bytes as a file of tensors. The reader refuses them with a line
 * that names the file, or returns tensors that lie inside the file. check_safetensors calls this
 * target with changed files, too.
 */
#include "fuzz/fuzz_file.h"

#include "checkpoint/safetensors.h"

static void require_sound(const safetensors *file)
{
    for (int i = 0; i < safetensors_count(file); i++) {
        const safetensor *t = safetensors_item(file, i);
        const uint8_t *bytes = t->data;
        double *values = malloc((size_t)(t->count + 1) * sizeof *values);
        unsigned sum = 0;
        char text[64];

        require(t->size == (size_t)t->count * safetensors_type_size(t->type), "sizes agree");
        require(safetensors_find(file, t->name) == t, "a name is found");
        safetensor_shape(t, text, sizeof text);
        for (size_t n = 0; n < t->size; n++)
            sum += bytes[n];
        require(values && sum <= 255 * t->size, "bytes can be read");
        safetensor_doubles(t, values);
        free(values);
    }
}

static void require_refusal(const char *text)
{
    require(strstr(text, "a.safetensors") != NULL, "a refusal names the file");
    require(is_one_refusal(text), "a refusal is one line, with a hint at most");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;
    pons_status status = safetensors_read(data, size, "a.safetensors", &file, &err);

    if (status == PONS_OK) {
        require_sound(file);
        safetensors_close(file);
    } else {
        require(status == PONS_DATA && err.status == PONS_DATA, "a refusal has its code");
        require_refusal(err.text);
    }
    return 0;
}
