/*
 * tree_maker.c - see tree_maker.h.
 */
#include "support/tree_maker.h"

#include "base/file/file.h"
#include "data/nifti/nifti_write.h"

#include <stdio.h>
#include <string.h>

/* ---- files ----------------------------------------------------------------------------------- */

static void make_folder_of(const char *path)
{
    pons_error err = PONS_ERROR_INIT;
    char folder[1024];

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    ck_assert_msg(folder_make(folder, &err) == PONS_OK, "%s", err.text);
}

static void write_volume(const char *path, int channel, int count, const int *ids)
{
    const int64_t extent[3] = { TREE_EXTENT, TREE_EXTENT, TREE_EXTENT };
    pons_error err = PONS_ERROR_INIT;
    volume v;
    float *x;

    make_folder_of(path);
    ck_assert_int_eq(pons_volume_init(&v, PONS_F32, 1, extent, &err), PONS_OK);
    x = v.voxels;
    for (int i = 0; i < TREE_EXTENT; i++)
        for (int j = 0; j < TREE_EXTENT; j++)
            for (int k = 0; k < TREE_EXTENT; k++)
                *x++ = ids != NULL ? (float)ids[i % count]
                                   : (float)(100 * (channel + 1) + 10 * i + j * k);
    ck_assert_msg(nifti_write_as(path, &v, NULL, ids != NULL ? 2 : 4, &err) == PONS_OK, "%s",
                  err.text);
    pons_volume_clear(&v);
}

void tree_image(const char *path, int channel)
{
    write_volume(path, channel, 0, NULL);
}

void tree_mask(const char *path, int count, const int *ids)
{
    write_volume(path, 0, count, ids);
}

void tree_text(const char *path, const char *text)
{
    FILE *file;

    make_folder_of(path);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- BraTS ----------------------------------------------------------------------------------- */

#define OLD { "_t1", "_t1ce", "_t2", "_flair", "_seg" }
#define NEW { "-t1n", "-t1c", "-t2w", "-t2f", "-seg" }
#define OLD_IDS "background:0 NCR:1 ED:2 ET:4", "WT:1,2,4 TC:1,4 ET:4", 4, { 0, 1, 2, 4 }
#define NEW_IDS "background:0 NCR:1 ED:2 ET:3", "WT:1,2,3 TC:1,3 ET:3", 4, { 0, 1, 2, 3 }
#define ALL_2023 "ASNR-MICCAI-BraTS2023-"

const brats_tree brats_trees[BRATS_TREES] = {
    { "BraTS 2017, glioma", { "HGG/Brats17_2013_2_1", "LGG/Brats17_TCIA_101_1" }, OLD, ".nii.gz",
      OLD_IDS },
    { "BraTS 2018, glioma", { "HGG/Brats18_CBICA_AAB_1", "LGG/Brats18_TCIA09_141_1" }, OLD,
      ".nii.gz", OLD_IDS },
    { "BraTS 2019, glioma", { "HGG/BraTS19_CBICA_AAB_1", "LGG/BraTS19_TMC_09043_1" }, OLD,
      ".nii.gz", OLD_IDS },
    { "BraTS 2020, glioma", { "MICCAI_BraTS2020_TrainingData/BraTS20_Training_001",
                              "MICCAI_BraTS2020_TrainingData/BraTS20_Training_355" },
      OLD, ".nii", OLD_IDS },
    { "BraTS 2021, glioma", { "BraTS2021_00000", "BraTS2021_00002" }, OLD, ".nii.gz", OLD_IDS },
    { "BraTS 2023, glioma", { ALL_2023 "GLI-Challenge-TrainingData/BraTS-GLI-00000-000",
                              ALL_2023 "GLI-Challenge-TrainingData/BraTS-GLI-00002-001" },
      NEW, ".nii.gz", NEW_IDS },
    { "BraTS 2024, glioma after treatment",
      { "BraTS2024-BraTS-GLI-TrainingData/training_data1_v2/BraTS-GLI-00005-100",
        "BraTS2024-BraTS-GLI-TrainingData/training_data1_v2/BraTS-GLI-02062-101" },
      NEW, ".nii.gz", "background:0 NCR:1 ED:2 ET:3 RC:4", "WT:1,2,3 TC:1,3 ET:3 RC:4",
      5, { 0, 1, 2, 3, 4 } },
    { "BraTS 2023, sub-Saharan Africa", { "BraTS-SSA-00002-000", "BraTS-SSA-00007-000" }, NEW,
      ".nii.gz", NEW_IDS },
    { "BraTS 2024, meningioma radiotherapy",
      { "BraTS-MEN-RT-Train-v2/BraTS-MEN-RT-0000-1", "BraTS-MEN-RT-Train-v2/BraTS-MEN-RT-0008-1" },
      { NULL, "_t1c", NULL, NULL, "_gtv" }, ".nii.gz", "background:0 GTV:1", NULL, 2, { 0, 1 } },
    { "BraTS 2023, meningioma", { "BraTS-MEN-00000-000", "BraTS-MEN-00002-000" }, NEW, ".nii.gz",
      NEW_IDS },
    { "BraTS 2023, metastases", { "BraTS-MET-00001-000", "BraTS-MET-00002-000" }, NEW, ".nii.gz",
      NEW_IDS },
    { "BraTS 2023, paediatric", { ALL_2023 "PED-Challenge-TrainingData/BraTS-PED-00001-000",
                                  ALL_2023 "PED-Challenge-TrainingData/BraTS-PED-00002-000" },
      NEW, ".nii.gz", NEW_IDS },
    { "BraTS 2024, paediatric", { "BraTS-PEDs2024_Training/BraTS-PED-00001-000",
                                  "BraTS-PEDs2024_Training/BraTS-PED-00002-000" },
      NEW, ".nii.gz", "background:0 ET:1 NET:2 CC:3 ED:4", "WT:1,2,3,4 TC:1,2,3 ET:1",
      5, { 0, 1, 2, 3, 4 } },
    { "BraTS 2024, any tumour", { "BraTS-GoAT-00000", "BraTS-GoAT-00001" }, NEW, ".nii.gz",
      NEW_IDS },
};

const brats_tree *brats_tree_of(const char *name)
{
    for (int n = 0; n < BRATS_TREES; n++)
        if (strcmp(brats_trees[n].name, name) == 0)
            return &brats_trees[n];
    ck_abort_msg("no tree '%s'", name);
}

const char *brats_tree_path(const brats_tree *t, const char *folder, int number, int role)
{
    static char path[1024];
    const char *slash = strrchr(t->case_path[number], '/');

    snprintf(path, sizeof path, "%s/%s/%s%s%s", folder, t->case_path[number],
             slash != NULL ? slash + 1 : t->case_path[number], t->suffix[role], t->ending);
    return path;
}

void brats_tree_make(const brats_tree *t, const char *folder)
{
    for (int number = 0; number < 2; number++)
        for (int role = 0; role < 5; role++) {
            if (t->suffix[role] == NULL)
                continue;
            const char *path = brats_tree_path(t, folder, number, role);
            if (role < 4)
                tree_image(path, 4 * number + role);
            else
                tree_mask(path, t->id_count, t->id);
        }
}

/* ---- BIDS ------------------------------------------------------------------------------------ */

void bids_tree_make(const char *folder)
{
    static const char *const scan[][2] = {
        { "sub-01", "sub-01" }, { "sub-02/ses-a", "sub-02_ses-a" },
        { "sub-02/ses-b", "sub-02_ses-b" }, { "sub-03", "sub-03" }
    };
    static const int ids[] = { 0, 2, 5, 0 };
    char path[1024];

    snprintf(path, sizeof path, "%s/dataset_description.json", folder);
    tree_text(path, "{\"Name\": \"test\", \"BIDSVersion\": \"1.9.0\"}\n");
    snprintf(path, sizeof path, "%s/derivatives/manual/dseg.tsv", folder);
    tree_text(path, BIDS_TABLE);
    for (int n = 0; n < 4; n++) {
        snprintf(path, sizeof path, "%s/%s/anat/%s_T1w.nii.gz", folder, scan[n][0],
                 scan[n][1]);
        tree_image(path, 2 * n);
        if (n == 3)
            continue;
        snprintf(path, sizeof path, "%s/%s/anat/%s_FLAIR.nii.gz", folder, scan[n][0],
                 scan[n][1]);
        tree_image(path, 2 * n + 1);
        snprintf(path, sizeof path, "%s/derivatives/manual/%s/anat/%s_desc-manual_dseg.nii.gz",
                 folder, scan[n][0], scan[n][1]);
        tree_mask(path, 4, ids);
    }
}
