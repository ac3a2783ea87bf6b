/*
 * gloo_buffer.cc - buffers around those of gloo's TCP transport: what goes to a near rank takes its
 * own way (gloo_shm.h), everything else that of the inner buffer.
 */
#include "comms/gloo/gloo_buffer.h"

#include <deque>
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

class known_buffer : public UnboundBuffer {
public:
    known_buffer(std::unique_ptr<UnboundBuffer> inner, near_ranks &near, buffer_list &list)
        : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), near_(near),
          list_(list)
    {
        list_.add(inner_.get());
    }

    ~known_buffer() override { list_.remove(inner_.get()); }

    bool waitRecv(int *rank, std::chrono::milliseconds timeout) override
    {
        auto m = take(received_);

        list_.check(true);
        if (m == nullptr) {
            list_.check(inner_->waitRecv(rank, timeout));
            return true;
        }
        near_.wait_received(*m);
        tell(*m, rank);
        return true;
    }

    bool waitSend(int *rank, std::chrono::milliseconds timeout) override
    {
        auto m = take(sent_);

        list_.check(true);
        if (m == nullptr) {
            list_.check(inner_->waitSend(rank, timeout));
            return true;
        }
        near_.wait_sent(*m);
        tell(*m, rank);
        return true;
    }

    void abortWaitRecv() override { inner_->abortWaitRecv(); }
    void abortWaitSend() override { inner_->abortWaitSend(); }

    void send(int rank, uint64_t slot, size_t offset, size_t count) override
    {
        sent_.push_back(nullptr);
        if (near_.has(rank))
            sent_.back() = near_.send(rank, slot, at(offset), length(offset, count));
        else
            inner_->send(rank, slot, offset, count);
    }

    void recv(int rank, uint64_t slot, size_t offset, size_t count) override
    {
        received_.push_back(nullptr);
        if (near_.has(rank))
            received_.back() = near_.receive(rank, slot, at(offset), length(offset, count));
        else
            inner_->recv(rank, slot, offset, count);
    }

    /* None of the collectives that are used here does this. */
    void recv(std::vector<int>, uint64_t, size_t, size_t) override
    {
        throw std::runtime_error("a message from any rank cannot be received");
    }

private:
    using messages = std::deque<std::shared_ptr<near_message>>; /* NULL: one of the inner buffer */

    char *at(size_t offset) const { return static_cast<char *>(ptr) + offset; }

    size_t length(size_t offset, size_t count) const
    {
        return count == kUnspecifiedByteCount ? size - offset : count;
    }

    static std::shared_ptr<near_message> take(messages &under_way)
    {
        if (under_way.empty())
            return nullptr;
        auto m = std::move(under_way.front());
        under_way.pop_front();
        return m;
    }

    static void tell(const near_message &m, int *rank)
    {
        if (rank != nullptr)
            *rank = m.rank;
    }

    const std::unique_ptr<UnboundBuffer> inner_;
    near_ranks &near_;
    buffer_list &list_;
    messages sent_, received_;
};

} /* namespace */

known_context::known_context(std::shared_ptr<gloo::transport::Context> inner,
                             std::unique_ptr<near_ranks> near)
    : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)),
      near_(std::move(near))
{
}

std::unique_ptr<gloo::transport::Pair> &known_context::getPair(int rank)
{
    return inner_->getPair(rank);
}

std::unique_ptr<gloo::transport::Pair> &known_context::createPair(int rank)
{
    return inner_->createPair(rank);
}

std::unique_ptr<UnboundBuffer> known_context::createUnboundBuffer(void *data, size_t size)
{
    return std::make_unique<known_buffer>(inner_->createUnboundBuffer(data, size), *near_, list_);
}

void known_context::stop()
{
    list_.stop();
    near_->stop();
}
