/*
 * make_slide.c - a whole-slide image for shell tests: white, with boxes of tissue.
 *
 *     make_slide FILE ROWS COLUMNS TILE LEVELS [ROW,COLUMN,ROWS,COLUMNS,RRGGBB]...
 */
#include "support/data/slide_maker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BOXES_MAX = 256 };

static int read_box(const char *text, slide_box *b)
{
    unsigned rgb[3];
    int found = sscanf(text, "%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%2x%2x%2x", &b->row,
                       &b->column, &b->rows, &b->columns, &rgb[0], &rgb[1], &rgb[2]);

    for (int c = 0; found == 7 && c < 3; c++)
        b->rgb[c] = (uint8_t)rgb[c];
    return found == 7;
}

int main(int count, char **argument)
{
    slide_box box[BOXES_MAX];
    slide_plan plan = { .box = box };

    if (count < 6 || count > 6 + BOXES_MAX) {
        fprintf(stderr, "make_slide: expected FILE ROWS COLUMNS TILE LEVELS [BOX]...\n");
        return 2;
    }
    plan.rows = atoll(argument[2]);
    plan.columns = atoll(argument[3]);
    plan.tile = atoi(argument[4]);
    plan.levels = atoi(argument[5]);
    for (int i = 6; i < count; i++)
        if (!read_box(argument[i], &box[plan.box_count++])) {
            fprintf(stderr, "make_slide: '%s' is no box ROW,COLUMN,ROWS,COLUMNS,RRGGBB\n",
                    argument[i]);
            return 2;
        }
    slide_make(argument[1], &plan);
    return 0;
}
