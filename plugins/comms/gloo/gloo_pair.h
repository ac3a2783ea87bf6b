/*
 * gloo_pair.h - gloo's TCP transport over given connections. gloo's own ports would accept the
 * first connection that comes, also a stranger's.
 */
#ifndef PLUGINS_COMMS_GLOO_GLOO_PAIR_H
#define PLUGINS_COMMS_GLOO_GLOO_PAIR_H

#include <chrono>
#include <memory>

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include "comms/gloo/gloo_link.h"

/* Takes the sockets of 'ranks', one after the other. */
std::shared_ptr<gloo::transport::Context>
connected_context(const std::shared_ptr<gloo::transport::tcp::Device> &device,
                  const gloo_link_ranks &ranks, std::chrono::milliseconds timeout);

#endif
