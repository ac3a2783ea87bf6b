/*
 * golden_formula.h - golden cases that store results only: weights, image and target follow a
 * formula of their names, and of large tensors the file has the norm and six elements.
 */
#ifndef TESTS_GOLDEN_FORMULA_H
#define TESTS_GOLDEN_FORMULA_H

#include "support/graph/golden_program.h"

/* Whether the numbers of a case follow the formula: it has shapes instead of arrays. */
bool golden_is_formula(const json_t *c);
/* The shape of a case's image, with or without the formula. */
pons_shape golden_case_image(const golden *g, const json_t *c);
/* A tensor of the case by its name, 'image' and 'target' too, in our order of axes. */
void golden_formula_read(const json_t *c, const char *name, pons_tensor to, void *memory);
void golden_formula_restore(const json_t *c, storage *s);

/* The norm, then the elements floor(k (n - 1) / 5) in PyTorch's order, k = 0 .. 5. */
typedef struct golden_sample { double value[7], largest; } golden_sample;

golden_sample golden_sample_state(const json_t *c, const char *name, pons_tensor found,
                                  const void *memory);

#endif
