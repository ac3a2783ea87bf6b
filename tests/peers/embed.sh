#!/bin/sh
# Labels that examples/embed/segment.py finds in arrays of NumPy, beside those of 'pons predict' for the same voxels in
# a file. PONS is an installed program, whose libpons.so.1 lies in ../lib.
#
#   tests/peers/embed.sh PONS [FOLDER]      needs: pip install numpy nibabel
. "$(dirname "$0")/rounds.sh"

keep "${2:-}"
libraries=$(dirname "$pons")/../lib
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PONS_PLUGIN_PATH=${PONS_PLUGIN_PATH:-$(realpath "$libraries/pons")}
export LD_LIBRARY_PATH PONS_PLUGIN_PATH
cd "$folder"
"$pons" data phantom -q -o heads --cases 2 --extent 24,20,28
{
    printf '%s\n' "[experiment]" "name = a" "[data]" "source = heads" "validation = none" "[preprocess]" \
        "steps = spacing normalize" "[preprocess.spacing]" "mm = 1.5 1.5 1.5" "[patch]" "extent = 16" \
        "[train]" "steps = 20"
    small_unet
} >a.ini
"$pons" train -q a.ini
# Voxels of 1.5 x 1.5 x 2 mm as a file, and as arrays of other types, orders and strides.
python3 - <<'END'
import nibabel, numpy
voxels = numpy.round(nibabel.load("heads/imagesTr/phantom_001.nii.gz").get_fdata()).astype(numpy.int16)
nibabel.save(nibabel.Nifti1Image(voxels, numpy.diag([1.5, 1.5, 2, 1])), "image.nii.gz")
for name, array in {"fastest_i": numpy.asfortranarray(voxels), "fastest_k": numpy.ascontiguousarray(voxels),
                    "double": voxels.astype(numpy.float64), "big": voxels.astype(">i2"),
                    "float": voxels.astype(numpy.float32)}.items():
    numpy.save(f"{name}.npy", array)
END
"$pons" predict -q runs/a image.nii.gz -o labels.nii.gz
for name in fastest_i fastest_k double big float; do
    python3 "$here/../../examples/embed/segment.py" runs/a $name.npy ${name}_labels.npy 1.5 1.5 2 2>/dev/null
    python3 - "$name" <<'END'
import nibabel, numpy, sys
expected = numpy.asarray(nibabel.load("labels.nii.gz").dataobj)
found = numpy.load(f"{sys.argv[1]}_labels.npy")
differ = int((expected != found).sum())
print(f"{sys.argv[1]:10} {found.size} voxels, {int((found > 0).sum())} of the classes, {differ} differ")
sys.exit(1 if differ or not found.any() else 0)
END
done
