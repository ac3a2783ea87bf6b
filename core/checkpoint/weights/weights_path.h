/*
 * weights_path.h - the file of weights in a folder.
 */
#ifndef CORE_CHECKPOINT_WEIGHTS_WEIGHTS_PATH_H
#define CORE_CHECKPOINT_WEIGHTS_WEIGHTS_PATH_H

#include <pons/plugin.h>

#define WEIGHTS_OF_BUNDLE "models/model.pt" /* in a bundle of MONAI                               */

/*
 * The file that a path stands for, malloc'ed: a file itself; of a run its best checkpoint, which is
 * verified, and of a checkpoint the averages where it has some, else the model; of a bundle of
 * MONAI models/model.pt; of a fold of nnU-Net its checkpoint; of a folder with one fold, that of
 * the fold. PONS_CONFIG: the folder is none of them, or holds several folds.
 */
pons_status weights_path_find(const char *path, char **out, pons_error *err);
/* The name of the checkpoint in a fold of nnU-Net, the final before the best; NULL: none. */
const char *weights_of_fold(const char *folder);

#endif
