/*
 * memory_estimate.c - estimate the memory of a process from program descriptions, file headers and
 * the resident size.
 */
#include "bench/memory_estimate.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/memory_limit.h"
#include "base/whole.h"
#include "data/dataset/case_file.h"
#include "data/loader/batch_layout.h"
#include "data/loader/loader.h"
#include "data/volume/volume.h"
#include "experiment/data_settings.h"
#include "graph/program/explain.h"
#include "infer/activation.h"
#include "infer/device_accumulator.h"
#include "infer/predict_memory.h"
#include "replica/window_nodes.h"
#include "train/checkpoint_contents.h"
#include "window/window_blend.h"

/* The spacing that a step asks for; NULL: the step does not change it. */
static const double *wanted_spacing(const pipeline_step *s)
{
    return strcmp(s->plugin, "spacing") == 0 ? pipeline_step_axes(s, "mm") : NULL;
}

/* True if a step keeps the number of different values of a case, or reduces it. */
static bool step_keeps_values(const pipeline_step *s, const volume_facts *f)
{
    static const char *const exact[] = { "orient", "crop_foreground", "pad", "scale_range",
                                         "normalize", "clip" };
    const double *mm = wanted_spacing(s);
    bool found = mm != NULL;

    for (int a = 0; a < 3 && mm != NULL; a++)
        found = found && fabs(mm[a] - f->grid.spacing[a]) <= 1e-5 * mm[a];
    for (size_t k = 0; k < sizeof exact / sizeof exact[0]; k++)
        found = found || strcmp(s->plugin, exact[k]) == 0;
    return found;
}

/* True if all steps keep the number of different values, so that the cache stores codes. */
static bool keeps_values(const experiment *e, const volume_facts *f)
{
    bool kept = true;

    for (int i = 0; i < e->preprocess->count; i++)
        kept = kept && step_keeps_values(&e->preprocess->step[i], f);
    return kept;
}

/* Voxels along each axis of the file after a crop and a change of spacing. */
static void scaled_extent(const experiment *e, const volume_facts *f, double cropped_share,
                          double extent[3])
{
    for (int a = 0; a < 3; a++)
        extent[a] = (double)f->grid.extent[a];
    for (int i = 0; i < e->preprocess->count; i++) {
        const pipeline_step *s = &e->preprocess->step[i];
        const double *mm = wanted_spacing(s);
        for (int a = 0; a < 3 && mm != NULL; a++)
            extent[a] *= mm[a] > 0 ? f->grid.spacing[a] / mm[a] : 1;
        for (int a = 0; a < 3 && strcmp(s->plugin, "crop_foreground") == 0; a++)
            extent[a] *= cbrt(cropped_share);
    }
}

/* Bound an extent. A volume larger than memory is only counted here, not read. */
static int64_t whole_extent(double extent)
{
    return whole_within(ceil(extent), 0, 1 << 20);
}

static double voxel_count(const double extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

/* The cases whose sizes are estimated. */
typedef struct case_sizes {
    const experiment *e;
    double cropped_share;
    double largest[3];         /* the extent of the largest case                                  */
} case_sizes;

/* 'each' (NULL: none) receives the bytes of every case. */
static pons_status add_cases(case_sizes *sizes, int count, const int *ranks, double *each,
                             double *bytes, pons_error *err)
{
    const experiment *e = sizes->e;

    for (int i = 0; i < count; i++) {
        const data_case *c = &e->data->cases[ranks[i]];
        volume_facts f;
        double extent[3];
        if (case_file_facts(c, 0, &f, err) != PONS_OK)
            return err->status;
        scaled_extent(e, &f, sizes->cropped_share, extent);
        double voxels = voxel_count(extent);
        bool narrow = keeps_values(e, &f)
            && (f.datatype == 2 || f.datatype == 4 || f.datatype == 512);
        double value = !narrow ? 4 : f.datatype == 2 ? 1 : 2;
        double size = voxels * (value * e->task.channels + (e->regions ? e->class_count : 1));
        *bytes += size;
        if (each != NULL)
            each[i] = size;
        if (voxels > voxel_count(sizes->largest))
            memcpy(sizes->largest, extent, sizeof extent);
    }
    return PONS_OK;
}

/* The bytes of the largest window of a smart cache with its replacements. */
static double largest_window(const case_window *w, const double *each)
{
    int held = min_int(w->count + w->replaced, w->total);
    double sum = 0, most;

    for (int i = 0; i < held; i++)
        sum += each[i];
    most = sum;
    for (int i = 0; i < w->total; i++) {
        sum += each[(i + held) % w->total] - each[i];
        most = sum > most ? sum : most;
    }
    return most;
}

/* The bytes of the training cases that are in memory at a time. */
static pons_status add_training(case_sizes *sizes, double *bytes, pons_error *err)
{
    const experiment *e = sizes->e;
    double *each = malloc((size_t)e->data->training_count * sizeof *each + 1);

    if (each == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (add_cases(sizes, e->data->training_count, e->data->training, each, bytes, err) == PONS_OK)
        *bytes = largest_window(&e->epoch, each);
    free(each);
    return err->status;
}

/*
 * Validation with cases as large as the largest: one whose windows are predicted, with its planes,
 * one that is counted, and the image of the next (window_scheduler.h).
 */
static double validation_bytes(const experiment *e, const double extent[3])
{
    int cases = min_int(e->data->validation_count, 2);
    int targets = e->regions ? e->class_count : 1;
    double values = 4.0 * e->task.channels + targets, voxels = voxel_count(extent);
    int64_t size[3] = { whole_extent(extent[0]), whole_extent(extent[1]), whole_extent(extent[2]) };
    window_settings settings;

    if (voxels == 0)
        return 0;
    experiment_window_settings(e, &settings);
    return voxels * (cases * (values + activation_decision_count(e))
                     + (e->data->validation_count > 2 ? values : 0))
           + cases * (double)window_blend_bytes(&settings, size, e->task.classes);
}

/* Sums of the largest case on the device, if they fit beside 'taken'; else the host has them. */
static double sums_bytes(const experiment *e, const double extent[3], double taken)
{
    int64_t size[3];
    size_t bytes;

    if (voxel_count(extent) == 0 || !window_nodes_wanted(e, &e->device))
        return 0;
    for (int a = 0; a < 3; a++)
        size[a] = whole_extent(extent[a]);
    bytes = device_accumulator_size(e, size);
    return device_accumulator_fits(&e->device, bytes, taken) ? (double)bytes : 0;
}

/* Bytes of the loader's micro-batches, and of the steps of [augment]. */
static pons_status loader_bytes(const experiment *e, double *out, pons_error *err)
{
    double patches = (double)(e->sections.train.batch * e->sections.patch.per_case);
    loader_settings loader;
    batch_layout parts;

    if (batch_layout_make(experiment_device_extracts(e), e->augment, e->patch, e->task.channels,
                          e->regions ? e->class_count : 1, &parts, err) != PONS_OK)
        return err->status;
    loader_settings_fill(&e->sections, &loader);
    loader.micro_batches = e->micro_batches;
    loader.count = e->accumulate;
    *out = loader_slots(&loader) * patches * (double)batch_layout_size(&parts)
           + loader_scratch_size(e->augment, &loader);
    batch_layout_clear(&parts);
    return PONS_OK;
}

/* The bytes of cases in memory. Pages of mapped files are dropped when memory is short. */
static double bytes_in_memory(const data_options *d, double rest)
{
    double sum = 0;

    for (int i = 0; i < d->cache_tier_count; i++) {
        double limit = (double)d->cache_tier[i].limit;
        double here = limit > 0 && limit < rest ? limit : rest;

        sum += cache_mode_in_folder(d->cache_tier[i].mode) ? 0 : here;
        rest -= here;
    }
    return sum;
}

/* Another program of a replica: programs share the arena. */
static void add_program(memory_estimate *f, const program_facts *more)
{
    f->arena = fmax(f->arena, (double)more->arena);
    f->scratch += (double)(more->packed + more->inputs);
}

pons_status memory_estimate_make(const experiment *e, const storage *s, const program *training,
                                 const program *evaluation, const program *loss,
                                 double cropped_share, memory_estimate *out, pons_error *err)
{
    memory_estimate f = { .libraries = memory_resident_bytes() };
    program_facts facts, more;
    case_sizes sizes = { .e = e, .cropped_share = cropped_share };
    double volumes = 0, device = 0;

    program_describe(training, &facts);
    f.arena = (double)facts.arena;
    f.parameters = (double)facts.parameters;
    f.scratch = (double)(facts.packed + facts.inputs - facts.external_inputs + facts.grad_accum);
    if (add_training(&sizes, &f.cache, err) != PONS_OK)
        return err->status;
    if (experiment_device_extracts(e)) /* the host has its own copy */
        device = f.cache * e->device_count;
    memset(sizes.largest, 0, sizeof sizes.largest);
    if (evaluation != NULL && add_cases(&sizes, e->data->validation_count, e->data->validation,
                                        NULL, &f.cache, err) != PONS_OK)
        return err->status;
    f.cache = bytes_in_memory(&e->sections.data, f.cache) + device;
    if (loader_bytes(e, &f.loader, err) != PONS_OK)
        return err->status;
    if (evaluation != NULL) {
        program_describe(evaluation, &more);
        add_program(&f, &more);
        volumes = validation_bytes(e, sizes.largest);
        f.sums = sums_bytes(e, sizes.largest, f.arena + f.parameters + f.scratch + device);
    }
    if (loss != NULL) {
        program_describe(loss, &more);
        add_program(&f, &more);
    }
    double *const of_replica[] = { &f.arena, &f.parameters, &f.scratch, &f.loader };
    for (size_t i = 0; i < sizeof of_replica / sizeof of_replica[0]; i++)
        *of_replica[i] *= e->device_count;
    f.loader += volumes;
    f.scratch += checkpoint_contents_size(e, s);
    f.peak = f.arena + f.parameters + f.scratch + f.libraries + f.cache + f.loader + f.sums;
    *out = f;
    return PONS_OK;
}

/* ---- prediction ------------------------------------------------------------------------------ */

static int64_t window_count(const window_settings *w, const int64_t extent[3])
{
    int64_t count = 1;

    for (int a = 0; a < 3; a++)
        count *= window_axis_make(w, extent[a], a).count;
    return count;
}

void memory_estimate_prediction(const replicas *r, int networks, const volume_facts *image,
                                prediction_estimate *out)
{
    static const predict_work labels_alone;
    const experiment *e = r->experiment;
    double read = 1, voxels, scaled[3];
    prediction_estimate f = { .windows = 0 };
    program_facts facts;
    predict_memory m;
    window_settings w;

    scaled_extent(e, image, 1, scaled);
    for (int a = 0; a < 3; a++) {
        f.extent[a] = max_i64(whole_extent(rint(scaled[a])), 1);
        read *= (double)image->grid.extent[a];
    }
    voxels = (double)f.extent[0] * (double)f.extent[1] * (double)f.extent[2];
    experiment_window_settings(e, &w);
    f.windows = window_count(&w, f.extent);
    program_describe(r->item[0].evaluation, &facts);
    f.arena = (double)facts.arena * r->count * networks;
    f.parameters = (double)facts.parameters * r->count * networks;
    f.scratch = (double)(facts.packed + facts.inputs) * r->count * networks;
    f.libraries = fmax(memory_resident_bytes() - (double)facts.parameters * r->count, 0);
    f.image = 4.0 * e->task.channels * (read + voxels);
    predict_memory_make(e, networks, &labels_alone, f.extent, image->grid.extent, &m);
    f.planes = m.planes;
    f.sums = m.sums;
    f.result = m.result;
    f.peak = f.arena + f.parameters + f.scratch + f.libraries + f.image + f.planes + f.sums
             + f.result;
    *out = f;
}
