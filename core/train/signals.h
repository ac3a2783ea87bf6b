/*
 * signals.h - SIGTERM, SIGINT and SIGUSR1: let the running step end, or give it up (R30).
 *
 * A thread of its own waits for the signals, which all other threads block. The first one raises a
 * flag. When the grace is over, or at a second signal, the state before the running step is saved
 * and the process ends with PONS_INTERRUPTED. 'hold' and 'release' mark where the state is being
 * changed or copied, so that it is never saved half-way. After a second signal the process ends
 * within SIGNALS_LAST_SECONDS, whatever is under way: what was complete before stays so. The same
 * signal again within a tenth of a second is the first one's echo.
 *
 * SIGTSTP (Ctrl-Z) stops the process as without this thread, which first erases the lines that a
 * log redraws and draws them again when the process goes on.
 *
 * The thread that opened the signals calls all functions. signals_reserve and signals_pending may
 * be called from any thread.
 */
#ifndef CORE_TRAIN_SIGNALS_H
#define CORE_TRAIN_SIGNALS_H

#include "base/log.h"
#include <pons/plugin.h>

typedef struct signals signals;

#define SIGNALS_LAST_SECONDS 0.8

/*
 * Blocks the signals in this thread and all that it starts later: call it first of all. Until the
 * first signals_set_save a signal ends the process at once, after 'early', as 'save' below. 'l',
 * which draws the lines that a stop erases, is closed after the signals.
 */
pons_status signals_open(pons_status (*early)(void *context), void *context, logger *l,
                         signals **out, pons_error *err);
/*
 * 'save' is called from a thread of its own, between hold and release, and returns the exit code.
 * NULL: training is over, the process ends by itself.
 */
void signals_set_save(signals *s, double grace_s, pons_status (*save)(void *context),
                      void *context);
/* Leave 'seconds' of the grace, at most half of it, for 'save'. */
void signals_reserve(signals *s, double seconds);
bool signals_pending(signals *s);
void signals_hold(signals *s);
void signals_release(signals *s);
/* Requires hold. The process ends by itself, and nothing is saved any more. */
void signals_forbid_saving(signals *s);
/* No 'save' is called any more. If a signal came, signals stay blocked: the process is ending. */
void signals_close(signals *s);

#endif
