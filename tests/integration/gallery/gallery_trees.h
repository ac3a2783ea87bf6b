/*
 * gallery_trees.h - damages of datasets in the layouts brats and bids, and of lists of labels. Each
 * has the shell commands that make it in the tree's folder, the exit code and a phrase.
 */
#ifndef TESTS_GALLERY_TREES_H
#define TESTS_GALLERY_TREES_H

#include <pons/pons.h>

#define GLIOMA_2021 "BraTS 2021, glioma"
#define CASE_2021 "BraTS2021_00000/BraTS2021_00000"
#define MANUAL_01 "derivatives/manual/sub-01/anat/sub-01"

/* 'tree' is a family of BraTS, or NULL: a tree of BIDS. 'keys' are lines of [data]. */
static const struct {
    const char *tree, *damage, *keys;
    pons_status status;
    const char *phrase;
} tree_gallery[] = {
    { GLIOMA_2021, "rm " CASE_2021 "_t1.nii.gz", "", PONS_DATA,
      "/BraTS2021_00000_t1.nii.gz' beside it" },
    { GLIOMA_2021, "rm " CASE_2021 "_flair.nii.gz", "", PONS_DATA,
      "/BraTS2021_00000_flair.nii.gz' beside it" },
    { GLIOMA_2021, "rm " CASE_2021 "_seg.nii.gz", "", PONS_DATA,
      "/BraTS2021_00000_seg.nii.gz' beside it" },
    { GLIOMA_2021, "mv " CASE_2021 "_seg.nii.gz BraTS2021_00000/W39.nii.gz; "
      "cp BraTS2021_00000/W39.nii.gz BraTS2021_00000/W40.nii.gz", "", PONS_DATA,
      "/BraTS2021_00000_seg.nii.gz' beside it" },
    { GLIOMA_2021, "gunzip -k " CASE_2021 "_t2.nii.gz", "", PONS_DATA, "expected one of them" },
    { GLIOMA_2021, "head -c 100 " CASE_2021 "_t2.nii.gz >x; mv x " CASE_2021 "_t2.nii.gz", "",
      PONS_DATA, "case 'BraTS2021_00000'" },
    { GLIOMA_2021, "cp " CASE_2021 "_t1.nii.gz " CASE_2021 "_seg.nii.gz", "", PONS_DATA,
      "which 'labels' does not list" },
    { GLIOMA_2021, "mkdir other; cp " CASE_2021 "_t1.nii.gz other/patient_t1.nii.gz", "",
      PONS_DATA, "expected a case's name of BraTS" },
    { GLIOMA_2021, "rm -r *", "layout = brats", PONS_DATA, "holds no case of BraTS" },
    { GLIOMA_2021, ":", "labels = background:0 tumour:1,2", PONS_DATA,
      "has id 4 in 128 voxels, which 'labels' does not list" },
    { GLIOMA_2021, ":", "label_suffix = mask", PONS_CONFIG,
      "'label_suffix' is given for the layout 'brats'" },
    { "BraTS 2023, paediatric", "mv *2023* BraTS-PEDs", "", PONS_DATA,
      "without a year, expected a folder's name with BraTS" },
    { "BraTS 2023, glioma", "mkdir BraTS2021_00001; cp */BraTS-GLI-00000-000/* BraTS2021_00001; "
      "cd BraTS2021_00001; for s in t1n:t1 t1c:t1ce t2w:t2 t2f:flair seg:seg; "
      "do mv *-${s%:*}.nii.gz BraTS2021_00001_${s#*:}.nii.gz; done", "", PONS_DATA,
      "expected one meaning of the ids" },
    { NULL, "rm " MANUAL_01 "_desc-manual_dseg.nii.gz; rm -r derivatives/manual/sub-02", "",
      PONS_DATA, "has a label *_dseg.nii.gz with its entities" },
    { NULL, ":", "label_suffix = mask", PONS_DATA, "has a label *_mask.nii.gz" },
    { NULL, ":", "image_suffix = T2w", PONS_DATA, "has no image sub-*_T2w.nii.gz" },
    { NULL, ":", "image_suffix = T1w FLAIR", PONS_DATA,
      "expected 'sub-03_FLAIR.nii.gz' beside it" },
    { NULL, "cp " MANUAL_01 "_desc-manual_dseg.nii.gz " MANUAL_01 "_desc-auto_dseg.nii.gz", "",
      PONS_DATA, "case 'sub-01': found the labels '" },
    { NULL, "gunzip -k sub-01/anat/sub-01_T1w.nii.gz", "", PONS_DATA, "expected one of them" },
    { NULL, "mv sub-01/anat/sub-01_T1w.nii.gz sub-01/anat/sub-09_T1w.nii.gz", "", PONS_DATA,
      "expected a name that begins with 'sub-01_'" },
    { NULL, "rm derivatives/manual/dseg.tsv", "", PONS_CONFIG, "'labels' is not given in [data]" },
    { NULL, "printf 'index\\tname\\n2\\tx\\n' >derivatives/manual/dseg.tsv", "", PONS_DATA,
      "has id 5 in 128 voxels, which 'labels' does not list" },
    { NULL, "printf 'index\\tname\\n2\\tx\\n5\\n' >derivatives/manual/dseg.tsv", "", PONS_DATA,
      "dseg.tsv' line 3: found 1 field, expected 2" },
    { NULL, "cp " MANUAL_01 "_desc-manual_dseg.nii.gz x; head -c 40 x >" MANUAL_01
      "_desc-manual_dseg.nii.gz", "", PONS_DATA, "case 'sub-01'" },
    { NULL, ":", "labels = background:0 brain:2-1", PONS_CONFIG, "expected ids from 0 to 65535" },
    { NULL, ":", "labels = background:rest brain:*", PONS_CONFIG,
      "expected one entry with rest or *" },
    { NULL, ":", "labels = background:0 brain:2,5\nmap = 5:0 2:0", PONS_CONFIG,
      "'map' leaves 'brain:2,5' without an id" },
    { NULL, "echo original,new >t.csv", "labels = table:bad/t.csv", PONS_DATA, "has 0 entries" },
    { NULL, "printf 'original,new\\n0,0\\n2,1\\n' >t.csv", "labels = table:bad/t.csv", PONS_DATA,
      "has id 5 in 128 voxels, which 'labels' does not list" },
    { NULL, ":", "labels = table:bad/none.csv", PONS_DATA, "none.csv" },
};

#endif
