/*
 * main.c - the program; all of it lives in libpons.
 */
#include <pons/pons.h>

int main(int argc, char **argv)
{
    return pons_main(argc, argv);
}
