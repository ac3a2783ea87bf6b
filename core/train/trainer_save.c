/*
 * trainer_save.c - a trainer's storage and state to a checkpoint and back.
 */
#include <config.h>

#include "train/trainer_parts.h"

#include "train/provenance.h"
#include "train/weights.h"

#include <stdlib.h>
#include <string.h>

/* The files of weights; the last one only with [train] ema_decay. */
static const struct {
    const char *name;
    unsigned group;
} files[] = {
    { "model.safetensors", WEIGHTS_MODEL },
    { "optimizer.safetensors", WEIGHTS_OPTIMIZER },
    { "ema.safetensors", WEIGHTS_EMA }
};
enum { FILE_COUNT = sizeof files / sizeof *files };

static int count_files(const experiment *e)
{
    return e->sections.train.ema_decay > 0 ? FILE_COUNT : FILE_COUNT - 1;
}

static weights_format format_of(const experiment *e)
{
    return (weights_format){ .flat = e->task.flat, .wide = e->device.wide };
}

static pons_status write_checkpoint(trainer *t, pons_error *err)
{
    int lists = count_files(t->experiment), made = 0;
    weights_format format = format_of(t->experiment);
    weights_list list[FILE_COUNT];
    checkpoint_file file[FILE_COUNT + 1];
    state_content content;
    provenance maker = { .count = 0 };

    t->state.applied = storage_applied(t->storage);
    if (state_content_make(&content, &t->state, t->experiment, err) != PONS_OK)
        return err->status;
    file[lists] = (checkpoint_file){ "trainer.safetensors", content.content };
    for (; made < lists; made++) {
        if (weights_list_make(&list[made], t->storage, files[made].group, &format, err) != PONS_OK)
            break;
        file[made] = (checkpoint_file){ files[made].name, list[made].content };
    }
    if (made == lists && provenance_make(t->experiment, &maker, err) == PONS_OK) {
        const checkpoint_content all = { lists + 1, maker.count, file, maker.fact };
        checkpoint_write(t->settings->checkpoints, t->state.step, &all, err);
    }
    provenance_clear(&maker);
    while (made-- > 0)
        weights_list_clear(&list[made]);
    state_content_clear(&content);
    return err->status;
}

/* All of a state but how far the run is to go, which may change before its next step. */
static bool is_kept(const trainer *t)
{
    trainer_state kept = t->kept;

    kept.total = t->state.total;
    kept.applied = t->state.applied; /* a function of the step; read from the storage to be saved */
    return memcmp(&kept, &t->state, sizeof kept) == 0;
}

static pons_status save(trainer *t, pons_error *err)
{
    const char *folder = t->settings->checkpoints;

    if (!is_kept(t)) {
        if (t->settings->observer.sync(t->settings->observer.context, err) != PONS_OK
            || write_checkpoint(t, err) != PONS_OK)
            return err->status;
        t->kept = t->state;
    }
    if (checkpoint_mark(folder, "last", t->state.step, err) != PONS_OK)
        return err->status;
    if (t->state.best_step == t->state.step && t->state.step > 0
        && checkpoint_mark(folder, "best", t->state.step, err) != PONS_OK)
        return err->status;
    return checkpoint_prune(folder, (int)t->experiment->sections.train.keep, err);
}

pons_status trainer_save(trainer *t, pons_error *err)
{
    interrupt_enter(t->settings->interrupt);
    save(t, err);
    interrupt_leave(t->settings->interrupt);
    return err->status;
}

void trainer_save_and_end(void *context)
{
    trainer *t = context;
    pons_error problem = PONS_ERROR_INIT;

    if (save(t, &problem) != PONS_OK)
        log_line(t->experiment->log, "error: %s", problem.text);
    else
        log_line(t->experiment->log, "interrupted; step %lld was given up, step %lld is saved",
                 (long long)t->state.step + 1, (long long)t->state.step);
}

static pons_status load_checkpoint(trainer *t, const char *folder, pons_error *err)
{
    int count = count_files(t->experiment);
    weights_format format = format_of(t->experiment);

    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, files[i].name) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        weights_read_file(t->storage, files[i].group, path, &format, err);
        free(path);
        if (err->status != PONS_OK)
            return err->status;
    }
    t->state = *t->settings->saved;
    if (t->settings->own)
        t->kept = t->state;
    storage_set_applied(t->storage, t->state.applied);
    return PONS_OK;
}

pons_status trainer_load(trainer *t, pons_error *err)
{
    const char *pretrained = t->experiment->sections.train.pretrained;
    weights_format format = format_of(t->experiment);

    if (t->settings->resume != NULL)
        return load_checkpoint(t, t->settings->resume, err);
    if (pretrained == NULL || pretrained[0] == '\0')
        return PONS_OK;
    return weights_read_file(t->storage, WEIGHTS_MODEL, pretrained, &format, err);
}
