/*
 * launch.c - the launcher's watch: signals, ends and output of the ranks of one start, and starts
 * after failures.
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

/* ---- settings of the end --------------------------------------------------------------------- */

/*
 * After the first failure the others find out by themselves, those too that were stopped, and say
 * what they saw; then they are told to end, then killed. All in all well below the five seconds
 * that are promised.
 */
#define NOTICE_S 1.0
#define TERMINATE_S 1.5
/* After a second signal a rank may still save; then it is killed. */
#define SECOND_SIGNAL_S 5.0
/* 'timeout' and others signal a process, then its whole group: that is asked once, not twice. */
#define ECHO_S 0.1

/* ---- settings of a node that stands still ---------------------------------------------------- */

/* The others give a rank up that has been silent for their timeout; all know by then. */
#define WAKE_S 2.0
/* Between two looks at it, and counted of what passed between them, at most. */
#define LOOK_S 0.25

typedef enum watch_phase {
    WATCH_RUN = 0, WATCH_NOTICE, WATCH_TERMINATE, WATCH_KILL
} watch_phase;

typedef struct watch {
    crowd *crowd;
    int signals;               /* descriptor of signalfd                                          */
    sigset_t before;
    watch_phase phase;
    double deadline;           /* of the phase; INFINITY: none                                    */
    double patience;           /* until when the others may go on; INFINITY: nobody has ended     */
    int stops;                 /* signals that were passed on                                     */
    sigset_t passed;           /* these                                                           */
    int stop;                  /* the first one                                                   */
    double stopped;            /* when it came                                                    */
    int running;
    bool late;                 /* somebody outlived the patience                                  */
    double looked, still;      /* at the ranks; seconds for which all of them have been stopped   */
} watch;

/* ---- phases ---------------------------------------------------------------------------------- */

static void signal_all(const watch *w, int number, bool groups)
{
    for (int i = 0; i < w->crowd->count; i++) {
        const launched *r = &w->crowd->rank[i];
        if (r->process > 0 && r->outcome == RANK_RUNS)
            kill(groups ? -r->process : r->process, number);
    }
}

static void enter_phase(watch *w, watch_phase phase)
{
    static const double lasts[] = { INFINITY, NOTICE_S, TERMINATE_S, INFINITY };

    if (phase <= w->phase)
        return;
    w->phase = phase;
    w->deadline = seconds_now() + lasts[phase];
    if (phase == WATCH_NOTICE)
        signal_all(w, SIGCONT, true);
    if (phase == WATCH_TERMINATE)
        signal_all(w, SIGTERM, true);
    if (phase == WATCH_KILL)
        signal_all(w, SIGKILL, true);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static rank_outcome judge(const watch *w, const launched *r, const board_entry *e)
{
    bool passed_on = r->signal != 0 && w->stops > 0
                     && (sigismember(&w->passed, r->signal) == 1 || w->phase == WATCH_KILL);

    if (r->signal == 0 && r->code == 0 && e->ended && e->status == 0)
        return RANK_DONE;
    if (w->late || (w->stops == 0 && w->phase >= WATCH_TERMINATE))
        return RANK_FOLLOWED;
    if ((r->signal == 0 && r->code == PONS_INTERRUPTED) || passed_on)
        return RANK_INTERRUPTED;
    return w->phase >= WATCH_TERMINATE ? RANK_FOLLOWED : RANK_FAILED;
}

static void note_end(watch *w, launched *r, int status)
{
    board_entry e;

    kill(-r->process, SIGKILL); /* what it started */
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    board_read(w->crowd->board, (int)(r - w->crowd->rank), &e);
    if (e.ended && e.status != 0 && r->code != 0)
        r->code = e.status; /* the cause; what came of it may have decided the exit */
    r->when = e.ended ? e.when : seconds_now();
    r->outcome = judge(w, r, &e);
    w->running--;
    crowd_tell_end(w->crowd, r);
    if (r->outcome == RANK_FAILED)
        enter_phase(w, WATCH_NOTICE);
    else if (isinf(w->patience))
        w->patience = seconds_now() + w->crowd->settings->patience_s;
}

static void collect_changes(watch *w)
{
    for (int i = 0; i < w->crowd->count; i++) {
        launched *r = &w->crowd->rank[i];
        int status;
        while (r->process > 0 && r->outcome == RANK_RUNS
               && waitpid(r->process, &status, WNOHANG | WUNTRACED | WCONTINUED) == r->process) {
            if (WIFSTOPPED(status) || WIFCONTINUED(status))
                r->stopped = WIFSTOPPED(status);
            else
                note_end(w, r, status);
        }
    }
}

/* ---- signals --------------------------------------------------------------------------------- */

static void pass_on(watch *w, int number)
{
    int sent = number == SIGHUP ? SIGTERM : number;

    if (w->stops == 1 && sent == w->stop && seconds_now() < w->stopped + ECHO_S)
        return;
    w->stops++;
    sigaddset(&w->passed, sent);
    if (w->stops == 1) {
        w->stop = sent;
        w->stopped = seconds_now();
        log_line(w->crowd->settings->log, "%s: the ranks save and end; a second signal ends at "
                 "once", signal_name(number));
    }
    if (w->stops > 2)
        enter_phase(w, WATCH_KILL);
    else
        signal_all(w, sent, false);
    if (w->stops == 2 && w->phase == WATCH_RUN)
        w->deadline = seconds_now() + SECOND_SIGNAL_S;
}

/*
 * Ctrl-Z: the ranks, which are in groups of their own, stop and go on with this process. A pause of
 * all is none that their watch sees.
 */
static void suspend(watch *w)
{
    double before = seconds_now();

    signal_all(w, SIGSTOP, true);
    raise(SIGSTOP);
    signal_all(w, SIGCONT, true);
    w->deadline += seconds_now() - before;
    w->patience += seconds_now() - before;
}

static void take_signals(watch *w)
{
    struct signalfd_siginfo info;

    while (read(w->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTSTP)
            suspend(w);
        else if (info.ssi_signo != SIGCHLD)
            pass_on(w, (int)info.ssi_signo);
    }
    collect_changes(w);
}

static pons_status open_signals(watch *w, pons_error *err)
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
    signal(SIGCHLD, SIG_DFL); /* where it is ignored there is nothing to wait for */
    sigprocmask(SIG_BLOCK, &set, &w->before);
    w->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (w->signals < 0) {
        sigprocmask(SIG_SETMASK, &w->before, NULL);
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot wait for signals: %s",
                         strerror(errno));
    }
    return PONS_OK;
}

static void close_signals(watch *w)
{
    struct signalfd_siginfo info;

    while (read(w->signals, &info, sizeof info) > 0)
        continue; /* those of ranks that have been collected */
    close(w->signals);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
}

/* ---- a node that stands still ---------------------------------------------------------------- */

/* One rank that runs hears of whatever the others decide. */
static bool stands_still(const watch *w)
{
    const crowd *c = w->crowd;
    bool still = w->phase == WATCH_RUN && c->settings->nodes > 1;

    for (int i = 0; i < c->count && still; i++)
        still = c->rank[i].process == 0 || c->rank[i].outcome != RANK_RUNS || c->rank[i].stopped;
    return still;
}

/*
 * Nobody on a node whose ranks are all stopped hears that the others have gone on without it.
 * Woken, the ranks see for themselves and end, or go on if nobody has missed them: nothing is lost
 * where this is too early. A run that is suspended as a whole is left alone: time in which this
 * process is stopped, too, does not count.
 */
static void look_at_ranks(watch *w)
{
    double now = seconds_now();

    w->still = stands_still(w) ? w->still + fmin(now - w->looked, LOOK_S) : 0;
    w->looked = now;
    if (w->still < w->crowd->settings->patience_s + WAKE_S)
        return;
    log_warning(w->crowd->settings->log, "all ranks of this node have been stopped for %.1f s: "
                "they are woken, for the other nodes may have given them up", w->still);
    signal_all(w, SIGCONT, true);
    w->still = 0;
}

/* ---- watch ----------------------------------------------------------------------------------- */

static int list_files(const watch *w, struct pollfd *file, stream **of)
{
    int count = 0;

    file[count++] = (struct pollfd){ .fd = w->signals, .events = POLLIN };
    for (int i = 0; i < w->crowd->count; i++) {
        for (int k = 0; k < 2; k++) {
            stream *s = w->crowd->rank[i].output[k];
            if (s == NULL || s->file < 0)
                continue;
            of[count] = s;
            file[count++] = (struct pollfd){ .fd = s->file, .events = POLLIN };
        }
    }
    return count;
}

static int wait_ms(const watch *w)
{
    double until = w->phase == WATCH_RUN ? fmin(w->deadline, w->patience) : w->deadline;
    double left;

    if (stands_still(w))
        until = fmin(until, w->looked + LOOK_S);
    left = until - seconds_now();
    return isinf(left) ? -1 : left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

static void take_deadlines(watch *w)
{
    double now = seconds_now();

    if (w->phase == WATCH_RUN && now >= w->patience) {
        w->late = true;
        enter_phase(w, WATCH_TERMINATE);
    } else if (w->phase == WATCH_RUN && now >= w->deadline) {
        enter_phase(w, WATCH_KILL); /* after a second signal */
    } else if (now >= w->deadline) {
        enter_phase(w, w->phase + 1);
    }
}

/* What is in the pipes is read; what a process outside of the groups may still write is not. */
static void drain(const watch *w)
{
    for (int i = 0; i < w->crowd->count; i++) {
        for (int k = 0; k < 2; k++) {
            stream *s = w->crowd->rank[i].output[k];
            struct pollfd file = { .fd = s != NULL ? s->file : -1, .events = POLLIN };
            for (int n = 0; n < 1000 && file.fd >= 0 && poll(&file, 1, 0) > 0; n++) {
                stream_read(s);
                file.fd = s->file;
            }
        }
    }
}

/* Until nobody runs. */
static void watch_ranks(watch *w, struct pollfd *file, stream **of)
{
    while (w->running > 0) {
        int count = list_files(w, file, of);
        if (poll(file, (nfds_t)count, wait_ms(w)) > 0)
            for (int i = 1; i < count; i++)
                if (file[i].revents != 0)
                    stream_read(of[i]);
        take_signals(w);
        take_deadlines(w);
        look_at_ranks(w);
    }
    drain(w);
}

/* ---- result ---------------------------------------------------------------------------------- */

static pons_status tell_interrupted(const watch *w, pons_error *err)
{
    for (int i = 0; i < w->crowd->count; i++) {
        board_entry e;
        board_read(w->crowd->board, i, &e);
        if (e.ended && e.status == PONS_INTERRUPTED && e.text[0] != '\0')
            return pons_fail(err, PONS_INTERRUPTED, "%s", e.text);
    }
    return pons_fail(err, PONS_INTERRUPTED, "interrupted; the same command goes on");
}

/* Somebody had come to its end long ago, and these still ran. */
static pons_status tell_late(const watch *w, pons_error *err)
{
    const crowd *c = w->crowd;

    for (int i = 0; i < c->count; i++)
        if (c->rank[i].outcome == RANK_FOLLOWED)
            return pons_fail(err, PONS_COMMUNICATION, "rank %d did not end within %g s after the "
                             "first of the others had", c->rank[i].rank, c->settings->patience_s);
    return PONS_OK;
}

static pons_status tell_result(const watch *w, bool *again, pons_error *err)
{
    const launched *cause = crowd_cause(w->crowd);

    *again = false;
    if (err->status != PONS_OK) /* not all could be started */
        return err->status;
    if (cause != NULL)
        *again = crowd_tell(w->crowd, cause, err) && w->stops == 0;
    else if (w->late)
        *again = tell_late(w, err) != PONS_OK && w->stops == 0;
    for (int i = 0; err->status == PONS_OK && i < w->crowd->count; i++)
        if (w->crowd->rank[i].outcome == RANK_INTERRUPTED)
            tell_interrupted(w, err);
    return err->status;
}

/* ---- starts ---------------------------------------------------------------------------------- */

static pons_status run_once(watch *w, const launch_settings *s, int restart, bool *again,
                            pons_error *err)
{
    size_t files = 1 + 2 * (size_t)s->ranks;
    struct pollfd *file = calloc(files, sizeof *file);
    stream **of = calloc(files, sizeof *of);
    crowd c = { .count = 0 };

    *again = false;
    w->crowd = &c;
    w->phase = WATCH_RUN;
    w->deadline = w->patience = INFINITY;
    w->running = 0;
    w->late = false;
    w->looked = seconds_now();
    w->still = 0;
    if (file == NULL || of == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
    } else {
        bool started = crowd_start(&c, s, restart, &w->before, err) == PONS_OK;
        for (int i = 0; i < c.count; i++)
            w->running += c.rank[i].process > 0;
        if (!started)
            enter_phase(w, WATCH_KILL);
        watch_ranks(w, file, of);
        tell_result(w, again, err);
    }
    crowd_clear(&c);
    free(file);
    free(of);
    return err->status;
}

/* A failure may have a hint in a line of its own. */
static void tell_restart(const launch_settings *s, const pons_error *problem, int number)
{
    char text[sizeof problem->text + 64];

    snprintf(text, sizeof text, "%s\nrestart %d of %d", problem->text, number, s->restarts);
    log_warning(s->log, "%s", text);
}

pons_status launch_run(const launch_settings *s, pons_error *err)
{
    watch w = { .stops = 0 };
    bool again = true;

    sigemptyset(&w.passed);
    if (open_signals(&w, err) != PONS_OK)
        return err->status;
    for (int restart = 0; again; restart++) {
        pons_error problem = PONS_ERROR_INIT;
        run_once(&w, s, restart, &again, &problem);
        again = again && restart < s->restarts;
        if (again)
            tell_restart(s, &problem, restart + 1);
        else if (problem.status != PONS_OK)
            pons_fail(err, problem.status, "%s", problem.text);
    }
    close_signals(&w);
    return err->status;
}
