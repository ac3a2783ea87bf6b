/*
 * tissue_mask.c - histograms of colours and saturation, their thresholds, and the mask.
 */
#include "data/slide/tissue_mask.h"

#include <math.h>

enum { BINS = 256 };

/*
 * The threshold that separates the values of a histogram best (Otsu 1979): the centre of the last
 * bin of the lower class, the first of equally good ones. 'centre' is in rising order. The first
 * and the last bin must not be empty.
 */
static double otsu_threshold(const int64_t *count, const double *centre, int bins)
{
    double all = 0, all_sum = 0, low = 0, low_sum = 0, best = -1, threshold = centre[0];

    for (int b = 0; b < bins; b++) {
        all += (double)count[b];
        all_sum += (double)count[b] * centre[b];
    }
    for (int b = 0; b < bins - 1; b++) {
        low += (double)count[b];
        low_sum += (double)count[b] * centre[b];
        double apart = low_sum / low - (all_sum - low_sum) / (all - low);
        double variance = low * (all - low) * apart * apart;

        if (variance > best) {
            best = variance;
            threshold = centre[b];
        }
    }
    return threshold;
}

/* The threshold of one colour, by a bin for each value between its smallest and largest. */
static double threshold_of_colour(const uint8_t *rgb, int64_t count, int colour)
{
    int64_t all[BINS] = { 0 };
    double centre[BINS];
    int first = 0, last = BINS - 1;

    for (int64_t i = 0; i < count; i++)
        all[rgb[3 * i + colour]]++;
    while (first < last && all[first] == 0)
        first++;
    while (last > first && all[last] == 0)
        last--;
    for (int b = 0; b < BINS; b++)
        centre[b] = b;
    return otsu_threshold(all + first, centre + first, last - first + 1);
}

static double saturation_of(const uint8_t *rgb)
{
    double colour[3], low, high;

    for (int c = 0; c < 3; c++)
        colour[c] = rgb[c] / 255.0;
    low = fmin(fmin(colour[0], colour[1]), colour[2]);
    high = fmax(fmax(colour[0], colour[1]), colour[2]);
    return high > low ? (high - low) / high : 0;
}

/* The edge of a bin, as numpy's linspace. */
static double edge_of(double first, double last, int bin)
{
    return bin == BINS ? last : bin * ((last - first) / BINS) + first;
}

/* The bin of a value, as numpy's histogram: the last bin holds its upper edge too. */
static int bin_of(double value, double first, double last)
{
    int bin = (int)((value - first) / (last - first) * BINS);

    bin = bin < BINS ? bin : BINS - 1;
    if (value < edge_of(first, last, bin))
        bin--;
    else if (bin < BINS - 1 && value >= edge_of(first, last, bin + 1))
        bin++;
    return bin;
}

static double threshold_of_saturation(const uint8_t *rgb, int64_t count)
{
    int64_t all[BINS] = { 0 };
    double centre[BINS], first = INFINITY, last = -INFINITY;

    for (int64_t i = 0; i < count; i++) {
        double value = saturation_of(rgb + 3 * i);

        first = fmin(first, value);
        last = fmax(last, value);
    }
    if (!(last > first))
        return count > 0 ? first : 0;
    for (int64_t i = 0; i < count; i++)
        all[bin_of(saturation_of(rgb + 3 * i), first, last)]++;
    for (int b = 0; b < BINS; b++)
        centre[b] = (edge_of(first, last, b) + edge_of(first, last, b + 1)) / 2;
    return otsu_threshold(all, centre, BINS);
}

void tissue_mask_make(const uint8_t *rgb, int64_t count, uint8_t *mask)
{
    double colour[3], saturation = threshold_of_saturation(rgb, count);

    for (int c = 0; c < 3; c++)
        colour[c] = threshold_of_colour(rgb, count, c);
    for (int64_t i = 0; i < count; i++) {
        bool dark = false;

        for (int c = 0; c < 3; c++)
            dark = dark || (colour[c] > 0 && rgb[3 * i + c] <= colour[c]);
        mask[i] = dark && saturation > 0 && saturation_of(rgb + 3 * i) > saturation;
    }
}
