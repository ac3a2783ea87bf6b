/*
 * case_load.c - a file is inflated by one thread, so two of them want two.
 */
#include "data/dataset/case_load.h"

#include <string.h>

#include "base/thread/parallel.h"
#include "data/nifti/nifti_read.h"

typedef struct reading {
    const data_case *info;
    bool ids;
    case_files *out;
    pons_error image_problem;
} reading;

static void read_image(reading *r)
{
    volume_read_channels(r->info->image_count, r->info->image, &r->out->image, &r->out->grid,
                         &r->image_problem);
}

static void read_label(reading *r)
{
    volume_facts facts;

    if ((r->ids ? volume_read_ids : volume_read_label)(r->info->label, &r->out->label, &facts,
                                                       &r->out->label_problem) == PONS_OK)
        r->out->label_grid = facts.grid;
}

/* The image, which is the larger one, first. */
static void read_part(void *context, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++)
        (n == 0 ? read_image : read_label)(context);
}

pons_status case_files_read(const data_case *info, bool ids, case_files *out, pons_error *err)
{
    reading r = { info, ids, out, PONS_ERROR_INIT };

    memset(out, 0, sizeof *out);
    out->label_problem = (pons_error)PONS_ERROR_INIT;
    parallel_run(info->label != NULL ? 2 : 1, 1, read_part, &r);
    if (r.image_problem.status == PONS_OK)
        return PONS_OK;
    pons_volume_clear(&out->label);
    return pons_fail(err, r.image_problem.status, "%s", r.image_problem.text);
}
