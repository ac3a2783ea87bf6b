# Tests of the export to ONNX.
SCRIPT_TESTS += %D%/check_export.sh
if HAVE_ONNX
check_PROGRAMS += %D%/onnx_list
endif
