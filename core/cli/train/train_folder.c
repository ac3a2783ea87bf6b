/*
 * train_folder.c - open the folder of a run, with its log, metrics and report (R31).
 */
#include "cli/train/train_internal.h"

#include <stdlib.h>

#include "base/arena.h"
#include "experiment/run_identity.h"
#include "experiment/tuning.h"
#include "report/sinks/network_boxes.h"

/* Rename a folder that has files but no checkpoint to resume from, or with --fresh any. */
static pons_status make_room(train_job *s, pons_error *err)
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
static pons_status identify(train_job *s, pons_error *err)
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
static void send_network(const train_job *s)
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

static pons_status open_report(train_job *s, const char *folder, pons_error *err)
{
    if (case_pictures_open(s->experiment, s->metrics, &s->pictures, err) != PONS_OK)
        return err->status;
    return s->sections.log.report
           ? run_reporter_open(folder, s->experiment, &s->reporter, err) : PONS_OK;
}

static pons_status open_folder(train_job *s, pons_error *err)
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
static void log_held(train_job *s)
{
    bool whole = text_stream_flush(&s->held);

    fputs(s->held.text, s->call->log->file);
    if (!whole)
        log_warning(s->call->log, "out of memory: log.txt lacks lines of the start");
    log_line(s->call->log, "run folder '%s'", s->folder.path);
}

/*
 * Open the folder once dataset and network are accepted. A refused one leaves the folder of an
 * earlier run unchanged. Signals are held meanwhile, so none meets a partly opened folder.
 */
pons_status train_begin_folder(void *context, pons_error *err)
{
    train_job *s = context;

    if (train_leave_checkpoint(s, err) != PONS_OK || !train_writes(s))
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

pons_status train_hold_lines(train_job *s, pons_error *err)
{
    if (!train_writes(s))
        return PONS_OK;
    if (!text_stream_open(&s->held))
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->call->log->file = s->held.to;
    return PONS_OK;
}
