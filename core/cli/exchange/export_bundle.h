/*
 * export_bundle.h - a run as a bundle of MONAI.
 */
#ifndef CORE_CLI_EXCHANGE_EXPORT_BUNDLE_H
#define CORE_CLI_EXCHANGE_EXPORT_BUNDLE_H

#include "infer/predict.h"

/*
 * Write configs/metadata.json, configs/inference.json, models/model.pt, docs/README.md and LICENSE.
 * PONS_CONFIG names the network, step or option that MONAI does not have; PONS_USAGE: the folder
 * exists. Nothing is written then.
 */
pons_status export_bundle(const predictor *p, const char *version, const char *folder,
                          pons_error *err);

#endif
