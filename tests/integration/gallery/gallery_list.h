/*
 * gallery_list.h - the errors of lists of cases, datalist.json and train.csv, each with the phrase
 * of the message. The files img/a.nii.gz, img/b.nii.gz, lab/a.nii.gz and lab/b.nii.gz exist.
 */
#ifndef TESTS_GALLERY_LIST_H
#define TESTS_GALLERY_LIST_H

#include <pons/pons.h>

#define LIST_ITEM(NAME, MORE) "{\"image\": \"img/" NAME ".nii.gz\", " \
                              "\"label\": \"lab/" NAME ".nii.gz\"" MORE "}"
#define LIST_GOOD "{\"training\": [" LIST_ITEM("a", ", \"fold\": 1") ", " LIST_ITEM("b", "") "]}"

typedef struct broken_list {
    pons_status status;
    const char *text, *phrase;
} broken_list;

static const broken_list datalist_gallery[] = {
    { PONS_DATA, "{\"training\": [", "datalist.json" },
    { PONS_DATA, "{\"testing\": []}", "'training' is missing, expected a list of cases" },
    { PONS_DATA, "{\"training\": 1}", "'training' is no list, expected a list of cases" },
    { PONS_DATA, "{\"training\": []}", "lists no case for training or validation" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", "") "], \"validation\": {}}",
      "'validation' is no list" },
    { PONS_DATA, "{\"training\": [\"img/a.nii.gz\"]}",
      "'training[0]' is missing or wrong, expected an object with 'image' and 'label'" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", "") ", {\"label\": \"lab/b.nii.gz\"}]}",
      "'training[1].image' is missing or wrong, expected a path" },
    { PONS_DATA, "{\"training\": [{\"image\": [], \"label\": \"lab/a.nii.gz\"}]}",
      "'training[0].image' is missing or wrong" },
    { PONS_DATA, "{\"training\": [{\"image\": [3], \"label\": \"lab/a.nii.gz\"}]}",
      "'training[0].image[0]' is missing or wrong" },
    { PONS_DATA, "{\"training\": [{\"image\": \"img/a.nii.gz\"}]}",
      "'training[0].label' is missing or wrong, expected a path" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", ", \"fold\": \"1\"") "]}",
      "'training[0].fold' is missing or wrong, expected a whole number from 0" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", ", \"fold\": -1") "]}",
      "'training[0].fold' is missing or wrong" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", "") ", " LIST_ITEM("z", "") "]}",
      "'training[1].image': cannot find '" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", "") "], \"validation\": [" LIST_ITEM("a", "")
      "]}", "is also in 'training[0]'" },
    { PONS_DATA, "{\"training\": [" LIST_ITEM("a", "") ", {\"image\": [\"img/b.nii.gz\", "
      "\"img/b.nii.gz\"], \"label\": \"lab/b.nii.gz\"}]}",
      "'training[1]': 2 image files, but 'training[0]' has 1" },
    { PONS_DATA, "{\"labels\": {\"x\": \"y\"}, \"testing\": [], \"training\": ["
      LIST_ITEM("a", "") "]}", "'labels' has the key 'x', expected a number from 0 to 65535" },
};

#define CSV_ROW(NAME) "img/" NAME ".nii.gz,lab/" NAME ".nii.gz\n"
#define CSV_GOOD "image,label\n" CSV_ROW("a") CSV_ROW("b")

static const broken_list csv_gallery[] = {
    { PONS_DATA, "", "is empty, expected a row for each case" },
    { PONS_DATA, "image,label\n", "lists no case for training or validation" },
    { PONS_DATA, "scan,truth\nx,y\n", "the columns are 'scan', 'truth', expected 'image'" },
    { PONS_DATA, "scan,truth\n" CSV_ROW("a") CSV_ROW("b"),
      "the columns are 'scan', 'truth', expected one of them to be 'label'" },
    { PONS_DATA, "label,fold\nlab/a.nii.gz,1\n", "the columns are 'label', 'fold', expected" },
    { PONS_DATA, "image,label,label\n" CSV_ROW("a"), "the columns 2 and 3 are both 'label'" },
    { PONS_DATA, "image,features,label\n" CSV_ROW("a"),
      "row 1: 'image' stands beside other columns of images" },
    { PONS_DATA, "image_0,image_2,label\n" CSV_ROW("a"),
      "row 1: the column 'image_2' has the number 2, expected 0 to 1" },
    { PONS_DATA, "image_0,image_t1,label\n" CSV_ROW("a"),
      "row 1: some columns of images have numbers and others have names" },
    { PONS_DATA, "image_t1,image_t1,label\n" CSV_ROW("a"), "are both 'image_t1'" },
    { PONS_DATA, CSV_GOOD "img/c.nii.gz\n", "row 4 has 1 cell, expected 2 as in row 1" },
    { PONS_DATA, "image,label\n" CSV_ROW("a") "img/b.nii.gz,\n",
      "row 3, column 'label': found '', expected a file" },
    { PONS_DATA, "image,label\n" CSV_ROW("a") "img/b.nii.gz,lab/z.nii.gz\n",
      "row 3, column 'label': cannot find '" },
    { PONS_DATA, CSV_ROW("a") "img/z.nii.gz,lab/b.nii.gz\n", "row 2, column 1: cannot find '" },
    { PONS_DATA, CSV_GOOD "\n" CSV_ROW("a"), "is also in row 2" },
    { PONS_DATA, "case,image,label\nx," CSV_ROW("a") "x," CSV_ROW("b"),
      "row 3: case 'x' is also in row 2" },
    { PONS_DATA, "case,image,label\n," CSV_ROW("a"), "column 'case': found '', expected a name" },
    { PONS_DATA, "case,image,label\na/b," CSV_ROW("a"), "gives no usable case id" },
    { PONS_DATA, "fold,image,label\n1.5," CSV_ROW("a"),
      "row 2, column 'fold': found '1.5', expected a whole number from 0" },
    { PONS_DATA, "split,image,label\nsome," CSV_ROW("a"),
      "row 2, column 'split': found 'some', expected train, val or test" },
    { PONS_DATA, "image,label\n\"img/a.nii.gz,lab/a.nii.gz\n", "row 2: a quote does not end" },
    { PONS_DATA, "image,label\n\"img/a.nii.gz\"x,lab/a.nii.gz\n",
      "row 2: text follows a closing quote" },
};

#endif
