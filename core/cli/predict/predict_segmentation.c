/*
 * predict_segmentation.c - labels of a segmentation: the ids of classes and regions, and the files
 * that are written with them.
 */
#include <string.h>

#include "base/text/text.h"
#include "cli/predict/label_tables.h"
#include "cli/predict/predict_bids.h"
#include "cli/predict/predict_internal.h"
#include "config/sections.h"
#include "data/dataset/class_list.h"
#include "data/nifti/nifti_write.h"
#include "nnunet/nnunet_model.h"

/* ---- ids ------------------------------------------------------------------------------------- */

/* The id of a voxel of a region in the file, for one region or a channel for each region. */
static int32_t id_of_region(const experiment *e)
{
    return e->task.classes == 1 && e->classes[0].id[0] > 0 ? e->classes[0].id[0] : 1;
}

/* The first id of a region that no later region has; 0: there is none. */
static int32_t own_id(const experiment *e, int region)
{
    const data_class *c = &e->classes[region];

    for (int i = 0; i < c->id_count; i++)
        if (class_index_of_id(c + 1, e->class_count - region - 1, c->id[i]) < 0)
            return c->id[i];
    return 0;
}

/* The id that a region writes into a label map; 0: none. */
static int32_t id_in_map(const experiment *e, int region)
{
    const pons_integers *ids = &e->sections.predict.region_ids;

    return ids->count > 0 ? (int32_t)ids->item[region] : own_id(e, region);
}

/* True if regions are written as one label. */
static bool writes_map(const predict_job *j)
{
    return j->flags->label_map
        || predictor_experiment(j->member[0])->sections.predict.region_ids.count > 0;
}

/* True if each region is a channel of the written labels. */
static bool writes_channels(const predict_job *j)
{
    const experiment *e = predictor_experiment(j->member[0]);

    return e->regions && e->class_count > 1 && !writes_map(j);
}

pons_status predict_check_segmentation(const predict_job *j, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);

    if (j->flags->target != NULL)
        return pons_fail(err, PONS_USAGE, "--target '%s' is for a network of task = synthesis, "
                         "found one of segmentation", j->flags->target);
    if (j->flags->bids && (j->flags->logits || j->flags->uncertainty))
        return pons_fail(err, PONS_USAGE, "--bids: found --logits or --uncertainty, for which BIDS "
                         "has no name, expected --probabilities at most");
    if (j->flags->bids && writes_channels(j))
        return pons_fail(err, PONS_USAGE, "--bids: regions are channels, expected one label a voxel"
                         "\nhint: --label-map writes them as one");
    if (!writes_map(j) || e->sections.predict.region_ids.count > 0)
        return PONS_OK;
    if (!e->regions)
        return pons_fail(err, PONS_USAGE, "--label-map: the network has classes, expected regions");
    for (int r = 0; r < e->class_count; r++)
        if (own_id(e, r) == 0)
            return pons_fail(err, PONS_CONFIG, "--label-map: region '%s' has no id above 0 that no "
                             "later region has", e->classes[r].name);
    return PONS_OK;
}

/* Merge channels of 0 and 1: each region in order writes its own id. */
static pons_status to_label_map(const experiment *e, const volume *regions, volume *out,
                                pons_error *err)
{
    const uint8_t *from = regions->voxels;
    int64_t voxels = pons_volume_count(regions);

    if (pons_volume_init(out, PONS_I32, 1, regions->extent, err) != PONS_OK)
        return err->status;
    volume_copy_position(out, regions);
    for (int r = 0; r < regions->channels; r++) {
        int32_t id = id_in_map(e, r), *to = out->voxels;

        for (int64_t i = 0; i < voxels; i++)
            to[i] = from[i * regions->channels + r] != 0 ? id : to[i];
    }
    return PONS_OK;
}

/* Map class indices to the first id of each name. Several regions keep channels of 0 and 1. */
static pons_status to_ids(const experiment *e, const volume *classes, volume *out, pons_error *err)
{
    int64_t voxels = pons_volume_count(classes) * classes->channels;
    const uint8_t *from = classes->voxels;
    bool indices = !e->regions && e->task.classes > 1;
    int32_t region = id_of_region(e);

    if (pons_volume_init(out, PONS_I32, classes->channels, classes->extent, err) != PONS_OK)
        return err->status;
    volume_copy_position(out, classes);
    int32_t *to = out->voxels;
    for (int64_t i = 0; i < voxels; i++)
        to[i] = indices ? e->classes[from[i]].id[0] : from[i] != 0 ? region : 0;
    return PONS_OK;
}

/* The ids that are written, with their names; 0: regions are channels, which have none. */
static int written_labels(const predict_job *j, label_entry out[CLASS_COUNT_MAX + 1])
{
    const experiment *e = predictor_experiment(j->member[0]);
    bool classes = !e->regions && e->task.classes > 1;
    int count = 0;

    if (writes_channels(j))
        return 0;
    if (!classes)
        out[count++] = (label_entry){ 0, "background" };
    for (int c = 0; c < e->class_count; c++)
        out[count++] = (label_entry){ classes ? e->classes[c].id[0]
                                      : writes_map(j) ? id_in_map(e, c) : id_of_region(e),
                                      e->classes[c].name };
    return count;
}

void predict_tell_ids(const predict_job *j)
{
    const experiment *e = predictor_experiment(j->member[0]);

    for (int c = 0; c < e->class_count && !e->regions; c++)
        if (e->classes[c].id_count > 1)
            log_line(j->call->log, "class '%s' is written as id %d, for the ids %.200s",
                     e->classes[c].name, e->classes[c].id[0],
                     class_ids_text(j->memory, &e->classes[c]));
}

/* ---- files ----------------------------------------------------------------------------------- */

pons_status predict_open_postprocess(predict_job *j, pons_error *err)
{
    const char *run = j->call->argument[0];
    nnunet_postprocess *rules = &j->postprocess;

    if (nnunet_is_fold(run))
        run = arena_format(j->memory, "%s/..", run);
    if (!nnunet_is_model(run))
        return !j->flags->no_postprocess ? PONS_OK
               : pons_fail(err, PONS_USAGE, "--no-postprocess is for a folder of nnU-Net, found "
                           "'%s'", run);
    if (j->flags->no_postprocess
        || nnunet_postprocess_read(rules, j->memory, run, j->nnunet_folds, err) != PONS_OK)
        return err->status;
    if (rules->count > 0 && writes_channels(j))
        return pons_fail(err, PONS_USAGE, "'%s' is for one label a voxel, and regions are written "
                         "as channels\nhint: --no-postprocess leaves them as they are",
                         rules->file);
    if (rules->count > 0 && predictor_rank(j->member[0]) == 0)
        log_line(j->call->log, "%d rule%s of '%s' keep%s the largest part of labels", rules->count,
                 text_plural(rules->count), rules->file, rules->count == 1 ? "s" : "");
    return PONS_OK;
}

/* Write the files of BIDS beside the labels of a case: ids, and the volumes of probabilities. */
static pons_status write_sidecars(const predict_job *j, const char *labels, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    label_entry entry[CLASS_COUNT_MAX + 1];
    int count = written_labels(j, entry);

    label_table_write(j->memory, "bids", predict_path_beside(j, labels, "_dseg"), count, entry,
                      err);
    if (err->status == PONS_OK)
        predict_bids_sidecar(predict_path_beside(j, labels, "_dseg.json"), 0, NULL, err);
    if (err->status != PONS_OK || !j->flags->probabilities)
        return err->status;
    for (int c = 0; c < e->class_count; c++)
        entry[c] = (label_entry){ c, e->classes[c].name };
    return predict_bids_sidecar(predict_path_beside(j, labels, "_probseg.json"), e->class_count,
                                entry, err);
}

/* The largest uint8 stands for a probability of 1 - 6e-8, the next float32 below 1. */
static pons_status write_probabilities(const predict_job *j, const char *path,
                                       const predict_result *r, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    static const nifti_values values[] = {
        [PROBABILITY_FLOAT32] = { 16, 1 }, [PROBABILITY_UINT8] = { 2, 0x1.0101p-8 }
    };

    return nifti_write_values(path, &r->probabilities, &r->grid,
                              &values[e->sections.predict.probability_type], err);
}

pons_status predict_write_segmentation(const predict_job *j, const char *path,
                                       const predict_result *r, float *record, pons_error *err)
{
    volume ids;

    memset(&ids, 0, sizeof ids);
    if (writes_map(j))
        to_label_map(predictor_experiment(j->member[0]), &r->classes, &ids, err);
    else
        to_ids(predictor_experiment(j->member[0]), &r->classes, &ids, err);
    if (err->status == PONS_OK && j->postprocess.count > 0)
        nnunet_postprocess_apply(&j->postprocess, &ids, err);
    if (err->status == PONS_OK)
        nifti_write(path, &ids, &r->grid, err);
    pons_volume_clear(&ids);
    if (err->status == PONS_OK && j->flags->logits)
        nifti_write(predict_path_of_more(j, path, "logits"), &r->logits, &r->grid, err);
    if (err->status == PONS_OK && j->flags->probabilities)
        write_probabilities(j, predict_path_of_probabilities(j, path), r, err);
    if (err->status == PONS_OK && j->bids != NULL)
        write_sidecars(j, path, err);
    if (err->status == PONS_OK && j->flags->uncertainty)
        nifti_write(predict_path_of_more(j, path, "entropy"), &r->entropy, &r->grid, err);
    if (err->status == PONS_OK && j->flags->uncertainty)
        nifti_write(predict_path_of_more(j, path, "variance"), &r->variance, &r->grid, err);
    return err->status;
}

pons_status predict_write_tables(const predict_job *j, pons_error *err)
{
    const pons_texts *tables = &predictor_experiment(j->member[0])->sections.predict.tables;
    label_entry entry[CLASS_COUNT_MAX + 1];
    int count = written_labels(j, entry);
    const char *path = j->flags->output;
    size_t size = strlen(path) - (j->folder ? 0 : file_kind_ending(path, FILE_VOLUME));

    if (tables->count > 0 && count == 0)
        log_warning(j->call->log, "[predict] tables: regions in channels have no ids, so no table "
                    "is written");
    for (int i = 0; i < tables->count && count > 0 && err->status == PONS_OK; i++) {
        bool bids = strcmp(tables->item[i], "bids") == 0;
        const char *name = !j->folder ? "" : bids ? "/dseg" : "/labels";

        if (!bids || j->bids == NULL)
            label_table_write(j->memory, tables->item[i],
                              arena_format(j->memory, "%.*s%s", (int)size, path, name), count,
                              entry, err);
    }
    if (err->status == PONS_OK && j->bids != NULL)
        predict_bids_describe(j->memory, path, err);
    return err->status;
}
