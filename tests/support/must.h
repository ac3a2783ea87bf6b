/*
 * must.h - calls that have to succeed.
 *
 *     MUST(dataset_open(&settings, &data, &error));
 */
#ifndef TESTS_MUST_H
#define TESTS_MUST_H

#include <pons/plugin.h>

#include "support/asserts.h"

static pons_error error = PONS_ERROR_INIT; /* of the last MUST */

#define MUST(call)                                                                                \
    ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s", error.text)

#endif
