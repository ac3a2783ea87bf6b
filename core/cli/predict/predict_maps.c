/*
 * predict_maps.c - maps of slides, which a classification of their patches makes.
 */
#include "base/file/file.h"
#include "base/text/text.h"
#include "cli/predict/predict_internal.h"
#include "infer/predict_slide.h"
#include "report/picture/png_write.h"

static bool is_map(const char *path)
{
    return text_ends_with(path, ".tif") || text_ends_with(path, ".tiff");
}

static bool is_folder(const char *path)
{
    return folder_is_there(path) || text_ends_with(path, "/");
}

pons_status predict_check_slides(const predict_job *j, pons_error *err)
{
    const char *output = j->flags->output;

    if (predict_check_classification(j, err) != PONS_OK || is_map(output) || is_folder(output))
        return err->status;
    return pons_fail(err, PONS_USAGE, "-o '%s': expected a file .csv, which has a row for each "
                     "image, or a file .tiff, which is the map of a slide", output);
}

pons_status predict_check_maps(predict_job *j, bool of_folder, pons_error *err)
{
    const char *output = j->flags->output;

    j->folder = is_folder(output);
    if (!j->folder && j->case_count > 1)
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a folder for %d slides, as %s/",
                         output, j->case_count, output);
    for (int i = 0; i < j->case_count; i++) {
        const predict_input *c = &j->cases[i];
        if (c->file_count != 1)
            return pons_fail(err, PONS_USAGE, "'%s' and %d more: expected one file for each map of "
                             "a slide", c->file[0], c->file_count - 1);
        if (c->patch != NULL)
            return pons_fail(err, PONS_USAGE, "'%s' is a patch, expected slides for maps\n"
                             "hint: -o classes.csv writes a row for each patch", c->file[0]);
    }
    if (!png_available())
        log_warning(j->call->log, "no pictures of maps are written: this build lacks libpng");
    return PONS_OK;
}

/* Write a map, and beside it the picture of the slide under it. */
static pons_status predict_slide(const predict_job *j, int number, pons_error *err)
{
    const char *map = predict_path_of(j, number);
    slide_thumbnail overlay = { .rgb = NULL };
    const predict_slide_work work = { .slide = j->cases[number].file[0], .map = map,
                                      .overlay = &overlay, .stride = j->flags->stride };

    if (predict_slide_run(j->member_count, j->member, &work, err) == PONS_OK && png_available()
        && predictor_rank(j->member[0]) == 0)
        png_write_rgb(predict_path_of_overlay(j, map), (int)overlay.columns, (int)overlay.rows,
                      overlay.rgb, err);
    slide_thumbnail_clear(&overlay);
    return predictor_share(j->member[0], err);
}

pons_status predict_slides(predict_job *j, pons_error *err)
{
    for (int i = 0; i < j->case_count && err->status == PONS_OK; i++) {
        pons_error problem = PONS_ERROR_INIT;

        if (folder_make_for(predict_path_of(j, i), err) != PONS_OK)
            return err->status;
        if (predict_slide(j, i, &problem) == PONS_DATA)
            predict_note_failure(j, i, problem.text, err);
        else if (problem.status != PONS_OK)
            pons_fail(err, problem.status, "%s", problem.text);
    }
    return err->status;
}
