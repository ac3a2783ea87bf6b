/*
 * experiment_window.c - the settings of sliding windows from [window].
 */
#include "experiment/experiment.h"

/* enough for a few classes; small beside the memory of a window for many */
enum { EXTRA_BYTES = 64 << 20 };

void experiment_window_settings(const experiment *e, window_settings *out)
{
    const window_options *w = &e->sections.window;
    window_settings s = {
        .blend = (window_blend)w->mode, .sigma_scale = w->sigma_scale,
        .padding = (window_padding)w->padding_mode, .batch = (int)w->batch, .extra_bytes
            = EXTRA_BYTES
    };

    for (int a = 0; a < 3; a++) {
        s.extent[a] = e->window[a];
        s.overlap[a] = w->overlap;
    }
    for (int i = 0; i < w->mirror.count; i++)
        s.mirror |= 1u << w->mirror.item[i];
    *out = s;
}
