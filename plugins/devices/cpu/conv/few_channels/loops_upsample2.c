/*
 * loops_upsample2.c - the loop of loops.h over pairs of bf16 from rows of many channels to rows of
 * few, twice as long: kernels of 3 along W, stride 2.
 *
 * Position q of y contributes to positions 2 q - 1, 2 q and 2 q + 1 of x. So an even position of x
 * is one product, and an odd one the sum of two neighbours' products. Sums stay in registers, for
 * two rows of x at once, which mostly read the same rows of y. The next row of y is prefetched line
 * by line meanwhile, because few prefetches can be under way at a time.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"

/* Taps 'begin' to 'end' - 1 to rows 'from' to 'to' - 1; sums are [row][phase][channel][column]. */
VECTOR void up_taps(vector *sum, const few_channels_upsample2 *u, int channels, int columns,
                    int from, int to, int begin, int end, int first)
{
    for (int t = begin; t < end; t++) {
        const float *y = u->y[t] + first, *w[2] = { u->weight[0][t], u->weight[1][t] };
        const char *next_row = u->next_row + (int64_t)t * u->outs * u->step;
        for (int o = 0; o < u->outs; o++, y += u->y_pitch, next_row += u->step) {
            __builtin_prefetch(next_row);
            VECTOR_UNROLL for (int next = 0; next < 2; next++) {
                vector v[SUMS];
                VECTOR_UNROLL for (int c = 0; c < columns; c++) {
                    v[c] = vector_load(y + next + c * VECTOR_LANES);
                    LOADED_ONCE(v[c]);
                }
                VECTOR_UNROLL for (int r = from; r < to; r++)
                    VECTOR_UNROLL for (int i = next * channels; i < 2 * channels; i++) {
                        vector *s = sum + (r * 2 * channels + i) * columns;
                        vector a = vector_all(w[r][next ? i - channels : i + channels]);
                        VECTOR_UNROLL for (int c = 0; c < columns; c++)
                            s[c] = vector_fused(v[c], a, s[c]);
                    }
            }
            VECTOR_UNROLL for (int r = from; r < to; r++)
                w[r] += 3 * channels;
        }
    }
}

VECTOR void up_block(const few_channels_upsample2 *u, int channels, int columns, int first)
{
    vector sum[SUMS];

    VECTOR_UNROLL for (int i = 0; i < 4 * channels * columns; i++)
        sum[i] = vector_all(0);
    up_taps(sum, u, channels, columns, 0, 1, 0, u->end[0], first);
    up_taps(sum, u, channels, columns, 0, 2, u->end[0], u->end[1], first);
    up_taps(sum, u, channels, columns, 1, 2, u->end[1], u->end[2], first);
    VECTOR_UNROLL for (int i = 0; i < 4 * channels; i++)
        VECTOR_UNROLL for (int c = 0; c < columns; c++)
            vector_store(u->x + (int64_t)i * u->pitch + first + c * VECTOR_LANES,
                         sum[i * columns + c]);
}

VECTOR void up_channels(const few_channels_upsample2 *u, int channels)
{
    int most = SUMS / 4 / channels, w = 0;

    for (; w + 5 * VECTOR_LANES < u->width && most >= 6; w += 6 * VECTOR_LANES)
        up_block(u, channels, 6, w);
    for (; w + 2 * VECTOR_LANES < u->width && most >= 3; w += 3 * VECTOR_LANES)
        up_block(u, channels, 3, w);
    for (; w + VECTOR_LANES < u->width && most >= 2; w += 2 * VECTOR_LANES)
        up_block(u, channels, 2, w);
    for (; w < u->width; w += VECTOR_LANES)
        up_block(u, channels, 1, w);
}

void few_channels_upsample2_rows(const few_channels_upsample2 *u, int channels)
{
    switch (channels) {
    case 1: up_channels(u, 1); break;
    case 2: up_channels(u, 2); break;
    case 3: up_channels(u, 3); break;
    default: up_channels(u, 4); break;
    }
}
