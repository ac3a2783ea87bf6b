/*
 * train_observer.c - hand the events of a training to the files of its run, its view and its host.
 */
#include "cli/train/train_internal.h"

#include <string.h>

static pons_status on_record(void *context, const pons_record *record, pons_error *err)
{
    const train_job *s = context;

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
    const train_job *s = context;

    train_view_progress(s->view, p);
}

static void on_predicted(void *context, const scored_case *c)
{
    const train_job *s = context;

    run_reporter_draw(s->reporter, c);
    case_pictures_add(s->pictures, c);
    train_view_case(s->view);
}

static pons_status on_validated(void *context, const validated_cases *v, pons_error *err)
{
    const train_job *s = context;

    return case_pictures_send(s->pictures, v, err) == PONS_OK
           ? run_reporter_score(s->reporter, v, err) : err->status;
}

static bool on_stop(void *context)
{
    const train_host *h = ((const train_job *)context)->host;

    return h != NULL && h->stop(h->context);
}

static pons_status on_sync(void *context, pons_error *err)
{
    const train_job *s = context;

    return run_folder_check(&s->folder, err) == PONS_OK ? metrics_sync(s->metrics, err)
                                                        : err->status;
}

static pons_status on_check(void *context, pons_error *err)
{
    const train_job *s = context;

    return run_folder_check(&s->folder, err) == PONS_OK ? run_folder_check_files(&s->folder, err)
                                                        : err->status;
}

static pons_status on_devices(void *context, int count, const device_reading *reading,
                              pons_error *err)
{
    const train_job *s = context;

    train_view_devices(s->view, count, reading);
    return devices_file_write(s->devices, count, reading, err);
}

trainer_observer train_observer_of(train_job *s)
{
    return (trainer_observer){ s, train_begin_folder, on_record, on_sync, on_check, on_devices,
                               on_predicted, on_validated, on_stop, on_progress };
}
