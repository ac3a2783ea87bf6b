# Plugins for tests are modules outside of every plugin folder.
MODULE_FLAGS = -module -avoid-version -shared -rpath /nowhere

check_LTLIBRARIES += %D%/alarm.la %D%/comm_breaks_rule.la %D%/comm_has_options.la %D%/effect.la %D%/gloo.la %D%/held.la \
	%D%/limit.la %D%/poison.la %D%/rank_key.la %D%/redirect.la %D%/sink_prints.la %D%/sink_refuses.la \
	%D%/slow_patch.la %D%/slow_step.la \
	%D%/smaller.la %D%/stranger.la %D%/trouble.la %D%/unsound.la
%C%_gloo_la_SOURCES = %D%/damaged_gloo.c
%C%_alarm_la_SOURCES = %D%/alarm.c tests/support/process/process_state.c tests/support/process/process_state.h

# Ops: one keeps the rules, each of the others breaks one of them.
OP_MODULES = %D%/box_mean.la %D%/op_breaks_rule.la %D%/op_nine_inputs.la %D%/op_no_double.la %D%/op_no_gradient.la
check_LTLIBRARIES += $(OP_MODULES)
%C%_box_mean_la_SOURCES = tests/outside/box_mean.c
%C%_op_no_gradient_la_SOURCES = %D%/op_breaks_rule.c
%C%_op_no_gradient_la_CPPFLAGS = $(AM_CPPFLAGS) -DMUTE
%C%_op_no_double_la_SOURCES = %D%/op_breaks_rule.c
%C%_op_no_double_la_CPPFLAGS = $(AM_CPPFLAGS) -DHALF
%C%_op_nine_inputs_la_SOURCES = %D%/op_breaks_rule.c
%C%_op_nine_inputs_la_CPPFLAGS = $(AM_CPPFLAGS) -DNINE

# Plugins of other kinds that break a rule of their kind.
BROKEN_MODULES = %D%/device_wrong_flip.la %D%/loss_silent_failure.la %D%/loss_wrong_gradient.la \
	%D%/model_silent_failure.la %D%/optimizer_silent_failure.la %D%/random_breaks_rule.la \
	%D%/schedule_negative.la %D%/sink_discards.la %D%/transform_breaks_rule.la %D%/transform_moves_unsaid.la
check_LTLIBRARIES += $(BROKEN_MODULES)
%C%_random_breaks_rule_la_SOURCES = %D%/transform_breaks_rule.c
%C%_random_breaks_rule_la_CPPFLAGS = $(AM_CPPFLAGS) -DRANDOM
%C%_transform_moves_unsaid_la_SOURCES = %D%/transform_breaks_rule.c
%C%_transform_moves_unsaid_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTIFF
%C%_optimizer_silent_failure_la_SOURCES = %D%/loss_silent_failure.c
%C%_optimizer_silent_failure_la_CPPFLAGS = $(AM_CPPFLAGS) -DOPTIMIZER
%C%_model_silent_failure_la_SOURCES = %D%/loss_silent_failure.c
%C%_model_silent_failure_la_CPPFLAGS = $(AM_CPPFLAGS) -DMODEL

$(filter %D%/%,$(check_LTLIBRARIES)): private AM_LDFLAGS = $(MODULE_FLAGS)
