/*
 * progress.c - the time left, as cases and bytes take equal times each.
 */
#include "base/progress.h"

#include "base/clock.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "base/whole.h"

static const double patience = 0.5; /* seconds without a line of bytes                            */

const char *progress_left(double begin, double done, double all, char out[PROGRESS_LEFT])
{
    double now = seconds_now();
    int64_t rest = done > 0 ? whole_within((now - begin) * (all - done) / done, 0, INT32_MAX) : 0;

    out[0] = '\0';
    if (done > 0 && now > begin)
        snprintf(out, PROGRESS_LEFT, ", %lld:%02d left", (long long)(rest / 60), (int)(rest % 60));
    return out;
}

/* ---- cases ----------------------------------------------------------------------------------- */

void case_progress_end(logger *l)
{
    log_block(l, "");
}

void case_progress_show(case_progress *p, logger *l, int number, double part)
{
    double now = seconds_now(), done = (double)number + part;
    double voxels = (double)p->voxels + part * (double)p->next;
    char left[PROGRESS_LEFT], rate[48] = "";

    if (p->begin <= 0)
        p->begin = now;
    if (!log_live_due(l))
        return;
    if (voxels > 0 && now > p->begin)
        snprintf(rate, sizeof rate, ", %.3g voxels/s", voxels / (now - p->begin));
    log_progress(l, "%s case %d of %d, %.0f %%%s%s", p->verb, min_int(number + 1, p->count),
                 p->count, 100 * done / p->count, progress_left(p->begin, done, p->count, left),
                 rate);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void byte_progress_begin(byte_progress *p, int64_t size)
{
    if (p == NULL)
        return;
    p->size = size;
    p->done = 0;
    p->begin = seconds_now();
}

void byte_progress_add(byte_progress *p, int64_t bytes)
{
    char left[PROGRESS_LEFT], done[32], size[32];

    if (p == NULL)
        return;
    p->done += bytes;
    if (seconds_now() - p->begin < patience || !log_live_due(p->log))
        return;
    p->shown = true;
    log_progress(p->log, "%s %s of %s, %.0f %%%s, '%s'", p->verb,
                 text_amount((double)p->done, "B", done), text_amount((double)p->size, "B", size),
                 p->size > 0 ? 100.0 * (double)p->done / (double)p->size : 100.0,
                 progress_left(p->begin, (double)p->done, (double)p->size, left), p->path);
}

void byte_progress_end(byte_progress *p)
{
    if (p != NULL && p->shown)
        log_block(p->log, "");
}
