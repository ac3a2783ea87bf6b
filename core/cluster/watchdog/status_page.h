/*
 * status_page.h - a page of memory that 'pons launch' shares with its ranks. Each rank writes its
 * step and its exit status. The page outlives the rank, so the launcher can report the last step of
 * a rank that was killed.
 */
#ifndef CORE_CLUSTER_WATCHDOG_STATUS_PAGE_H
#define CORE_CLUSTER_WATCHDOG_STATUS_PAGE_H

#include <pons/plugin.h>

/* Variable with "DESCRIPTOR SLOT": the inherited page and this rank's slot. */
#define STATUS_PAGE_VARIABLE "PONS_LAUNCH_BOARD"

typedef struct status_page status_page;

/* State of a rank. Strings end with a zero. */
typedef struct status_page_entry {
    int64_t step;           /* attempted step; -1: none yet                                       */
    char doing[16];         /* "data", "step", "validation", "checkpoint"; "": none yet           */
    int64_t collective;     /* number of the last collective; -1: none yet                        */
    int64_t size;           /* its bytes                                                          */
    char kind[16];          /* "all_reduce"                                                       */
    double noted;           /* time of the last write of these; 0: none                           */
    bool ended;             /* the command ended                                                  */
    int status;             /* its exit code                                                      */
    double when;            /* time of its end; times are CLOCK_MONOTONIC                         */
    char text[2048];        /* error message                                                      */
} status_page_entry;

/* ---- the launcher's side --------------------------------------------------------------------- */

pons_status status_page_new(int slots, status_page **out, pons_error *err);
void status_page_free(status_page *b);
/* Descriptor for the ranks to inherit; it is close-on-exec. */
int status_page_descriptor(const status_page *b);
/* Read the state of the rank in 'slot'. */
void status_page_read(const status_page *b, int slot, status_page_entry *out);

/* ---- a rank's side --------------------------------------------------------------------------- */

typedef struct status_page_slot status_page_slot;

/*
 * Attach to the slot that the variable's value names. NULL without a launcher ('value' NULL) or a
 * valid page. A process may attach several times. The functions below do nothing for NULL; any
 * thread.
 */
status_page_slot *status_page_attach(const char *value);
void status_page_detach(status_page_slot *s);
/* Write the step and phase; 'doing' and 'kind' have up to 15 characters. */
void status_page_note(status_page_slot *s, int64_t step, const char *doing);
void status_page_collective(status_page_slot *s, int64_t sequence, const char *kind, int64_t size);
/*
 * Report the end of this process, so that the launcher prints 'text' and this process need not.
 * pons_main reports at the end of the command. The watchdog reports before it ends the process or
 * publishes a failure. The first report is the cause; later ones are ignored.
 */
void status_page_report(status_page_slot *s, int status, const char *text);

#endif
