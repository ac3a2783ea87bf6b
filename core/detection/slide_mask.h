/*
 * slide_mask.h - annotations of a slide as ids, on the points of a probability map.
 */
#ifndef CORE_DETECTION_SLIDE_MASK_H
#define CORE_DETECTION_SLIDE_MASK_H

#include <pons/plugin.h>

/*
 * Read a mask for a map of extent[0] x extent[1] points, each 'step' pixels of level 0 along both
 * sides (map_file.h). A picture of the map's extent has the ids as they are. A file of the slide's
 * extent has that of each point's centre. A slide is read in its level of the nearest scale that is
 * not smaller; the red of a coloured one is the id. A picture, as a TIFF in strips, is read as a
 * whole. PONS_DATA: it has neither extent, or an id above 255.
 */
pons_status slide_mask_read(const char *path, const int64_t extent[2], const double step[2],
                            uint8_t *ids, pons_error *err);

#endif
