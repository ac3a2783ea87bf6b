/*
 * gloo_link.cc - gloo's C++ interface behind C functions; no exception leaves this file.
 *
 * gloo is used with its TCP transport, over connections that were made and proved elsewhere
 * (gloo_pair.h). Its collectives cannot be ended from outside, but waits for a buffer can: so they
 * use buffers of gloo_buffer.h, and 'stop' ends the waits for all of them.
 */
#include "comms/gloo/gloo_link.h"

#include "comms/gloo/gloo_buffer.h"
#include "comms/gloo/gloo_pair.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

namespace {

/* The core ends collectives; gloo's timeout must be longer than any of its waits. */
constexpr auto no_end = std::chrono::hours(24 * 365);

/*
 * Size of the pieces of a ring. gloo allocates room for two in each sum. Its own 1 MiB would be
 * fresh pages every time.
 */
constexpr size_t piece = 65536;

class mesh : public gloo::rendezvous::Context {
public:
    using gloo::rendezvous::Context::Context;

    void connect(std::shared_ptr<gloo::transport::Device> device,
                 std::shared_ptr<gloo::transport::Context> transport)
    {
        device_ = std::move(device);
        transportContext_ = std::move(transport);
    }

    void use_known(std::shared_ptr<cancellable_context> known)
    {
        known_ = std::move(known);
        transportContext_ = known_;
    }

    std::shared_ptr<gloo::transport::Context> transport() { return transportContext_; }

    /* Close the connections too, so that the other processes do not wait for this one. */
    void stop()
    {
        known_->stop();
        closeConnections();
    }

private:
    std::shared_ptr<cancellable_context> known_;
};

template <typename number> void add(void *out, const void *a, const void *b, size_t count)
{
    number *sum = static_cast<number *>(out);
    const number *left = static_cast<const number *>(a), *right = static_cast<const number *>(b);

    for (size_t i = 0; i < count; i++)
        sum[i] = left[i] + right[i];
}

/* gloo's messages begin with '[file:line] ', which is of no use to a reader. */
const char *put_failure(const char *what, const char *message, char *text)
{
    const char *end = message[0] == '[' ? std::strstr(message, "] ") : nullptr;

    std::snprintf(text, GLOO_LINK_TEXT, "%s: %s", what, end != nullptr ? end + 2 : message);
    return text;
}

template <typename action> const char *guarded(const char *what, char *text, action act)
{
    try {
        act();
        return nullptr;
    } catch (const std::bad_alloc &) {
        return put_failure(what, GLOO_LINK_NO_MEMORY, text);
    } catch (const std::system_error &failure) { /* a thread that cannot be started */
        bool refused = failure.code() == std::errc::resource_unavailable_try_again;
        return put_failure(what, refused ? GLOO_LINK_NO_MEMORY : failure.what(), text);
    } catch (const std::exception &failure) {
        const char *said = std::strstr(failure.what(), GLOO_LINK_NO_FILES);
        return put_failure(what, said != nullptr ? GLOO_LINK_NO_FILES : failure.what(), text);
    } catch (...) {
        return put_failure(what, "unknown exception", text);
    }
}

} /* namespace */

struct gloo_link {
    std::shared_ptr<gloo::transport::tcp::Device> device;
    std::shared_ptr<mesh> context;
};

template <typename number>
static const char *sum_numbers(gloo_link *link, number *buffer, size_t count, uint32_t tag,
                               char *text)
{
    return guarded("an all-reduce failed", text, [&] {
        gloo::AllreduceOptions options(link->context);
        options.setOutput(buffer, count);
        options.setReduceFunction(add<number>);
        options.setTag(tag);
        options.setTimeout(no_end);
        options.setMaxSegmentSize(piece);
        gloo::allreduce(options);
    });
}

extern "C" {

const char *gloo_link_open(const gloo_link_ranks *ranks, gloo_link **out, char *text)
{
    return guarded("cannot connect the processes", text, [&] {
        auto link = std::unique_ptr<gloo_link>(new gloo_link);
        auto patience = std::chrono::milliseconds(
            std::max<int64_t>(1, static_cast<int64_t>(ranks->timeout_s * 1000)));

        link->device = std::make_shared<gloo::transport::tcp::Device>(
            gloo::transport::tcp::CreateDeviceAttr(gloo::transport::tcp::attr(ranks->address)));
        link->context = std::make_shared<mesh>(ranks->rank, ranks->size);
        link->context->setTimeout(patience);
        link->context->connect(link->device, connected_context(link->device, *ranks, patience));
        link->context->use_known(std::make_shared<cancellable_context>(link->context->transport()));
        *out = link.release();
    });
}

void gloo_link_close(gloo_link *link)
{
    delete link;
}

void gloo_link_stop(gloo_link *link)
{
    char text[GLOO_LINK_TEXT];

    guarded("cannot stop", text, [&] { link->context->stop(); });
}

const char *gloo_link_sum_floats(gloo_link *link, float *buffer, size_t count, uint32_t tag,
                                 char *text)
{
    return sum_numbers(link, buffer, count, tag, text);
}

const char *gloo_link_sum_doubles(gloo_link *link, double *buffer, size_t count, uint32_t tag,
                                  char *text)
{
    return sum_numbers(link, buffer, count, tag, text);
}

const char *gloo_link_broadcast(gloo_link *link, void *buffer, size_t size, int root, uint32_t tag,
                                char *text)
{
    return guarded("a broadcast failed", text, [&] {
        gloo::BroadcastOptions options(link->context);
        options.setOutput(static_cast<char *>(buffer), size);
        options.setRoot(root);
        options.setTag(tag);
        options.setTimeout(no_end);
        gloo::broadcast(options);
    });
}

const char *gloo_link_gather(gloo_link *link, const void *mine, size_t size, void *all,
                             uint32_t tag, char *text)
{
    return guarded("an all-gather failed", text, [&] {
        gloo::AllgatherOptions options(link->context);
        options.setInput(static_cast<char *>(const_cast<void *>(mine)), size);
        options.setOutput(static_cast<char *>(all),
                          size * static_cast<size_t>(link->context->size));
        options.setTag(tag);
        options.setTimeout(no_end);
        gloo::allgather(options);
    });
}

const char *gloo_link_barrier(gloo_link *link, uint32_t tag, char *text)
{
    return guarded("a barrier failed", text, [&] {
        gloo::BarrierOptions options(link->context);
        options.setTag(tag);
        options.setTimeout(no_end);
        gloo::barrier(options);
    });
}

} /* extern "C" */
