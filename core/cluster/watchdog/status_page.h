/*
 * status_page.h - a page that 'pons launch' shares with its ranks: each writes what it is at, and
 * how it ended. It outlives its writer, so the launcher can tell the last step of a rank that was
 * killed.
 */
#ifndef CORE_CLUSTER_WATCHDOG_STATUS_PAGE_H
#define CORE_CLUSTER_WATCHDOG_STATUS_PAGE_H

#include <pons/plugin.h>

/* The environment's name for "DESCRIPTOR SLOT": the page, inherited, and this rank's part of it. */
#define BOARD_VARIABLE "PONS_LAUNCH_BOARD"

typedef struct board board;

/* What is known of one rank; texts are complete and end with a zero. */
typedef struct board_entry {
    int64_t step;           /* attempted; -1: none yet                                            */
    char doing[16];         /* "data", "step", "validation", "checkpoint"; "" nothing yet         */
    int64_t collective;     /* sequence number of the last one; -1: none yet                      */
    int64_t size;           /* its bytes                                                          */
    char kind[16];          /* "all_reduce"                                                       */
    double noted;           /* when the last of these was written; 0: nothing yet                 */
    bool ended;             /* the command came to its end, with ...                              */
    int status;             /* ... this exit code, and where that is a failure with               */
    double when;            /* as 'noted', seconds of CLOCK_MONOTONIC                             */
    char text[2048];        /* the line that says why                                             */
} board_entry;

/* ---- the launcher's side --------------------------------------------------------------------- */

pons_status board_new(int slots, board **out, pons_error *err);
void board_free(board *b);
/* For the ranks to inherit; closed on exec otherwise. */
int board_descriptor(const board *b);
void board_read(const board *b, int slot, board_entry *out);

/* ---- a rank's side --------------------------------------------------------------------------- */

typedef struct board_seat board_seat;

/*
 * The part that the variable's value names; NULL where there is no launcher ('value' NULL) or no
 * such page. May be called more than once in a process. All below do nothing for NULL; any thread.
 */
board_seat *board_sit(const char *value);
void board_leave(board_seat *s);
/* 'doing' and 'kind': up to 15 characters. */
void board_note(board_seat *s, int64_t step, const char *doing);
void board_collective(board_seat *s, int64_t sequence, const char *kind, int64_t size);
/*
 * Report the end of this process: the launcher shows 'text', so this process need not. pons_main
 * reports at the end of the command, the watchdog before it ends the process or publishes a
 * failure: the first to know a failure is its cause. Only the first report counts.
 */
void board_end(board_seat *s, int status, const char *text);

#endif
