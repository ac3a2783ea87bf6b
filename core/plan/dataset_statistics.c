/*
 * dataset_statistics.c - read every case once, and keep its geometry, the quantiles of its
 * foreground and the volumes of its classes.
 *
 * A thread holds one case at a time. The kept quantiles of all cases share a fixed number of values
 * per channel.
 */
#include "plan/dataset_statistics.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/progress.h"
#include "base/thread/parallel.h"
#include "data/case/case_read.h"
#include "data/volume/geometry.h"
#include "plan/case_scan.h"
#include "plan/percentile.h"

/* Values kept of a channel in all cases, and the least and most of one case. */
enum { VALUES_TOTAL = 1 << 22, VALUES_MIN = 1 << 10, VALUES_MAX = 1 << 16 };

/* The shared state of the threads that read. */
typedef struct survey {
    const dataset *data;
    int channels, class_count;
    int64_t limit;             /* values kept of a case and channel                               */
    case_statistics *cases;    /* [case]                                                          */
    int (*world)[3];           /* [case] axis of RAS along which each axis of the file runs       */
    int64_t *class_voxels;     /* [case][class_count]                                             */
    intensity_sample *sample;  /* [case][channels]                                                */
    _Atomic int done;
    _Atomic int failed;        /* lowest rank of a case that failed; case_count: none             */
    pthread_mutex_t lock;      /* of 'error'                                                      */
    pons_error error;          /* of case 'failed'                                                */
    pthread_t owner;           /* the thread that may use 'log'                                   */
    case_progress progress;    /* of the owner                                                    */
    logger *log;
} survey;

/* ---- one case -------------------------------------------------------------------------------- */

/* Widen the box [low, high) by a voxel. */
static void widen(int64_t low[3], int64_t high[3], const int64_t at[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = min_i64(low[a], at[a]);
        high[a] = max_i64(high[a], at[a] + 1);
    }
}

/* The extent of the box of voxels other than 0; the whole extent if there are none. */
static void find_cropped(const pons_volume *image, int64_t cropped[3])
{
    const int64_t *n = image->extent;
    int64_t low[3] = { n[0], n[1], n[2] }, high[3] = { 0 }, row = n[2] * image->channels;
    const float *x = image->voxels;

    for (int64_t i = 0; i < n[0]; i++) {
        for (int64_t j = 0; j < n[1]; j++, x += row) {
            int64_t first = 0, last = row - 1;
            while (first < row && x[first] == 0)
                first++;
            if (first == row)
                continue;
            while (x[last] == 0)
                last--;
            widen(low, high, (const int64_t[]){ i, j, first / image->channels });
            widen(low, high, (const int64_t[]){ i, j, last / image->channels });
        }
    }
    for (int a = 0; a < 3; a++)
        cropped[a] = high[0] > 0 ? high[a] - low[a] : n[a];
}

/* Count 'voxels' of one target in its classes or regions; whether they are foreground. */
static bool count_classes(const survey *s, const uint8_t *target, int64_t voxels,
                          int64_t *class_voxels)
{
    bool found = false;

    if (s->data->region_count == 0) {
        if (target[0] < s->class_count)
            class_voxels[target[0]] += voxels;
        return target[0] != 0;
    }
    for (int c = 0; c < s->class_count; c++) {
        class_voxels[c] += target[c] != 0 ? voxels : 0;
        found = found || target[c] != 0;
    }
    return found;
}

/* The end of the run of voxels that have the target of voxel 'begin'. */
static int64_t run_end(const pons_volume *label, int64_t begin, int64_t count)
{
    size_t size = (size_t)label->channels;
    const uint8_t *target = (const uint8_t *)label->voxels + (size_t)begin * size, *x = target;
    int64_t end = begin;

    while (end < count && (size == 1 ? *x == *target : memcmp(x, target, size) == 0)) {
        x += size;
        end++;
    }
    return end;
}

/* A list of voxels; 'item' is malloc'ed. */
typedef struct voxel_list {
    int64_t *item, count, room;
} voxel_list;

static bool append_run(voxel_list *l, int64_t begin, int64_t end)
{
    if (l->count + end - begin > l->room) {
        int64_t room = 2 * l->room + (end - begin) + 4096;
        int64_t *more = realloc(l->item, (size_t)room * sizeof *more);
        if (more == NULL)
            return false;
        l->item = more;
        l->room = room;
    }
    for (int64_t voxel = begin; voxel < end; voxel++)
        l->item[l->count++] = voxel;
    return true;
}

/* List the foreground voxels, and count those of each class; false: out of memory. */
static bool list_foreground(const survey *s, const pons_volume *label, int64_t *class_voxels,
                            voxel_list *out)
{
    int64_t count = label->voxels != NULL ? pons_volume_count(label) : 0;

    for (int64_t begin = 0, end; begin < count; begin = end) {
        const uint8_t *target = (const uint8_t *)label->voxels + begin * label->channels;
        end = run_end(label, begin, count);
        if (count_classes(s, target, end - begin, class_voxels) && !append_run(out, begin, end))
            return false;
    }
    return true;
}

static pons_status sample_channel(const survey *s, const pons_case *c, const voxel_list *list,
                                  int channel, intensity_sample *out, pons_error *err)
{
    const float *x = c->image.voxels;
    float *values = malloc(((size_t)list->count + 1) * sizeof *values);
    pons_status status;

    if (values == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t i = 0; i < list->count; i++) {
        values[i] = x[list->item[i] * c->image.channels + channel];
        if (!isfinite(values[i])) {
            free(values);
            return pons_fail(err, PONS_DATA, "case '%s': channel %d of the image is not finite in "
                             "the foreground", c->name, channel);
        }
    }
    status = intensity_sample_make(values, list->count, s->limit, out, err);
    free(values);
    return status;
}

static void record_grid(survey *s, int rank, const volume *image)
{
    case_statistics *facts = &s->cases[rank];
    bool negative[3];

    for (int a = 0; a < 3; a++)
        facts->extent[a] = image->extent[a];
    pons_volume_spacing(image, facts->spacing);
    pons_volume_orientation(image, s->world[rank], negative);
    volume_orientation_codes((const double (*)[4])image->affine, facts->orientation);
}

/* Survey a case that case_scan_read has scanned. */
static pons_status survey_scan(survey *s, int rank, const case_scan *scan, pons_error *err)
{
    case_statistics *facts = &s->cases[rank];

    record_grid(s, rank, &scan->grid);
    memcpy(facts->cropped, scan->cropped, sizeof facts->cropped);
    facts->foreground = scan->foreground;
    intensity_sample_make(scan->values, scan->foreground, s->limit, &s->sample[rank], err);
    free(scan->values);
    return err->status;
}

static pons_status survey_volumes(survey *s, int rank, pons_error *err)
{
    case_statistics *facts = &s->cases[rank];
    voxel_list list = { .count = 0 };
    pons_case c;

    if (case_read(s->data, rank, &c, err) != PONS_OK)
        return err->status;
    record_grid(s, rank, &c.image);
    find_cropped(&c.image, facts->cropped);
    if (!list_foreground(s, &c.label, s->class_voxels + rank * (int64_t)s->class_count, &list))
        pons_fail(err, PONS_DEVICE, "out of memory");
    facts->foreground = list.count;
    for (int channel = 0; channel < s->channels && err->status == PONS_OK; channel++)
        sample_channel(s, &c, &list, channel, &s->sample[rank * s->channels + channel], err);
    free(list.item);
    case_clear(&c);
    return err->status;
}

static pons_status survey_case(survey *s, int rank, pons_error *err)
{
    case_scan scan;

    if (case_scan_read(s->data, rank, &scan, s->class_voxels + rank * (int64_t)s->class_count))
        return survey_scan(s, rank, &scan, err);
    return survey_volumes(s, rank, err);
}

/* ---- all cases ------------------------------------------------------------------------------- */

static void note_failure(survey *s, int rank, const pons_error *cause)
{
    pthread_mutex_lock(&s->lock);
    if (rank < s->failed) {
        s->failed = rank;
        s->error = *cause;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Cases behind one that failed are left out, so that the first failure is the one reported. */
static void survey_cases(void *context, int64_t first, int64_t end)
{
    survey *s = context;

    for (int rank = (int)first; rank < end && rank < s->failed; rank++) {
        pons_error cause = PONS_ERROR_INIT;
        if (survey_case(s, rank, &cause) != PONS_OK)
            note_failure(s, rank, &cause);
        int done = ++s->done;
        if (s->log != NULL && pthread_equal(pthread_self(), s->owner))
            case_progress_show(&s->progress, s->log, done, 0);
    }
}

/* The median share of voxels that cropping keeps. */
static double median_share(arena *memory, const case_statistics *cases, int count)
{
    double *share = arena_alloc(memory, (size_t)count * sizeof *share);

    for (int i = 0; i < count; i++) {
        share[i] = 1;
        for (int a = 0; a < 3; a++)
            share[i] *= (double)cases[i].cropped[a] / (double)cases[i].extent[a];
    }
    return count == 0 ? 1 : percentile_find(share, count, 50);
}

/* Reorder the axes of a case. */
static void orient_case(case_statistics *c, const int world[3])
{
    case_statistics old = *c;

    for (int a = 0; a < 3; a++) {
        c->extent[world[a]] = old.extent[a];
        c->cropped[world[a]] = old.cropped[a];
        c->spacing[world[a]] = old.spacing[a];
    }
}

/* Whether orientations differ; the axes of all cases then become those of RAS. */
static bool orient_cases(survey *s)
{
    int count = s->data->case_count;
    bool differ = false;

    for (int i = 1; i < count; i++)
        differ = differ || strcmp(s->cases[i].orientation, s->cases[0].orientation) != 0;
    for (int i = 0; i < count && differ; i++)
        orient_case(&s->cases[i], s->world[i]);
    return differ;
}

static pons_status join_cases(survey *s, dataset_statistics *out, pons_error *err)
{
    int count = s->data->case_count;
    intensity_statistics *intensity = arena_alloc(out->memory,
                                                  (size_t)s->channels * sizeof *intensity);

    if (s->failed < count)
        return pons_fail(err, s->error.status, "%s", s->error.text);
    for (int i = 0; i < count; i++) {
        s->cases[i].id = s->data->cases[i].id;
        s->cases[i].class_voxels = s->class_voxels + i * (int64_t)s->class_count;
    }
    for (int c = 0; c < s->channels; c++)
        if (intensity_statistics_make(&s->sample[c], count, s->channels, &intensity[c], err)
                != PONS_OK)
            return err->status;
    out->intensity = intensity;
    out->oriented = orient_cases(s);
    out->cropped_share = median_share(out->memory, s->cases, count);
    return PONS_OK;
}

pons_status dataset_statistics_make(const dataset *d, logger *l, dataset_statistics **out,
                                    pons_error *err)
{
    size_t count = (size_t)d->case_count;
    bool regions = d->region_count > 0;
    survey s = { .data = d, .channels = d->channels,
                 .class_count = regions ? d->region_count : d->class_count,
                 .failed = d->case_count, .owner = pthread_self(), .log = l,
                 .progress = { "reading", d->case_count, seconds_now(), 0, 0 } };
    arena *memory = arena_new();
    dataset_statistics *made;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s.limit = VALUES_TOTAL / max_i64(d->case_count, 1);
    s.limit = max_i64(VALUES_MIN, min_i64(VALUES_MAX, s.limit));
    s.cases = arena_alloc(memory, count * sizeof *s.cases);
    s.world = arena_alloc(memory, count * sizeof *s.world);
    s.class_voxels = arena_alloc(memory, count * (size_t)s.class_count * sizeof *s.class_voxels);
    s.sample = arena_alloc(memory, count * (size_t)s.channels * sizeof *s.sample);
    made = arena_alloc(memory, sizeof *made);
    *made = (dataset_statistics){ .memory = memory, .case_count = d->case_count, .cases = s.cases,
                                  .channels = d->channels, .class_count = s.class_count,
                                  .classes = regions ? d->regions : d->classes };
    pthread_mutex_init(&s.lock, NULL);
    parallel_run(d->case_count, 1, survey_cases, &s);
    pthread_mutex_destroy(&s.lock);
    join_cases(&s, made, err);
    for (size_t i = 0; i < count * (size_t)s.channels; i++)
        intensity_sample_clear(&s.sample[i]);
    if (err->status != PONS_OK) {
        arena_free(memory);
        return err->status;
    }
    *out = made;
    return PONS_OK;
}

void dataset_statistics_free(dataset_statistics *s)
{
    if (s != NULL)
        arena_free(s->memory);
}
