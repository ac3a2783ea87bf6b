/*
 * ranks.h - trainings on several ranks by 'pons launch', which a test disturbs and compares.
 *
 * All of them share one phantom and one INI file. The folder of a run is root/runs/NAME.
 */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include "base/clock.h"
#include "support/pause.h"
#include "support/process/process_state.h"
#include "support/run/written_run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>

/* Make the phantom and the INI file. Steps take milliseconds, so that a test can disturb many. */
void make_phantom(void);

/* Make the run that all others must equal: one process, one replica. */
void make_plain_run(void);

/* The words of one 'pons launch ... -- train ranks.ini' as NAME. */
typedef struct launch_words {
    const char *name;
    int ranks;
    const char *flag[8];       /* options of 'launch'                                             */
    const char *set[8];        /* values of 'train --set'                                         */
} launch_words;

pid_t start_launch_saying(const char *said, const launch_words *l);

pid_t start_launch(const launch_words *l);

void expect_exit_code(pid_t launcher, int code);

/* Name of a run of its own for each iteration of a test; valid until the next call. */
const char *numbered_name(const char *name, int i);

/* ---- processes of a run ---------------------------------------------------------------------- */

/* Find the launcher's direct children with the program's name; returns their number. */
int find_ranks(pid_t launcher, pid_t *rank, int room);

/* The process of a rank, found by its environment; 0: no such process. */
pid_t find_rank(pid_t launcher, int number);

/*
 * Wait until all these processes have ended. The limit counts looks, so that a paused machine costs
 * no time.
 */
void expect_processes_gone(const pid_t *rank, int count, double within);

/* ---- results of a run ------------------------------------------------------------------------ */

const char *in_run(const char *run, const char *name);

int steps_of(const char *run);

/* Wait until the run has done that many steps; false: its launcher ended before. */
bool wait_steps(pid_t launcher, const char *run, int steps);

/* Two runs have ended with the same bits and have the same metrics. */
void expect_same_state(const char *a, const char *b);

int count_in(const char *text, const char *phrase);

#endif
