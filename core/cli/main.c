/*
 * main.c - the program. All of its code is in libpons.
 */
#include <pons/pons.h>

int main(int argc, char **argv)
{
    return pons_main(argc, argv);
}
