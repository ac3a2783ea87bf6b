# Files of plugins/devices.
