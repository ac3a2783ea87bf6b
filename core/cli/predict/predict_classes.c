/*
 * predict_classes.c - the rows of the table of classes.
 */
#include "cli/predict/predict_classes.h"

#include "base/file/csv_text.h"
#include "base/file/json.h"
#include "metric/class_ranking.h"

pons_status predict_classes_open(predict_classes *t, const experiment *e, const char *path,
                                 pons_error *err)
{
    *t = (predict_classes){ .experiment = e };
    if (folder_make_for(path, err) != PONS_OK || safe_file_open(&t->file, path, err) != PONS_OK)
        return err->status;
    t->open = true;
    fputs("file,class", t->file.file);
    for (int c = 0; c < e->class_count; c++) {
        fputc(',', t->file.file);
        csv_put_text(t->file.file, e->classes[c].name);
    }
    fputc('\n', t->file.file);
    return PONS_OK;
}

void predict_classes_add(predict_classes *t, const char *image, const float *probability)
{
    const experiment *e = t->experiment;
    const class_ranking one = { 1, e->class_count, NULL, probability };
    FILE *to = t->file.file;

    t->rows++;
    csv_put_text(to, image);
    fputc(',', to);
    csv_put_text(to, e->classes[class_ranking_decide(&one, 0)].name);
    for (int c = 0; c < e->class_count; c++) {
        fputc(',', to);
        json_put_number(to, probability[c]);
    }
    fputc('\n', to);
}

pons_status predict_classes_close(predict_classes *t, pons_error *err)
{
    if (!t->open)
        return err->status;
    t->open = false;
    if (err->status == PONS_OK && t->rows > 0)
        return safe_file_commit(&t->file, err);
    safe_file_discard(&t->file);
    return err->status;
}
