/*
 * train_run.c - one run: read its file, join other processes, go on from a checkpoint, and train.
 *
 * Rank 0 alone reads and writes the folder. It broadcasts the facts that other ranks need.
 */
#include "cli/train/train_internal.h"

#include <stdlib.h>

#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "cluster/watchdog/status_page.h"
#include "config/memory_hints.h"
#include "experiment/resume.h"
#include "report/profile/profile_files.h"

/* ---- several processes ----------------------------------------------------------------------- */

bool train_writes(const train_job *s)
{
    return s->processes.place.rank == 0;
}

/* Become the launcher of 'mode = ddp' if there is none. */
static pons_status become_launcher(train_job *s, pons_error *err)
{
    signals_close(s->signals); /* the launcher handles signals */
    s->signals = NULL;
    s->launched = true;
    return relaunch_under_launcher(s->call, err);
}

static void set_joined(train_job *s, bool joined)
{
    signals_hold(s->signals);
    s->joined = joined;
    signals_release(s->signals);
}

static pons_status join_others(train_job *s, pons_error *err)
{
    if (processes_open(s->config, &s->sections, s->call->log, &s->processes, err) == PONS_OK)
        set_joined(s, s->processes.group != NULL);
    return err->status;
}

/* An interruption is no failure: the others have agreed on it, or have been told. */
static void leave_others(train_job *s, const pons_error *err)
{
    static const pons_error none = PONS_ERROR_INIT;

    set_joined(s, false);
    processes_close(&s->processes, err->status == PONS_INTERRUPTED ? &none : err);
}

/* The facts of rank 0's checkpoint that all processes need. */
typedef struct choice {
    int64_t threads, precision;
} choice;

static pons_status share_choice(train_job *s, experiment_overrides *known, pons_error *err)
{
    choice c = { s->saved.threads, s->saved.precision };

    if (s->processes.group != NULL
        && group_broadcast(s->processes.group, &c, sizeof c, 0, err) != PONS_OK)
        return err->status;
    known->threads = (int)c.threads;
    known->precision = (precision)c.precision;
    return PONS_OK;
}

/* Share whether the run is finished. */
static pons_status share_finished(train_job *s, const trainer_settings *settings, bool *finished,
                                  pons_error *err)
{
    *finished = s->own && trainer_finished(s->experiment, settings);
    if (s->processes.group == NULL)
        return PONS_OK;
    return group_broadcast(s->processes.group, finished, sizeof *finished, 0, err);
}

/* ---- start ----------------------------------------------------------------------------------- */

/*
 * Name the folder. A run with --debug has few cases and a folder of its own; that of a fold lies in
 * the folder of its cross-validation with --debug.
 */
static pons_status name_folder(train_job *s, pons_error *err)
{
    const experiment_options *e = &s->sections.experiment;
    char *name = NULL;

    if (asprintf(&name, "%s%s", e->name, s->call->debug && !s->fold ? "-debug" : "") < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    run_folder_name(e->output, name, &s->folder, err);
    free(name);
    return err->status;
}

static pons_status read_file(train_job *s, pons_error *err)
{
    const experiment_options *e = &s->sections.experiment;

    if (invocation_config(s->call, s->call->argument[0], &s->config, err) != PONS_OK
        || sections_fill(s->config, &s->sections, err) != PONS_OK)
        return err->status;
    if (e->name == NULL || e->name[0] == '\0')
        sections_require("experiment", "name", err);
    if (err->status != PONS_OK)
        return config_location_add(s->config, NULL, NULL, err);
    return name_folder(s, err);
}

/* A program's training is one process, whatever the environment says. */
static pons_status refuse_ddp(const train_job *s, pons_error *err)
{
    if (s->sections.distribute.mode != MODE_DDP)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [distribute] mode = ddp is of several processes, "
                     "expected auto, single or dp in a program's training",
                     config_location(s->config, "distribute", "mode"));
}

/* Read the file and join other processes, or become their launcher. */
static pons_status read_and_join(train_job *s, pons_error *err)
{
    int wanted = 0;

    if (s->host != NULL)
        return read_file(s, err) == PONS_OK ? refuse_ddp(s, err) : err->status;
    if (read_file(s, err) != PONS_OK
        || processes_wanted(s->config, &s->sections, &wanted, err) != PONS_OK) {
        processes_refuse(err);
        return err->status;
    }
    return wanted > 0 ? become_launcher(s, err) : join_others(s, err);
}

/* ---- profile --------------------------------------------------------------------------------- */

enum { TRACED_STEPS = 50 };

/* Record the ranges of this thread and of those that it starts. */
static pons_status begin_profile(train_job *s, pons_error *err)
{
    if (!s->flags->profile || !train_writes(s))
        return PONS_OK;
    s->profile = profile_new(TRACED_STEPS);
    if (s->profile == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a profile");
    profile_attach(s->profile, "main");
    return PONS_OK;
}

/* Write the profile of a run unless it has failed. Threads that record have ended. */
static void write_profile(const train_job *s, bool trained, const pons_error *err)
{
    const experiment *e = s->experiment;
    pons_error problem = PONS_ERROR_INIT;
    char phases[512];

    profile_attach(NULL, NULL);
    if (!trained || profile_steps(s->profile) == 0
        || (err->status != PONS_OK && err->status != PONS_INTERRUPTED))
        return;
    const profile_subject of = { e->sections.experiment.name, e->device.facts.name,
                                 s->processes.place.rank, s->processes.place.size };
    profile_phases_text(s->profile, phases, sizeof phases);
    log_line(s->call->log, "phases: %s", phases);
    if (profile_files_write(s->profile, &of, s->folder.path, &problem) != PONS_OK)
        log_warning(s->call->log, "%s", problem.text);
    else
        log_line(s->call->log, "profile of %lld step%s: '%s/profile.json', profile.svg, "
                 "trace.json", (long long)profile_steps(s->profile),
                 text_plural(profile_steps(s->profile)), s->folder.path);
}

/* ---- the run --------------------------------------------------------------------------------- */

static pons_status open_experiment(train_job *s, const experiment_overrides *known, pons_error *err)
{
    profile_range_begin(RANGE_START, range_kind_name(RANGE_START));
    experiment_open(s->config, EXPERIMENT_TRAIN, known, s->call->log, &s->experiment, err);
    profile_range_end();
    return err->status;
}

static pons_status prepare(train_job *s, pons_error *err)
{
    experiment_overrides known = { .processes = s->host == NULL ? &s->processes : NULL,
                                   .debug = s->call->debug };

    if (read_and_join(s, err) != PONS_OK || s->launched)
        return err->status;
    if ((train_writes(s) && train_find_checkpoint(s, err) != PONS_OK)
        || (s->checkpoint != NULL && saved_state_read(s->checkpoint, &s->saved, err) != PONS_OK)
        || share_choice(s, &known, err) != PONS_OK || begin_profile(s, err) != PONS_OK
        || open_experiment(s, &known, err) != PONS_OK)
        return err->status;
    if (s->checkpoint != NULL)
        resume_check(&s->saved, s->experiment, s->own, err);
    return s->checkpoint != NULL && s->experiment != NULL ? train_add_way_out(s, err) : err->status;
}

/* The saver thread calls it and ends the process. Nothing exists that could be saved. */
static pons_status end_before_first_step(void *context)
{
    static const char line[] = "interrupted before the first step; the same command begins anew";
    const train_job *s = context;
    logger terminal = *s->call->log;
    status_page_slot *seat = status_page_attach(getenv(STATUS_PAGE_VARIABLE));
    pons_error cause = PONS_ERROR_INIT;

    terminal.file = NULL;
    status_page_report(seat, PONS_INTERRUPTED, line);
    if (seat == NULL)
        log_interruption(&terminal, line);
    if (s->joined) {
        pons_fail(&cause, PONS_INTERRUPTED, "rank %d was %s", group_rank(s->processes.group), line);
        group_publish_interruption(s->processes.group, &cause);
        group_wait_acknowledged(s->processes.group, GROUP_ACKNOWLEDGE_S);
    }
    return PONS_INTERRUPTED;
}

/* Report that the run is finished, or that the few steps of --debug are. */
static void tell_finished(const train_job *s)
{
    logger *l = s->call->log;
    long long step = s->saved.state.step;

    train_compare_resolved(s, "it is written anew when the run goes on");
    if (s->call->debug)
        log_line(l, "'%s' is finished (step %lld)\nhint: --debug --fresh tries it anew, without "
                 "--debug the run itself begins", s->folder.path, step);
    else
        log_line(l, "'%s' is finished (step %lld)\n"
                 "hint: more [train] %s go on, --fresh starts anew", s->folder.path, step,
                 s->sections.train.steps > 0 ? "steps" : "epochs");
}

/* The commands that come next stand below the run's folder. */
static void tell_done(const train_job *s)
{
    char word[4096];

    shell_word_bare(word, sizeof word, s->folder.path);
    log_line(s->call->log, "done: '%s'", s->folder.path);
    log_line(s->call->log, "hint: pons report %.1000s; pons predict %.1000s IMAGE -o OUT", word,
             word);
}

static pons_status go(train_job *s, pons_error *err)
{
    bool finished;
    trainer_settings settings = {
        .checkpoints = s->folder.checkpoints, .resume = s->checkpoint, .saved = &s->saved.state,
        .own = s->own, .signals = s->signals, .unwatched = s->host != NULL,
        .debug = s->call->debug, .keep = s->keep
    };

    if (share_finished(s, &settings, &finished, err) != PONS_OK)
        return err->status;
    if (finished) {
        tell_finished(s);
        return PONS_OK;
    }
    if (train_hold_lines(s, err) != PONS_OK || train_read_choices(s, err) != PONS_OK)
        return err->status;
    settings.observer = train_observer_of(s);
    trainer_run(s->experiment, &settings, err);
    train_view_close(s->view);
    s->view = NULL;
    if (err->status == PONS_OK)
        tell_done(s);
    return config_location_add(s->config, NULL, NULL, err);
}

/* End the files of a run that other programs read: metrics, devices and the report. */
static void end_records(train_job *s, const pons_error *err)
{
    if (s->metrics == NULL && s->reporter == NULL && s->pictures == NULL)
        return;
    profile_range_begin(RANGE_REPORT, range_kind_name(RANGE_REPORT));
    case_pictures_close(s->pictures);
    metrics_end(s->metrics, err->status);
    metrics_close(s->metrics);
    devices_file_close(s->devices);
    run_reporter_close(s->reporter, true);
    profile_range_end();
    s->metrics = NULL;
    s->devices = NULL;
    s->reporter = NULL;
    s->pictures = NULL;
}

static void close_job(train_job *s, bool trained, pons_error *err)
{
    if (s->profile != NULL)
        write_profile(s, trained, err);
    profile_free(s->profile);
    experiment_close(s->experiment);
    saved_state_clear(&s->saved);
    train_leave_other(s);
    run_folder_close(&s->folder, s->call->log);
    s->call->log->file = NULL;
    text_stream_close(&s->held);
    free(s->held.text);
    if (s->config != NULL)
        config_close(s->config);
    free(s->checkpoint);
    signals_close(s->signals);
}

/* Note the end in log.txt, which is closed when the command tells it on the terminal. */
static void log_end(const logger *l, const pons_error *err)
{
    logger file = *l;

    file.terminal = NULL;
    file.line = NULL;
    if (err->status == PONS_INTERRUPTED)
        log_interruption(&file, err->text);
    else if (err->status != PONS_OK)
        log_error(&file, err->text);
}

pons_status train_run(const invocation *call, const train_flags *flags_given,
                      const train_host *host, bool fold, cache_keep *keep, pons_error *err)
{
    train_job s = { .call = call, .flags = flags_given, .host = host, .fold = fold, .keep = keep,
                    .folder = { NULL, NULL, -1, NULL }, .other = -1 };

    if (host == NULL
        && signals_open(end_before_first_step, &s, call->log, &s.signals, err) != PONS_OK)
        return err->status;
    if (prepare(&s, err) == PONS_OK && !s.launched)
        go(&s, err);
    train_hint_plugins(&s, err);
    memory_hints_add(s.experiment != NULL ? &s.experiment->sections
                     : s.config != NULL ? &s.sections : NULL, MEMORY_HINTS_TRAIN, err);
    bool trained = s.metrics != NULL;
    if (err->status == PONS_OK) /* others wait, and see that this rank lives */
        end_records(&s, err);
    leave_others(&s, err);
    log_end(call->log, err);
    end_records(&s, err);
    close_job(&s, trained, err);
    return err->status;
}
