/*
 * gloo_shm.h - processes of the same node: their messages are read where they lie.
 */
#ifndef PLUGINS_COMMS_GLOO_GLOO_SHM_H
#define PLUGINS_COMMS_GLOO_GLOO_SHM_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gloo/context.h>

struct near_desk;

/* A message that was sent, or one that is expected. */
struct near_message {
    int rank;                 /* of the other side                                                */
    uint64_t slot, ticket;
    void *bytes;
    size_t size;
    bool arrived;
};

/* Used by one thread, but for 'stop'. Every wait throws when the other process has gone. */
class near_ranks {
public:
    near_ranks() = default;
    ~near_ranks();
    near_ranks(const near_ranks &) = delete;
    near_ranks &operator=(const near_ranks &) = delete;

    /* By all ranks at the same time, over 'context'; 'address' is that of this one's node. */
    void find(const std::shared_ptr<gloo::Context> &context, const std::string &address);
    bool has(int rank) const;

    /* Messages between two ranks are received in the order in which they were sent. */
    std::shared_ptr<near_message> send(int rank, uint64_t slot, void *bytes, size_t size);
    std::shared_ptr<near_message> receive(int rank, uint64_t slot, void *bytes, size_t size);
    void wait_sent(const near_message &message);
    void wait_received(const near_message &message);

    /* Waits end, here and at the other ranks. Any thread. */
    void stop();

private:
    struct neighbour {
        int64_t process;      /* 0: it is elsewhere, or does not let us read                      */
        uint64_t number, at;
        near_desk *desk;
        uint64_t sent, received;
        std::deque<std::weak_ptr<near_message>> expected;
    };

    template <typename condition> void wait(int rank, condition done);
    void check(int rank, bool patient) const;
    void fetch_all();
    bool fetch(neighbour &from, near_message &message);

    int rank_ = 0;
    near_desk *mine_ = nullptr;
    std::vector<neighbour> near_; /* by rank                                                      */
};

#endif
