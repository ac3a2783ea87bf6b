/*
 * picture_legend.h - rows of colours with their names in a picture.
 */
#ifndef CORE_REPORT_PICTURE_PICTURE_LEGEND_H
#define CORE_REPORT_PICTURE_PICTURE_LEGEND_H

#include "report/picture/picture.h"

/* A square in front of a name: the edge in one colour, the inside in another. */
typedef struct legend_item {
    uint8_t edge[3], inside[3];
    const char *name;
} legend_item;

/* The height of the rows that the items take in a width; 0 of no item. */
int picture_legend_height(const legend_item *item, int count, int width);
/* Draw the items from left to right, with as many rows as the width needs. */
void picture_legend_put(picture *to, const legend_item *item, int count, int top, int width);

#endif
