/*
 * backend_gloo.c - runs the tests of communicators over gloo.
 */
#include "support/run/comm_suite.h"

const comm_backend comm_backend_tested = { .plugin = "gloo" };
