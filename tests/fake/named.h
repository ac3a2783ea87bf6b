/*
 * named.h - a library of the toolkit has the version of the name under which it was opened. A copy
 * of libnvrtc.so.13 named libnvrtc.so.12 is one of CUDA 12; one without a number is one of 13.
 */
#ifndef TESTS_FAKE_NAMED_H
#define TESTS_FAKE_NAMED_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* 'function' is any function of the library. */
static inline int named_version(const void *function)
{
    Dl_info facts;
    const char *at = dladdr(function, &facts) != 0 ? strstr(facts.dli_fname, ".so.") : NULL;

    return at != NULL ? atoi(at + strlen(".so.")) : 13;
}

#endif
