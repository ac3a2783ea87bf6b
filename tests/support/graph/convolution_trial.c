/*
 * convolution_trial.c - see convolution_trial.h.
 */
#include "support/graph/convolution_trial.h"

const pons_type sample_types[] = { PONS_F32, PONS_BF16 };

sample sample_make(const int64_t channels[2], const int64_t extent[3],
                   const int64_t kernel[3], pons_convolution how)
{
    sample s = { .how = how };

    s.x.shape = (pons_shape){ 5, { 1 + trial_draw(2), extent[0], extent[1], extent[2],
                                   channels[0] } };
    s.w.shape = (pons_shape){ 5, { channels[1], kernel[0], kernel[1], kernel[2],
                                   channels[0] / how.groups } };
    s.y.shape = (pons_shape){ 5, { s.x.shape.extent[0], 0, 0, 0, channels[1] } };
    for (int i = 0; i < 3; i++) {
        int64_t span = how.dilation[i] * (kernel[i] - 1) + 1 - how.pad_low[i] - how.pad_high[i];
        if (s.x.shape.extent[1 + i] < span)
            s.x.shape.extent[1 + i] = span;
        s.y.shape.extent[1 + i] = (s.x.shape.extent[1 + i] - span) / how.stride[i] + 1;
    }
    return s;
}

sample sample_draw(int sizes, int share)
{
    static const int64_t size[] = { 1, 2, 3, 5, 7, 13 }, kernels[] = { 1, 2, 3, 3 };
    static const int64_t widths[] = { 1, 3, 4, 8, 16, 17, 33 };
    pons_convolution how = PONS_CONVOLUTION_INIT;
    int64_t channels[2], extent[3], kernel[3];

    for (int i = 0; i < 3; i++) {
        kernel[i] = kernels[trial_draw(4)];
        extent[i] = size[trial_draw(i == 2 ? 6 : sizes)];
        how.stride[i] = 1 + (int)trial_draw(3);
        how.dilation[i] = 1 + (int)trial_draw(2);
        how.pad_low[i] = (int)trial_draw(4);
        how.pad_high[i] = (int)trial_draw(4);
    }
    how.groups = 1 + (int)trial_draw(3);
    for (int i = 0; i < 2; i++) {
        int64_t width = widths[trial_draw(7)] / (how.groups > 1 ? share : 1);
        channels[i] = how.groups * (width > 1 ? width : 1);
    }
    return sample_make(channels, extent, kernel, how);
}

int directions_agree(sample s, trial_prepare make, bool library)
{
    int taken = 0;

    for (int type = 0; type < 2; type++) {
        s.x.type = s.y.type = s.w.type = sample_types[type];
        taken += trial_agrees(&(trial){ .kind = PONS_KERNEL_CONVOLUTION, .input_count = 2,
                                        .input = { s.x, s.w }, .output = s.y,
                                        .attributes = &s.how, .packs = type == 0,
                                        .library = library }, make);
        taken += trial_agrees(&(trial){ .kind = PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
                                        .input_count = 2, .input = { s.y, s.w }, .output = s.x,
                                        .attributes = &s.how, .packs = type == 1,
                                        .library = library }, make);
        s.w.type = PONS_F32;
        taken += trial_agrees(&(trial){ .kind = PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
                                        .input_count = 2, .input = { s.x, s.y }, .output = s.w,
                                        .attributes = &s.how, .library = library }, make);
    }
    return taken;
}
