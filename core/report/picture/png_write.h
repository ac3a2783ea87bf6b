/*
 * png_write.h - write pictures as PNG files, in builds with libpng.
 */
#ifndef CORE_REPORT_PICTURE_PNG_WRITE_H
#define CORE_REPORT_PICTURE_PNG_WRITE_H

#include <pons/plugin.h>

#include <stdio.h>

/*
 * Write 8-bit RGB, rows from the top. PONS_CONFIG without libpng. The caller sweeps temporary files
 * (base/file/file.h), once for many pictures of a folder.
 */
pons_status png_write_rgb(const char *path, int width, int height, const uint8_t *pixels,
                          pons_error *err);
/*
 * Write 8-bit indices of at most 256 colours of a palette; the same rules. The file is not synced:
 * it is one of many that a training writes again and again, and no loss if the machine fails.
 */
pons_status png_write_indexed(const char *path, int width, int height, const uint8_t *pixels,
                              int colors, const uint8_t (*palette)[3], pons_error *err);
/* Write the same to a stream. False: the stream or libpng fails, or the build lacks it. */
bool png_encode_indexed(FILE *to, int width, int height, const uint8_t *pixels, int colors,
                        const uint8_t (*palette)[3]);
bool png_available(void);

#endif
