/*
 * gloo_pair.cc - pairs of gloo's TCP transport that are given their connection.
 *
 * The constructor of gloo's pair opens a port and hands it to the device's thread, which would
 * accept any connection. So the thread is held while pairs are made. A new pair ignores all events
 * until it has its connection, and its port is closed unused.
 */
#include "comms/gloo/gloo_pair.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tcp = gloo::transport::tcp;

namespace {

constexpr int no_socket = -1; /* a pair without one, to gloo */

/* The thread of the device calls no other handler during the life of this object. */
class held_thread : public tcp::Handler {
public:
    explicit held_thread(tcp::Device &device) : device_(device), event_(eventfd(1, EFD_CLOEXEC))
    {
        if (event_ < 0)
            throw std::runtime_error(GLOO_LINK_NO_FILES);
        device_.registerDescriptor(event_, EPOLLIN, this);
        std::unique_lock<std::mutex> lock(lock_);
        changed_.wait(lock, [&] { return held_; });
    }

    ~held_thread() override
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            over_ = true;
            changed_.notify_all();
        }
        device_.unregisterDescriptor(event_, this);
        close(event_);
    }

    void handleEvents(int) override
    {
        std::unique_lock<std::mutex> lock(lock_);

        held_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return over_; });
    }

private:
    tcp::Device &device_;
    const int event_;
    std::mutex lock_;
    std::condition_variable changed_;
    bool held_ = false, over_ = false;
};

class given_pair : public tcp::Pair {
public:
    using tcp::Pair::Pair;

    /*
     * The pair owns the socket, also after an exception. A socket that is not registered with the
     * device must not stay in the pair: its destructor would end the process.
     */
    void give(int socket)
    {
        std::lock_guard<std::mutex> guard(m_);

        device_->unregisterDescriptor(fd_, this);
        ::close(fd_);
        fd_ = socket;
        given_ = true;
        try {
            handleConnected();
        } catch (...) {
            ::close(fd_);
            fd_ = no_socket;
            throw;
        }
    }

    void handleEvents(int events) override
    {
        if (given_)
            tcp::Pair::handleEvents(events);
    }

private:
    std::atomic<bool> given_{ false };
};

class given_context : public tcp::Context {
public:
    using tcp::Context::Context;

    std::unique_ptr<gloo::transport::Pair> &createPair(int other) override
    {
        auto &pair = pairs_[static_cast<size_t>(other)];

        pair = std::make_unique<given_pair>(this, device_.get(), other, getTimeout());
        return pair;
    }

    void give(int other, int socket)
    {
        static_cast<given_pair &>(*getPair(other)).give(socket);
    }
};

} /* namespace */

std::shared_ptr<gloo::transport::Context>
connected_context(const std::shared_ptr<tcp::Device> &device, const gloo_link_ranks &ranks,
                  std::chrono::milliseconds timeout)
{
    auto context = std::make_shared<given_context>(device, ranks.rank, ranks.size);

    context->setTimeout(timeout);
    {
        held_thread held(*device);
        for (int other = 0; other < ranks.size; other++)
            if (other != ranks.rank)
                context->createPair(other);
    }
    for (int other = 0; other < ranks.size; other++) {
        if (other == ranks.rank)
            continue;
        context->give(other, std::exchange(ranks.socket[other], -1));
    }
    return context;
}
