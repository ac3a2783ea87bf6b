/*
 * case_file.c - choose the reader of a case's image.
 */
#include "data/dataset/case_file.h"

#include "data/reader/volume_read.h"

pons_status case_file_facts(const data_case *c, int file, volume_facts *out, pons_error *err)
{
    if (!case_file_is_part(c))
        return volume_read_facts(c->image[file], out, err);
    if (c->patch != NULL)
        slide_patch_facts(c->patch, out);
    else
        idx_file_facts(c->stack, out);
    return PONS_OK;
}

pons_status case_file_image(const data_case *c, int file, volume *out, volume_facts *facts,
                            pons_error *err)
{
    if (!case_file_is_part(c))
        return volume_read_image(c->image[file], out, facts, err);
    if (c->patch != NULL) {
        slide_patch_facts(c->patch, facts);
        return slide_patch_volume(c->patch, out, err);
    }
    idx_file_facts(c->stack, facts);
    return idx_file_volume(c->stack, c->slice, out, err);
}
