/*
 * picture_tiff_absent.c - refuse TIFF files, in a build without libtiff.
 */
#include "data/picture/picture_internal.h"

pons_status picture_decode_tiff(const picture_bytes *bytes, picture_use use, picture *out,
                               pons_error *err)
{
    return picture_refuse_format(bytes->path, "TIFF", "libtiff", err);
}
