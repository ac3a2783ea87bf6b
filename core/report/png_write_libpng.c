/*
 * png_write_libpng.c - write a picture through libpng; the file is complete or absent.
 */
#include "report/png_write.h"

#include <png.h>
#include <setjmp.h>

#include "base/file/file.h"

bool png_available(void)
{
    return true;
}

/* libpng returns by longjmp on errors; no frame between holds a resource of this program. */
static bool encode_png(FILE *file, int width, int height, const uint8_t *pixels)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < height; y++)
        png_write_row(png, (png_bytep)(pixels + (size_t)y * (size_t)width * 3));
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return true;
}

pons_status png_write_rgb(const char *path, int width, int height, const uint8_t *pixels,
                          pons_error *err)
{
    safe_file f;
    pons_status status = safe_file_open_swept(&f, path, err);

    if (status)
        return status;
    if (encode_png(f.file, width, height, pixels))
        return safe_file_commit(&f, err);
    safe_file_discard(&f);
    return pons_fail(err, PONS_FAILURE, "cannot write '%s': libpng refused %d x %d pixels", path,
                     width, height);
}
