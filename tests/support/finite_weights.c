/*
 * finite_weights.c - see finite_weights.h.
 */
#include "support/finite_weights.h"

static void expect_finite_file(const char *path)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;

    ck_assert_msg(safetensors_open(path, &file, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < safetensors_count(file); i++) {
        const safetensor *t = safetensors_item(file, i);
        for (int64_t k = 0; t->type == SAFETENSORS_F32 && k < t->count; k++)
            ck_assert_msg(isfinite(((const float *)t->data)[k]), "%s of %s", t->name, path);
    }
    safetensors_close(file);
}

int64_t newest_finite_in(const char *checkpoints, int64_t last)
{
    static const char *const names[] = { "model", "optimizer" };
    int64_t newest = -1;

    for (int64_t step = 0; step <= last; step++) {
        for (int f = 0; f < 2; f++) {
            char path[600];
            snprintf(path, sizeof path, "%s/step-%08d/%s.safetensors", checkpoints, (int)step,
                     names[f]);
            if (access(path, F_OK) != 0)
                continue;
            expect_finite_file(path);
            newest = step;
        }
    }
    return newest;
}
