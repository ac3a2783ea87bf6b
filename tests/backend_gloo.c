/*
 * backend_gloo.c - tests of communicators run over gloo.
 */
#include "comm_suite.h"

const comm_backend comm_backend_tested = { .plugin = "gloo" };
