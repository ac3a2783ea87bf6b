/*
 * evaluate_slides.h - pons evaluate --metrics froc: maps of slides against masks of lesions.
 */
#ifndef CORE_CLI_EVALUATE_EVALUATE_SLIDES_H
#define CORE_CLI_EVALUATE_EVALUATE_SLIDES_H

#include "evaluate/slide_detection.h"

typedef struct evaluate_slides {
    const char *prediction, *label; /* two files or two folders                                   */
    const char *csv;              /* NULL: none                                                   */
    bool normal;                  /* a map without a mask shows a slide without lesions           */
    bool json;
    slide_detection_rule rule;
} evaluate_slides;

/* Pair maps and masks by their file stems, score them and print. */
pons_status evaluate_slides_run(const evaluate_slides *s, arena *memory, pons_error *err);

#endif
