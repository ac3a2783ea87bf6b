/*
 * case_progress.c - time left, as cases take equal times.
 */
#include "base/case_progress.h"

#include "base/clock.h"
#include "base/integer.h"
#include "base/whole.h"

void case_progress_end(logger *l)
{
    log_block(l, "");
}

void case_progress_show(case_progress *p, logger *l, int number, double part)
{
    double now = seconds_now(), done = (double)number + part;
    char left[48] = "", rate[48] = "";

    if (p->begin <= 0)
        p->begin = now;
    if (!log_live_due(l))
        return;
    if (done > 0 && now > p->begin) {
        int64_t rest = whole_within((now - p->begin) * (p->count - done) / done, 0, INT32_MAX);

        snprintf(left, sizeof left, ", %lld:%02d left", (long long)(rest / 60), (int)(rest % 60));
        if (p->voxels > 0 && number > 0)
            snprintf(rate, sizeof rate, ", %.3g voxels/s", (double)p->voxels * done / number
                                                           / (now - p->begin));
    }
    log_progress(l, "%s case %d of %d, %.0f %%%s%s", p->verb, min_int(number + 1, p->count),
                 p->count, 100 * done / p->count, left, rate);
}
