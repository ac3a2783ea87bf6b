/*
 * case_load.c - read image and label on two threads, since one thread inflates a gzip file.
 */
#include "data/case/case_load.h"

#include <string.h>

#include "base/thread/parallel.h"
#include "data/dataset/case_file.h"
#include "data/picture/picture_read.h"
#include "data/reader/volume_read.h"

typedef struct case_loading {
    const data_case *info;
    int channels;
    bool ids;
    loaded_case *out;
    pons_error image_problem;
} case_loading;

/* Load an image that is a part of a file. */
static void load_part_of_file(case_loading *r)
{
    volume_facts facts;

    if (case_file_image(r->info, 0, &r->out->image, &facts, &r->image_problem) == PONS_OK)
        r->out->grid = facts.grid;
}

static void load_image(case_loading *r)
{
    if (case_file_is_part(r->info)) {
        load_part_of_file(r);
        return;
    }
    if (volume_read_channels(r->info->image_count, r->info->image, &r->out->image, &r->out->grid,
                             &r->image_problem) == PONS_OK)
        picture_match_channels(r->info->image[0], r->channels, &r->out->image, &r->image_problem);
}

static void load_label(case_loading *r)
{
    volume_facts facts;

    if ((r->ids ? volume_read_label_compact : volume_read_label)(r->info->label, &r->out->label,
                                                               &facts,
                                                               &r->out->label_problem) == PONS_OK)
        r->out->label_grid = facts.grid;
}

/* Task 0 is the image, which takes longer and so starts first. */
static void load_part(void *context, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++)
        (n == 0 ? load_image : load_label)(context);
}

pons_status case_load(const data_case *info, int channels, bool ids, loaded_case *out,
                      pons_error *err)
{
    case_loading r = { info, channels, ids, out, PONS_ERROR_INIT };

    memset(out, 0, sizeof *out);
    out->label_problem = (pons_error)PONS_ERROR_INIT;
    parallel_run(info->label != NULL ? 2 : 1, 1, load_part, &r);
    if (r.image_problem.status == PONS_OK)
        return PONS_OK;
    pons_volume_clear(&out->image);
    pons_volume_clear(&out->label);
    return pons_fail(err, r.image_problem.status, "%s", r.image_problem.text);
}
