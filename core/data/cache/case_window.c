/*
 * case_window.c - slide the window of cached cases over the list of training cases.
 */
#include "data/cache/case_window.h"

#include <math.h>

#include "base/integer.h"

case_window case_window_whole(int total)
{
    return (case_window){ .total = total, .count = total };
}

case_window case_window_part(int total, double share, double replace)
{
    case_window w = { .total = total };

    w.count = max_int(min_int((int)lround(total * share), total), min_int(total, 1));
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

bool case_window_keeps_all(const case_window *w)
{
    return w->count + w->replaced >= w->total;
}
