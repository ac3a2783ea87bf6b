/*
 * pons.h - all of the installed interface, and the entry of the program.
 */
#ifndef CORE_PONS_PONS_H
#define CORE_PONS_PONS_H

#include <pons/comm.h>
#include <pons/device.h>
#include <pons/graph.h>
#include <pons/loss.h>
#include <pons/model.h>
#include <pons/nn.h>
#include <pons/op.h>
#include <pons/optimizer.h>
#include <pons/plugin.h>
#include <pons/predict.h>
#include <pons/schedule.h>
#include <pons/sink.h>
#include <pons/train.h>
#include <pons/transform.h>

/* "1.0.0" */
const char *pons_version(void);
/* Run the command line; returns the exit code. One call at a time. */
int pons_main(int argc, char **argv);

#endif
