/*
 * heat_map.c - blend the colours of probabilities with a picture.
 */
#include "infer/heat_map.h"

#include <math.h>

#include "base/integer.h"

static void blend(uint8_t rgb[3], float probability)
{
    const float colour[3] = { 255, 255 * (probability < 0.5f ? 1 : 2 - 2 * probability), 0 };
    float share = 0.75f * fminf(2 * probability, 1);

    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)((1 - share) * (float)rgb[c] + share * colour[c] + 0.5f);
}

void heat_map_put(heat_map *m, const double first[2], const double end[2], float probability)
{
    const int64_t extent[2] = { m->rows, m->columns };
    int64_t from[2], to[2];

    for (int a = 0; a < 2; a++) {
        from[a] = min_i64((int64_t)floor(first[a]), extent[a] - 1);
        to[a] = min_i64(max_i64((int64_t)floor(end[a]), from[a] + 1), extent[a]);
    }
    for (int64_t y = from[0]; y < to[0]; y++)
        for (int64_t x = from[1]; x < to[1]; x++) {
            float *at = &m->largest[y * m->columns + x];
            *at = fmaxf(*at, probability);
        }
}

void heat_map_blend(const heat_map *m, uint8_t *rgb)
{
    for (int64_t i = 0; i < m->rows * m->columns; i++)
        blend(rgb + 3 * i, m->largest[i]);
}
