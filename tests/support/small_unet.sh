# small_unet [PLUGIN]: sections of a configuration, the optimizer PLUGIN (adam) and a unet of two levels; lines
# behind them are further options of the model.
small_unet() {
    cat <<END
[loss]
plugin = dice_ce
[optimizer]
plugin = ${1:-adam}
lr = 1e-2
[model]
plugin = unet
channels = 4 8
strides = 2
END
}

# small_training [PLUGIN]: the same behind sections of normalized patches of 16 voxels a side and one thread.
small_training() {
    cat <<END
[preprocess]
steps = normalize
[patch]
extent = 16
[distribute]
devices = cpu
threads = 1
END
    small_unet "$@"
}
