/*
 * export_nnunet.h - a run as a trained model folder of nnU-Net (version 2).
 *
 * The plan's axes are those of the file: transpose_forward is 2 1 0, or has the flat axis of a 2D
 * network first. So neither kernels nor numbers of axes are turned.
 */
#ifndef CORE_CLI_EXCHANGE_EXPORT_NNUNET_H
#define CORE_CLI_EXCHANGE_EXPORT_NNUNET_H

#include "infer/predict.h"

/*
 * Write plans.json, dataset.json and fold_0/checkpoint_final.pth. PONS_CONFIG names the option that
 * nnU-Net cannot say; PONS_USAGE: the folder exists. Nothing is written then.
 */
pons_status export_nnunet(const predictor *p, const char *folder, pons_error *err);

#endif
