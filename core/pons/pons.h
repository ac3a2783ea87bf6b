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

PONS_C_BEGIN

/* "1.0.0" */
const char *pons_version(void);
/*
 * Prepare the process as the program pons does its own: the variables of OpenMP and oneDNN, which
 * change speed and bits, are hidden; kernel threads that wait sleep soon; large blocks return to
 * the system when freed; a file at its size limit is an error, not a signal. For the start of main,
 * before other threads, in a program that predicts or trains. Without it such a program works, and
 * may be slower or differ in bits from the program pons.
 */
void pons_process_prepare(void);
/* Run the command line; returns the exit code. One call at a time. */
int pons_main(int argc, char **argv);

PONS_C_END

#endif
