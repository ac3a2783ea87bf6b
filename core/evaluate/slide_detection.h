/*
 * slide_detection.h - FROC of the probability maps of slides against masks of their lesions (the
 * evaluation of CAMELYON16; MONAI's LesionFROC).
 */
#ifndef CORE_EVALUATE_SLIDE_DETECTION_H
#define CORE_EVALUATE_SLIDE_DETECTION_H

#include "base/arena.h"
#include "data/dataset/class_list.h"
#include "detection/froc.h"

#include <stdio.h>

typedef struct slide_detection_rule {
    double threshold;             /* of detections                                                */
    int box;                      /* points along a side of the box that a detection suppresses   */
    double grow, isolated;        /* micrometres (target_areas.h)                                 */
    double micrometres[2];        /* from point to point of a map; 0: as its file says            */
    const data_class *class;      /* name in maps of several classes, ids of lesions in masks;    */
                                  /* NULL: the only class of a map, every id above 0              */
} slide_detection_rule;

/* A detection in a case. */
typedef struct slide_finding {
    double row, column;           /* centre, in pixels of level 0; of the map if unknown          */
    float probability;
    int32_t target;               /* 0: none                                                      */
    bool excluded;
} slide_finding;

typedef struct slide_case {
    const char *name;
    int64_t finding_count;
    slide_finding *finding;
    int32_t targets, excluded;    /* targets that count, and those that do not                    */
} slide_case;

typedef struct slide_detection {
    arena *memory;                /* the caller's                                                 */
    slide_detection_rule rule;
    int count, room;
    slide_case *item;
    froc_sums sums;
    froc_curve curve;             /* after slide_detection_finish                                 */
} slide_detection;

/*
 * Add a slide: its map (map_file.h) and the mask of its lesions; NULL: it has none. A mask has the
 * map's extent, or the slide's, in a file that slide.h or picture_read.h reads. PONS_DATA: extents
 * or classes differ, or the distance of points is unknown.
 */
pons_status slide_detection_add(slide_detection *d, const char *name, const char *map,
                                const char *mask, pons_error *err);
/* Compute the curve. PONS_DATA: no slide has a target. */
pons_status slide_detection_finish(slide_detection *d, pons_error *err);
void slide_detection_clear(slide_detection *d);

void slide_detection_print_table(const slide_detection *d, FILE *to);
void slide_detection_print_json(const slide_detection *d, FILE *to);
/* Write a row for each detection. */
pons_status slide_detection_write_csv(const slide_detection *d, const char *path, pons_error *err);

#endif
