/*
 * fakes.c - open the libraries of tests/fake, unless the test runs on a real GPU.
 */
#include "support/graph/fakes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The libraries; each needs only those before it. */
static const char *const library_paths[] = {
    "tests/fake/.libs/libcuda.so.1", "tests/fake/.libs/libnvrtc.so.13",
    "tests/fake/.libs/libcublasLt.so.13", "tests/fake/.libs/libcudnn.so.9",
    "tests/fake/.libs/libnccl.so.2",
};
enum { LIBRARIES = sizeof library_paths / sizeof *library_paths };

static const char *requested_gpu(void)
{
    const char *card = getenv("PONS_TEST_CARD");

    return card != NULL ? card : "";
}

bool fakes_are_away(void)
{
    return strcmp(requested_gpu(), "real") == 0;
}

bool fakes_open(void)
{
    if (fakes_are_away())
        return true;
    if (requested_gpu()[0] != '\0') {
        fprintf(stderr, "PONS_TEST_CARD = '%s', expected 'real' or nothing\n", requested_gpu());
        return false;
    }
    unsetenv("CUDA_VISIBLE_DEVICES"); /* this variable concerns the machine's own GPUs */
    for (int i = 0; i < LIBRARIES; i++)
        if (access(library_paths[i], F_OK) == 0 && dlopen(library_paths[i],
                                                          RTLD_NOW | RTLD_LOCAL) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return false;
        }
    return true;
}

void *fakes_function(const char *name)
{
    void *function = NULL;

    for (int i = 0; i < LIBRARIES && function == NULL && !fakes_are_away(); i++) {
        void *library = dlopen(library_paths[i], RTLD_NOW | RTLD_LOCAL);
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
