# The data, INI files and runs that pages name, in the working folder. Networks are small and have trained for two
# steps.
made() { "$@" >said 2>&1 || { echo "$*"; cat said; exit 1; }; }
made "$program" data phantom -o ph --cases 5 --extent 20,18,16 --classes 3

# ---- datasets ------------------------------------------------------------------------------------

sed -i 's/"1": "[^"]*", "2": "[^"]*"/"1": "liver", "2": "tumour"/' ph/dataset.json
for name in Task03_Liver Task09_Spleen; do cp -r ph $name; done
mkdir -p imagesTs labelsTs out other raw/sub-01/anat data/liver/ct data/liver/mask nnUNet_raw
for n in 0 1 2 3 4; do
    image=ph/imagesTr/phantom_00$n.nii.gz label=ph/labelsTr/phantom_00$n.nii.gz
    cp $image data/liver/ct/case_$n.nii.gz
    cp $label data/liver/mask/case_$n.nii.gz
    for channel in t1 t1ce t2 flair; do
        mkdir -p BraTS2021_TrainingData/BraTS2021_0000$n
        cp $image BraTS2021_TrainingData/BraTS2021_0000$n/BraTS2021_0000${n}_$channel.nii.gz
    done
    cp $label BraTS2021_TrainingData/BraTS2021_0000$n/BraTS2021_0000${n}_seg.nii.gz
    [ $n -lt 2 ] || continue
    mkdir -p scans/patient_$n
    cp $image scans/patient_$n/t1.nii.gz
    cp $image scans/patient_$n/t2.nii.gz
    cp $label scans/patient_$n/label.nii.gz
    cp $image imagesTs/case_${n}_0000.nii.gz
    for folder_of in labelsTs out other; do cp $label $folder_of/case_$n.nii.gz; done
done
for n in 1 2 3 4; do cp ph/labelsTr/phantom_00$n.nii.gz other/case_$((n % 2)).nii.gz; done
for name in Dataset003_Liver Dataset009_Spleen; do
    mkdir -p nnUNet_raw/$name/imagesTr nnUNet_raw/$name/labelsTr
    for n in 0 1 2 3 4; do
        cp ph/imagesTr/phantom_00$n.nii.gz nnUNet_raw/$name/imagesTr/case_${n}_0000.nii.gz
        cp ph/labelsTr/phantom_00$n.nii.gz nnUNet_raw/$name/labelsTr/case_$n.nii.gz
    done
    printf '{"channel_names":{"0":"CT"},"labels":{"background":0,"organ":1,"lesion":2},"numTraining":5,%s}\n' \
        '"file_ending":".nii.gz"' >nnUNet_raw/$name/dataset.json
    cp -r nnUNet_raw/$name $name
done
mkdir BraTS2021_ValidationData
cp -r BraTS2021_TrainingData/BraTS2021_0000[01] BraTS2021_ValidationData
rm BraTS2021_ValidationData/*/*_seg.nii.gz
cp ph/imagesTr/phantom_000.nii.gz raw/sub-01/anat/sub-01_T1w.nii.gz
printf '{"Name":"raw","BIDSVersion":"1.8.0"}\n' >raw/dataset_description.json
entry() { printf '{"image": "%s", "label": "%s"}' "ph/imagesTr/phantom_00$1.nii.gz" "ph/labelsTr/phantom_00$1.nii.gz"; }
printf '{"training": [%s, %s], "testing": [{"image": "ph/imagesTr/phantom_002.nii.gz"}]}\n' \
    "$(entry 0)" "$(entry 1)" >folds.json
cp ph/imagesTr/phantom_000.nii.gz ct.nii.gz
for name in t1 t2 ct_0000; do cp ct.nii.gz $name.nii.gz; done
cp -r BraTS2021_TrainingData BraTS
mkdir MNIST made t1c digits
made "$program" data phantom -o digits/ph --cases 1 --extent 1,28,28
mv digits/ph/imagesTr/*.nii.gz digits
rm -r digits/ph
idx_stack MNIST/train 20 1 10 28 28
idx_stack MNIST/t10k 10 2 10 28 28
cp ct.nii.gz made/a.nii.gz
cp ct.nii.gz t1c/a.nii.gz

# ---- networks ------------------------------------------------------------------------------------

# experiment NAME LINE...: NAME.ini, whose [data] has the lines.
experiment() {
    printf '[experiment]\nname = %s\n[data]\nvalidation = last:1\n' "$1"
    shift
    printf '%s\n' "$@" '[patch]' 'extent = 16 16 16'
    small_unet
    printf '[train]\nsteps = 2\n'
}
labels='labels = background:0 liver:1 tumour:2'
experiment liver 'source = Task03_Liver' >liver.ini
experiment tumour 'image = scans/*/t1.nii.gz scans/*/t2.nii.gz' 'label = scans/*/label.nii.gz' "$labels" >tumour.ini
experiment brats 'source = BraTS2021_TrainingData' | sed 's,dice_ce,dice,' >brats.ini
for name in spleen brain unet; do
    experiment $name 'image = ph/imagesTr/*.nii.gz' 'label = ph/labelsTr/*.nii.gz' "$labels" >$name.ini
done
experiment base 'source = Task03_Liver' | sed 's/16 16 16/32 32 32/' >base.ini
cat >digits.ini <<END
[experiment]
name = mnist_mlp
task = classification
[data]
source = MNIST
[patch]
extent = 1 28 28
[model]
plugin = mlp
hidden = 4
[loss]
plugin = cross_entropy
[optimizer]
plugin = adam
lr = 1e-3
[train]
steps = 2
batch = 10
[window]
batch = 10
END
for name in liver tumour brats digits; do made "$program" train $name.ini -q; done
made "$program" train liver.ini -q --folds 2 --set experiment.name=folds
for name in other spleen tissue; do cp -r runs/liver runs/$name; done

# ---- files of other programs -----------------------------------------------------------------------

made "$program" export runs/liver --bundle spleen_ct_segmentation
for name in model.pt spleen.pt; do cp spleen_ct_segmentation/models/model.pt $name; done
nnunet=$source/tests/golden/nnunet
cp -r "$nnunet/models/plain" MODEL
cp -r "$nnunet/models/residual" BRAIN
cp "$nnunet/models/images/plain_0_0000.nii.gz" ct_0000.nii.gz
for channel in 0 1; do cp "$nnunet/models/images/residual_0_000$channel.nii.gz" case_000$channel.nii.gz; done
cp -r MODEL Dataset009_Spleen/nnUNetTrainer__nnUNetPlans__3d_fullres
printf '[%s, %s]\n' '{"train": ["case_2", "case_3", "case_4"], "val": ["case_0"]}' \
    '{"train": ["case_0", "case_3", "case_4"], "val": ["case_1"]}' >Dataset009_Spleen/splits_final.json
cp "$source/examples/embed/volumes.c" .
mkdir -p own/loss
awk '/^```/ { code = $0 == "```c"; next } code' "$source/docs/kinds/loss.md" >squared.c
