/*
 * png_write_libpng.c - write a picture through libpng; the file is complete or absent.
 */
#include "report/picture/png_write.h"

#include <png.h>
#include <setjmp.h>

#include "base/file/file.h"

bool png_available(void)
{
    return true;
}

typedef struct png_source {
    int width, height, pixel_size; /* bytes of a pixel: 3, or 1 of a palette                      */
    const uint8_t *pixels;
    int colors;
    const uint8_t (*palette)[3];   /* NULL: RGB                                                   */
    bool unsynced;
} png_source;

static void set_palette(png_structp png, png_infop info, const png_source *s)
{
    png_color color[PNG_MAX_PALETTE_LENGTH];

    for (int i = 0; i < s->colors; i++)
        color[i] = (png_color){ s->palette[i][0], s->palette[i][1], s->palette[i][2] };
    png_set_PLTE(png, info, color, s->colors);
}

/* The caller reports a failure; libpng would print lines of its own. */
static void end_write(png_structp png, png_const_charp text)
{
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
}

/* libpng returns by longjmp on errors; no frame between holds a resource of this program. */
static bool encode_png(FILE *file, const png_source *s)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, end_write,
                                              ignore_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)s->width, (png_uint_32)s->height, 8,
                 s->palette != NULL ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (s->palette != NULL)
        set_palette(png, info, s);
    png_write_info(png, info);
    for (int y = 0; y < s->height; y++)
        png_write_row(png, (png_bytep)(s->pixels + (size_t)y * (size_t)s->width
                                       * (size_t)s->pixel_size));
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return true;
}

static pons_status write_png(const char *path, const png_source *s, pons_error *err)
{
    safe_file f;
    pons_status status = safe_file_open_swept(&f, path, err);

    if (status)
        return status;
    f.unsynced = s->unsynced;
    if (encode_png(f.file, s))
        return safe_file_commit(&f, err);
    safe_file_discard(&f);
    return pons_fail(err, PONS_FAILURE, "cannot write '%s': libpng refused %d x %d pixels", path,
                     s->width, s->height);
}

pons_status png_write_rgb(const char *path, int width, int height, const uint8_t *pixels,
                          pons_error *err)
{
    return write_png(path, &(png_source){ width, height, 3, pixels, 0, NULL, false }, err);
}

pons_status png_write_indexed(const char *path, int width, int height, const uint8_t *pixels,
                              int colors, const uint8_t (*palette)[3], pons_error *err)
{
    return write_png(path, &(png_source){ width, height, 1, pixels, colors, palette, true }, err);
}

bool png_encode_indexed(FILE *to, int width, int height, const uint8_t *pixels, int colors,
                        const uint8_t (*palette)[3])
{
    return encode_png(to, &(png_source){ width, height, 1, pixels, colors, palette, true })
           && fflush(to) == 0 && !ferror(to);
}
