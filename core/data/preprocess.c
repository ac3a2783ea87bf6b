/*
 * preprocess - the deterministic half of the data path, written to files.
 */
#include "data/preprocess.h"

#include "base/file.h"
#include "config/sections.h"
#include "data/label_map.h"
#include "data/loader.h"
#include "data/volume.h"
#include "data/volume_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ids as they are, where no list says what they mean. */
static pons_status keep_ids(volume *label, const char *file, pons_error *err)
{
    const int32_t *id = label->voxels;
    int64_t count = pons_volume_count(label);
    uint8_t *value = malloc((size_t)count);

    if (!value)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t n = 0; n < count; n++) {
        if (id[n] < 0 || id[n] > 255) {
            free(value);
            return pons_fail(err, PONS_DATA, "'%s' has id %d, expected 0 to 255\nhint: list the "
                             "ids in [data] labels", file, id[n]);
        }
        value[n] = (uint8_t)id[n];
    }
    free(label->voxels);
    label->voxels = value;
    label->type = PONS_U8;
    return PONS_OK;
}

/* A case of a dataset whose classes are not known. */
static pons_status read_unlisted(const dataset *d, const data_case *info, pons_case *out,
                                 pons_error *err)
{
    volume_grid grid;
    volume_facts facts;
    pons_status status;

    *out = (pons_case){ .size = sizeof *out, .name = info->id };
    status = volume_read_channels(info->image_count, info->image, &out->image, &grid, err);
    if (status || !info->label)
        return status;
    status = volume_read_label(info->label, &out->label, &facts, err);
    if (!status)
        status = volume_grid_compare(&facts.grid, info->label, &grid, info->image[0], err);
    if (!status)
        status = keep_ids(&out->label, info->label, err);
    return status;
}

static pons_status write_part(const char *folder, const data_case *info, const char *name,
                              const volume *v, pons_error *err)
{
    char path[4096];
    bool read = false;

    if (!v->voxels)
        return PONS_OK;
    if (snprintf(path, sizeof path, "%s/%s/%s.nii.gz", folder, info->id, name) >= (int)sizeof path)
        return pons_fail(err, PONS_FAILURE, "cannot write case '%s': the path is too long",
                         info->id);
    for (int i = 0; i < info->image_count; i++)
        read = read || file_is(path, info->image[i]);
    if (read || (info->label && file_is(path, info->label)))
        return pons_fail(err, PONS_USAGE, "-o '%s' would replace '%s', which is read, expected "
                         "another folder", folder, path);
    return volume_write(path, v, NULL, err);
}

static pons_status write_case(const dataset *d, const volume_chain *chain, int rank,
                              const char *folder, logger *l, pons_error *err)
{
    const data_case *info = &d->cases[rank];
    pons_case c = { .size = sizeof c };
    pons_status status = d->class_count ? case_read(d, rank, &c, err)
                                        : read_unlisted(d, info, &c, err);

    if (!status)
        status = volume_chain_apply(chain, &c, l, err);
    if (!status)
        status = write_part(folder, info, "image", &c.image, err);
    if (!status)
        status = write_part(folder, info, "label", &c.label, err);
    if (!status && l)
        log_line(l, "%s: %lld x %lld x %lld", info->id, (long long)c.image.extent[0],
                 (long long)c.image.extent[1], (long long)c.image.extent[2]);
    case_clear(&c);
    return status;
}

static pons_status open_dataset(config *c, bool labels_optional, sections *s, dataset **out,
                                pons_error *err)
{
    dataset_settings settings;
    pons_status status = sections_fill(c, s, err);

    if (status)
        return status;
    sections_skip_plugins(c, s, (const char *const[]){ "preprocess", NULL });
    dataset_settings_fill(c, s, &settings);
    settings.every_case = true;
    settings.labels_optional = labels_optional;
    dataset_open(&settings, out, err);
    return dataset_blame(c, s, err);
}

pons_status preprocess_write(config *c, const char *folder, logger *l, pons_error *err)
{
    dataset *d;
    sections s;
    volume_chain *chain = NULL;
    pons_status status = open_dataset(c, true, &s, &d, err);

    if (status)
        return status;
    status = volume_chain_open(c, "preprocess", false, d->channels, &chain, err);
    if (!status)
        status = config_refuse_unknown(c, err);
    for (int rank = 0; rank < d->case_count && !status; rank++)
        status = write_case(d, chain, rank, folder, l, err);
    volume_chain_close(chain);
    dataset_close(d);
    return status;
}

pons_status preprocess_cache(config *c, logger *l, pons_error *err)
{
    dataset *d;
    sections s;
    cache *filled = NULL;
    cache_settings settings;
    volume_chain *chain = NULL;
    pons_status status = open_dataset(c, false, &s, &d, err);

    if (status)
        return status;
    status = volume_chain_open(c, "preprocess", false, d->channels, &chain, err);
    if (!status)
        status = config_refuse_unknown(c, err);
    if (!status) {
        cache_settings_fill(&s, &settings);
        settings.mode = CACHE_DISK;
        status = cache_open(d, chain, d->training_count, d->training, &settings, l, &filled, err);
    }
    cache_close(filled);
    volume_chain_close(chain);
    dataset_close(d);
    return status;
}
