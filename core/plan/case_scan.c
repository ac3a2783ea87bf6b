/*
 * case_scan.c - scan a case without a volume in memory's order.
 *
 * Sorted intensities, counts and boxes do not depend on the order of voxels. So integers are taken
 * from the inflated files: no volume is converted and transposed, and only the foreground becomes
 * floats.
 */
#include "plan/case_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "data/dataset/label_map.h"
#include "data/nifti/nifti_read.h"
#include "data/volume/geometry.h"

enum { UINT8 = 2 }; /* NIfTI's code                                                               */

typedef struct scanned_files {
    nifti_stored image, label;
    label_map map;
} scanned_files;

/* ---- the box of voxels other than 0 ---------------------------------------------------------- */

/* The number of bytes 0 at the beginning. */
static int64_t zeros_at_begin(const unsigned char *x, int64_t size)
{
    int64_t n = 0;

    while (n < size && x[n] == 0)
        n++;
    return n;
}

/* The position behind the last byte other than 0, which exists. */
static int64_t end_of_bytes(const unsigned char *x, int64_t size)
{
    while (x[size - 1] == 0)
        size--;
    return size;
}

static void widen(int64_t low[3], int64_t high[3], const int64_t at[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = min_i64(low[a], at[a]);
        high[a] = max_i64(high[a], at[a] + 1);
    }
}

static void find_cropped(const nifti_stored *s, int64_t cropped[3])
{
    const int64_t *n = s->extent;
    int64_t low[3] = { n[0], n[1], n[2] }, high[3] = { 0 }, row = n[0] * s->size;
    const unsigned char *x = s->voxels;

    for (int64_t k = 0; k < n[2]; k++) {
        for (int64_t j = 0; j < n[1]; j++, x += row) {
            int64_t first = zeros_at_begin(x, row);
            if (first == row)
                continue;
            widen(low, high, (const int64_t[]){ first / s->size, j, k });
            widen(low, high, (const int64_t[]){ (end_of_bytes(x, row) - 1) / s->size, j, k });
        }
    }
    for (int a = 0; a < 3; a++)
        cropped[a] = high[0] > 0 ? high[a] - low[a] : n[a];
}

/* ---- the foreground -------------------------------------------------------------------------- */

/* The end of the run of voxels that equal voxel 'begin', compared in words where possible. */
static int64_t run_end(const unsigned char *x, int64_t begin, int64_t count)
{
    uint64_t words[2], pattern = x[begin] * UINT64_C(0x0101010101010101);
    int64_t end = begin + 1;

    for (; end + (int64_t)sizeof words <= count; end += (int64_t)sizeof words) {
        memcpy(words, x + end, sizeof words);
        if (((words[0] ^ pattern) | (words[1] ^ pattern)) != 0)
            break;
    }
    while (end < count && x[end] == x[begin])
        end++;
    return end;
}

/* Append the floats of a run of foreground; false: out of memory. */
static bool append_run(const nifti_stored *image, int64_t begin, int64_t end, int64_t *room,
                       case_scan *out)
{
    int64_t count = out->foreground + end - begin;

    if (count > *room) {
        int64_t more = 2 * *room + (end - begin) + 4096;
        float *values = realloc(out->values, (size_t)more * sizeof *values);
        if (values == NULL)
            return false;
        out->values = values;
        *room = more;
    }
    nifti_stored_floats(image, begin, end - begin, out->values + out->foreground);
    out->foreground = count;
    return true;
}

/* Visit the runs of the label; false: an id is not listed, or out of memory. */
static bool scan_label(const scanned_files *f, int64_t *class_voxels, case_scan *out)
{
    int64_t count = f->label.extent[0] * f->label.extent[1] * f->label.extent[2], room = 0;

    for (int64_t begin = 0, end; begin < count; begin = end) {
        int id = f->label.voxels[begin];
        end = run_end(f->label.voxels, begin, count);
        if (label_map_class_index(&f->map, id) < 0)
            return false;
        class_voxels[f->map.target_value[id]] += end - begin;
        if (f->map.target_value[id] != 0 && !append_run(&f->image, begin, end, &room, out))
            return false;
    }
    return true;
}

/* ---- one case -------------------------------------------------------------------------------- */

/* Read both files; false: one of them is not plain, or case_read would refuse the case. */
static bool read_files(const data_case *info, scanned_files *f)
{
    pons_error ignored = PONS_ERROR_INIT;

    return nifti_read_stored(info->image[0], &f->image, &ignored) == PONS_OK
        && f->image.content != NULL
        && nifti_read_stored(info->label, &f->label, &ignored) == PONS_OK
        && f->label.content != NULL && f->label.facts.datatype == UINT8
        && volume_grid_compare(&f->label.facts.grid, info->label, &f->image.facts.grid,
                               info->image[0], &ignored) == PONS_OK;
}

static bool scan_files(const scanned_files *f, int class_count, int64_t *class_voxels,
                       case_scan *out)
{
    int64_t voxels[256] = { 0 };

    if (!scan_label(f, voxels, out)) {
        free(out->values);
        return false;
    }
    memcpy(out->grid.extent, f->image.extent, sizeof out->grid.extent);
    memcpy(out->grid.affine, f->image.facts.grid.affine, sizeof out->grid.affine);
    find_cropped(&f->image, out->cropped);
    for (int c = 0; c < class_count; c++)
        class_voxels[c] += voxels[c];
    return true;
}

bool case_scan_read(const dataset *d, int rank, case_scan *out, int64_t *class_voxels)
{
    const data_case *info = &d->cases[rank];
    scanned_files f = { .image.content = NULL };
    pons_error ignored = PONS_ERROR_INIT;
    case_scan found = { .grid.channels = 1 };
    bool done;

    if (d->channels != 1 || info->image_count != 1 || info->label == NULL || d->region_count > 0
        || d->ignored != NULL || d->class_count > 256)
        return false;
    done = read_files(info, &f) && label_map_init(&f.map, d, &ignored) == PONS_OK
        && scan_files(&f, d->class_count, class_voxels, &found);
    label_map_clear(&f.map);
    nifti_stored_clear(&f.image);
    nifti_stored_clear(&f.label);
    if (done)
        *out = found;
    return done;
}
