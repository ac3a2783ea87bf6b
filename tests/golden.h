/*
 * golden.h - golden cases: a JSON list of them, and their arrays in a safetensors file.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <pons/graph.h>

#include "base/json.h"
#include "config/config.h"
#include "train/safetensors.h"

typedef struct golden {
    char *text;
    json_document cases; /* a list */
    safetensors *array;
} golden;

/* tests/golden/NAME.json and NAME.safetensors; failures end the test. */
void golden_open(golden *g, const char *name);
void golden_close(golden *g);
/*
 * CASE/NAME with channels last, [A, B, D, H, W] as [A, D, H, W, B] with D = 1 in 2D; vectors as
 * they are. malloc'ed; NULL if there is none.
 */
double *golden_array(const golden *g, const char *of, const char *name, pons_shape *shape);
/*
 * The members of 'options' as keys of [section], but for those that the INI file says otherwise
 * (spatial_dims, in_channels, out_channels). With 'flat' axes get 1 in front.
 */
config *golden_config(const json_value *options, const char *section, bool flat);

#endif
