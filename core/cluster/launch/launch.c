/*
 * launch.c - the launcher's loop: signals, exits and output of the ranks of a start, and restarts
 * after failures.
 *
 *              a rank fails         NOTICE_S               TERMINATE_S
 *   LAUNCH_RUN --------------> NOTICE --------> TERMINATE ---------------> KILL
 *       |                    (SIGCONT)         (SIGTERM)                (SIGKILL)
 *       |                                          ^                        ^
 *       +--- patience_s after the first exit ------+                        |
 *       +--- a third signal, or SECOND_SIGNAL_S after the second -----------+
 */
#include "cluster/launch/launch_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/system/signal_name.h"

/* ---- limits at the end ----------------------------------------------------------------------- */

/*
 * After the first failure the other ranks, including stopped ones, may detect it and report. Then
 * they get SIGTERM, then SIGKILL. The sum of these times is well below five seconds.
 */
#define NOTICE_S 1.0
#define TERMINATE_S 1.5
/* After a second signal a rank may still save; then it is killed. */
#define SECOND_SIGNAL_S 5.0
/*
 * Tools such as 'timeout' signal a process and then its process group. The second signal is
 * ignored.
 */
#define ECHO_S 0.1

/* ---- limits of a stopped node ---------------------------------------------------------------- */

/* Other ranks give up a silent rank after their timeout; all know of it after this extra time. */
#define WAKE_S 2.0
/* Interval between checks, and the most time counted for one. */
#define LOOK_S 0.25

typedef enum launch_phase {
    LAUNCH_RUN = 0, LAUNCH_NOTICE, LAUNCH_TERMINATE, LAUNCH_KILL
} launch_phase;

typedef struct launcher {
    rank_set *rank_set;
    int signals;               /* descriptor of signalfd                                          */
    sigset_t before;
    launch_phase phase;
    double deadline;           /* end of the phase; INFINITY: none                                */
    double patience;           /* time limit of the others; INFINITY: no rank has ended           */
    int stops;                 /* number of signals that were passed on                           */
    sigset_t passed;           /* their numbers                                                   */
    int stop;                  /* number of the first one                                         */
    double stopped;            /* time of the first one                                           */
    int running;
    bool late;                 /* a rank exceeded 'patience'                                      */
    double looked, still;      /* time of the last check; seconds in which all ranks were stopped */
} launcher;

/* ---- phases ---------------------------------------------------------------------------------- */

static void signal_all(const launcher *w, int number, bool groups)
{
    for (int i = 0; i < w->rank_set->count; i++) {
        const rank_process *r = &w->rank_set->rank[i];
        if (r->process > 0 && r->outcome == RANK_RUNS)
            kill(groups ? -r->process : r->process, number);
    }
}

static void enter_phase(launcher *w, launch_phase phase)
{
    static const double lasts[] = { INFINITY, NOTICE_S, TERMINATE_S, INFINITY };

    if (phase <= w->phase)
        return;
    w->phase = phase;
    w->deadline = seconds_now() + lasts[phase];
    if (phase == LAUNCH_NOTICE)
        signal_all(w, SIGCONT, true);
    if (phase == LAUNCH_TERMINATE)
        signal_all(w, SIGTERM, true);
    if (phase == LAUNCH_KILL)
        signal_all(w, SIGKILL, true);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static rank_outcome judge_exit(const launcher *w, const rank_process *r, const status_page_entry *e)
{
    bool passed_on = r->signal != 0 && w->stops > 0
                     && (sigismember(&w->passed, r->signal) == 1 || w->phase == LAUNCH_KILL);

    if (r->signal == 0 && r->code == 0 && e->ended && e->status == 0)
        return RANK_DONE;
    if (w->late || (w->stops == 0 && w->phase >= LAUNCH_TERMINATE))
        return RANK_FOLLOWED;
    if ((r->signal == 0 && r->code == PONS_INTERRUPTED) || passed_on)
        return RANK_INTERRUPTED;
    return w->phase >= LAUNCH_TERMINATE ? RANK_FOLLOWED : RANK_FAILED;
}

static void record_exit(launcher *w, rank_process *r, int status)
{
    status_page_entry e;

    kill(-r->process, SIGKILL); /* processes that the rank has started */
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    status_page_read(w->rank_set->status_page, (int)(r - w->rank_set->rank), &e);
    if (e.ended && e.status != 0 && r->code != 0)
        r->code = e.status; /* the cause; a consequence may have set the exit code */
    r->when = e.ended ? e.when : seconds_now();
    r->outcome = judge_exit(w, r, &e);
    w->running--;
    rank_set_log_exit(w->rank_set, r);
    if (r->outcome == RANK_FAILED)
        enter_phase(w, LAUNCH_NOTICE);
    else if (isinf(w->patience))
        w->patience = seconds_now() + w->rank_set->settings->patience_s;
}

static void collect_changes(launcher *w)
{
    for (int i = 0; i < w->rank_set->count; i++) {
        rank_process *r = &w->rank_set->rank[i];
        int status;
        while (r->process > 0 && r->outcome == RANK_RUNS
               && waitpid(r->process, &status, WNOHANG | WUNTRACED | WCONTINUED) == r->process) {
            if (WIFSTOPPED(status) || WIFCONTINUED(status))
                r->stopped = WIFSTOPPED(status);
            else
                record_exit(w, r, status);
        }
    }
}

/* ---- signals --------------------------------------------------------------------------------- */

static void pass_signal_on(launcher *w, int number)
{
    int sent = number == SIGHUP ? SIGTERM : number;

    if (w->stops == 1 && sent == w->stop && seconds_now() < w->stopped + ECHO_S)
        return;
    w->stops++;
    sigaddset(&w->passed, sent);
    if (w->stops == 1) {
        w->stop = sent;
        w->stopped = seconds_now();
        log_line(w->rank_set->settings->log, "%s: the ranks save and end; a second signal ends at "
                 "once", signal_name(number));
    }
    if (w->stops > 2)
        enter_phase(w, LAUNCH_KILL);
    else
        signal_all(w, sent, false);
    if (w->stops == 2 && w->phase == LAUNCH_RUN)
        w->deadline = seconds_now() + SECOND_SIGNAL_S;
}

/*
 * Ctrl-Z: stop the ranks, which have process groups of their own, and continue them with this
 * process. Their watchdogs do not see a pause of all ranks.
 */
static void suspend_ranks(launcher *w)
{
    double before = seconds_now();

    signal_all(w, SIGSTOP, true);
    raise(SIGSTOP);
    signal_all(w, SIGCONT, true);
    w->deadline += seconds_now() - before;
    w->patience += seconds_now() - before;
}

static void take_signals(launcher *w)
{
    struct signalfd_siginfo info;

    while (read(w->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTSTP)
            suspend_ranks(w);
        else if (info.ssi_signo != SIGCHLD)
            pass_signal_on(w, (int)info.ssi_signo);
    }
    collect_changes(w);
}

static pons_status open_signals(launcher *w, pons_error *err)
{
    static const int numbers[] = { SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP };
    static const int optional[] = { SIGHUP, SIGTSTP }; /* nohup ignores the first */
    struct sigaction found;
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (sigaction(optional[i], NULL, &found) == 0 && found.sa_handler == SIG_IGN)
            sigdelset(&set, optional[i]);
    signal(SIGCHLD, SIG_DFL); /* an ignored SIGCHLD would leave nothing to wait for */
    sigprocmask(SIG_BLOCK, &set, &w->before);
    w->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (w->signals < 0) {
        sigprocmask(SIG_SETMASK, &w->before, NULL);
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot wait for signals: %s",
                         strerror(errno));
    }
    return PONS_OK;
}

static void close_signals(launcher *w)
{
    struct signalfd_siginfo info;

    while (read(w->signals, &info, sizeof info) > 0)
        continue; /* signals of ranks that were collected */
    close(w->signals);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
}

/* ---- a stopped node -------------------------------------------------------------------------- */

/*
 * Whether all ranks of this node are stopped. A single running rank would learn the others' result.
 */
static bool is_node_stopped(const launcher *w)
{
    const rank_set *c = w->rank_set;
    bool still = w->phase == LAUNCH_RUN && c->settings->nodes > 1;

    for (int i = 0; i < c->count && still; i++)
        still = c->rank[i].process == 0 || c->rank[i].outcome != RANK_RUNS || c->rank[i].stopped;
    return still;
}

/*
 * Continue the ranks if all of this node have been stopped for too long. None of them learns that
 * the other nodes have gone on. A continued rank finds that out and ends, or goes on if it is not
 * missed, so nothing is lost if this is too early. Time in which this process is stopped does not
 * count, so a run that is suspended as a whole stays so.
 */
static void check_stopped_node(launcher *w)
{
    double now = seconds_now();

    w->still = is_node_stopped(w) ? w->still + fmin(now - w->looked, LOOK_S) : 0;
    w->looked = now;
    if (w->still < w->rank_set->settings->patience_s + WAKE_S)
        return;
    log_warning(w->rank_set->settings->log, "all ranks of this node have been stopped for %.1f s: "
                "they are woken, for the other nodes may have given them up", w->still);
    signal_all(w, SIGCONT, true);
    w->still = 0;
}

/* ---- loop ------------------------------------------------------------------------------------ */

static int list_files(const launcher *w, struct pollfd *file, launch_output **of)
{
    int count = 0;

    file[count++] = (struct pollfd){ .fd = w->signals, .events = POLLIN };
    for (int i = 0; i < w->rank_set->count; i++) {
        for (int k = 0; k < 2; k++) {
            launch_output *s = w->rank_set->rank[i].output[k];
            if (s == NULL || s->file < 0)
                continue;
            of[count] = s;
            file[count++] = (struct pollfd){ .fd = s->file, .events = POLLIN };
        }
    }
    return count;
}

static int wait_ms(const launcher *w)
{
    double until = w->phase == LAUNCH_RUN ? fmin(w->deadline, w->patience) : w->deadline;
    double left;

    if (is_node_stopped(w))
        until = fmin(until, w->looked + LOOK_S);
    left = until - seconds_now();
    return isinf(left) ? -1 : left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

static void take_deadlines(launcher *w)
{
    double now = seconds_now();

    if (w->phase == LAUNCH_RUN && now >= w->patience) {
        w->late = true;
        enter_phase(w, LAUNCH_TERMINATE);
    } else if (w->phase == LAUNCH_RUN && now >= w->deadline) {
        enter_phase(w, LAUNCH_KILL); /* after a second signal */
    } else if (now >= w->deadline) {
        enter_phase(w, w->phase + 1);
    }
}

/* Read the rest of the pipes. A process outside the groups may still write; its output is lost. */
static void drain_output(const launcher *w)
{
    for (int i = 0; i < w->rank_set->count; i++) {
        for (int k = 0; k < 2; k++) {
            launch_output *s = w->rank_set->rank[i].output[k];
            struct pollfd file = { .fd = s != NULL ? s->file : -1, .events = POLLIN };
            for (int n = 0; n < 1000 && file.fd >= 0 && poll(&file, 1, 0) > 0; n++) {
                launch_output_read(s);
                file.fd = s->file;
            }
        }
    }
}

/* Serve the ranks until none runs. */
static void serve_ranks(launcher *w, struct pollfd *file, launch_output **of)
{
    while (w->running > 0) {
        int count = list_files(w, file, of);
        if (poll(file, (nfds_t)count, wait_ms(w)) > 0)
            for (int i = 1; i < count; i++)
                if (file[i].revents != 0)
                    launch_output_read(of[i]);
        take_signals(w);
        take_deadlines(w);
        check_stopped_node(w);
    }
    drain_output(w);
}

/* ---- result ---------------------------------------------------------------------------------- */

static pons_status report_interrupted(const launcher *w, pons_error *err)
{
    for (int i = 0; i < w->rank_set->count; i++) {
        status_page_entry e;
        status_page_read(w->rank_set->status_page, i, &e);
        if (e.ended && e.status == PONS_INTERRUPTED && e.text[0] != '\0')
            return pons_fail(err, PONS_INTERRUPTED, "%s", e.text);
    }
    return pons_fail(err, PONS_INTERRUPTED, "interrupted; the same command goes on");
}

/* Report a rank that still ran long after another one had ended. */
static pons_status report_late_rank(const launcher *w, pons_error *err)
{
    const rank_set *c = w->rank_set;

    for (int i = 0; i < c->count; i++)
        if (c->rank[i].outcome == RANK_FOLLOWED)
            return pons_fail(err, PONS_COMMUNICATION, "rank %d did not end within %g s after the "
                             "first of the others had", c->rank[i].rank, c->settings->patience_s);
    return PONS_OK;
}

static pons_status report_result(const launcher *w, bool *again, pons_error *err)
{
    const rank_process *cause = rank_set_root_cause(w->rank_set);

    *again = false;
    if (err->status != PONS_OK) /* a rank could not be started */
        return err->status;
    if (cause != NULL)
        *again = rank_set_failure(w->rank_set, cause, err) && w->stops == 0;
    else if (w->late)
        *again = report_late_rank(w, err) != PONS_OK && w->stops == 0;
    for (int i = 0; err->status == PONS_OK && i < w->rank_set->count; i++)
        if (w->rank_set->rank[i].outcome == RANK_INTERRUPTED)
            report_interrupted(w, err);
    return err->status;
}

/* ---- starts ---------------------------------------------------------------------------------- */

static pons_status run_once(launcher *w, const launch_settings *s, int restart, bool *again,
                            pons_error *err)
{
    size_t files = 1 + 2 * (size_t)s->ranks;
    struct pollfd *file = calloc(files, sizeof *file);
    launch_output **of = calloc(files, sizeof *of);
    rank_set c = { .count = 0 };

    *again = false;
    w->rank_set = &c;
    w->phase = LAUNCH_RUN;
    w->deadline = w->patience = INFINITY;
    w->running = 0;
    w->late = false;
    w->looked = seconds_now();
    w->still = 0;
    if (file == NULL || of == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
    } else {
        bool started = rank_set_start(&c, s, restart, &w->before, err) == PONS_OK;
        for (int i = 0; i < c.count; i++)
            w->running += c.rank[i].process > 0;
        if (!started)
            enter_phase(w, LAUNCH_KILL);
        serve_ranks(w, file, of);
        report_result(w, again, err);
    }
    rank_set_clear(&c);
    free(file);
    free(of);
    return err->status;
}

/* Log the failure before the restart; a hint is a line of its own. */
static void log_restart(const launch_settings *s, const pons_error *problem, int number)
{
    char text[sizeof problem->text + 64];

    snprintf(text, sizeof text, "%s\nrestart %d of %d", problem->text, number, s->restarts);
    log_warning(s->log, "%s", text);
}

pons_status launch_run(const launch_settings *s, pons_error *err)
{
    launcher w = { .stops = 0 };
    bool again = true;

    sigemptyset(&w.passed);
    if (open_signals(&w, err) != PONS_OK)
        return err->status;
    for (int restart = 0; again; restart++) {
        pons_error problem = PONS_ERROR_INIT;
        run_once(&w, s, restart, &again, &problem);
        again = again && restart < s->restarts;
        if (again)
            log_restart(s, &problem, restart + 1);
        else if (problem.status != PONS_OK)
            pons_fail(err, problem.status, "%s", problem.text);
    }
    close_signals(&w);
    return err->status;
}
