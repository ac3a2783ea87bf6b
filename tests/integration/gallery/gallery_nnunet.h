/*
 * gallery_nnunet.h - the errors of a raw nnU-Net folder, each with the phrase of the message. All
 * exit with PONS_DATA. 'nnunet_good' is the valid twin of all: cases s_10 and s_2 with two
 * channels.
 */
#ifndef TESTS_GALLERY_NNUNET_H
#define TESTS_GALLERY_NNUNET_H

#include <stddef.h>

#define CHANNELS "\"channel_names\": {\"0\": \"T1\", \"1\": \"T2\"}, "
#define LABELS "\"labels\": {\"background\": 0, \"spleen\": 1}, "
#define ENDING "\"file_ending\": \".nii.gz\", "
#define COUNT "\"numTraining\": 2"
#define WITH_LABELS(TEXT) "{ " CHANNELS "\"labels\": {" TEXT "}, " ENDING COUNT " }"
#define WITH_CHANNELS(TEXT) "{ \"channel_names\": " TEXT ", " LABELS ENDING COUNT " }"
#define MAP(IMAGES, LABEL) "{ " CHANNELS LABELS ENDING COUNT ", \"dataset\": {\"a\": " \
                           "{\"images\": " IMAGES ", \"label\": " LABEL "}} }"
#define IMAGES "[\"imagesTr/s_2_0000.nii.gz\", \"imagesTr/s_2_0001.nii.gz\"]"
#define LABEL "\"labelsTr/s_2.nii.gz\""

static const char nnunet_good[] = "{ " CHANNELS LABELS ENDING COUNT " }";

#define JSON(TEXT, PHRASE) { TEXT, PHRASE, NULL, NULL }
#define FILES(PHRASE, REMOVED, ADDED) { nnunet_good, PHRASE, REMOVED, ADDED }

/* 'removed' and 'added' are files of the folder. */
typedef struct broken_nnunet {
    const char *text, *phrase, *removed, *added;
} broken_nnunet;

static const broken_nnunet nnunet_gallery[] = {
    JSON(WITH_CHANNELS("{}"), "'channel_names' is an empty object, expected"),
    JSON(WITH_CHANNELS("[\"T1\"]"), "'channel_names' is a list, expected"),
    JSON(WITH_CHANNELS("{\"0\": 1}"), "'channel_names.0' is a number, expected a name"),
    JSON(WITH_CHANNELS("{\"1\": \"T1\"}"), "'channel_names' has no channel 0"),
    JSON(WITH_CHANNELS("{\"x\": \"T1\"}"), "'channel_names' has the key 'x'"),
    JSON(WITH_CHANNELS("{\"0\": \"T1\"}"), "is channel 1, expected 0 to 0"),
    JSON(WITH_CHANNELS("{\"0\": \"T1\", \"1\": \"T2\", \"2\": \"F\"}"),
         "imagesTr/s_10_0002.nii.gz' beside it"),
    JSON("{ " LABELS ENDING COUNT " }", "'channel_names' is missing"),
    JSON("{ " CHANNELS LABELS COUNT " }", "'file_ending' is missing"),
    JSON("{ " CHANNELS LABELS "\"file_ending\": 3 }", "'file_ending' is a number"),
    JSON("{ " CHANNELS LABELS "\"file_ending\": \".nrrd\" }", "'file_ending' is '.nrrd'"),
    JSON("{ " CHANNELS LABELS "\"file_ending\": \".nii\" }", "does not end in '.nii'"),
    JSON("{ " CHANNELS ENDING COUNT " }", "'labels' is missing"),
    JSON(WITH_LABELS(""), "'labels' is an empty object, expected"),
    JSON(WITH_LABELS("\"background\": \"0\""), "'labels.background' is a text"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 1.5"), "'labels.a' is a number"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": -1"), "'labels.a' is a number"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 70000"), "expected an id from 0 to 65535"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": []"), "'labels.a' is an empty list"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": [1, true]"), "'labels.a[1]' is true"),
    JSON(WITH_LABELS("\"background\": 0, \"\": 1"), "'labels' has an empty name"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 1, \"b\": 1"),
         "'labels' gives id 1 to 'a' and to 'b'"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 1, \"a\": 2"), "dataset.json"),
    JSON(WITH_LABELS("\"a\": 1, \"b\": 2"), "'labels' has no id 0"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 1, \"ignore\": [2, 3]"),
         "'labels.ignore' is a list, expected one id"),
    JSON(WITH_LABELS("\"background\": [0, 1], \"ignore\": 0"), "'labels.ignore' is 0"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": [1, 2], \"ignore\": 2"),
         "'labels' gives id 2 to 'a' and to 'ignore'"),
    JSON(WITH_LABELS("\"background\": 0"), "has 1 entry"),
    JSON(WITH_LABELS("\"background\": 0, \"a\": 3"), "has id 1 in "),
    JSON(WITH_LABELS("\"background\": 0, \"w\": [1, 2], \"c\": 2"),
         "'regions_class_order' is missing"),
    JSON("{ " CHANNELS "\"labels\": {\"background\": 0, \"w\": [1, 2]}, " ENDING
                      "\"regions_class_order\": [1, 2] }",
         "'regions_class_order' has 2 entries, expected 1"),
    JSON("{ " CHANNELS "\"labels\": {\"background\": 0, \"w\": [1, 2]}, " ENDING
                      "\"regions_class_order\": [\"w\"] }", "'regions_class_order[0]' is a text"),
    JSON("{ " CHANNELS "\"labels\": {\"background\": 0, \"w\": [1, 2]}, " ENDING
                      "\"regions_class_order\": [7] }",
         "'regions_class_order[0]' is 7, which no region of 'labels' has"),
    JSON("{ " CHANNELS "\"labels\": {\"background\": 0, \"w\": [1, 1]}, " ENDING
                      "\"regions_class_order\": [1] }", "gives id 1 to 'w' and to 'w'"),
    FILES("imagesTr/s_2_0001.nii.gz' beside it", "imagesTr/s_2_0001.nii.gz", NULL),
    FILES("imagesTr/s_10_0000.nii.gz' beside it", "imagesTr/s_10_0000.nii.gz", NULL),
    FILES("labelsTr/s_2.nii.gz' beside it", "labelsTr/s_2.nii.gz", NULL),
    FILES("imagesTr/t_0000.nii.gz' beside it", NULL, "labelsTr/t.nii.gz"),
    FILES("imagesTr/s_2_0002.nii.gz' is channel 2, expected 0 to 1",
          NULL, "imagesTr/s_2_0002.nii.gz"),
    FILES("imagesTr/s_2.nii.gz' has no channel", NULL, "imagesTr/s_2.nii.gz"),
    FILES("s_2_0000.nii", NULL, "imagesTr/s_2_0000.nii"),
    FILES("labelsTr/t.nii' does not end in '.nii.gz'", NULL, "labelsTr/t.nii"),
    JSON("{ " CHANNELS LABELS ENDING "\"dataset\": {} }", "'dataset' is an empty object"),
    JSON("{ " CHANNELS LABELS ENDING "\"dataset\": [] }", "'dataset' is a list"),
    JSON("{ " CHANNELS LABELS ENDING "\"dataset\": {\"a\": 1} }",
         "'dataset.a' is a number"),
    JSON("{ " CHANNELS LABELS ENDING "\"dataset\": {\"a/b\": {}} }",
         "gives no usable case id"),
    JSON(MAP("3", LABEL), "'dataset.a.images' is a number"),
    JSON(MAP("[" LABEL "]", LABEL), "'dataset.a.images' has 1 file, expected 2"),
    JSON(MAP("[3, 4]", LABEL), "'dataset.a.images[0]' is a number, expected a path"),
    JSON(MAP(IMAGES, "3"), "'dataset.a.label' is a number, expected a path"),
    JSON(MAP(IMAGES, "\"none.nii.gz\""), "'dataset.a.label': cannot find "),
};

#undef JSON
#undef FILES
#undef CHANNELS
#undef LABELS
#undef ENDING
#undef COUNT
#undef LABEL
#undef IMAGES

#endif
