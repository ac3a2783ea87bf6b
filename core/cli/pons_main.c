/*
 * pons_main.c - the command line: common options, then one command.
 */
#include <pons/pons.h>

#include <config.h>

const char *pons_version(void)
{
    return PACKAGE_VERSION;
}

int pons_main(int argc, char **argv)
{
    return PONS_OK;
}
