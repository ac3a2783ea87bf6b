# Tests of the command line.
PROGRAM_TESTS += %D%/check_overlay %D%/check_report_writer %D%/check_sheet %D%/check_start
SCRIPT_TESTS += %D%/check_data_cli.sh %D%/check_data_page.sh %D%/check_export_folders.sh %D%/check_find_rate.sh \
	%D%/check_import.sh %D%/check_init.sh %D%/check_lists_cli.sh %D%/check_live.sh %D%/check_manual.sh \
	%D%/check_nnunet_cli.sh %D%/check_report.sh %D%/cli.sh
