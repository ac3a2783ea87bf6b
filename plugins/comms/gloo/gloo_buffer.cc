/*
 * gloo_buffer.cc - buffers around those of gloo's TCP transport, which end their waits on request.
 */
#include "comms/gloo/gloo_buffer.h"

#include <stdexcept>
#include <utility>
#include <vector>

using gloo::transport::UnboundBuffer;

void buffer_list::add(UnboundBuffer *buffer)
{
    std::lock_guard<std::mutex> guard(lock_);
    buffers_.insert(buffer);
}

void buffer_list::remove(UnboundBuffer *buffer)
{
    std::lock_guard<std::mutex> guard(lock_);
    buffers_.erase(buffer);
}

void buffer_list::stop()
{
    std::lock_guard<std::mutex> guard(lock_);
    stopped_ = true;
    for (auto *buffer : buffers_) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
    }
}

void buffer_list::check(bool completed)
{
    std::lock_guard<std::mutex> guard(lock_);
    if (stopped_ || !completed)
        throw std::runtime_error("the communicator was stopped");
}

namespace {

class cancellable_buffer : public UnboundBuffer {
public:
    cancellable_buffer(std::unique_ptr<UnboundBuffer> inner, buffer_list &list)
        : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), list_(list)
    {
        list_.add(inner_.get());
    }

    ~cancellable_buffer() override { list_.remove(inner_.get()); }

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

    void send(int rank, uint64_t slot, size_t offset, size_t count) override
    {
        inner_->send(rank, slot, offset, count);
    }

    void recv(int rank, uint64_t slot, size_t offset, size_t count) override
    {
        inner_->recv(rank, slot, offset, count);
    }

    void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t count) override
    {
        inner_->recv(std::move(ranks), slot, offset, count);
    }

private:
    const std::unique_ptr<UnboundBuffer> inner_;
    buffer_list &list_;
};

} /* namespace */

cancellable_context::cancellable_context(std::shared_ptr<gloo::transport::Context> inner)
    : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner))
{
}

std::unique_ptr<gloo::transport::Pair> &cancellable_context::getPair(int rank)
{
    return inner_->getPair(rank);
}

std::unique_ptr<gloo::transport::Pair> &cancellable_context::createPair(int rank)
{
    return inner_->createPair(rank);
}

std::unique_ptr<UnboundBuffer> cancellable_context::createUnboundBuffer(void *data, size_t size)
{
    return std::make_unique<cancellable_buffer>(inner_->createUnboundBuffer(data, size), list_);
}

void cancellable_context::stop()
{
    list_.stop();
}
