/*
 * png_write.h - pictures as files, in builds with libpng.
 */
#ifndef CORE_REPORT_PNG_WRITE_H
#define CORE_REPORT_PNG_WRITE_H

#include <pons/plugin.h>

/* 8-bit RGB, rows from the top. Without libpng: PONS_CONFIG. */
pons_status png_write_rgb(const char *path, int width, int height, const uint8_t *pixels,
                          pons_error *err);
bool png_available(void);

#endif
