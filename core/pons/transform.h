/*
 * transform.h - a transform plugin: changes a case before training, or a patch during it.
 *
 * Deterministic transforms ([preprocess]) change a whole case in place. Random transforms
 * ([augment]) work in two halves: 'plan' draws numbers into a small fixed record, 'apply_patch'
 * changes the host patch by the record. Where devices cut the patches, 'build' adds nodes to their
 * graph instead. Transforms run on several threads at once, one case or patch each; they keep
 * nothing between calls and use no OpenMP. pons_parallel_for divides the work of one case.
 *
 * Axes: voxels are [D, H, W, C] with D, H, W the file's voxel axes i, j, k; "axis 0, 1, 2" means
 * i, j, k everywhere.
 */
#ifndef CORE_PONS_TRANSFORM_H
#define CORE_PONS_TRANSFORM_H

#include <pons/graph.h>

PONS_C_BEGIN

/* ---- volumes --------------------------------------------------------------------------------- */

/*
 * A grid of voxels in space. 'voxels' is malloc'ed and belongs to the volume. The box
 * [inside_start, inside_start + inside_extent) holds what came from the file; voxels outside it
 * were added by padding, and a prediction there is background on the file's grid.
 */
typedef struct pons_volume {
    pons_type type;          /* F32: image; U8: label classes, masks; I32: label ids of a file    */
    int channels;
    int64_t extent[3];
    int64_t inside_start[3], inside_extent[3];
    double affine[3][4];     /* (i, j, k, 1) -> millimetres, RAS+                                 */
    void *voxels;            /* [D, H, W, C]; NULL: there is no such volume                       */
} pons_volume;

/* Zeroed voxels and an identity affine in a volume that holds nothing; the whole is inside. */
pons_status pons_volume_init(pons_volume *v, pons_type type, int channels, const int64_t extent[3],
                             pons_error *err);
void pons_volume_clear(pons_volume *v);
size_t pons_volume_size(const pons_volume *v);  /* bytes                                          */
int64_t pons_volume_count(const pons_volume *v); /* voxels, channels not counted                  */
/* Millimetres: norms of the affine's columns. */
void pons_volume_spacing(const pons_volume *v, double spacing[3]);

/* Whether a resampling resizes slice by slice. */
typedef enum pons_slices { PONS_SLICES_AUTO = 0, PONS_SLICES_YES, PONS_SLICES_NO } pons_slices;
/*
 * The axis across the slices of a resampling (Isensee et al. 2021); -1: none. It is the axis with
 * the largest spacing, if that is more than three times the smallest: by the old spacing, else by
 * the new one. YES takes the largest old spacing. Two axes that share it are none.
 */
int pons_slice_axis(pons_slices slices, const double old[3], const double wanted[3]);
/* out = inverse of a, which is another one; false, and nothing is written, if it is singular. */
bool pons_affine_invert(const double a[3][4], double out[3][4]);
/* out = a b: b first, then a. 'out' may be neither. */
void pons_affine_multiply(const double a[3][4], const double b[3][4], double out[3][4]);

/*
 * Reorder axes without interpolation: new axis a is old axis order[a], reversed if flip[a]. World
 * positions stay.
 */
pons_status pons_volume_reorient(pons_volume *v, const int order[3], const bool flip[3],
                                 pons_error *err);
/* Signs and axes nearest to RAS+: axis a of the volume runs along world axis world[a], and towards
 * its negative end if negative[a]. */
void pons_volume_orientation(const pons_volume *v, int world[3], bool negative[3]);
/* Cut [start, start + extent), which may reach over the volume; what lies outside is 'fill' in
 * every channel and not inside. */
pons_status pons_volume_crop(pons_volume *v, const int64_t start[3], const int64_t extent[3],
                             double fill, pons_error *err);
/*
 * Sample on another grid, edges repeated. F32 linear in all axes, other types nearest (ties to
 * even, as rint).
 */
pons_status pons_volume_resample(pons_volume *v, const double affine[3][4],
                                 const int64_t extent[3], pons_error *err);

/* ---- slabs ----------------------------------------------------------------------------------- */

/*
 * A loop over voxels or planes by this thread and idle ones: body(context, first, end) for pieces
 * of at most 'piece' of 0 .. count - 1, in any order and some at the same time. The call returns
 * when all are done. Pieces begin at multiples of 'piece' for any number of threads. Results must
 * not depend on the order: a sum is one sum for each piece, added up afterwards. A piece of some
 * ten thousand voxels is worth a thread.
 */
void pons_parallel_for(int64_t count, int64_t piece,
                       void (*body)(void *context, int64_t first, int64_t end), void *context);

/* ---- deterministic transforms ---------------------------------------------------------------- */

/* All volumes of a case lie on one grid and stay so. */
typedef struct pons_case {
    uint32_t size;
    const char *name;
    pons_volume image;       /* F32                                                               */
    pons_volume label;       /* U8: class indices, 1 channel; or regions, 0 or 1 per channel      */
    pons_volume valid;       /* U8, 1 channel: 1 where the label may be trusted                   */
} pons_case;

/*
 * Settings of the section beside the plugin's own options, and the sink of warnings. A transform
 * of values changes the image channels that pons_scope_has names; geometry changes all.
 */
typedef struct pons_transform_scope {
    uint32_t size;
    int word_count;           /* words of 'channels'; channels beyond them are left out           */
    const uint64_t *channels; /* bit c % 64 of word c / 64 is channel c; NULL: all channels       */
    void (*warn)(void *receiver, const char *text); /* may be NULL                                */
    void *receiver;
} pons_transform_scope;

/* Whether image channel 'channel' is changed. */
static inline bool pons_scope_has(const pons_transform_scope *scope, int channel)
{
    return scope->channels == NULL
           || (channel / 64 < scope->word_count
               && (scope->channels[channel / 64] >> (channel % 64) & 1) != 0);
}

/* Whether all of channels 0 .. count - 1 are changed. */
static inline bool pons_scope_has_all(const pons_transform_scope *scope, int count)
{
    for (int channel = 0; channel < count; channel++)
        if (!pons_scope_has(scope, channel))
            return false;
    return true;
}

/* One line, without the case's name: the core adds it. */
void pons_transform_warn(const pons_transform_scope *scope, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reorient, crop and resample image, label and valid of a case alike; 'fill' is the image's. */
pons_status pons_case_reorient(pons_case *c, const int order[3], const bool flip[3],
                               pons_error *err);
pons_status pons_case_crop(pons_case *c, const int64_t start[3], const int64_t extent[3],
                           double fill, pons_error *err);
pons_status pons_case_resample(pons_case *c, const double affine[3][4], const int64_t extent[3],
                               pons_error *err);

/* ---- random transforms ----------------------------------------------------------------------- */

/* The random numbers of one transform for one sample: pure in these values. */
typedef struct pons_rng {
    uint64_t seed, stream, epoch, case_rank, sample;
    uint64_t next;           /* number of the next draw, 0 at first                               */
} pons_rng;

float pons_draw_uniform(pons_rng *d);                        /* [0, 1)                          */
double pons_draw_range(pons_rng *d, double low, double high); /* [low, high)                    */
int64_t pons_draw_index(pons_rng *d, int64_t count);         /* 0 .. count - 1                  */
uint64_t pons_draw_key(pons_rng *d);                         /* for numbers per voxel           */
/* Standard normal numbers of elements 4 quad .. 4 quad + 3 under a drawn key. */
void pons_voxel_normal(uint64_t key, uint64_t quad, float out[4]);
void pons_voxel_uniform(uint64_t key, uint64_t quad, float out[4]);
/* The same normal numbers of elements first .. first + count - 1, many at a time. */
void pons_voxel_normals(uint64_t key, uint64_t first, int64_t count, float *out);

/*
 * One patch before it is read. 'map' takes a position in the patch, relative to its centre, to the
 * position in the volume it is read from, relative to the same centre, in voxels; it begins as the
 * identity. A spatial transform multiplies its own map on the right (pons_sample_compose), so that
 * several compose and the volume is sampled once; the core reads as large a box as 'map' needs,
 * also beyond the patch's border. A signed permutation moves voxels exactly, any other map
 * interpolates. A transform with 'displace' also sets 'displaced'.
 */
typedef struct pons_sample {
    uint32_t size;
    int64_t extent[3];
    double map[3][4];
    bool linear_labels;      /* a label is the class with the largest linear weight, not the      */
                             /* nearest one; any step may set it                                  */
    bool displaced;
    const float *displacement; /* set by the core before it reads the patch                       */
    int64_t case_extent[3];  /* voxels of the case, set by the core                               */
    /*
     * A box of the case that is resized to the patch before 'map' is applied; crop_extent 0: the
     * core chooses the patch's position. One step of a transform with 'crops' sets it.
     */
    int64_t crop_start[3], crop_extent[3];
    bool crop_antialias;     /* linear over as many voxels as a new one covers; else between two  */
} pons_sample;

void pons_sample_compose(pons_sample *s, const double map[3][4]);

/*
 * Displacements of a patch's voxels: the volume is read at the position by 'map' plus the sum of
 * all displacements, in voxels along the axes of the volume. A displacement that is to be turned by
 * the maps before it is multiplied by the 'map' that 'plan' found, without its last column.
 */
typedef struct pons_displacement {
    uint32_t size;
    int64_t extent[3];       /* of the patch                                                      */
    float *field;            /* [3][D, H, W], added to                                            */
    float *scratch;          /* [3][D, H, W], unspecified values                                  */
} pons_displacement;

/* The patch after it was read; apply_patch changes it in place. */
typedef struct pons_patch {
    uint32_t size;
    int64_t extent[3];
    int channels, label_channels;
    float *image;            /* [D, H, W, channels]                                               */
    uint8_t *label;          /* [D, H, W, label_channels]; may be NULL                            */
    uint8_t *valid;          /* [D, H, W, 1]; may be NULL                                         */
    int64_t first;           /* number of the first voxel in the whole patch; 0 unless pointwise  */
    float *scratch;          /* [2][D, H, W], unspecified values; NULL for pointwise transforms   */
} pons_patch;

/*
 * A random transform of values for patches that a device has cut ([data] cache = device): 'numbers'
 * turns the record of a sample into some numbers for each channel, and 'build' changes all patches
 * of a micro-batch at once, by nodes that read them: they alone say which samples and channels.
 * The result must be that of apply_patch, bit by bit where both compute in float.
 */
typedef struct pons_sample_params {
    uint32_t size;
    int channels;
    float *number;           /* [number_count][channels], zeros at first                          */
    bool normal;             /* normal numbers per voxel are needed for this sample, under 'key'  */
    uint64_t key;
} pons_sample_params;

typedef struct pons_patch_nodes {
    uint32_t size;
    pons_graph *graph;
    pons_node *image;         /* [N, D, H, W, C], f32                                             */
    pons_node *const *number; /* [number_count], each [N, 1, 1, 1, C]                             */
    /*
     * Normal numbers of pons_voxel_normals, of the image's shape; 0 in samples that need none. NULL
     * without voxel_normals.
     */
    pons_node *normal;
} pons_patch_nodes;

/*
 * A deterministic transform has 'apply', a random one 'plan'. A random transform of values that
 * devices can do has 'pointwise', 'number_count', 'numbers' and 'build' besides.
 */
typedef struct pons_transform_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    bool geometric;          /* moves voxels, so 'channels =' is refused                          */
    pons_status (*apply)(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err);
    size_t record_size;
    /* Fill the zeroed record; a zeroed record changes nothing. */
    pons_status (*plan)(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err);
    /* NULL for a transform that only turns 'map'. */
    pons_status (*apply_patch)(const void *config, const pons_transform_scope *scope,
                               const void *record, pons_patch *patch, pons_error *err);
    /*
     * apply_patch looks at one voxel and its number only. It may be called for parts of a patch,
     * while they are in cache; patch->first says where a part begins.
     */
    bool pointwise;
    /* See pons_sample_params; 'build' NULL: a transform of values needs host patches. */
    int number_count;        /* 1 to 8, with voxel_normals also 0                                 */
    bool voxel_normals;
    void (*numbers)(const void *config, const pons_transform_scope *scope, const void *record,
                    pons_sample_params *out);
    pons_node *(*build)(const void *config, const pons_patch_nodes *nodes);
    bool resamples;          /* maps other than signed permutations, or displacements             */
    /* Add displacements by the record; NULL: none. */
    pons_status (*displace)(const void *config, const void *record, pons_displacement *out,
                            pons_error *err);
    bool crops;              /* sets the crop of pons_sample; then also 'resamples'               */
} pons_transform_operations;

#define PONS_SAMPLE_PARAMS_MAX 8

#define PONS_TRANSFORM(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                               \
    PONS_PLUGIN_DEFINE_(PONS_KIND_TRANSFORM, pons_transform_operations, NAME, VERSION, SUMMARY,   \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
