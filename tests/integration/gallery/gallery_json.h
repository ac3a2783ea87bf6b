/*
 * gallery_json.h - the errors of a dataset.json, each with the phrase of the message. GOOD is the
 * valid twin of all.
 */
#ifndef TESTS_GALLERY_JSON_H
#define TESTS_GALLERY_JSON_H

#include <pons/pons.h>

#define HEAD "{ \"modality\": {\"0\": \"CT\"}, " \
             "\"labels\": {\"0\": \"background\", \"1\": \"spleen\"}, "
#define ITEM(NAME) "{\"image\": \"./imagesTr/" NAME ".nii.gz\", " \
                   "\"label\": \"./labelsTr/" NAME ".nii.gz\"}"
#define GOOD HEAD "\"numTraining\": \"41\", \"test\": [\"./imagesTs/x.nii.gz\"], \"training\": [" \
             ITEM("s_10") ", " ITEM("s_2") ", " ITEM("._s_2") "] }"

static const struct { pons_status status; const char *text, *phrase; } json_gallery[] = {
    { PONS_DATA, "", "dataset.json" },
    { PONS_DATA, "{", "dataset.json" },
    { PONS_DATA, "[]", "is a list, expected an object" },
    { PONS_DATA, HEAD "\"training\": [" ITEM("a") "], \"training\": [] }", "training" },
    { PONS_DATA, GOOD " x", "dataset.json" },
    { PONS_DATA, HEAD "\"test\": [] }", "'training' is missing, expected a list of cases" },
    { PONS_DATA, HEAD "\"training\": {} }", "'training' is an object, expected a list" },
    { PONS_DATA, HEAD "\"training\": [] }", "'training' has no case" },
    { PONS_DATA, HEAD "\"training\": [\"a.nii\"] }",
      "'training[0]' is a text, expected an object" },
    { PONS_DATA, HEAD "\"training\": [" ITEM("a") ", {\"label\": \"a\"}] }",
      "'training[1].image' is missing, expected a path" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": \"a.nii\"}] }",
      "'training[0].label' is missing, expected a path" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": 3, \"label\": \"a\"}] }",
      "'training[0].image' is a number, expected a path" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": [], \"label\": \"a\"}] }",
      "'training[0].image' is an empty list" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": [\"a\", \"b\"], \"label\": \"a\"}] }",
      "has 2 files, expected 1 as in 'modality'" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": \"/etc/passwd\", \"label\": \"a\"}] }",
      "is '/etc/passwd', expected a path inside the folder" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": \"a/../../b\", \"label\": \"a\"}] }",
      "expected a path inside the folder" },
    { PONS_DATA, HEAD "\"training\": [{\"image\": \"a\", \"label\": \"..\"}] }",
      "'training[0].label' is '..', expected a path inside" },
    { PONS_DATA, HEAD "\"training\": [" ITEM("a") ", " ITEM("a") "] }", "case 'a': occurs twice" },
    { PONS_DATA, HEAD "\"validation\": 3, \"training\": [" ITEM("a") "] }",
      "'validation' is a number" },
    { PONS_DATA, "{ \"modality\": [\"CT\"], \"training\": [" ITEM("a") "] }",
      "'modality' is a list, expected an object" },
    { PONS_DATA, "{ \"modality\": {\"1\": \"CT\"}, \"training\": [" ITEM("a") "] }",
      "'modality' has no channel 0" },
    { PONS_DATA, "{ \"modality\": {\"0\": 1}, \"training\": [" ITEM("a") "] }",
      "'modality.0' is a number, expected a name" },
    { PONS_DATA, "{ \"labels\": {\"background\": 0}, \"training\": [" ITEM("a") "] }",
      "'labels' has the key 'background', expected a number" },
    { PONS_DATA, "{ \"labels\": {\"0\": \"a\", \"1\": \"a\"}, \"training\": [" ITEM("a") "] }",
      "names 'a' twice" },
    { PONS_DATA, "{ \"labels\": {\"0\": \"a\", \"00\": \"b\"}, \"training\": [" ITEM("a") "] }",
      "'labels' has the number 0 twice" },
    { PONS_DATA, "{ \"labels\": {\"0\": \"a\"}, \"training\": [" ITEM("a") "] }", "has 1 entry" },
    { PONS_DATA, "{ \"labels\": {\"70000\": \"a\"}, \"training\": [" ITEM("a") "] }",
      "expected a number from 0 to 65535" },
    { PONS_CONFIG, "{ \"training\": [" ITEM("a") "] }", "'labels' is not given" },
};

#endif
