/*
 * tree_maker.h - small trees of volumes in the layouts of published datasets.
 */
#ifndef TESTS_TREE_MAKER_H
#define TESTS_TREE_MAKER_H

#include "support/asserts.h"

#include <stdbool.h>

enum { TREE_EXTENT = 8, TREE_IDS = 5 };

/*
 * Write a volume of TREE_EXTENT^3 voxels to 'path' and make its folders. An image holds a slope
 * that depends on 'channel'; a mask (ids not NULL) holds ids[0 .. count - 1] in turn along i.
 */
void tree_image(const char *path, int channel);
void tree_mask(const char *path, int count, const int *ids);
void tree_text(const char *path, const char *text);

/* A tree of BraTS with two cases. */
typedef struct brats_tree {
    const char *name;          /* the family that is printed */
    const char *case_path[2];  /* the folders of the cases */
    const char *suffix[5];     /* of T1, T1ce, T2, FLAIR and mask; NULL: no file */
    const char *ending;
    const char *labels, *regions; /* as in an INI file; regions NULL: none */
    int id_count, id[TREE_IDS];
} brats_tree;

#define BRATS_TREES 14
extern const brats_tree brats_trees[BRATS_TREES];
/* The row of a family. */
const brats_tree *brats_tree_of(const char *name);

/* Write the tree below 'folder'. */
void brats_tree_make(const brats_tree *t, const char *folder);
/* The path of a file of case 0 or 1; role 0 to 4. The last result stays valid. */
const char *brats_tree_path(const brats_tree *t, const char *folder, int number, int role);

/*
 * A tree of BIDS below 'folder' with subjects 01, 02 and 03: subject 02 has the folders ses-a and
 * ses-b, 01 and 02 have FLAIR, 03 has no label. T1w lies in the tree itself. The labels lie in
 * derivatives/manual with desc-manual, and hold the ids 0, 2 and 5, which its dseg.tsv names.
 */
void bids_tree_make(const char *folder);
#define BIDS_TABLE "index\tname\tcolor\n2\tgrey matter\t#ff0000\n5\tCSF\t#00ff00\n"

#endif
