/*
 * value_text.h - a metric's value on the terminal and in JSON. An undefined value is NaN; the PSNR
 * of equal images is infinite, which JSON has no number for.
 */
#ifndef CORE_EVALUATE_VALUE_TEXT_H
#define CORE_EVALUATE_VALUE_TEXT_H

#include <stdio.h>

/* Four decimals, "inf", "-inf", or "-" if undefined; at the right of 'width' columns. */
void value_print(FILE *to, int width, double value);
/* A number, the text "inf" or "-inf", or null if undefined. */
void value_put_json(FILE *to, double value);

#endif
