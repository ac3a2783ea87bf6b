/*
 * golden_arrays.c - golden values of transforms: arrays [C, D, H, W] of files in tests/golden.
 */
#include "support/data/golden_arrays.h"

#include "support/data/golden_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

safetensors *open_arrays(const char *name)
{
    safetensors *arrays;

    MUST(safetensors_open(golden_path(name), &arrays, &error));
    return arrays;
}

safetensor picture_of(const safetensors *arrays, const char *name)
{
    safetensor t = *find_array(arrays, name);

    t.extent[3] = t.extent[2];
    t.extent[2] = t.extent[1];
    t.extent[1] = 1;
    return t;
}

config *open_ini(const char *text)
{
    char path[] = "/tmp/pons-golden-XXXXXX";
    int fd = mkstemp(path);
    config *c = NULL;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    MUST(config_open(path, 0, NULL, &c, &error));
    unlink(path);
    return c;
}

const safetensor *find_array(const safetensors *arrays, const char *name)
{
    const safetensor *t = safetensors_find(arrays, name);

    ck_assert_msg(t != NULL, "no array '%s'", name);
    return t;
}

float *channels_last(const safetensor *t)
{
    int64_t channels = t->extent[0], voxels = t->count / channels;
    double *plain = malloc((size_t)t->count * sizeof *plain);
    float *out = malloc((size_t)t->count * sizeof *out);

    safetensor_doubles(t, plain);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t n = 0; n < voxels; n++)
            out[n * channels + c] = (float)plain[c * voxels + n];
    free(plain);
    return out;
}

void assert_near(const float *found, const safetensor *expected, double of_range,
                 const char *name)
{
    float *e = channels_last(expected), low = e[0], high = e[0];
    double worst = 0;

    for (int64_t n = 0; n < expected->count; n++) {
        low = fminf(low, e[n]);
        high = fmaxf(high, e[n]);
        worst = fmax(worst, fabs((double)found[n] - (double)e[n]));
        if (isnan(found[n]))
            worst = HUGE_VAL;
    }
    ck_assert_msg(worst <= of_range * (double)(high - low), "%s: away by %g of a range of %g", name,
                  worst, (double)(high - low));
    free(e);
}

void assert_labels(const uint8_t *found, const safetensor *expected, double share,
                   const char *name)
{
    float *e = channels_last(expected);
    int64_t other = 0;

    for (int64_t n = 0; n < expected->count; n++)
        other += (float)found[n] != e[n];
    ck_assert_msg((double)other <= share * (double)expected->count, "%s: %d of %d labels differ",
                  name, (int)other, (int)expected->count);
    free(e);
}
