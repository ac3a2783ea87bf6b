/*
 * png_write_missing.c - refuse to write pictures, in a build without libpng.
 */
#include "report/picture/png_write.h"

bool png_available(void)
{
    return false;
}

pons_status png_write_rgb(const char *path, int width, int height, const uint8_t *pixels,
                          pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "cannot write '%s': pictures need libpng, which is not in "
                     "this build", path);
}

pons_status png_write_indexed(const char *path, int width, int height, const uint8_t *pixels,
                              int colors, const uint8_t (*palette)[3], pons_error *err)
{
    return png_write_rgb(path, width, height, pixels, err);
}

bool png_encode_indexed(FILE *to, int width, int height, const uint8_t *pixels, int colors,
                        const uint8_t (*palette)[3])
{
    return false;
}
