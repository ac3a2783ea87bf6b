/*
 * checkpoint_contents.c - the builder of a checkpoint's contents. The folder and its protocol are
 * checkpoint.c's, names and axes of tensors tensor_names.c's.
 */
#include "train/checkpoint_contents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/text/text_stream.h"
#include "base/whole.h"
#include "checkpoint/weights/weights_file.h"
#include "checkpoint/weights/weights_path.h"
#include "graph/ir/shape.h"
#include "replica/head_tensors.h"

/* ---- weights --------------------------------------------------------------------------------- */

static const contents_weights weights_files[CONTENTS_WEIGHTS_MAX] = {
    { "model.safetensors", WEIGHTS_MODEL },
    { "optimizer.safetensors", WEIGHTS_OPTIMIZER },
    { "ema.safetensors", WEIGHTS_EMA }
};

const contents_weights *checkpoint_contents_weights(const experiment *e, int index)
{
    int count = e->sections.train.ema_decay > 0 ? CONTENTS_WEIGHTS_MAX : CONTENTS_WEIGHTS_MAX - 1;

    return index < count ? &weights_files[index] : NULL;
}

tensor_format checkpoint_contents_format(const experiment *e)
{
    return (tensor_format){ .flat = e->task.flat, .wide = e->device.wide };
}

static pons_status list_weights(checkpoint_contents *c, const experiment *e, const storage *s,
                                pons_error *err)
{
    tensor_format format = checkpoint_contents_format(e);
    const contents_weights *file;

    for (int i = 0; (file = checkpoint_contents_weights(e, i)) != NULL; i++, c->weights_count++) {
        if (tensor_names_list_make(&c->weights[i], s, file->groups, &format, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static size_t weights_size(const checkpoint_contents *c)
{
    size_t size = 0;

    for (int i = 0; i < c->weights_count; i++)
        size += tensor_names_list_size(&c->weights[i]);
    return size;
}

static void hold_memory(checkpoint_contents *c, size_t size)
{
    if (size <= c->size)
        return;
    free(c->memory);
    c->memory = huge_pages_alloc(size);
    c->size = c->memory != NULL ? size : 0;
}

static pons_status copy_weights(checkpoint_contents *c, pons_error *err)
{
    size_t size = weights_size(c);
    char *at;

    hold_memory(c, size);
    if (c->memory == NULL && size > 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint's copy of %zu bytes",
                         size);
    at = c->memory;
    for (int i = 0; i < c->weights_count; i++) {
        tensor_names_list_copy(&c->weights[i], at);
        at += tensor_names_list_size(&c->weights[i]);
    }
    return PONS_OK;
}

/* ---- trainer.safetensors --------------------------------------------------------------------- */

/* The update section counts on the device (R9). */
static void read_counters(const storage *s, trainer_state *state)
{
    state->applied = whole_within(storage_get(s, STORAGE_APPLIED), 0, INT64_C(1) << 53);
    state->scale = ilogb(storage_get(s, STORAGE_SCALE));
    state->sound = whole_within(storage_get(s, STORAGE_FINITE_STEPS), 0, INT64_C(1) << 53);
}

/* Zero-terminated texts one behind the other: key, value, key, value, ... */
static int put_metadata(FILE *to, const experiment *e)
{
    int pairs = 1;

    fprintf(to, "precision%c%s%c", 0, precision_name(e->precision), 0);
    if (e->debug)
        pairs += fprintf(to, SAVED_STATE_DEBUG "%cyes%c", 0, 0) > 0;
    for (int role = 0; role < CASE_ROLE_COUNT; role++, pairs++)
        fprintf(to, "%s%c%s%c", case_role_names[role], 0, e->cases.text[role], 0);
    for (int i = 0; i < config_count(e->config); i++, pairs++) {
        const char *section, *key, *value;
        config_item(e->config, i, &section, &key, &value);
        fprintf(to, "[%s] %s%c%s%c", section, key, 0, value, 0);
    }
    return pairs;
}

static pons_status make_metadata(checkpoint_contents *c, const experiment *e, int *count,
                                 pons_error *err)
{
    text_stream s;
    const char *at;

    if (text_stream_open(&s))
        *count = put_metadata(s.to, e);
    if (!text_stream_close(&s))
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    c->text = s.text;
    c->pair = calloc((size_t)*count, sizeof *c->pair);
    if (c->pair == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    at = c->text;
    for (int i = 0; i < 2 * *count; i++) {
        c->pair[i / 2][i % 2] = at;
        at += strlen(at) + 1;
    }
    return PONS_OK;
}

static pons_status list_state(checkpoint_contents *c, const experiment *e,
                              safetensors_content *out, pons_error *err)
{
    int count = 0;

    c->choices[0] = e->micro_batches;
    c->choices[1] = e->device.facts.threads;
    c->choices[2] = e->task.channels;
    saved_state_tensors(&c->state, c->choices, c->number);
    if (make_metadata(c, e, &count, err) == PONS_OK)
        *out = (safetensors_content){
            .count = SAVED_TENSORS, .item = c->number,
            .metadata_count = count, .metadata = (const char *const (*)[2])c->pair };
    return err->status;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* The memory of the weights stays: the next contents take it. */
static void release_list(checkpoint_contents *c)
{
    while (c->weights_count > 0)
        tensor_names_list_clear(&c->weights[--c->weights_count]);
    free(c->text);
    free(c->pair);
    provenance_clear(&c->maker);
    c->text = NULL;
    c->pair = NULL;
    c->list = (checkpoint_list){ .file_count = 0 };
}

void checkpoint_contents_reserve(checkpoint_contents *c, const experiment *e, const storage *s)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (list_weights(c, e, s, &ignored) == PONS_OK)
        hold_memory(c, weights_size(c));
    release_list(c);
}

void checkpoint_contents_touch(checkpoint_contents *c)
{
    if (c->memory != NULL)
        memset(c->memory, 0, c->size);
}

static pons_status list_files(checkpoint_contents *c, const experiment *e, const storage *s,
                              pons_error *err)
{
    int n = 0;

    if (list_weights(c, e, s, err) != PONS_OK || copy_weights(c, err) != PONS_OK)
        return err->status;
    for (; n < c->weights_count; n++)
        c->file[n] = (checkpoint_file){ weights_files[n].name, c->weights[n].content };
    c->file[n].name = SAVED_STATE_FILE;
    return list_state(c, e, &c->file[n].content, err);
}

pons_status checkpoint_contents_make(checkpoint_contents *c, const experiment *e, const storage *s,
                                     const trainer_state *state, pons_error *err)
{
    release_list(c);
    if (storage_fetch(s, err) != PONS_OK)
        return err->status;
    c->state = *state;
    read_counters(s, &c->state);
    if (list_files(c, e, s, err) != PONS_OK || provenance_make(e, &c->maker, err) != PONS_OK) {
        release_list(c);
        return err->status;
    }
    c->list = (checkpoint_list){
        .file_count = c->weights_count + 1, .file = c->file,
        .fact_count = c->maker.count, .fact = c->maker.fact,
        .resolved = config_written_hash(e->config), .run = e->run, .geometry = e->geometry
    };
    return PONS_OK;
}

pons_status checkpoint_contents_check(const checkpoint_contents *c, pons_error *err)
{
    for (int i = 0; i < c->weights_count; i++) {
        const char *name = tensor_names_list_nonfinite(&c->weights[i]);
        if (name != NULL)
            return pons_fail(err, PONS_FAILURE, "step %lld is not saved: tensor '%s' of %s is not "
                             "finite\nhint: the checkpoint before it is complete",
                             (long long)c->state.step, name, c->file[i].name);
    }
    return PONS_OK;
}

void checkpoint_contents_clear(checkpoint_contents *c)
{
    release_list(c);
    free(c->memory);
    *c = (checkpoint_contents){ .memory = NULL };
}

double checkpoint_contents_size(const experiment *e, const storage *s)
{
    double size = 0, largest = 0, real = e->device.wide ? sizeof(double) : sizeof(float);
    const contents_weights *file;
    int files = 0;

    for (; (file = checkpoint_contents_weights(e, files)) != NULL; files++) {
        for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
            if ((file->groups >> group & 1) == 0)
                continue;
            for (int i = 0; i < storage_count(s, (storage_group)group); i++) {
                double count = (double)shape_count(storage_item(s, (storage_group)group, i).shape);
                size += real * count;
                largest = count > largest ? count : largest;
            }
        }
    }
    /* Kernels change the order of their axes on the way to a file, each list in its own buffer. */
    return size + files * sizeof(float) * largest;
}

/* Say which tensors of the network start anew. */
static void tell_skipped(const experiment *e, const char *file, const char *const *skip)
{
    for (int i = 0; skip != NULL && skip[i] != NULL; i++)
        log_line(e->log, "not taken from '%.1000s', drawn anew: %.200s", file, skip[i]);
}

/* Whether a file that could not be read is of the network but for its head. */
static bool is_of_another_head(const experiment *e, storage *s, arena *a, const char *file)
{
    tensor_format format = checkpoint_contents_format(e);
    pons_error ignored = PONS_ERROR_INIT;

    return head_tensors_list(e, a, &format.skip, &ignored) == PONS_OK
        && weights_file_read(s, WEIGHTS_MODEL, file, &format, &ignored) == PONS_OK;
}

/* Read a file's weights; a hint tells that all but the head fit. */
static pons_status read_pretrained(const experiment *e, storage *s, arena *a, const char *file,
                                   const char *const *skip, pons_error *err)
{
    tensor_format format = checkpoint_contents_format(e);
    pons_error problem = PONS_ERROR_INIT;

    format.skip = skip;
    if (weights_file_read(s, WEIGHTS_MODEL, file, &format, &problem) == PONS_OK)
        return PONS_OK;
    bool hint = problem.status == PONS_CONFIG && skip == NULL && is_of_another_head(e, s, a, file);
    return pons_fail(err, problem.status, "%s%s", problem.text, hint
                     ? "\nhint: [train] pretrained_skip = head draws the last convolutions anew, "
                       "for another number of classes" : "");
}

static pons_status load_pretrained(const experiment *e, storage *s, arena *a, pons_error *err)
{
    const char *const *skip = NULL;
    char *file = NULL;

    if (weights_path_find(e->sections.train.pretrained, &file, err) == PONS_OK
        && (e->sections.train.pretrained_skip != PRETRAINED_SKIP_HEAD
            || head_tensors_list(e, a, &skip, err) == PONS_OK)
        && read_pretrained(e, s, a, file, skip, err) == PONS_OK)
        tell_skipped(e, file, skip);
    free(file);
    return err->status;
}

pons_status checkpoint_contents_load_pretrained(const experiment *e, storage *s, pons_error *err)
{
    const char *given = e->sections.train.pretrained;
    pons_error problem = PONS_ERROR_INIT;
    arena *a;

    if (given == NULL || given[0] == '\0')
        return PONS_OK;
    a = arena_new();
    if (a == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (load_pretrained(e, s, a, &problem) != PONS_OK)
        pons_fail(err, problem.status, "[train] pretrained: %s", problem.text);
    arena_free(a);
    return err->status;
}
