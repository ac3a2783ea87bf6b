/*
 * case_window.c - slide the window of cached cases over the list of training cases.
 */
#include "data/cache/case_window.h"

#include <math.h>

#include "base/integer.h"

case_window case_window_whole(int total)
{
    return (case_window){ .total = total, .count = total, .lanes = 1 };
}

case_window case_window_part(int total, double share, double replace, int lanes)
{
    case_window w = { .total = total, .lanes = lanes };
    int fit = total / lanes, wanted = (int)lround(total * share / lanes);

    w.count = lanes * max_int(min_int(wanted, fit), min_int(fit, 1));
    w.replaced = min_int((int)ceil(w.count * replace), total - w.count);
    return w;
}

int64_t case_window_first(const case_window *w, int64_t epoch)
{
    return epoch * w->replaced;
}

int case_window_place(const case_window *w, int64_t turn)
{
    return (int)(turn % w->total);
}

int64_t case_window_turn(const case_window *w, int64_t epoch, int lane, int64_t i)
{
    int64_t first = case_window_first(w, epoch);
    int64_t ahead = (lane - first % w->lanes + w->lanes) % w->lanes;

    return first + ahead + i * w->lanes;
}

bool case_window_keeps_all(const case_window *w)
{
    return w->lanes == 1 && w->count + w->replaced >= w->total;
}
