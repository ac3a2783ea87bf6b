/*
 * seal.h - a JSON object that ends in the sha256 of all before it, so that one that was cut off or
 * changed is told from one that is whole.
 */
#ifndef CORE_BASE_SEAL_H
#define CORE_BASE_SEAL_H

#include <pons/plugin.h>
#include <stdio.h>

/* The end of the object 'text', which has at least one member and is open: written behind it. */
void seal_put(FILE *to, const char *text, size_t size);
/* PONS_DATA, with 'path' as its name, where 'text' is not as it was sealed. */
pons_status seal_check(const char *path, const char *text, size_t size, pons_error *err);

#endif
