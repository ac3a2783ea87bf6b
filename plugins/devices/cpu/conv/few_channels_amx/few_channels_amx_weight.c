/*
 * few_channels_amx_weight.c - pack the weight as the banded panels of few_channels_amx.h.
 */
#include "cpu/conv/few_channels_amx/few_channels_amx.h"

int few_channels_amx_kernel(const few_channels_amx *n, int axis, int phase, int t)
{
    const few_channels_amx_axis *a = &n->axis[axis];
    int k = n->gradient ? phase + a->pad - t * a->stride : t + a->pad;

    return k >= 0 && k < a->kernel ? k : -1;
}

/* Number j of what a cell reads by number i of what it makes; 0 off the band. */
static uint16_t element(const few_channels_amx *n, const uint16_t *weight, int tap, int j, int i)
{
    const few_channels_amx_axis *w = &n->axis[2];
    int from = j % n->from_channels, to = i % n->to_channels;
    int q = i / n->to_channels / w->phases, phase = i / n->to_channels % w->phases;
    int kw = few_channels_amx_kernel(n, 2, phase, j / n->from_channels + w->low - q * w->step);
    int64_t at = (int64_t)tap * w->kernel + kw;
    int64_t all = (int64_t)n->axis[0].kernel * n->axis[1].kernel * w->kernel;

    if (kw < 0 || i >= n->outs)
        return 0;
    return n->gradient ? weight[(from * all + at) * n->to_channels + to]
                       : weight[(to * all + at) * n->from_channels + from];
}

void few_channels_amx_pack(const few_channels_amx *n, const uint16_t *weight, int step,
                           void *packed)
{
    enum { PAIR = 2, DEEP = PAIR * GEMM_TILE };
    uint16_t *to = packed;

    to += n->weight_at[step] / (int64_t)sizeof *to;
    for (int across = 0; across < n->across; across++)
        for (int j = 0; j < DEEP; j += PAIR, to += DEEP)
            for (int i = 0; i < GEMM_TILE; i++)
                for (int half = 0; half < PAIR; half++)
                    to[PAIR * i + half] = element(n, weight, n->kernel_at[step],
                                                  step % n->deep * DEEP + j + half,
                                                  across * GEMM_TILE + i);
}
