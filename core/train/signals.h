/*
 * signals.h - SIGTERM, SIGINT and SIGUSR1: let the running step end, or give it up (R30).
 *
 * A thread of its own waits for the signals, which all other threads block. The first one raises a
 * flag. When the grace is over, or at a second signal, the state before the running step is saved
 * and the process ends with PONS_INTERRUPTED. 'enter' and 'leave' mark where the state is being
 * changed or copied, so that it is never saved half-way. After a second signal the process ends
 * within INTERRUPT_LAST_SECONDS, whatever is under way: what was complete before stays so. The same
 * signal again within a tenth of a second is the first one's echo.
 */
#ifndef CORE_TRAIN_SIGNALS_H
#define CORE_TRAIN_SIGNALS_H

#include <pons/plugin.h>

typedef struct interrupt interrupt;

#define INTERRUPT_LAST_SECONDS 0.8

/*
 * Blocks the signals in this thread and all that it starts later: call it first of all. Until the
 * first interrupt_watch a signal ends the process at once, after 'early', as 'save' below.
 */
pons_status interrupt_open(pons_status (*early)(void *context), void *context, interrupt **out,
                           pons_error *err);
/*
 * 'save' is called from a thread of the interrupt's, between enter and leave, and returns the exit
 * code. NULL: training is over, the process ends by itself.
 */
void interrupt_watch(interrupt *i, double grace_s, pons_status (*save)(void *context),
                     void *context);
/* Of the grace, at most half, so much is left for 'save'. */
void interrupt_reserve(interrupt *i, double seconds);
bool interrupt_pending(interrupt *i);
void interrupt_enter(interrupt *i);
void interrupt_leave(interrupt *i);
/* Between enter and leave: the process ends by itself, nothing is saved any more. */
void interrupt_end(interrupt *i);
/* No 'save' is called any more. After a signal they stay blocked: the process is ending. */
void interrupt_close(interrupt *i);

#endif
