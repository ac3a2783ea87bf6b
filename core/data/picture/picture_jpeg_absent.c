/*
 * picture_jpeg_absent.c - refuse JPEG files, in a build without libjpeg.
 */
#include "data/picture/picture_internal.h"

pons_status picture_decode_jpeg(const picture_bytes *bytes, picture_use use, picture *out,
                               pons_error *err)
{
    return picture_refuse_format(bytes->path, "JPEG", "libjpeg", err);
}
