/*
 * snapshot.c - what goes into it. The write protocol is checkpoint.c's, the thread worker.c's.
 */
#include "train/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "graph/ir/shape.h"

static const struct {
    const char *name;
    unsigned groups;
} files[SNAPSHOT_LISTS_MAX] = {
    { "model.safetensors", WEIGHTS_MODEL },
    { "optimizer.safetensors", WEIGHTS_OPTIMIZER },
    { "ema.safetensors", WEIGHTS_EMA }
};

int snapshot_list_count(const experiment *e)
{
    return e->sections.train.ema_decay > 0 ? SNAPSHOT_LISTS_MAX : SNAPSHOT_LISTS_MAX - 1;
}

const char *snapshot_list_file(int index)
{
    return files[index].name;
}

unsigned snapshot_list_groups(int index)
{
    return files[index].groups;
}

weights_format snapshot_format(const experiment *e)
{
    return (weights_format){ .flat = e->task.flat, .wide = e->device.wide };
}

/* Everything but the memory, which the next one takes. */
static void release_lists(snapshot *s)
{
    while (s->list_count > 0)
        weights_list_clear(&s->list[--s->list_count]);
    state_content_clear(&s->state);
    provenance_clear(&s->maker);
}

static pons_status make_lists(snapshot *s, const experiment *e, const storage *from,
                              pons_error *err)
{
    weights_format format = snapshot_format(e);

    for (int i = 0; i < snapshot_list_count(e); i++, s->list_count++) {
        if (weights_list_make(&s->list[i], from, files[i].groups, &format, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static size_t lists_size(const snapshot *s)
{
    size_t size = 0;

    for (int i = 0; i < s->list_count; i++)
        size += weights_list_size(&s->list[i]);
    return size;
}

static void hold_memory(snapshot *s, size_t size)
{
    if (size <= s->size)
        return;
    free(s->memory);
    s->memory = pages_alloc(size);
    s->size = s->memory != NULL ? size : 0;
}

void snapshot_reserve(snapshot *out, const experiment *e, const storage *s)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (make_lists(out, e, s, &ignored) == PONS_OK)
        hold_memory(out, lists_size(out));
    release_lists(out);
}

void snapshot_touch(snapshot *s)
{
    if (s->memory != NULL)
        memset(s->memory, 0, s->size);
}

static pons_status copy_lists(snapshot *s, pons_error *err)
{
    size_t size = lists_size(s);
    char *at;

    hold_memory(s, size);
    if (s->memory == NULL && size > 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint's copy of %zu bytes",
                         size);
    at = s->memory;
    for (int i = 0; i < s->list_count; i++) {
        weights_list_detach(&s->list[i], at);
        at += weights_list_size(&s->list[i]);
    }
    return PONS_OK;
}

pons_status snapshot_take(snapshot *out, const experiment *e, const storage *s,
                          const trainer_state *state, pons_error *err)
{
    release_lists(out);
    out->resolved = config_written(e->config);
    if (make_lists(out, e, s, err) != PONS_OK || copy_lists(out, err) != PONS_OK
        || state_content_make(&out->state, state, e, err) != PONS_OK
        || provenance_make(e, &out->maker, err) != PONS_OK)
        release_lists(out);
    out->run = e->run;
    out->geometry = e->geometry;
    return err->status;
}

/* An update sees what it leaves; here is what was damaged since. */
static pons_status check_finite(const snapshot *s, pons_error *err)
{
    for (int i = 0; i < s->list_count; i++) {
        const char *name = weights_list_nonfinite(&s->list[i]);
        if (name != NULL)
            return pons_fail(err, PONS_FAILURE, "step %lld is not saved: tensor '%s' of %s is not "
                             "finite\nhint: the checkpoint before it is complete",
                             (long long)s->state.state.step, name, files[i].name);
    }
    return PONS_OK;
}

pons_status snapshot_write(const snapshot *s, const char *folder, pons_error *err)
{
    checkpoint_file file[SNAPSHOT_LISTS_MAX + 1];
    const checkpoint_content all = { s->list_count + 1, s->maker.count, file, s->maker.fact,
                                     s->resolved, s->run, s->geometry };

    if (check_finite(s, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < s->list_count; i++)
        file[i] = (checkpoint_file){ files[i].name, s->list[i].content };
    file[s->list_count] = (checkpoint_file){ "trainer.safetensors", s->state.content };
    return checkpoint_write(folder, s->state.state.step, &all, err);
}

void snapshot_clear(snapshot *s)
{
    release_lists(s);
    free(s->memory);
    *s = (snapshot){ .memory = NULL };
}

double snapshot_size(const experiment *e, const storage *s)
{
    double size = 0, largest = 0, real = e->device.wide ? sizeof(double) : sizeof(float);

    for (int file = 0; file < snapshot_list_count(e); file++) {
        for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
            if ((files[file].groups >> group & 1) == 0)
                continue;
            for (int i = 0; i < storage_count(s, (storage_group)group); i++) {
                double count = (double)shape_count(storage_item(s, (storage_group)group, i).shape);
                size += real * count;
                largest = count > largest ? count : largest;
            }
        }
    }
    /* Kernels change the order of their axes on the way to a file, each list in its own buffer. */
    return size + snapshot_list_count(e) * sizeof(float) * largest;
}
