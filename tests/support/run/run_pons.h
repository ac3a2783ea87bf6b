/*
 * run_pons.h - the built program as a process, in the test's own folder (root.h).
 */
#ifndef TESTS_RUN_PONS_H
#define TESTS_RUN_PONS_H

#include "base/clock.h"
#include "support/data/golden_file.h"
#include "support/process/fork_child.h"
#include "support/root.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The path of the program. The first call comes before any change of the working folder. */
const char *pons_program(void);

/* Start pons with words that end with NULL. Stdout goes to root/out, stderr to root/NAME. */
pid_t process_start_to(const char *name, const char *const *word);

pid_t process_start(const char *const *word);

/* Wait for the process; returns its exit code, or 1000 plus the number of a signal. */
int process_finish(pid_t child);

/*
 * Wait for the process, and count the seconds. A suspended machine, or one whose processes are all
 * stopped, stops this process too. A nap that took longer than a running machine allows therefore
 * counts as its maximum.
 */
int process_finish_timed(pid_t child, double *seconds);

#define START(...) process_start((const char *const[]){ __VA_ARGS__, NULL })
#define PONS(...) process_finish(START(__VA_ARGS__))

char *root_text(const char *name);

/* The code is as expected, and stderr contains the phrase unless it is NULL. */
#define EXPECT(CODE, PHRASE, ...) do {                                                            \
        int found_ = PONS(__VA_ARGS__);                                                           \
        const char *phrase_ = (PHRASE);                                                           \
        ck_assert_msg(found_ == (CODE), "code %d, expected %d: %s", found_, (CODE),               \
                      root_text("said"));                                                         \
        ck_assert_msg(phrase_ == NULL || strstr(root_text("said"), phrase_) != NULL,              \
                      "'%s' is not in: %s", phrase_, root_text("said"));                          \
    } while (0)

/* Put a folder in front of the search path of plugins. */
void search_first(const char *folder);

/* Copy a plugin of tests/plugins to root/plugins. */
void add_plugin(const char *kind, const char *name);

#endif
