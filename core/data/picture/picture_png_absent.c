/*
 * picture_png_absent.c - refuse PNG files, in a build without libpng.
 */
#include "data/picture/picture_internal.h"

pons_status picture_decode_png(const picture_bytes *bytes, picture_use use, picture *out,
                               pons_error *err)
{
    return picture_refuse_format(bytes->path, "PNG", "libpng", err);
}
