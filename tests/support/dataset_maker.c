/*
 * dataset_maker.c - see dataset_maker.h.
 */
#include "support/dataset_maker.h"

static char maker_paths[64][512];

static int maker_path_count;

const char *maker_path(const char *format, ...)
{
    char *out = maker_paths[maker_path_count++ % 64];
    int size = snprintf(out, sizeof maker_paths[0], "%s/", root);
    va_list list;

    va_start(list, format);
    vsnprintf(out + size, sizeof maker_paths[0] - (size_t)size, format, list);
    va_end(list);
    return out;
}

void maker_text(const char *name, const char *text)
{
    char folder[512];
    FILE *file;

    snprintf(folder, sizeof folder, "%s", maker_path("%s", name));
    *strrchr(folder, '/') = '\0';
    pons_error err = PONS_ERROR_INIT;
    ck_assert_int_eq(folder_make(folder, &err), PONS_OK);
    file = fopen(maker_path("%s", name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

void maker_volume(const char *name, int64_t n0, int64_t n1, int64_t n2,
                  maker_value *value, double shift, int datatype)
{
    const int64_t extent[3] = { n0, n1, n2 };
    pons_error err = PONS_ERROR_INIT;
    volume v;
    float *x;

    ck_assert_int_eq(pons_volume_init(&v, PONS_F32, 1, extent, &err), PONS_OK);
    v.affine[2][2] = 2;
    v.affine[0][3] = shift;
    x = v.voxels;
    for (int64_t i = 0; i < n0; i++)
        for (int64_t j = 0; j < n1; j++)
            for (int64_t k = 0; k < n2; k++)
                *x++ = (float)value(i, j, k);
    ck_assert_msg(nifti_write_as(maker_path("%s", name), &v, NULL, datatype, &err) == PONS_OK,
                  "%s", err.text);
    pons_volume_clear(&v);
}

dataset *maker_open(const dataset_settings *settings)
{
    pons_error err = PONS_ERROR_INIT;
    dataset *d = NULL;

    ck_assert_msg(dataset_open(settings, &d, &err) == PONS_OK, "%s", err.text);
    return d;
}

void maker_refused(const dataset_settings *settings, pons_status status, const char *phrase)
{
    pons_error err = PONS_ERROR_INIT;
    const char *second;
    dataset *d = NULL;

    ck_assert_msg(dataset_open(settings, &d, &err) == status, "status %d: %s", err.status,
                  err.text);
    ck_assert_msg(strstr(err.text, phrase) != NULL, "'%s' lacks '%s'", err.text, phrase);
    second = strchr(err.text, '\n');
    ck_assert_msg(second == NULL || strncmp(second, "\nhint: ", 7) == 0, "%s", err.text);
    ck_assert_ptr_null(d);
}

int maker_cases_held(const cache *c)
{
    int count = 0;

    for (int rank = 0; rank < cache_dataset(c)->case_count; rank++)
        count += cache_packed(c, rank) != NULL;
    return count;
}
