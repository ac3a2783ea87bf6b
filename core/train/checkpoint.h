/*
 * checkpoint.h - folders of safetensors files that are complete and verified, or not there.
 *
 *   checkpoints/step-00001200/{model,optimizer,trainer,ema}.safetensors  manifest.json
 *   checkpoints/{last,best}       one line: a folder's base name
 *
 * A folder is written under a name that ends in '.part', synced, renamed, and the folder above is
 * synced: a process that is killed at any moment leaves the older ones as they were. manifest.json
 * holds size and SHA-256 of every file and, as its last member, of its own text before that member.
 */
#ifndef CORE_TRAIN_CHECKPOINT_H
#define CORE_TRAIN_CHECKPOINT_H

#include "base/log.h"
#include "train/safetensors.h"

typedef struct checkpoint_file {
    const char *name; /* "model.safetensors" */
    safetensors_content content;
} checkpoint_file;

/*
 * 'folder' is .../checkpoints; made when missing. A valid folder of this step is exchanged for the
 * new one in one act; where the file system cannot do that, it stays as it is.
 */
pons_status checkpoint_write(const char *folder, int64_t step, int count,
                             const checkpoint_file *file, pons_error *err);
/* Let the one-line file 'mark' ("last", "best") name this step's folder, unless it does. */
pons_status checkpoint_mark(const char *folder, const char *mark, int64_t step, pons_error *err);
bool checkpoint_is_marked(const char *folder, const char *mark, int64_t step);
/* Remove all but the 'keep' newest and the marked ones, and what killed processes left. */
pons_status checkpoint_prune(const char *folder, int keep, pons_error *err);

/* Every file there, with the size and the hash that the manifest says. PONS_DATA if not. */
pons_status checkpoint_verify(const char *path, pons_error *err);
/*
 * The newest valid folder's path (malloc'ed), NULL when there is none at all; damaged ones are
 * passed over with a warning. All damaged: PONS_DATA.
 */
pons_status checkpoint_newest(const char *folder, logger *l, char **path, pons_error *err);
/* The folder that 'mark' names if it is valid, else the newest valid one, saying so. */
pons_status checkpoint_marked(const char *folder, const char *mark, logger *l, char **path,
                              pons_error *err);

#endif
