/*
 * orient - reorder and flip axes so that the volume runs along the given anatomical directions, as
 * MONAI's Orientation.
 *
 * "RAS" means that i grows to the right, j to the front, k to the head. No value is interpolated.
 * An oblique volume is turned to the nearest axes.
 */
#include <pons/transform.h>

#include <string.h>

typedef struct orient {
    int axes;
} orient;

/* All orders of the axes, in both directions of each. */
static const char *const codes[] = {
    "RAS", "RAI", "RPS", "RPI", "LAS", "LAI", "LPS", "LPI",
    "RSA", "RSP", "RIA", "RIP", "LSA", "LSP", "LIA", "LIP",
    "ARS", "ARI", "ALS", "ALI", "PRS", "PRI", "PLS", "PLI",
    "ASR", "ASL", "AIR", "AIL", "PSR", "PSL", "PIR", "PIL",
    "SRA", "SRP", "SLA", "SLP", "IRA", "IRP", "ILA", "ILP",
    "SAR", "SAL", "SPR", "SPL", "IAR", "IAL", "IPR", "IPL",
    NULL
};

static const pons_option options[] = {
    PONS_CHOICE(orient, axes, "RAS", codes,
                "Where i, j and k grow to: right or left, anterior or posterior, superior or "
                "inferior."),
    PONS_OPTIONS_END
};

/* The world axis and the sign of a letter. */
static int letter_axis(char letter, bool *negative)
{
    static const char letters[] = "RLAPSI";
    int at = (int)(strchr(letters, letter) - letters);

    *negative = at % 2;
    return at / 2;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const char *code = codes[((const orient *)config)->axes];
    int world[3], order[3];
    bool negative[3], flip[3];

    pons_volume_orientation(&c->image, world, negative);
    for (int target = 0; target < 3; target++) {
        bool towards_negative;
        int axis = letter_axis(code[target], &towards_negative);

        for (int a = 0; a < 3; a++)
            if (world[a] == axis) {
                order[target] = a;
                flip[target] = negative[a] != towards_negative;
            }
    }
    return pons_case_reorient(c, order, flip, err);
}

static const pons_transform_operations operations = { .geometric = true, .apply = apply };

PONS_TRANSFORM(orient, "1.0", "reorders and flips axes to anatomical directions", options,
               operations);
