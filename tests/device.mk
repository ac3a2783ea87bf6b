# Tests of device.
