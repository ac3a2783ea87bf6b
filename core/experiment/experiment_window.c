/*
 * experiment_window.c - the [window] section as settings of sliding windows.
 */
#include "experiment/experiment.h"

enum { SPARE = 64 << 20 }; /* all that a few classes want; of many it is little beside a window's */

void experiment_window_settings(const experiment *e, window_settings *out)
{
    const window_options *w = &e->sections.window;
    window_settings s = {
        .blend = w->mode == 1 ? WINDOW_GAUSSIAN : WINDOW_CONSTANT, .sigma_scale = w->sigma_scale,
        .padding = (window_padding)w->padding_mode, .batch = (int)w->batch, .spare = SPARE
    };

    for (int a = 0; a < 3; a++) {
        s.extent[a] = e->window[a];
        s.overlap[a] = w->overlap;
    }
    for (int i = 0; i < w->mirror.count; i++)
        s.mirror |= 1u << w->mirror.item[i];
    *out = s;
}
