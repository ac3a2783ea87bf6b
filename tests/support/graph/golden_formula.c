/*
 * golden_formula.c - tensors by formula, and samples of large ones.
 *
 *   x = (i + crc32(name)) mod 2^32, mixed to 32 bits;  u = (x >> 8) / 2^24
 *   image:               sqrt(3) (2 u - 1)
 *   target:              floor(u classes), regions and binary maps: u < 0.3
 *   weights:             sqrt(3 / fan_in) (2 u - 1), fan_in: all axes but the first
 *   vectors:             0.2 u - 0.1, of 'weight' and 'running_var' 0.9 + 0.2 u
 */
#include "support/graph/golden_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support/asserts.h"

bool golden_is_formula(const json_t *c)
{
    return json_is_array(json_object_get(c, "image"));
}

/* A tensor in PyTorch's order without elements. */
static safetensor tensor_of(const char *name, const json_t *shape)
{
    safetensor t = { .name = name, .type = SAFETENSORS_F32, .rank = (int)json_array_size(shape),
                     .count = 1 };

    ck_assert_msg(t.rank > 0 && t.rank <= SAFETENSORS_RANK_MAX, "no shape of '%s'", name);
    for (int i = 0; i < t.rank; i++) {
        t.extent[i] = json_integer_value(json_array_get(shape, (size_t)i));
        t.count *= t.extent[i];
    }
    t.size = (size_t)t.count * sizeof(float);
    return t;
}

static safetensor tensor_named(const json_t *c, const char *name)
{
    if (strcmp(name, "image") == 0)
        return tensor_of(name, json_object_get(c, "image"));
    if (strcmp(name, "target") == 0)
        return tensor_of(name, json_object_get(c, "target_shape"));
    return tensor_of(name, json_object_get(json_object_get(c, "state"), name));
}

pons_shape golden_case_image(const golden *g, const json_t *c)
{
    safetensor t;

    if (!golden_is_formula(c))
        return golden_image_shape(golden_find(g, "%s/image", golden_text(c, "name")));
    t = tensor_named(c, "image");
    return golden_image_shape(&t);
}

/* The values are scale u + shift, of labels rounded down. */
typedef struct distribution {
    const char *name;
    double scale, shift;
    bool label;
} distribution;

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), of = strlen(end);

    return size >= of && strcmp(name + size - of, end) == 0;
}

static distribution distribution_of(const json_t *c, const safetensor *t)
{
    const char *image = json_string_value(json_object_get(c, "image_name"));
    double bound = sqrt(3 / ((double)t->count / (double)t->extent[0]));

    if (strcmp(t->name, "image") == 0)
        return (distribution){ image != NULL ? image : "image", 2 * sqrt(3), -sqrt(3), false };
    if (strcmp(t->name, "target") == 0)
        return (distribution){ "target", golden_number(c, "classes"), 0, true };
    if (t->rank > 1)
        return (distribution){ t->name, 2 * bound, -bound, false };
    if (ends_with(t->name, "weight") || ends_with(t->name, "running_var"))
        return (distribution){ t->name, 0.2, 0.9, false };
    return (distribution){ t->name, 0.2, -0.1, false };
}

static double uniform(uint32_t start, int64_t i)
{
    uint32_t x = start + (uint32_t)i;

    x ^= x >> 16;
    x *= UINT32_C(0x85EBCA6B);
    x ^= x >> 13;
    x *= UINT32_C(0xC2B2AE35);
    x ^= x >> 16;
    return (x >> 8) / 16777216.0;
}

void golden_formula_read(const json_t *c, const char *name, pons_tensor to, void *memory)
{
    safetensor t = tensor_named(c, name);
    distribution f = distribution_of(c, &t);
    uint32_t start = (uint32_t)crc32(0, (const Bytef *)f.name, (uInt)strlen(f.name));
    bool regions = f.label && (strcmp(golden_text(c, "target"), "regions") == 0
                               || strcmp(golden_text(c, "target"), "binary_map") == 0);
    float *values = malloc(t.size);

    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < t.count; i++) {
        double u = uniform(start, i), value = f.scale * u + f.shift;
        values[i] = (float)(regions ? u < 0.3 : f.label ? floor(value) : value);
    }
    t.data = values;
    golden_read(&t, to, true, memory);
    free(values);
}

void golden_formula_restore(const json_t *c, storage *s)
{
    static const storage_group groups[] = { STORAGE_PARAMETER, STORAGE_STATE };

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < storage_count(s, groups[k]); i++) {
            storage_tensor t = storage_item(s, groups[k], i);
            golden_formula_read(c, t.name, (pons_tensor){ storage_type(s), t.shape }, t.memory);
        }
}

golden_sample golden_sample_state(const json_t *c, const char *name, pons_tensor found,
                                  const void *memory)
{
    safetensor t = tensor_named(c, name);
    int64_t *index = golden_indices(&t, found.shape);
    golden_sample s = { { 0 }, 0 };

    for (int64_t i = 0; i < t.count; i++) {
        double v = found.type == PONS_F64 ? ((const double *)memory)[i]
                                          : ((const float *)memory)[i];
        s.value[0] += v * v;
        s.largest = fmax(s.largest, fabs(v));
        for (int64_t k = 0; k < 6; k++)
            if (index[i] == k * (t.count - 1) / 5)
                s.value[1 + k] = v;
    }
    s.value[0] = sqrt(s.value[0]);
    free(index);
    return s;
}
