/*
 * backend_shm.c - runs the tests of communicators over shm.
 */
#include "support/run/comm_suite.h"

const comm_backend comm_backend_tested = { .plugin = "shm" };
