/*
 * map_file_absent.c - refuse maps of slides, in a build without libtiff.
 */
#include "data/slide/map_file.h"

static pons_status refuse_map(const char *path, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "map '%s': this build lacks libtiff, which maps of slides "
                     "need", path);
}

pons_status map_writer_open(const char *path, const map_facts *facts, map_writer **out,
                            pons_error *err)
{
    return refuse_map(path, err);
}

pons_status map_writer_put(map_writer *w, int64_t band, const float *values, pons_error *err)
{
    return err->status;
}

pons_status map_writer_close(map_writer *w, pons_error *err)
{
    return err->status;
}

pons_status map_file_read(const char *path, map_file *out, pons_error *err)
{
    *out = (map_file){ .values = NULL };
    return refuse_map(path, err);
}

void map_file_clear(map_file *m)
{
}
