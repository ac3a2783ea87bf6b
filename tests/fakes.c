/*
 * fakes.c - open the libraries of tests/fake, or leave them closed where a real card is asked for.
 */
#include "fakes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order of their needs. */
static const char *const paths[] = {
    "tests/fake/.libs/libcuda.so.1", "tests/fake/.libs/libnvrtc.so.13",
    "tests/fake/.libs/libcublasLt.so.13", "tests/fake/.libs/libcudnn.so.9",
    "tests/fake/.libs/libnccl.so.2",
};
enum { PATHS = sizeof paths / sizeof *paths };

static const char *asked_for(void)
{
    const char *card = getenv("PONS_TEST_CARD");

    return card != NULL ? card : "";
}

bool fakes_are_away(void)
{
    return strcmp(asked_for(), "real") == 0;
}

bool fakes_open(void)
{
    if (fakes_are_away())
        return true;
    if (asked_for()[0] != '\0') {
        fprintf(stderr, "PONS_TEST_CARD = '%s', expected 'real' or nothing\n", asked_for());
        return false;
    }
    unsetenv("CUDA_VISIBLE_DEVICES"); /* of the machine's own GPUs */
    for (int i = 0; i < PATHS; i++)
        if (access(paths[i], F_OK) == 0 && dlopen(paths[i], RTLD_NOW | RTLD_LOCAL) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return false;
        }
    return true;
}

void *fakes_function(const char *name)
{
    void *function = NULL;

    for (int i = 0; i < PATHS && function == NULL && !fakes_are_away(); i++) {
        void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        function = library != NULL ? dlsym(library, name) : NULL;
    }
    return function;
}

int fakes_left_over(void)
{
    int (*count)(void) = NULL;

    if (fakes_are_away())
        return 0;
    *(void **)&count = fakes_function("fake_left_over");
    if (count == NULL)
        abort();
    return count();
}

bool fakes_given(const char *test)
{
    if (fakes_are_away())
        printf("SKIPPED: %s: needs made-up cards\n", test);
    return !fakes_are_away();
}
