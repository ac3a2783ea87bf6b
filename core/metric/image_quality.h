/*
 * image_quality.h - an image against the one that it should be.
 */
#ifndef CORE_METRIC_IMAGE_QUALITY_H
#define CORE_METRIC_IMAGE_QUALITY_H

#include <pons/plugin.h>

typedef struct image_quality {
    double psnr;              /* 20 log10 range - 10 log10 mse, in dB; infinite for equal images  */
    double ssim;              /* NaN: an extent is smaller than the window                        */
    double mae;
} image_quality;

/* A window of SSIM: gaussian weights of 'size' voxels along each axis. */
typedef struct ssim_window {
    int size;
    double sigma;
} ssim_window;

/* The window of validations and of pons evaluate: 11 voxels, sigma 1.5, as MONAI's default. */
extern const ssim_window image_quality_window;

/*
 * Two images [extent], whose values span 'range'. SSIM (Wang et al. 2004) has constants (0.01
 * range)^2 and (0.03 range)^2 and biased moments, and is the mean over the places where the window
 * fits; an axis of extent 1 has no window.
 */
pons_status image_quality_measure(const float *image, const float *truth, const int64_t extent[3],
                                  double range, const ssim_window *window, image_quality *out,
                                  pons_error *err);

#endif
