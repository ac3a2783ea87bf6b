/*
 * case_window.h - the training cases of an epoch under a smart cache.
 *
 * An epoch runs over 'count' consecutive cases of the list. The next epoch's window begins
 * 'replaced' cases later, and the list starts again behind its end. The first cases of a window
 * leave the cache and the next cases of the list enter it, as in MONAI's SmartCacheDataset. The
 * window of an epoch follows from the epoch alone.
 *
 * A window may be divided into lanes: turn t belongs to lane t mod lanes. Each micro-batch of a
 * step then takes cases of its own lane, so that a process needs no case of another one's lanes.
 *
 * 'Turn' t names the t-th case that enters: turns 0 .. count - 1 are the first window, and turn t
 * is the case t mod total of the list.
 */
#ifndef CORE_DATA_CACHE_CASE_WINDOW_H
#define CORE_DATA_CACHE_CASE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct case_window {
    int total;                 /* training cases of the list                                      */
    int count;                 /* cases of an epoch                                               */
    int replaced;              /* cases that the next epoch does not share; 0: all fit            */
    int lanes;                 /* a divisor of 'count'                                            */
} case_window;

/* The window of a list that is trained on as a whole. */
case_window case_window_whole(int total);
/*
 * The window for 'share' of the cases, rounded to whole lanes, at least one case a lane, of which
 * ceil(count x replace) are replaced, at most those outside of the window. Both shares are from 0
 * to 1. The count is 0 if there are fewer cases than lanes.
 */
case_window case_window_part(int total, double share, double replace, int lanes);

/* The first turn of an epoch's window, which ends before this turn + count. */
int64_t case_window_first(const case_window *w, int64_t epoch);
/* The place in the list of a turn. */
int case_window_place(const case_window *w, int64_t turn);
/* Number 'i', 0 .. count / lanes - 1, of the epoch's turns in a lane. */
int64_t case_window_turn(const case_window *w, int64_t epoch, int lane, int64_t i);
/* True if window and replacements together hold every case, in one lane: none is dropped. */
bool case_window_keeps_all(const case_window *w);

#endif
