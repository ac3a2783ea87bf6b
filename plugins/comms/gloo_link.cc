/*
 * gloo_link.cc - gloo's C++ interface behind C functions; no exception leaves this file.
 *
 * gloo is used with its TCP transport, bound to the address of the node. Its collectives cannot be
 * ended from outside, but waits for a buffer can: so they get buffers that are known here, and
 * 'stop' ends the waits for all of them.
 */
#include "gloo_link.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
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
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

namespace {

/* The core ends collectives; this only has to be longer than any of its waits. */
constexpr auto no_end = std::chrono::hours(24 * 365);

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

/* The buffers that are in use, so that they can be told to stop. */
class buffer_list {
public:
    void add(gloo::transport::UnboundBuffer *buffer)
    {
        std::lock_guard<std::mutex> guard(lock_);
        buffers_.insert(buffer);
    }

    void remove(gloo::transport::UnboundBuffer *buffer)
    {
        std::lock_guard<std::mutex> guard(lock_);
        buffers_.erase(buffer);
    }

    void stop()
    {
        std::lock_guard<std::mutex> guard(lock_);
        stopped_ = true;
        for (auto *buffer : buffers_) {
            buffer->abortWaitRecv();
            buffer->abortWaitSend();
        }
    }

    /* Behind every wait; and in front, for those that begin after the stop. */
    void check(bool completed)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (stopped_ || !completed)
            throw std::runtime_error("the communicator was stopped");
    }

private:
    std::mutex lock_;
    std::set<gloo::transport::UnboundBuffer *> buffers_;
    bool stopped_ = false;
};

class known_buffer : public gloo::transport::UnboundBuffer {
public:
    known_buffer(std::unique_ptr<gloo::transport::UnboundBuffer> inner, buffer_list &list)
        : gloo::transport::UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)),
          list_(list)
    {
        list_.add(inner_.get());
    }

    ~known_buffer() override { list_.remove(inner_.get()); }

    bool waitRecv(int *rank, std::chrono::milliseconds timeout) override
    {
        list_.check(true);
        list_.check(inner_->waitRecv(rank, timeout));
        return true;
    }

    bool waitSend(int *rank, std::chrono::milliseconds timeout) override
    {
        list_.check(true);
        list_.check(inner_->waitSend(rank, timeout));
        return true;
    }

    void abortWaitRecv() override { inner_->abortWaitRecv(); }
    void abortWaitSend() override { inner_->abortWaitSend(); }

    void send(int rank, uint64_t slot, size_t offset, size_t size) override
    {
        inner_->send(rank, slot, offset, size);
    }

    void recv(int rank, uint64_t slot, size_t offset, size_t size) override
    {
        inner_->recv(rank, slot, offset, size);
    }

    void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t size) override
    {
        inner_->recv(std::move(ranks), slot, offset, size);
    }

private:
    std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
    buffer_list &list_;
};

/* A transport's context that hands out known buffers. */
class known_context : public gloo::transport::Context {
public:
    explicit known_context(std::shared_ptr<gloo::transport::Context> inner)
        : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner))
    {
    }

    std::unique_ptr<gloo::transport::Pair> &getPair(int rank) override
    {
        return inner_->getPair(rank);
    }

    std::unique_ptr<gloo::transport::Pair> &createPair(int rank) override
    {
        return inner_->createPair(rank);
    }

    std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void *data,
                                                                        size_t size) override
    {
        return std::make_unique<known_buffer>(inner_->createUnboundBuffer(data, size), list_);
    }

    void stop() { list_.stop(); }

private:
    std::shared_ptr<gloo::transport::Context> inner_;
    buffer_list list_;
};

class mesh : public gloo::rendezvous::Context {
public:
    using gloo::rendezvous::Context::Context;

    void connect(gloo::rendezvous::Store &store, std::shared_ptr<gloo::transport::Device> &device)
    {
        connectFullMesh(store, device);
        known_ = std::make_shared<known_context>(transportContext_);
        transportContext_ = known_;
    }

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
        /* Connecting waits five times as long as it is told to. */
        auto patience = std::chrono::milliseconds(
            std::max<int64_t>(1, static_cast<int64_t>(timeout_s * 1000 / 5)));

        link->device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address));
        link->context = std::make_shared<mesh>(rank, size);
        link->context->setTimeout(patience);
        link->context->connect(shared, link->device);
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
