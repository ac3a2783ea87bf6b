/*
 * command_train.c - pons train: which run this is, whether it goes on, and its folder (R31).
 *
 * Of several processes rank 0 alone looks at the folder and writes it; the others hear from it what
 * they need to know.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/broken_pipe.h"
#include "base/text/shell_word.h"
#include "cli/command.h"
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
#include "report/metrics.h"
#include "report/run_folder.h"
#include "train/trainer.h"

typedef struct train_flags {
    bool fresh;
    const char *resume;
} train_flags;

static const pons_option flags[] = {
    PONS_FLAG(train_flags, fresh, no,
              "Start anew; the earlier run's folder becomes NAME.1, NAME.2, ..."),
    PONS_TEXT(train_flags, resume, "",
              "Go on from another run's folder or checkpoint, with its options."),
    PONS_OPTIONS_END
};

/* A run that is being started. */
typedef struct start {
    const invocation *call;
    const train_flags *flags;
    config *config;
    sections sections;
    run_folder folder;
    char *checkpoint;       /* to go on from, or NULL                                             */
    bool own;               /* it lies in this run's folder                                       */
    int other;              /* lock of the run it lies in, while it is read; -1: none             */
    saved_state saved;
    processes processes;
    experiment *experiment;
    metrics *metrics;
    devices_file *devices;
    FILE *held;             /* what is logged before there is a log.txt                           */
    char *held_text;
    size_t held_size;
    interrupt *interrupt;
    bool joined;            /* 'processes' has a group; changed between the interrupt's enter and */
                            /* leave                                                              */
    bool launched;          /* the ranks have done it all                                         */
} start;

/* ---- where to go on from --------------------------------------------------------------------- */

/* A checkpoint, NAME/checkpoints/STEP; elsewhere nobody minds what is locked. */
static pons_status take_checkpoint(start *s, const char *path, pons_error *err)
{
    char *run = NULL;

    if (asprintf(&run, "%s/../..", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (run_folder_read(&s->folder, run, &s->other, err) == PONS_OK
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
    if (run_folder_read(&s->folder, path, &s->other, err) == PONS_OK)
        checkpoint_newest(folder, s->call->log, &s->checkpoint, err);
    free(folder);
    return err->status;
}

static pons_status find_other(start *s, pons_error *err)
{
    const char *path = s->flags->resume;
    char *manifest = NULL;
    bool checkpoint;

    if (asprintf(&manifest, "%s/manifest.json", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    checkpoint = access(manifest, F_OK) == 0;
    free(manifest);
    if ((checkpoint ? take_checkpoint(s, path, err) : take_newest(s, path, err)) != PONS_OK)
        return err->status;
    if (s->checkpoint == NULL)
        return pons_fail(err, PONS_CONFIG, "--resume: '%s' is neither a run with checkpoints nor a "
                         "checkpoint", path);
    return PONS_OK;
}

/* It has been read, or is not needed. */
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
    /* Nothing of a run is read that another process may still write. */
    if (run_folder_hold(&s->folder, err) != PONS_OK || s->flags->fresh
        || checkpoint_check_marks(s->folder.checkpoints, err) != PONS_OK)
        return err->status;
    if (checkpoint_newest(s->folder.checkpoints, s->call->log, &s->checkpoint, err) != PONS_OK)
        return err->status;
    s->own = s->checkpoint != NULL;
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

/* 'mode = ddp' without a launcher: this process becomes one. */
static pons_status become_launcher(start *s, pons_error *err)
{
    interrupt_close(s->interrupt); /* the signals are the launcher's */
    s->interrupt = NULL;
    s->launched = true;
    return launch_same(s->call, err);
}

static void set_joined(start *s, bool joined)
{
    interrupt_enter(s->interrupt);
    s->joined = joined;
    interrupt_leave(s->interrupt);
}

static pons_status join_others(start *s, pons_error *err)
{
    if (processes_open(s->config, &s->sections, s->call->log, &s->processes, err) == PONS_OK)
        set_joined(s, s->processes.group != NULL);
    return err->status;
}

/* All have agreed on an interruption: it is no failure. */
static void leave_others(start *s, const pons_error *err)
{
    static const pons_error none = PONS_ERROR_INIT;

    set_joined(s, false);
    processes_close(&s->processes, err->status == PONS_INTERRUPTED ? &none : err);
}

/* What all processes need to know of the checkpoint that rank 0 has found. */
typedef struct choice {
    int64_t threads, precision;
} choice;

static pons_status share_choice(start *s, experiment_known *known, pons_error *err)
{
    choice c = { s->saved.threads, s->saved.precision };

    if (s->processes.group != NULL
        && group_broadcast(s->processes.group, &c, sizeof c, 0, err) != PONS_OK)
        return err->status;
    known->threads = (int)c.threads;
    known->precision = (precision)c.precision;
    return PONS_OK;
}

/* Whether nothing is left to do. */
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

    return s->metrics != NULL ? metrics_write(s->metrics, record, err) : PONS_OK;
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

    return devices_file_write(s->devices, count, reading, err);
}

/* ---- an edited resolved.ini ------------------------------------------------------------------ */

/* The file of the run that is read, malloc'ed; NULL for another run's that is not there. */
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

/* Warn that the file is not what the checkpoint's run wrote; 'outcome' says what becomes of it. */
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

/* A run with --debug has few cases: it is none that another may go on from. */
static pons_status name_folder(start *s, pons_error *err)
{
    const experiment_options *e = &s->sections.experiment;
    char *name = NULL;

    if (asprintf(&name, "%s%s", e->name, s->call->debug ? "-debug" : "") < 0)
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
        return config_blame(s->config, NULL, NULL, err);
    return name_folder(s, err);
}

/* The words of a command that takes the weights of the checkpoint; "" where there is none. */
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

/* Append the hint to the error of a run that cannot go on as asked. */
static pons_status add_way_out(const start *s, pons_error *err)
{
    size_t used = strlen(err->text), room = sizeof err->text - used;
    pons_error hint = PONS_ERROR_INIT;
    char word[sizeof err->text];

    if (err->status != PONS_CONFIG || strstr(err->text, "\nhint: ") != NULL)
        return err->status;
    if (s->own)
        pons_fail(&hint, PONS_CONFIG, "hint: --fresh starts anew, another [experiment] name keeps "
                  "both");
    else if (set_pretrained(s, word, sizeof word)[0] != '\0')
        pons_fail(&hint, PONS_CONFIG, "hint: --resume takes these values as they were; in its "
                  "place --set %s begins anew with the weights of the same network", word);
    if (hint.status != PONS_OK)
        snprintf(err->text + used, room, "\n%s", hint.text);
    return err->status;
}

static pons_status prepare(start *s, pons_error *err)
{
    experiment_known known = { .processes = &s->processes, .debug = s->call->debug };
    int wanted = 0;

    if (read_file(s, err) != PONS_OK
        || processes_wanted(s->config, &s->sections, &wanted, err) != PONS_OK) {
        processes_refuse(err);
        return err->status;
    }
    if (wanted > 0)
        return become_launcher(s, err);
    if (join_others(s, err) != PONS_OK || (writes(s) && find_checkpoint(s, err) != PONS_OK)
        || (s->checkpoint != NULL && saved_state_read(s->checkpoint, &s->saved, err) != PONS_OK)
        || share_choice(s, &known, err) != PONS_OK)
        return err->status;
    if (experiment_open(s->config, EXPERIMENT_TRAIN, &known, s->call->log, &s->experiment, err)
        != PONS_OK)
        return err->status;
    if (s->checkpoint != NULL)
        resume_compare(&s->saved, s->experiment, err);
    return s->checkpoint != NULL && s->experiment != NULL ? add_way_out(s, err) : err->status;
}

/* What a run without a checkpoint has left, or somebody else, is kept under another name. */
static pons_status make_room(start *s, pons_error *err)
{
    const char *found = s->own ? NULL : run_folder_found(&s->folder);

    if (found != NULL && !s->flags->fresh)
        log_warning(s->call->log, "'%s' holds '%s' but no checkpoint to go on from",
                    s->folder.path, found);
    if (found != NULL || s->flags->fresh)
        run_folder_retire(&s->folder, s->call->log, err);
    return err->status;
}

/* A run that goes on keeps its identity, one that begins draws it. */
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
        config_remark(s->config, line);
    return PONS_OK;
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
        && run_folder_take(&s->folder, err) == PONS_OK
        && run_folder_log(&s->folder, s->call->log, err) == PONS_OK
        && metrics_open(s->folder.path, keep, s->experiment, &s->metrics, err) == PONS_OK
        && (s->sections.log.device_every == 0
            || devices_file_open(s->folder.path, keep.step, s->call->log, &s->devices, err)
               == PONS_OK))
        config_write(s->config, resolved, err);
    free(resolved);
    return err->status;
}

/* Lines that came before the folder was opened belong into its log.txt too. */
static void log_held(start *s)
{
    fflush(s->held);
    if (s->held_text != NULL)
        fputs(s->held_text, s->call->log->file);
    log_line(s->call->log, "run folder '%s'", s->folder.path);
}

/* The checkpoint with the cases and the network, which are there now; then it is not read again. */
static pons_status leave_checkpoint(start *s, pons_error *err)
{
    if (s->checkpoint != NULL) {
        resume_keep(&s->saved, s->experiment);
        provenance_compare(s->checkpoint, s->experiment, s->call->log, err);
        if (add_way_out(s, err) == PONS_OK)
            compare_resolved(s, s->own ? "it is written anew"
                                       : "this run's values come from its own INI file");
    }
    leave_other(s);
    return err->status;
}

/*
 * A dataset or a network that is refused leaves the folder of an earlier run as it was. A signal
 * finds the folder opened or not yet, nothing between.
 */
static pons_status on_begin(void *context, pons_error *err)
{
    start *s = context;

    if (leave_checkpoint(s, err) != PONS_OK || !writes(s))
        return err->status;
    interrupt_enter(s->interrupt);
    if (open_folder(s, err) == PONS_OK
        && tuning_write(s->experiment->tuning, s->folder.path, err) == PONS_OK)
        log_held(s);
    interrupt_leave(s->interrupt);
    return err->status;
}

/* From the interrupt's thread, which ends the process: there is nothing to save yet. */
static pons_status end_before_first_step(void *context)
{
    static const char line[] = "interrupted before the first step; start it again";
    const start *s = context;
    logger terminal = *s->call->log;
    board_seat *seat = board_sit(getenv(BOARD_VARIABLE));
    pons_error cause = PONS_ERROR_INIT;

    terminal.file = NULL;
    board_end(seat, PONS_INTERRUPTED, line);
    if (seat == NULL)
        log_error(&terminal, line);
    if (s->joined) {
        pons_fail(&cause, PONS_INTERRUPTED, "rank %d was %s", group_rank(s->processes.group), line);
        group_leave(s->processes.group, &cause);
        group_wait_heard(s->processes.group, GROUP_HEARD_S);
    }
    return PONS_INTERRUPTED;
}

/* Lines are held for a log.txt that there is not yet. */
static pons_status hold_lines(start *s, pons_error *err)
{
    if (!writes(s))
        return PONS_OK;
    s->held = open_memstream(&s->held_text, &s->held_size);
    if (s->held == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->call->log->file = s->held;
    return PONS_OK;
}

/* What the run to go on with has chosen by timing. */
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

/* Nothing is left to do, or nothing of the few steps of --debug. */
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

static pons_status go(start *s, pons_error *err)
{
    logger *l = s->call->log;
    bool finished;
    trainer_settings settings = {
        .checkpoints = s->folder.checkpoints, .resume = s->checkpoint, .saved = &s->saved.state,
        .own = s->own, .interrupt = s->interrupt, .debug = s->call->debug
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
                                             on_devices };
    if (trainer_run(s->experiment, &settings, err) == PONS_OK)
        log_line(l, "done: '%s'", s->folder.path);
    return config_blame(s->config, NULL, NULL, err);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    start s = { .call = call, .flags = given, .folder = { NULL, NULL, -1, NULL },
                .other = -1 };

    broken_pipe_ignore();
    if (interrupt_open(end_before_first_step, &s, &s.interrupt, err) != PONS_OK)
        return err->status;
    if (prepare(&s, err) == PONS_OK && !s.launched)
        go(&s, err);
    shortage_hint(s.experiment != NULL ? &s.experiment->sections
                  : s.config != NULL ? &s.sections : NULL, SHORTAGE_TRAIN, err);
    leave_others(&s, err);
    if (err->status != PONS_OK && call->log->file != NULL)
        fprintf(call->log->file, "pons: %s\n", err->text);
    metrics_close(s.metrics);
    devices_file_close(s.devices);
    experiment_close(s.experiment);
    saved_state_clear(&s.saved);
    leave_other(&s);
    run_folder_close(&s.folder, call->log);
    call->log->file = NULL;
    if (s.held != NULL)
        fclose(s.held);
    free(s.held_text);
    if (s.config != NULL)
        config_close(s.config);
    free(s.checkpoint);
    interrupt_close(s.interrupt);
    return err->status;
}

const command command_train = {
    "train", "train as the file says, or go on where a run stopped", "FILE.ini", flags,
    sizeof(train_flags), "", 1, 1, run
};
