/*
 * opened_cache.c - cases whose voxels are formulas, and the cache of them.
 */
#include "support/data/opened_cache.h"

#include "base/log.h"
#include "data/case/case_read.h"

cache_mode opened_mode = CACHE_DISK, opened_next_mode = CACHE_NONE;
cache_keep *opened_keep;

const char plain[] = "[preprocess]\nsteps = scale_range\n"
                            "[preprocess.scale_range]\nfrom = 0 4000\n";

double image_value(int64_t i, int64_t j, int64_t k)
{
    return (double)(i * 331 + j * 17 + k * k * 5 - 40);
}

double other_value(int64_t i, int64_t j, int64_t k)
{
    return image_value(i, j, k) + (i == 3 && j == 4 && k == 5);
}

static double label_value(int64_t i, int64_t j, int64_t k)
{
    return i > 4 && j < 7 && k > 2;
}

void write_sized_case(const char *folder, int n, int side, maker_value *value)
{
    char name[64];

    snprintf(name, sizeof name, "%s/case%d_image.nii", folder, n);
    maker_volume(name, side, side + n, side, value, 0, 4);
    snprintf(name, sizeof name, "%s/case%d_label.nii", folder, n);
    maker_volume(name, side, side + n, side, label_value, 0, 2);
}

void write_case(const char *folder, int n, maker_value *value)
{
    write_sized_case(folder, n, SIDE, value);
}

void write_cases(const char *folder)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(folder_make(maker_path("%s", folder), &err), PONS_OK);
    for (int n = 0; n < CASES; n++)
        write_case(folder, n, image_value);
}

void open_data(opened *o, const char *folder, const char *steps)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[] = { maker_path("%s/*_image.nii", folder) };
    dataset_settings data = { .image = { 1, image }, .label = maker_path("%s/*_label.nii", folder),
                              .labels = { 2, labels }, .validation = "none" };
    pons_error err = PONS_ERROR_INIT;
    char ini[32];

    memset(o, 0, sizeof *o);
    snprintf(ini, sizeof ini, "%d.ini", (int)getpid()); /* each process writes a file of its own */
    maker_text(ini, steps);
    ck_assert_int_eq(config_open(maker_path("%s", ini), 0, NULL, &o->ini, &err), PONS_OK);
    ck_assert_int_eq(pipeline_open(o->ini, "preprocess", false, 1, &o->chain, &err), PONS_OK);
    o->data = maker_open(&data);
}

/*
 * This function has no assertion: Check writes each one to a file, which a file size limit would
 * cut.
 */
pons_status fill_cache(opened *o, int64_t limit, pons_error *err)
{
    cache_settings s = { .mode = opened_mode, .next_mode = opened_next_mode, .threads = 2,
                         .limit = limit, .folder = maker_path("kept/deep"),
                         .sampling = SAMPLING_BALANCED, .background_above = 0.1,
                         .keep = opened_keep };
    FILE *stream = fmemopen(o->said, sizeof o->said, "w");
    logger l = { .terminal = stream, .level = LOG_NORMAL };
    const char *line;

    cache_open(o->data, o->chain, CASES, o->data->training, &s, &l, &o->held, err);
    fclose(stream);
    line = strstr(o->said, " of them from before");
    while (line != NULL && line > o->said && line[-1] >= '0' && line[-1] <= '9')
        line--;
    if (line != NULL)
        sscanf(line, "%d", &o->found);
    return err->status;
}

pons_status try_open(opened *o, const char *folder, const char *steps, int64_t limit,
                     pons_error *err)
{
    open_data(o, folder, steps);
    return fill_cache(o, limit, err);
}

void open_cache(opened *o, const char *folder, const char *steps, int64_t limit)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(try_open(o, folder, steps, limit, &err) == PONS_OK, "%s", err.text);
}

void close_cache(opened *o)
{
    cache_close(o->held);
    pipeline_close(o->chain);
    dataset_close(o->data);
    config_close(o->ini);
}

int count_found_cases(const char *folder, const char *steps)
{
    opened o;

    open_cache(&o, folder, steps, 0);
    ck_assert_int_eq(maker_cases_held(o.held), CASES);
    close_cache(&o);
    return o.found;
}

void assert_warnings_are_repeated(void)
{
    static const char steps[] = "[preprocess]\nsteps = crop_foreground\n"
                                "[preprocess.crop_foreground]\nabove = 1e6\n";
    opened o;

    write_cases("d");
    for (int time = 0; time < 2; time++) {
        open_cache(&o, "d", steps, 0);
        ck_assert_int_eq(o.found, time * CASES);
        for (int n = 0; n < CASES; n++) {
            char phrase[64];
            snprintf(phrase, sizeof phrase, "case 'case%d': crop_foreground found no voxel", n);
            ck_assert_msg(strstr(o.said, phrase) != NULL, "'%s' is not in: %s", phrase, o.said);
        }
        close_cache(&o);
    }
}

void assert_true_cases(const opened *o)
{
    for (int n = 0; n < CASES; n++) {
        pons_error err = PONS_ERROR_INIT;
        pons_case one, again;

        ck_assert_int_eq(cache_read(o->held, n, &one, &err), PONS_OK);
        ck_assert_int_eq(case_read(o->data, n, &again, &err), PONS_OK);
        ck_assert_int_eq(pipeline_apply(o->chain, PIPELINE_ALL, &again, NULL, &err), PONS_OK);
        ck_assert_mem_eq(one.image.extent, again.image.extent, sizeof one.image.extent);
        ck_assert_mem_eq(one.image.affine, again.image.affine, sizeof one.image.affine);
        ck_assert_mem_eq(one.image.inside_extent, again.image.inside_extent,
                         sizeof one.image.inside_extent);
        ck_assert_mem_eq(one.image.voxels, again.image.voxels, pons_volume_size(&one.image));
        ck_assert_int_eq(one.label.type, again.label.type);
        ck_assert_mem_eq(one.label.voxels, again.label.voxels, pons_volume_size(&one.label));
        case_clear(&one);
        case_clear(&again);
    }
}
