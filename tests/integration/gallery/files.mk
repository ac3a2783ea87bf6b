# Broken files, each with a valid twin, and every reported error.
SCRIPT_TESTS += %D%/check_gallery.sh %D%/check_reports.sh
check_PROGRAMS += %D%/gallery_files
%C%_gallery_files_LDADD = $(LDADD) $(ZLIB_LIBS)
EXTRA_DIST += %D%/gallery_ini.h %D%/gallery_json.h %D%/gallery_list.h %D%/gallery_nifti.h %D%/gallery_nnunet.h \
	%D%/gallery_plugin.h %D%/gallery_safetensors.h %D%/gallery_trees.h
