/*
 * fuzz_torch.c - arbitrary bytes as a file of torch.save. The reader refuses them with one line
 * that names the file, or returns a tree whose tensors lie inside the file. check_torch_file calls
 * this target with changed files, too.
 */
#include "fuzz/fuzz_file.h"

#include "checkpoint/torch/torch_file.h"

static void require_refusal(const pons_error *err)
{
    require(err->status == PONS_DATA, "a refusal has its code");
    require(strstr(err->text, "a.pt") != NULL, "a refusal names the file");
    require(is_one_refusal(err->text), "a refusal is one line, with a hint at most");
}

static void require_elements(torch_file *f, const torch_tensor *t)
{
    const size_t size = t->overlaps ? 0 : (size_t)t->count * t->type->size;
    unsigned char *buffer = malloc(size + 1);
    pons_error err = PONS_ERROR_INIT;
    const void *elements = NULL;
    unsigned sum = 0;

    require(buffer != NULL, "there is memory");
    if (torch_file_elements(f, t, buffer, &elements, &err) == PONS_OK) {
        for (size_t i = 0; i < size; i++)
            sum += ((const unsigned char *)elements)[i];
        require(sum <= 255 * size, "bytes can be read");
        torch_file_release(f, t->storage->bytes, t->storage->size);
    } else {
        require_refusal(&err);
    }
    free(buffer);
}

static int require_sound(torch_file *f, const torch_value *v, int depth)
{
    int total = 1;

    require(depth <= TORCH_DEPTH_MAX && v->depth <= TORCH_DEPTH_MAX, "the depth is bounded");
    if (v->kind == TORCH_TENSOR)
        require_elements(f, v->tensor);
    if (v->kind == TORCH_TEXT)
        require(v->text.bytes[v->text.size] == '\0', "a NUL follows text");
    for (int i = 0; i < torch_value_count(v); i++) {
        if (v->kind == TORCH_DICTIONARY)
            total += require_sound(f, torch_value_key(v, i), depth + 1);
        total += require_sound(f, torch_value_item(v, i), depth + 1);
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    torch_file *file = NULL;

    if (torch_file_read(data, size, "a.pt", &file, &err) == PONS_OK) {
        const torch_value *root = torch_file_root(file);
        require(require_sound(file, root, 1) == root->total, "values are counted");
        torch_file_close(file);
    } else {
        require_refusal(&err);
    }
    return 0;
}
