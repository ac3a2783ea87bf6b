/*
 * predict_classes.c - the rows of the table of classes.
 */
#include "cli/predict/predict_classes.h"

#include "base/file/csv_text.h"
#include "base/file/json.h"

pons_status predict_classes_open(predict_classes *t, const experiment *e, const char *path,
                                 pons_error *err)
{
    *t = (predict_classes){ .experiment = e };
    if (safe_file_open(&t->file, path, err) != PONS_OK)
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
    FILE *to = t->file.file;
    int best = 0;

    for (int c = 1; c < e->class_count; c++)
        best = probability[c] > probability[best] ? c : best;
    csv_put_text(to, image);
    fputc(',', to);
    csv_put_text(to, e->classes[best].name);
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
    if (err->status == PONS_OK)
        return safe_file_commit(&t->file, err);
    safe_file_discard(&t->file);
    return err->status;
}
