/*
 * predict_slide.c - list the patches of a slide that show tissue, predict them a few batches at a
 * time, and write the map row by row of its tiles.
 */
#include "infer/predict_slide.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/progress.h"
#include "base/text/text.h"
#include "data/slide/map_file.h"
#include "data/slide/slide_patch.h"
#include "infer/infer_internal.h"
#include "infer/heat_map.h"

/* Batches of every device that are predicted together; the progress is told between them. */
enum { BATCHES = 16, NAME_SIZE = 48 };

/* A patch, and the point of its result. */
typedef struct slide_window {
    int64_t row, column;          /* of the map                                                   */
    slide_patch patch;
    char name[NAME_SIZE];
    const char *file;
} slide_window;

/* The outcome of a patch for all processes: the error that prevented its result, or "". */
typedef struct patch_outcome {
    char problem[sizeof ((pons_error *)NULL)->text];
    float probability[];          /* one for each class                                           */
} patch_outcome;

typedef struct slide_prediction {
    int count;
    predictor *const *p;
    const predict_slide_work *work;
    slide_pool *pool;
    slide_region patch;           /* level and extent of all patches                              */
    double downsample;            /* of the level                                                 */
    map_facts facts;
    const char **name;            /* of all classes                                               */
    map_writer *writer;           /* NULL: another process writes                                 */
    heat_map heat;                /* over the overlay                                             */
    float *band;                  /* [MAP_TILE][columns][values] of the rows in work              */
    int64_t band_row;             /* the first of them                                            */
    int room, windows;            /* of a part, which is predicted together                       */
    slide_window *window;         /* [room]                                                       */
    predict_input *input;         /* [room]                                                       */
    int64_t tissue, done;         /* patches of the slide, and those that are predicted           */
    double begin;                 /* of predicting, by seconds_now                                */
} slide_prediction;

static const experiment *experiment_of(const slide_prediction *s)
{
    return s->p[0]->experiment;
}

static logger *log_of(const slide_prediction *s)
{
    return s->p[0]->log;
}

/* ---- geometry -------------------------------------------------------------------------------- */

/* The extent of patches before [preprocess]; other layouts have images of the window's. */
static void patch_extent(const experiment *e, int64_t out[2])
{
    const data_options *d = &e->sections.data;
    bool slides = strcmp(data_layouts[d->layout], "slides") == 0;

    out[0] = slides ? d->slide_patch : e->window[1];
    out[1] = slides ? d->slide_patch : e->window[2];
}

static pons_status check_network(const experiment *e, pons_error *err)
{
    if (e->task.channels != 3 || e->window[0] != 1)
        return pons_fail(err, PONS_CONFIG, "a map of a slide needs a network of coloured patches, "
                         "found one of %d channel%s and %d x %d x %d voxels", e->task.channels,
                         text_plural(e->task.channels), e->window[0], e->window[1], e->window[2]);
    return PONS_OK;
}

/* All networks must see the same patches. */
static pons_status check_networks(const slide_prediction *s, pons_error *err)
{
    const experiment *first = experiment_of(s);
    int64_t expected[2], found[2];

    patch_extent(first, expected);
    for (int n = 0; n < s->count; n++) {
        const experiment *e = s->p[n]->experiment;

        if (check_network(e, err) != PONS_OK)
            return err->status;
        patch_extent(e, found);
        if (memcmp(found, expected, sizeof found) != 0
            || e->sections.data.slide_level != first->sections.data.slide_level)
            return pons_fail(err, PONS_CONFIG, "network %d of the ensemble sees other patches of "
                             "a slide than the first", n + 1);
    }
    return PONS_OK;
}

/* Set the level of patches and the map's extent. */
static pons_status plan_map(slide_prediction *s, const slide *of, pons_error *err)
{
    const experiment *e = experiment_of(s);
    const slide_level *whole = slide_level_at(of, 0);
    int level = (int)e->sections.data.slide_level, levels = slide_level_count(of);
    double micrometres[2];
    int64_t extent[2];

    if (level >= levels)
        return pons_fail(err, PONS_DATA, "'%s' has %d level%s, but the network sees level %d",
                         s->work->slide, levels, text_plural(levels), level);
    if (slide_check_level(of, level, err) != PONS_OK)
        return err->status;
    patch_extent(e, extent);
    slide_resolution(of, micrometres);
    s->patch = (slide_region){ .level = level, .rows = extent[0], .columns = extent[1] };
    s->downsample = slide_level_at(of, level)->downsample;
    for (int a = 0; a < 2; a++) {
        s->facts.step[a] = (double)(s->work->stride > 0 ? s->work->stride : extent[a])
                           * s->downsample;
        s->facts.micrometres[a] = micrometres[a] * s->facts.step[a];
    }
    s->facts.rows = (int64_t)ceil((double)whole->rows / s->facts.step[0]);
    s->facts.columns = (int64_t)ceil((double)whole->columns / s->facts.step[1]);
    s->facts.slide = s->work->slide;
    return PONS_OK;
}

/* The square of a point, in pixels of level 0. */
static void square_of(const slide_prediction *s, int64_t row, int64_t column, double first[2],
                      double end[2])
{
    const int64_t at[2] = { row, column };

    for (int a = 0; a < 2; a++) {
        first[a] = (double)at[a] * s->facts.step[a];
        end[a] = first[a] + s->facts.step[a];
    }
}

static bool has_tissue(const slide_prediction *s, int64_t row, int64_t column)
{
    double first[2], end[2];

    square_of(s, row, column, first, end);
    return slide_thumbnail_has_tissue(s->work->overlay, first, end);
}

/* The first pixel of the patch around the centre of a point. */
static int64_t patch_start(const slide_prediction *s, int axis, int64_t point, int64_t pixels)
{
    return llround(((double)point + 0.5) * s->facts.step[axis]
                   - (double)pixels * s->downsample / 2);
}

/* ---- results --------------------------------------------------------------------------------- */

static pons_status take_patch(void *context, int number, predict_result *result,
                              const pons_error *problem, void *record, pons_error *err)
{
    patch_outcome *o = record;

    if (result == NULL)
        memcpy(o->problem, problem->text, sizeof o->problem);
    else
        memcpy(o->probability, result->probabilities.voxels,
               (size_t)result->probabilities.channels * sizeof *o->probability);
    return PONS_OK;
}

/* Lay a point over the slide. */
static void draw_point(slide_prediction *s, const slide_window *w, const float *probability)
{
    double first[2], end[2];

    square_of(s, w->row, w->column, first, end);
    for (int a = 0; a < 2; a++) {
        first[a] /= s->work->overlay->step;
        end[a] /= s->work->overlay->step;
    }
    heat_map_put(&s->heat, first, end, experiment_of(s)->class_count > 1 ? 1 - probability[0]
                                                                         : probability[0]);
}

static pons_status tell_patch(void *context, int number, const void *record, pons_error *err)
{
    slide_prediction *s = context;
    const slide_window *w = &s->window[number];
    const patch_outcome *o = record;
    int first = experiment_of(s)->class_count - s->facts.class_count;
    int64_t at = (w->row - s->band_row) * s->facts.columns + w->column;

    if (o->problem[0] != '\0')
        return pons_fail(err, PONS_DATA, "%s", o->problem);
    memcpy(s->band + at * s->facts.class_count, o->probability + first,
           (size_t)s->facts.class_count * sizeof *o->probability);
    draw_point(s, w, o->probability);
    return PONS_OK;
}

/* ---- patches --------------------------------------------------------------------------------- */

static void add_window(slide_prediction *s, int64_t row, int64_t column)
{
    slide_window *w = &s->window[s->windows];

    w->row = row;
    w->column = column;
    w->patch = (slide_patch){ .pool = s->pool, .slide = 0, .region = s->patch };
    w->patch.region.row = patch_start(s, 0, row, s->patch.rows);
    w->patch.region.column = patch_start(s, 1, column, s->patch.columns);
    w->file = s->work->slide;
    snprintf(w->name, sizeof w->name, "%" PRId64 "_%" PRId64, w->patch.region.column,
             w->patch.region.row);
    s->input[s->windows++] = (predict_input){ .name = w->name, .file_count = 1, .file = &w->file,
                                              .patch = &w->patch };
}

/* Predict the patches that are listed. */
static pons_status predict_part(slide_prediction *s, pons_error *err)
{
    const predict_work work = {
        .count = s->windows, .input = s->input, .familiar = true,
        .record_size = sizeof(patch_outcome)
                       + (size_t)experiment_of(s)->class_count * sizeof(float),
        .take = take_patch, .tell = tell_patch, .context = s
    };

    char left[PROGRESS_LEFT];

    if (s->windows == 0)
        return PONS_OK;
    if (predict_run(s->count, s->p, &work, err) != PONS_OK)
        return err->status;
    s->done += s->windows;
    s->windows = 0;
    log_progress(log_of(s), "%" PRId64 " of %" PRId64 " patches%s, '%.1000s'", s->done, s->tissue,
                 progress_left(s->begin, (double)s->done, (double)s->tissue, left),
                 s->work->slide);
    return PONS_OK;
}

/* Predict and write the rows of one row of tiles. */
static pons_status predict_band(slide_prediction *s, int64_t band, pons_error *err)
{
    int64_t row = band * MAP_TILE, end = min_i64(row + MAP_TILE, s->facts.rows);

    s->band_row = row;
    memset(s->band, 0, (size_t)(MAP_TILE * s->facts.columns * s->facts.class_count)
                       * sizeof *s->band);
    for (; row < end; row++)
        for (int64_t column = 0; column < s->facts.columns; column++) {
            if (!has_tissue(s, row, column))
                continue;
            add_window(s, row, column);
            if (s->windows == s->room && predict_part(s, err) != PONS_OK)
                return err->status;
        }
    if (predict_part(s, err) != PONS_OK)
        return err->status;
    if (s->writer != NULL)
        map_writer_put(s->writer, band, s->band, err);
    return predictor_share(s->p[0], err);
}

static void count_tissue(slide_prediction *s)
{
    for (int64_t row = 0; row < s->facts.rows; row++)
        for (int64_t column = 0; column < s->facts.columns; column++)
            s->tissue += has_tissue(s, row, column);
    if (s->tissue == 0)
        log_warning(log_of(s), "no tissue was found in '%.1000s'; its map is 0", s->work->slide);
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status allocate(slide_prediction *s, pons_error *err)
{
    const experiment *e = experiment_of(s);
    int processes = e->group != NULL ? group_size(e->group) : 1;

    s->room = BATCHES * (int)e->sections.window.batch * s->p[0]->replicas.count * processes;
    s->window = malloc((size_t)s->room * sizeof *s->window);
    s->input = malloc((size_t)s->room * sizeof *s->input);
    s->band = malloc((size_t)(MAP_TILE * s->facts.columns * s->facts.class_count)
                     * sizeof *s->band);
    s->heat = (heat_map){ .rows = s->work->overlay->rows, .columns = s->work->overlay->columns };
    s->heat.largest = calloc((size_t)(s->heat.rows * s->heat.columns), sizeof *s->heat.largest);
    if (s->window == NULL || s->input == NULL || s->band == NULL || s->heat.largest == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the map of '%s'", s->work->slide);
    return PONS_OK;
}

/* Write the map, complete or not at all. */
static pons_status predict_map(slide_prediction *s, pons_error *err)
{
    count_tissue(s);
    if (allocate(s, err) == PONS_OK && predictor_rank(s->p[0]) == 0)
        map_writer_open(s->work->map, &s->facts, &s->writer, err);
    predictor_share(s->p[0], err);
    s->begin = seconds_now();
    for (int64_t band = 0; band * MAP_TILE < s->facts.rows && err->status == PONS_OK; band++)
        predict_band(s, band, err);
    map_writer_close(s->writer, err);
    if (predictor_share(s->p[0], err) != PONS_OK)
        return err->status;
    heat_map_blend(&s->heat, s->work->overlay->rgb);
    log_line(log_of(s), "%.1000s: %" PRId64 " patch%s of tissue -> %.1000s, %" PRId64 " x %" PRId64
             " points", s->work->slide, s->tissue, s->tissue == 1 ? "" : "es", s->work->map,
             s->facts.columns, s->facts.rows);
    return PONS_OK;
}

static pons_status name_classes(slide_prediction *s, pons_error *err)
{
    const experiment *e = experiment_of(s);

    s->name = malloc((size_t)e->class_count * sizeof *s->name);
    if (s->name == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the map of '%s'", s->work->slide);
    for (int c = 0; c < e->class_count; c++)
        s->name[c] = e->classes[c].name;
    s->facts.class_count = e->class_count == 2 ? 1 : e->class_count;
    s->facts.name = s->name + e->class_count - s->facts.class_count;
    return PONS_OK;
}

/* Find the map's extent and the tissue. */
static pons_status examine_slide(slide_prediction *s, pons_error *err)
{
    slide *of;

    s->pool = slide_pool_new(1);
    if (s->pool == NULL || slide_pool_add(s->pool, s->work->slide) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for the map of '%s'", s->work->slide);
    if (slide_pool_borrow(s->pool, 0, &of, err) != PONS_OK)
        return err->status;
    if (plan_map(s, of, err) == PONS_OK)
        slide_thumbnail_make(of, s->work->overlay, err);
    slide_pool_release(s->pool, 0, err->status != PONS_OK);
    return err->status;
}

pons_status predict_slide_run(int count, predictor *const *p, const predict_slide_work *work,
                              pons_error *err)
{
    slide_prediction s = { .count = count, .p = p, .work = work };

    if (check_networks(&s, err) != PONS_OK)
        return err->status;
    if (name_classes(&s, err) == PONS_OK)
        examine_slide(&s, err);
    if (predictor_share(p[0], err) == PONS_OK)
        predict_map(&s, err);
    slide_pool_free(s.pool);
    free(s.name);
    free(s.heat.largest);
    free(s.band);
    free(s.input);
    free(s.window);
    return err->status;
}
