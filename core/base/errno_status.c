/*
 * errno_status.c - the errno values of a system that has run out of something.
 */
#include "base/errno_status.h"

#include <errno.h>

static const int shortages[] = { EMFILE, ENFILE, ENOMEM, EAGAIN, ENOBUFS, ENOLCK };

pons_status errno_status(int problem, pons_status status)
{
    for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++)
        if (problem == shortages[i])
            return PONS_DEVICE;
    return status;
}
