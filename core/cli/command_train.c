/*
 * command_train.c - pons train: identify the run, start or resume it, and open its folder (R31).
 *
 * Rank 0 alone reads and writes the folder. It broadcasts the facts that other ranks need.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/broken_pipe.h"
#include "base/file/file.h"
#include "base/profile/profile.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "base/text/text_stream.h"
#include "checkpoint/run_folds.h"
#include "cli/command.h"
#include "cli/command_train.h"
#include "cli/train_folds.h"
#include "cluster/rendezvous/rank_info.h"
#include "cluster/watchdog/status_page.h"
#include "config/list.h"
#include "config/memory_hints.h"
#include "experiment/processes.h"
#include "experiment/provenance.h"
#include "experiment/resolved.h"
#include "experiment/resume.h"
#include "experiment/run_identity.h"
#include "experiment/tuning.h"
#include "report/devices_file.h"
#include "report/live/train_view.h"
#include "report/metrics.h"
#include "report/page/run_reporter.h"
#include "report/profile/profile_files.h"
#include "report/run_folder.h"
#include "report/sinks/case_pictures.h"
#include "report/sinks/network_boxes.h"
#include "train/trainer.h"

static const char *const none_words[] = { "none", NULL };

static const pons_option flags[] = {
    PONS_FLAG(train_flags, fresh, "no",
              "Start anew; the earlier run's folder becomes NAME.1, NAME.2, ..."),
    PONS_TEXT(train_flags, resume, "",
              "Go on from another run's folder or checkpoint, with its optimizer's state; loss, "
              "schedule, augmentation and learning rate may differ."),
    PONS_INTEGER_OR(train_flags, folds, "none", 2, RUN_FOLDS_MAX, none_words,
                    "Cross-validation: train this number of runs NAME/fold_0, NAME/fold_1, ... one "
                    "after the other, each with [data] validation = fold:K/N."),
    PONS_INTEGER_OR(train_flags, fold, "none", 0, RUN_FOLDS_MAX - 1, none_words,
                    "Train this fold alone; their number is that of --folds, else of [data] "
                    "validation = fold:K/N, else 5."),
    PONS_FLAG(train_flags, profile, "no",
              "Write the time of phases, plugins and kernels into the run's folder: profile.json, "
              "profile.svg (a flame graph) and trace.json (50 steps, for Perfetto). The weights "
              "are the same; kernels run one after another."),
    PONS_OPTIONS_END
};

/* The state of a starting run. */
typedef struct start {
    const invocation *call;
    const train_flags *flags;
    const train_host *host; /* NULL: the command line                                             */
    bool fold;              /* the run is a fold of a cross-validation                            */
    cache_keep *keep;       /* cases of the folds before; NULL: none                              */
    config *config;
    sections sections;
    run_folder folder;
    char *checkpoint;       /* path of the checkpoint to resume from, or NULL                     */
    bool own;               /* the checkpoint lies in this run's folder                           */
    int other;              /* lock of another run while its checkpoint is read; -1: none         */
    saved_state saved;
    processes processes;
    experiment *experiment;
    metrics *metrics;
    devices_file *devices;
    run_reporter *reporter; /* of every rank; NULL: [log] report = no                             */
    case_pictures *pictures; /* of every rank; NULL: no sink takes any                            */
    train_view *view;       /* NULL: no terminal that is redrawn                                  */
    profile *profile;       /* NULL: without --profile, and of ranks that do not write           */
    text_stream held;       /* log lines until log.txt is open                                    */
    signals *signals;
    bool joined;            /* 'processes' has a group; changed only while signals are held       */
    bool launched;          /* this process was the launcher, and the ranks have run              */
} start;

/* ---- the checkpoint to resume from ----------------------------------------------------------- */

/* Take a checkpoint NAME/checkpoints/STEP, with a shared lock of its run. */
static pons_status take_checkpoint(start *s, const char *path, pons_error *err)
{
    char *run = NULL;

    if (asprintf(&run, "%s/../..", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (run_folder_lock_shared(&s->folder, run, &s->other, err) == PONS_OK
        && checkpoint_verify(path, err) == PONS_OK)
        s->checkpoint = strdup(path);
    free(run);
    return err->status;
}

static pons_status take_newest(start *s, const char *path, pons_error *err)
{
    char *folder = NULL;

    if (asprintf(&folder, "%s/checkpoints", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (run_folder_lock_shared(&s->folder, path, &s->other, err) == PONS_OK)
        checkpoint_newest(folder, s->call->log, &s->checkpoint, err);
    free(folder);
    return err->status;
}

static pons_status find_other(start *s, pons_error *err)
{
    const char *path = s->flags->resume;

    if ((folder_holds(path, "manifest.json") ? take_checkpoint(s, path, err)
                                             : take_newest(s, path, err)) != PONS_OK)
        return err->status;
    if (s->checkpoint == NULL)
        return pons_fail(err, PONS_CONFIG, "--resume: '%s' is neither a run with checkpoints nor a "
                         "checkpoint", path);
    return PONS_OK;
}

/* Release the lock of the other run. */
static void leave_other(start *s)
{
    if (s->other >= 0)
        close(s->other);
    s->other = -1;
}

static pons_status find_checkpoint(start *s, pons_error *err)
{
    bool other = s->flags->resume != NULL && s->flags->resume[0] != '\0';

    if (s->flags->fresh && other)
        return pons_fail(err, PONS_USAGE, "--fresh and --resume exclude each other");
    if (run_folds_are_there(s->folder.path))
        return pons_fail(err, PONS_CONFIG, "'%s' holds the folds of a cross-validation, expected a "
                         "folder of its own\nhint: --folds N goes on with them; --set "
                         "experiment.name=NAME is another run", s->folder.path);
    /* The lock comes first, because another process may still write the folder. */
    if (run_folder_lock(&s->folder, err) != PONS_OK || s->flags->fresh
        || checkpoint_check_marks(s->folder.checkpoints, err) != PONS_OK)
        return err->status;
    if (checkpoint_newest(s->folder.checkpoints, s->call->log, &s->checkpoint, err) != PONS_OK)
        return err->status;
    s->own = s->checkpoint != NULL;
    if (!s->own && !other && folder_holds(s->folder.path, "resolved.ini"))
        log_line(s->call->log, "'%s' has no checkpoint to go on from; the training begins anew",
                 s->folder.path);
    if (!other)
        return PONS_OK;
    if (s->own)
        return pons_fail(err, PONS_CONFIG, "--resume: '%s' holds checkpoints of its own\nhint: "
                         "without --resume it goes on; --set experiment.name=NAME is a new run",
                         s->folder.path);
    return find_other(s, err);
}

/* ---- several processes ----------------------------------------------------------------------- */

static bool writes(const start *s)
{
    return s->processes.place.rank == 0;
}

/* Become the launcher of 'mode = ddp' if there is none. */
static pons_status become_launcher(start *s, pons_error *err)
{
    signals_close(s->signals); /* the launcher handles signals */
    s->signals = NULL;
    s->launched = true;
    return relaunch_under_launcher(s->call, err);
}

static void set_joined(start *s, bool joined)
{
    signals_hold(s->signals);
    s->joined = joined;
    signals_release(s->signals);
}

static pons_status join_others(start *s, pons_error *err)
{
    if (processes_open(s->config, &s->sections, s->call->log, &s->processes, err) == PONS_OK)
        set_joined(s, s->processes.group != NULL);
    return err->status;
}

/* An interruption is no failure: the others have agreed on it, or have been told. */
static void leave_others(start *s, const pons_error *err)
{
    static const pons_error none = PONS_ERROR_INIT;

    set_joined(s, false);
    processes_close(&s->processes, err->status == PONS_INTERRUPTED ? &none : err);
}

/* The facts of rank 0's checkpoint that all processes need. */
typedef struct choice {
    int64_t threads, precision;
} choice;

static pons_status share_choice(start *s, experiment_overrides *known, pons_error *err)
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
static pons_status share_finished(start *s, const trainer_settings *settings, bool *finished,
                                  pons_error *err)
{
    *finished = s->own && trainer_finished(s->experiment, settings);
    if (s->processes.group == NULL)
        return PONS_OK;
    return group_broadcast(s->processes.group, finished, sizeof *finished, 0, err);
}

/* ---- observer -------------------------------------------------------------------------------- */

static pons_status on_record(void *context, const pons_record *record, pons_error *err)
{
    const start *s = context;

    if (s->metrics != NULL && metrics_write(s->metrics, record, err) != PONS_OK)
        return err->status;
    if (strcmp(record->kind, "validation") == 0)
        run_reporter_begin_page(s->reporter);
    if (s->host != NULL)
        s->host->record(s->host->context, record);
    train_view_record(s->view, record);
    return PONS_OK;
}

static void on_progress(void *context, const trainer_progress *p)
{
    const start *s = context;

    train_view_progress(s->view, p);
}

static void on_predicted(void *context, const scored_case *c)
{
    const start *s = context;

    run_reporter_draw(s->reporter, c);
    case_pictures_add(s->pictures, c);
    train_view_case(s->view);
}

static pons_status on_validated(void *context, const validated_cases *v, pons_error *err)
{
    const start *s = context;

    return case_pictures_send(s->pictures, v, err) == PONS_OK
           ? run_reporter_score(s->reporter, v, err) : err->status;
}

static bool on_stop(void *context)
{
    const train_host *h = ((const start *)context)->host;

    return h != NULL && h->stop(h->context);
}

static pons_status on_sync(void *context, pons_error *err)
{
    const start *s = context;

    return run_folder_check(&s->folder, err) == PONS_OK ? metrics_sync(s->metrics, err)
                                                        : err->status;
}

static pons_status on_check(void *context, pons_error *err)
{
    const start *s = context;

    return run_folder_check(&s->folder, err) == PONS_OK ? run_folder_check_files(&s->folder, err)
                                                        : err->status;
}

static pons_status on_devices(void *context, int count, const device_reading *reading,
                              pons_error *err)
{
    const start *s = context;

    train_view_devices(s->view, count, reading);
    return devices_file_write(s->devices, count, reading, err);
}

/* ---- an edited resolved.ini ------------------------------------------------------------------ */

/* The path of the checkpoint's resolved.ini, malloc'ed; NULL if another run has none. */
static char *find_resolved(const start *s)
{
    char *above = NULL, *path;

    if (s->own)
        return run_folder_file(&s->folder, "resolved.ini");
    if (asprintf(&above, "%s/../../resolved.ini", s->checkpoint) < 0)
        return NULL;
    path = realpath(above, NULL);
    free(above);
    return path;
}

/* Warn if resolved.ini is not as its run wrote it. 'outcome' states the consequence. */
static void compare_resolved(const start *s, const char *outcome)
{
    char *path = s->checkpoint != NULL ? find_resolved(s) : NULL;
    pons_error problem = PONS_ERROR_INIT;
    bool same;

    if (path != NULL
        && (resolved_check(s->checkpoint, path, &same, &problem) != PONS_OK
            || (!same && run_identity_check(s->checkpoint, path, &problem) != PONS_OK)))
        log_warning(s->call->log, "%s; %s", problem.text, outcome);
    free(path);
}

/* ---- start ----------------------------------------------------------------------------------- */

/*
 * Name the folder. A run with --debug has few cases and a folder of its own; that of a fold lies in
 * the folder of its cross-validation with --debug.
 */
static pons_status name_folder(start *s, pons_error *err)
{
    const experiment_options *e = &s->sections.experiment;
    char *name = NULL;

    if (asprintf(&name, "%s%s", e->name, s->call->debug && !s->fold ? "-debug" : "") < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    run_folder_name(e->output, name, &s->folder, err);
    free(name);
    return err->status;
}

static pons_status read_file(start *s, pons_error *err)
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

/* The value of --set that takes the checkpoint's weights; "" if its path is unknown. */
static const char *set_pretrained(const start *s, char *word, size_t size)
{
    char *path = realpath(s->checkpoint, NULL);
    arena *memory = path != NULL ? arena_new() : NULL;

    word[0] = '\0';
    if (memory != NULL)
        shell_word(word, size, arena_format(memory, "train.pretrained=%s", list_single(
                   memory, arena_format(memory, "%s/model.safetensors", path))));
    arena_free(memory);
    free(path);
    return word;
}

/* Append a hint to the error of a run that cannot resume as asked. */
static pons_status add_way_out(const start *s, pons_error *err)
{
    size_t used = strlen(err->text), room = sizeof err->text - used;
    pons_error hint = PONS_ERROR_INIT;
    char word[sizeof err->text];

    if (err->status != PONS_CONFIG || strstr(err->text, "\nhint: ") != NULL)
        return err->status;
    if (s->own)
        pons_fail(&hint, PONS_CONFIG, "hint: --fresh starts anew, another [experiment] name keeps "
                  "both; with --resume %s that run goes on from here, and may change [loss], "
                  "[schedule], [augment] and [optimizer] lr",
                  shell_word(word, sizeof word, s->folder.path));
    else if (set_pretrained(s, word, sizeof word)[0] != '\0')
        pons_fail(&hint, PONS_CONFIG, "hint: --resume may change [loss], [schedule], [augment] and "
                  "[optimizer] lr; in its place --set %s begins anew with the weights of the same "
                  "network", word);
    if (hint.status != PONS_OK)
        snprintf(err->text + used, room, "\n%s", hint.text);
    return err->status;
}

/* A program's training is one process, whatever the environment says. */
static pons_status refuse_ddp(const start *s, pons_error *err)
{
    if (s->sections.distribute.mode != MODE_DDP)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [distribute] mode = ddp is of several processes, "
                     "expected auto, single or dp in a program's training",
                     config_location(s->config, "distribute", "mode"));
}

/* Read the file and join other processes, or become their launcher. */
static pons_status read_and_join(start *s, pons_error *err)
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
static pons_status begin_profile(start *s, pons_error *err)
{
    if (!s->flags->profile || !writes(s))
        return PONS_OK;
    s->profile = profile_new(TRACED_STEPS);
    if (s->profile == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a profile");
    profile_attach(s->profile, "main");
    return PONS_OK;
}

static pons_status open_experiment(start *s, const experiment_overrides *known, pons_error *err)
{
    profile_range_begin(RANGE_START, range_kind_name(RANGE_START));
    experiment_open(s->config, EXPERIMENT_TRAIN, known, s->call->log, &s->experiment, err);
    profile_range_end();
    return err->status;
}

static pons_status prepare(start *s, pons_error *err)
{
    experiment_overrides known = { .processes = s->host == NULL ? &s->processes : NULL,
                                   .debug = s->call->debug };

    if (read_and_join(s, err) != PONS_OK || s->launched)
        return err->status;
    if ((writes(s) && find_checkpoint(s, err) != PONS_OK)
        || (s->checkpoint != NULL && saved_state_read(s->checkpoint, &s->saved, err) != PONS_OK)
        || share_choice(s, &known, err) != PONS_OK || begin_profile(s, err) != PONS_OK
        || open_experiment(s, &known, err) != PONS_OK)
        return err->status;
    if (s->checkpoint != NULL)
        resume_check(&s->saved, s->experiment, s->own, err);
    return s->checkpoint != NULL && s->experiment != NULL ? add_way_out(s, err) : err->status;
}

/* Rename a folder that has files but no checkpoint to resume from, or with --fresh any. */
static pons_status make_room(start *s, pons_error *err)
{
    const char *found = s->own ? NULL : run_folder_foreign_file(&s->folder);

    if (found != NULL && !s->flags->fresh)
        log_warning(s->call->log, "'%s' holds '%s' but no checkpoint to go on from",
                    s->folder.path, found);
    if (found != NULL || s->flags->fresh)
        run_folder_retire(&s->folder, s->call->log, err);
    return err->status;
}

/* Read the identity of a run that resumes, or draw that of a new run. */
static pons_status identify(start *s, pons_error *err)
{
    experiment *e = s->experiment;
    char line[sizeof e->run + 8];

    if (!s->own)
        run_identity_draw(e->run);
    else if (run_identity_read(s->checkpoint, e->run, err) != PONS_OK)
        return err->status;
    snprintf(line, sizeof line, "run %s", e->run);
    if (e->run[0] != '\0')
        config_add_comment(s->config, line);
    return PONS_OK;
}

/* Give the network to the sinks. A failure is no reason not to train. */
static void send_network(const start *s)
{
    pons_error problem = PONS_ERROR_INIT;
    pons_network network;
    arena *memory;

    if (!metrics_takes_network(s->metrics) || (memory = arena_new()) == NULL)
        return;
    if (network_boxes_make(s->experiment, memory, &network, &problem) != PONS_OK)
        log_warning(s->call->log, "the sinks get no graph of the network: %s", problem.text);
    else if (network.count > 0)
        metrics_network(s->metrics, &network);
    arena_free(memory);
}

static pons_status open_report(start *s, const char *folder, pons_error *err)
{
    if (case_pictures_open(s->experiment, s->metrics, &s->pictures, err) != PONS_OK)
        return err->status;
    return s->sections.log.report
           ? run_reporter_open(folder, s->experiment, &s->reporter, err) : PONS_OK;
}

static pons_status open_folder(start *s, pons_error *err)
{
    pons_sink_kept keep = { -1, -1 };
    char *resolved = run_folder_file(&s->folder, "resolved.ini");

    if (s->checkpoint != NULL)
        keep = (pons_sink_kept){ s->saved.state.step, s->saved.state.validated };
    if (resolved == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (identify(s, err) == PONS_OK && make_room(s, err) == PONS_OK
        && run_folder_make(&s->folder, err) == PONS_OK
        && (s->own || run_folder_forget_profile(&s->folder, err) == PONS_OK)
        && run_folder_log(&s->folder, s->call->log, err) == PONS_OK
        && metrics_open(s->folder.path, keep, s->experiment, &s->metrics, err) == PONS_OK
        && (s->sections.log.device_every == 0
            || devices_file_open(s->folder.path, keep.step, s->call->log, &s->devices, err)
               == PONS_OK)
        && config_write(s->config, resolved, err) == PONS_OK
        && open_report(s, s->folder.path, err) == PONS_OK)
        send_network(s);
    free(resolved);
    return err->status;
}

/* Write the held lines to log.txt. */
static void log_held(start *s)
{
    bool whole = text_stream_flush(&s->held);

    fputs(s->held.text, s->call->log->file);
    if (!whole)
        log_warning(s->call->log, "out of memory: log.txt lacks lines of the start");
    log_line(s->call->log, "run folder '%s'", s->folder.path);
}

/* Compare the checkpoint with the dataset and the network. Its run's lock is then released. */
static pons_status leave_checkpoint(start *s, pons_error *err)
{
    if (s->checkpoint != NULL) {
        resume_restore(&s->saved, s->experiment);
        provenance_compare(s->checkpoint, s->experiment, s->call->log, err);
        if (add_way_out(s, err) == PONS_OK)
            compare_resolved(s, s->own ? "it is written anew"
                                       : "this run's values come from its own INI file");
    }
    leave_other(s);
    return err->status;
}

/*
 * Open the folder once dataset and network are accepted. A refused one leaves the folder of an
 * earlier run unchanged. Signals are held meanwhile, so none meets a partly opened folder.
 */
static pons_status on_begin(void *context, pons_error *err)
{
    start *s = context;

    if (leave_checkpoint(s, err) != PONS_OK || !writes(s))
        return err->status != PONS_OK ? err->status : open_report(s, NULL, err);
    signals_hold(s->signals);
    if (open_folder(s, err) == PONS_OK
        && tuning_write(s->experiment->tuning, s->folder.path, err) == PONS_OK)
        log_held(s);
    signals_release(s->signals);
    if (err->status == PONS_OK)
        s->view = train_view_open(s->experiment, s->signals, s->call->log);
    return err->status;
}

/* The saver thread calls it and ends the process. Nothing exists that could be saved. */
static pons_status end_before_first_step(void *context)
{
    static const char line[] = "interrupted before the first step; the same command begins anew";
    const start *s = context;
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

/* Hold log lines until log.txt is open. */
static pons_status hold_lines(start *s, pons_error *err)
{
    if (!writes(s))
        return PONS_OK;
    if (!text_stream_open(&s->held))
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->call->log->file = s->held.to;
    return PONS_OK;
}

/* Read the autotune entries of the run to resume. */
static pons_status read_choices(start *s, pons_error *err)
{
    char *other = NULL;

    if (s->checkpoint == NULL)
        return PONS_OK;
    if (s->own)
        return tuning_read(s->experiment->tuning, s->folder.path, err);
    if (asprintf(&other, "%s/../..", s->checkpoint) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    tuning_read(s->experiment->tuning, other, err);
    free(other);
    return err->status;
}

/* Report that the run is finished, or that the few steps of --debug are. */
static void tell_finished(const start *s)
{
    logger *l = s->call->log;
    long long step = s->saved.state.step;

    compare_resolved(s, "it is written anew when the run goes on");
    if (s->call->debug)
        log_line(l, "'%s' is finished (step %lld)\nhint: --debug --fresh tries it anew, without "
                 "--debug the run itself begins", s->folder.path, step);
    else
        log_line(l, "'%s' is finished (step %lld)\n"
                 "hint: more [train] %s go on, --fresh starts anew", s->folder.path, step,
                 s->sections.train.steps > 0 ? "steps" : "epochs");
}

/* The commands that come next stand below the run's folder. */
static void tell_done(const start *s)
{
    char word[4096];

    shell_word_bare(word, sizeof word, s->folder.path);
    log_line(s->call->log, "done: '%s'", s->folder.path);
    log_line(s->call->log, "hint: pons report %.1000s; pons predict %.1000s IMAGE -o OUT", word,
             word);
}

static pons_status go(start *s, pons_error *err)
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
    if (hold_lines(s, err) != PONS_OK || read_choices(s, err) != PONS_OK)
        return err->status;
    settings.observer = (trainer_observer){ s, on_begin, on_record, on_sync, on_check,
                                             on_devices, on_predicted, on_validated, on_stop,
                                             on_progress };
    trainer_run(s->experiment, &settings, err);
    train_view_close(s->view);
    s->view = NULL;
    if (err->status == PONS_OK)
        tell_done(s);
    return config_location_add(s->config, NULL, NULL, err);
}

/* Write the profile of a run unless it has failed. Threads that record have ended. */
static void write_profile(const start *s, bool trained, const pons_error *err)
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

/* End the files of a run that other programs read: metrics, devices and the report. */
static void end_records(start *s, const pons_error *err)
{
    if (s->metrics == NULL && s->reporter == NULL)
        return;
    profile_range_begin(RANGE_REPORT, range_kind_name(RANGE_REPORT));
    case_pictures_close(s->pictures);
    metrics_end(s->metrics, err->status);
    metrics_close(s->metrics);
    devices_file_close(s->devices);
    run_reporter_close(s->reporter, err->status == PONS_OK || err->status == PONS_INTERRUPTED);
    profile_range_end();
    s->metrics = NULL;
    s->devices = NULL;
    s->reporter = NULL;
    s->pictures = NULL;
}

static void close_start(start *s, bool trained, pons_error *err)
{
    if (s->profile != NULL)
        write_profile(s, trained, err);
    profile_free(s->profile);
    experiment_close(s->experiment);
    saved_state_clear(&s->saved);
    leave_other(s);
    run_folder_close(&s->folder, s->call->log);
    s->call->log->file = NULL;
    text_stream_close(&s->held);
    free(s->held.text);
    if (s->config != NULL)
        config_close(s->config);
    free(s->checkpoint);
    signals_close(s->signals);
}

/* The run that goes on knows the files of plugins that are not found. */
static void hint_plugins(const start *s, pons_error *err)
{
    char *path = err->status != PONS_OK && s->checkpoint != NULL ? find_resolved(s) : NULL;

    resolved_hint_plugins(path, err);
    free(path);
}

/* 'keep' is for folds that are trained one after the other, else NULL. */
static pons_status train_run(const invocation *call, const train_flags *flags_given,
                             const train_host *host, bool fold, cache_keep *keep, pons_error *err)
{
    start s = { .call = call, .flags = flags_given, .host = host, .fold = fold, .keep = keep,
                .folder = { NULL, NULL, -1, NULL }, .other = -1 };

    if (host == NULL && signals_open(end_before_first_step, &s, &s.signals, err) != PONS_OK)
        return err->status;
    if (prepare(&s, err) == PONS_OK && !s.launched)
        go(&s, err);
    hint_plugins(&s, err);
    memory_hints_add(s.experiment != NULL ? &s.experiment->sections
                     : s.config != NULL ? &s.sections : NULL, MEMORY_HINTS_TRAIN, err);
    bool trained = s.metrics != NULL;
    if (err->status == PONS_OK) /* others wait, and see that this rank lives */
        end_records(&s, err);
    leave_others(&s, err);
    if (err->status != PONS_OK && call->log->file != NULL)
        fprintf(call->log->file, "pons: %s\n", err->text);
    end_records(&s, err);
    close_start(&s, trained, err);
    return err->status;
}

pons_status command_train_hosted(const invocation *call, const train_flags *given,
                                 const train_host *host, pons_error *err)
{
    return train_run(call, given, host, false, NULL, err);
}

/* ---- folds ----------------------------------------------------------------------------------- */

static const char *look_up_environment(void *context, const char *name)
{
    return getenv(name);
}

/* Ranks of another launcher can join once, so they train one fold. */
static pons_status check_launcher(const fold_range *range, pons_error *err)
{
    rank_info place;

    if (range->end - range->first < 2
        || rank_info_find(look_up_environment, NULL, &place, err) != PONS_OK || place.size < 2)
        return err->status;
    return pons_fail(err, PONS_USAGE, "%d folds in one command, but a launcher has started %d "
                     "ranks (%s), expected --fold K\nhint: pons launch -- train FILE.ini --folds "
                     "%d starts ranks for each fold", range->count, place.size, place.origin,
                     range->count);
}

static pons_status train_fold(const invocation *call, const train_flags *f,
                              const fold_range *range, int fold, cache_keep *keep,
                              pons_error *err)
{
    fold_call one;

    if (train_fold_open(call, range, fold, &one, err) == PONS_OK) {
        train_fold_tell(range, fold, call->log);
        train_run(&one.call, f, NULL, true, keep, err);
    }
    train_fold_close(&one);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const train_flags *f = given;
    cache_keep *keep = NULL;
    fold_range range;

    broken_pipe_ignore();
    if (train_folds_find(call, f, &range, err) != PONS_OK
        || check_launcher(&range, err) != PONS_OK) {
        processes_refuse(err);
        return err->status;
    }
    if (range.count == 0)
        return train_run(call, f, NULL, false, NULL, err);
    if (range.end - range.first > 1)
        keep = cache_keep_new();
    for (int fold = range.first; fold < range.end && err->status == PONS_OK; fold++)
        train_fold(call, f, &range, fold, keep, err);
    cache_keep_free(keep);
    return err->status;
}

const command command_train = {
    "train", "train as the file says, or go on where a run stopped", "FILE.ini", flags,
    sizeof(train_flags), "", 1, 1, run
};
