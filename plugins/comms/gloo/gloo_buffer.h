/*
 * gloo_buffer.h - gloo's buffers, known here: waits for all of them can be ended.
 */
#ifndef PLUGINS_COMMS_GLOO_GLOO_BUFFER_H
#define PLUGINS_COMMS_GLOO_GLOO_BUFFER_H

#include <memory>
#include <mutex>
#include <set>

#include <gloo/transport/context.h>

/* The buffers in use, whose waits 'stop' ends. */
class buffer_list {
public:
    void add(gloo::transport::UnboundBuffer *buffer);
    void remove(gloo::transport::UnboundBuffer *buffer);
    void stop();
    /* Called after every wait, and before it for waits that begin after the stop. */
    void check(bool completed);

private:
    std::mutex lock_;
    std::set<gloo::transport::UnboundBuffer *> buffers_;
    bool stopped_ = false;
};

/* A transport's context that hands out known buffers. */
class cancellable_context : public gloo::transport::Context {
public:
    explicit cancellable_context(std::shared_ptr<gloo::transport::Context> inner);

    std::unique_ptr<gloo::transport::Pair> &getPair(int rank) override;
    std::unique_ptr<gloo::transport::Pair> &createPair(int rank) override;
    std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void *data,
                                                                        size_t size) override;
    void stop();

private:
    const std::shared_ptr<gloo::transport::Context> inner_;
    buffer_list list_;
};

#endif
