/*
 * few_channels_amx_weight.c - the weight of a narrow convolution as banded panels for a matrix
 * unit.
 */
#include "cpu/conv/few_channels_amx/few_channels_amx.h"

int narrow_tile_kernel(const narrow_tile *n, int axis, int phase, int t)
{
    const tile_axis *a = &n->axis[axis];
    int k = n->gradient ? phase + a->pad - t * a->stride : t + a->pad;

    return k >= 0 && k < a->kernel ? k : -1;
}

/* Number j of what a cell reads by number i of what it makes; 0 off the band. */
static uint16_t element(const narrow_tile *n, const uint16_t *weight, int tap, int j, int i)
{
    const tile_axis *w = &n->axis[2];
    int from = j % n->from_channels, to = i % n->to_channels;
    int q = i / n->to_channels / w->phases, phase = i / n->to_channels % w->phases;
    int kw = narrow_tile_kernel(n, 2, phase, j / n->from_channels + w->low - q * w->step);
    int64_t at = (int64_t)tap * w->kernel + kw;
    int64_t all = (int64_t)n->axis[0].kernel * n->axis[1].kernel * w->kernel;

    if (kw < 0 || i >= n->outs)
        return 0;
    return n->gradient ? weight[(from * all + at) * n->to_channels + to]
                       : weight[(to * all + at) * n->from_channels + from];
}

void narrow_tile_pack(const narrow_tile *n, const uint16_t *weight, int step, void *packed)
{
    enum { PAIR = 2, DEEP = PAIR * WIDE_TILE };
    uint16_t *to = packed;

    to += n->weight_at[step] / (int64_t)sizeof *to;
    for (int across = 0; across < n->across; across++)
        for (int j = 0; j < DEEP; j += PAIR, to += DEEP)
            for (int i = 0; i < WIDE_TILE; i++)
                for (int half = 0; half < PAIR; half++)
                    to[PAIR * i + half] = element(n, weight, n->kernel_at[step],
                                                  step % n->deep * DEEP + j + half,
                                                  across * WIDE_TILE + i);
}
