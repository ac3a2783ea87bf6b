/*
 * pixel_text.h - short texts in a picture, in letters of 5 x 7 pixels.
 */
#ifndef CORE_REPORT_PICTURE_PIXEL_TEXT_H
#define CORE_REPORT_PICTURE_PIXEL_TEXT_H

#include "report/picture/picture.h"

/* Pixels of a text with 'scale' pixels for each of a letter; its height is 7 times the scale. */
int pixel_text_width(const char *text, int scale);
/*
 * Draw small letters, figures and . , - + ( ) _ with their top left corner at x, y; capital letters
 * become small ones, and other characters blanks.
 */
void pixel_text_put(picture *p, int x, int y, int scale, const char *text, const uint8_t color[3]);

#endif
