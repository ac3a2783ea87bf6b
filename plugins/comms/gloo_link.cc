/*
 * gloo_link.cc - gloo's C++ interface behind C functions; no exception leaves this file.
 *
 * gloo is used with its TCP transport, bound to the address of the node. Its collectives cannot be
 * ended from outside, but waits for a buffer can: so they get buffers that are known here
 * (gloo_buffer.h), and 'stop' ends the waits for all of them.
 */
#include "gloo_link.h"

#include "gloo_buffer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

namespace {

/* The core ends collectives; this only has to be longer than any of its waits. */
constexpr auto no_end = std::chrono::hours(24 * 365);

/*
 * A ring passes pieces of this size on. gloo allocates room for two in each sum: with its own size,
 * 1 MiB, that is fresh pages every time, a quarter of what a sum costs within a node.
 */
constexpr size_t piece = 65536;

/* gloo's view of the run's store: values longer than the store takes are cut into pieces. */
class shared_store : public gloo::rendezvous::Store {
public:
    explicit shared_store(const gloo_link_store &store) : store_(store) {}

    void set(const std::string &key, const std::vector<char> &data) override
    {
        for (size_t at = 0, piece = 0; at < data.size(); at += store_.room, piece++)
            put(key + "." + std::to_string(piece), data.data() + at,
                std::min(store_.room, data.size() - at));
        put(key + ".size", std::to_string(data.size()));
    }

    std::vector<char> get(const std::string &key) override
    {
        std::vector<char> data(std::stoul(take(key + ".size")));

        for (size_t at = 0, piece = 0; at < data.size(); at += store_.room, piece++)
            copy(take(key + "." + std::to_string(piece)), data, at);
        return data;
    }

    void wait(const std::vector<std::string> &keys) override
    {
        for (const auto &key : keys)
            take(key + ".size");
    }

    void wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &) override
    {
        wait(keys);
    }

private:
    void put(const std::string &key, const void *value, size_t size)
    {
        char text[GLOO_LINK_TEXT];

        if (!store_.set(store_.context, ("gloo." + key).c_str(), value, size, text))
            throw std::runtime_error(text);
    }

    void put(const std::string &key, const std::string &value)
    {
        put(key, value.data(), value.size());
    }

    std::string take(const std::string &key)
    {
        char text[GLOO_LINK_TEXT];
        std::string value(store_.room, '\0');
        size_t size;

        if (!store_.get(store_.context, ("gloo." + key).c_str(), &value[0], value.size(), &size,
                        text))
            throw std::runtime_error(text);
        value.resize(std::min(size, value.size()));
        return value;
    }

    static void copy(const std::string &from, std::vector<char> &to, size_t at)
    {
        if (from.size() > to.size() - at)
            throw std::runtime_error("an address in the store is longer than announced");
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
    }

    const gloo_link_store store_;
};

class mesh : public gloo::rendezvous::Context {
public:
    using gloo::rendezvous::Context::Context;

    void join(std::shared_ptr<known_context> known)
    {
        known_ = std::move(known);
        transportContext_ = known_;
    }

    std::shared_ptr<gloo::transport::Context> transport() { return transportContext_; }

    /* Connections are closed too, so that the other processes do not wait for this one. */
    void stop()
    {
        known_->stop();
        closeConnections();
    }

private:
    std::shared_ptr<known_context> known_;
};

template <typename number> void add(void *out, const void *a, const void *b, size_t count)
{
    number *sum = static_cast<number *>(out);
    const number *left = static_cast<const number *>(a), *right = static_cast<const number *>(b);

    for (size_t i = 0; i < count; i++)
        sum[i] = left[i] + right[i];
}

/* gloo's messages begin with '[file:line] ', which is of no use to a reader. */
const char *tell(const char *what, const char *message, char *text)
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
        return tell(what, GLOO_LINK_NO_MEMORY, text);
    } catch (const std::system_error &failure) { /* a thread that cannot be started */
        bool refused = failure.code() == std::errc::resource_unavailable_try_again;
        return tell(what, refused ? GLOO_LINK_NO_MEMORY : failure.what(), text);
    } catch (const std::exception &failure) {
        return tell(what, failure.what(), text);
    } catch (...) {
        return tell(what, "unknown exception", text);
    }
}

} /* namespace */

struct gloo_link {
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<mesh> context;
};

template <typename number>
static const char *sum(gloo_link *link, number *buffer, size_t count, uint32_t tag, char *text)
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

const char *gloo_link_open(int rank, int size, const char *address, double timeout_s,
                           const gloo_link_store *store, gloo_link **out, char *text)
{
    return guarded("cannot connect the processes", text, [&] {
        auto link = std::unique_ptr<gloo_link>(new gloo_link);
        shared_store shared(*store);
        std::unique_ptr<near_ranks> near(new near_ranks);
        /* Connecting waits five times as long as it is told to. */
        auto patience = std::chrono::milliseconds(
            std::max<int64_t>(1, static_cast<int64_t>(timeout_s * 1000 / 5)));

        link->device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address));
        link->context = std::make_shared<mesh>(rank, size);
        link->context->setTimeout(patience);
        link->context->connectFullMesh(shared, link->device);
        near->find(link->context, address);
        link->context->join(
            std::make_shared<known_context>(link->context->transport(), std::move(near)));
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
    return sum(link, buffer, count, tag, text);
}

const char *gloo_link_sum_doubles(gloo_link *link, double *buffer, size_t count, uint32_t tag,
                                  char *text)
{
    return sum(link, buffer, count, tag, text);
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
