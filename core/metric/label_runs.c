/*
 * label_runs.c - find the ends of runs, eight voxels at a time in bytes without channels.
 */
#include "metric/label_runs.h"

#include <string.h>

#include "base/integer.h"

/* Skip whole words of bytes that are all 'value'. */
static int64_t skip_words(const uint8_t *bytes, uint8_t value, int64_t at, int64_t end)
{
    uint64_t word, same = UINT64_C(0x0101010101010101) * value;

    for (; at + 8 <= end; at += 8) {
        memcpy(&word, bytes + at, sizeof word);
        if (word != same)
            break;
    }
    return at;
}

int64_t label_run_end(const volume *v, int channel, int64_t first, int64_t end)
{
    int32_t value = label_at(v, first * v->channels + channel);
    int64_t at = first + 1;

    if (v->type == PONS_U8 && v->channels == 1)
        at = skip_words(v->voxels, (uint8_t)value, at, end);
    while (at < end && label_at(v, at * v->channels + channel) == value)
        at++;
    return at;
}

bool label_scan_next(label_scan *s, label_run *out)
{
    const volume *p = s->prediction, *g = s->label;

    if (s->at >= s->end)
        return false;
    if (s->prediction_end <= s->at)
        s->prediction_end = label_run_end(p, s->channel, s->at, s->end);
    if (s->label_end <= s->at)
        s->label_end = label_run_end(g, s->channel, s->at, s->end);
    *out = (label_run){ label_at(p, s->at * p->channels + s->channel),
                        label_at(g, s->at * g->channels + s->channel), s->at,
                        min_i64(s->prediction_end, s->label_end) };
    s->at = out->end;
    return true;
}
