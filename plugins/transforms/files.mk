# Files of plugins/transforms.
