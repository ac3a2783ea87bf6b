/*
 * gloo_shm.cc - who is near, and messages between near ranks.
 *
 * Each rank has a desk in memory that its neighbours share. A sender lays a note there of where the
 * message is; the receiver reads the message from the sender's memory and strikes the note off. A
 * counter on each desk wakes its owner. So a message is copied once, by the thread that wants it.
 *
 * gloo's own way, through the loopback interface, copies twice and needs a thread that waits for
 * connections. While another thread sends, which holds the connection's lock, that one finds the
 * lock taken and asks the system again at once; on cores that are busy computing, the holder waits
 * meanwhile for its turn. Of a spleen step in bf16 on two cores all that was a tenth.
 *
 * Process ids mean something in one namespace only and tracing may be forbidden, so nothing is
 * believed: each rank has a random number on its desk, and near is who could read the other's.
 */
#include "comms/gloo/gloo_shm.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

#include <gloo/allgather.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr uint64_t depth = 16;      /* notes between two ranks that may lie open at a time        */
constexpr long look_up = 100000000; /* nanoseconds until a wait asks whether the other one lives  */

enum note_state : uint32_t { FREE = 0, OPEN, DONE };

struct note {
    std::atomic<uint32_t> state;
    uint64_t slot, at, size;
};

struct introduction {
    uint64_t number, at;      /* of the desk, in the memory of its owner                          */
    int64_t process, file;
    char address[64];
};

} /* namespace */

struct near_desk {
    uint64_t number;
    std::atomic<uint32_t> events, stopped;
    struct {
        note of[depth];
    } from[];                 /* by rank                                                          */
};

namespace {

size_t desk_size(size_t ranks)
{
    return sizeof(near_desk) + ranks * depth * sizeof(note);
}

/* Of this process if 'file' is its own. */
near_desk *map_desk(int file, size_t ranks)
{
    void *at = mmap(nullptr, desk_size(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return at == MAP_FAILED ? nullptr : static_cast<near_desk *>(at);
}

near_desk *map_desk_of(const introduction &there, size_t ranks)
{
    std::string path = "/proc/" + std::to_string(there.process) + "/fd/"
                       + std::to_string(there.file);
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    near_desk *desk = file >= 0 ? map_desk(file, ranks) : nullptr;

    if (file >= 0)
        close(file);
    return desk;
}

/* False: errno says why. */
bool copy(int64_t process, void *to, uint64_t from, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct iovec here = { static_cast<char *>(to) + done, size - done };
        struct iovec there = { reinterpret_cast<void *>(from + done), size - done };
        ssize_t n = process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);

        if (n <= 0)
            return false;
        done += static_cast<size_t>(n);
    }
    return true;
}

bool can_read(int64_t process, uint64_t at, uint64_t expected)
{
    uint64_t number;

    return copy(process, &number, at, sizeof number) && number == expected;
}

void wake(near_desk *desk)
{
    desk->events.fetch_add(1);
    syscall(SYS_futex, &desk->events, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

/* 'mine' of each rank, in their order. */
template <typename item>
std::vector<item> gather(const std::shared_ptr<gloo::Context> &context, std::vector<item> mine)
{
    std::vector<item> all(mine.size() * static_cast<size_t>(context->size));
    gloo::AllgatherOptions options(context);

    options.setInput(reinterpret_cast<char *>(mine.data()), mine.size() * sizeof(item));
    options.setOutput(reinterpret_cast<char *>(all.data()), all.size() * sizeof(item));
    gloo::allgather(options);
    return all;
}

uint64_t random_number()
{
    std::random_device device;

    return (static_cast<uint64_t>(device()) << 32) ^ device();
}

} /* namespace */

/* ---- who is near ----------------------------------------------------------------------------- */

void near_ranks::find(const std::shared_ptr<gloo::Context> &context, const std::string &address)
{
    size_t size = static_cast<size_t>(context->size), self = static_cast<size_t>(context->rank);
    int file = memfd_create("pons gloo", MFD_CLOEXEC);
    introduction mine = { random_number(), 0, getpid(), file, { 0 } };
    std::vector<char> readable(size);

    rank_ = context->rank;
    near_.resize(size);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(desk_size(size))) == 0)
        mine_ = map_desk(file, size);
    if (mine_ != nullptr)
        mine_->number = mine.number;
    mine.at = reinterpret_cast<uint64_t>(mine_);
    address.copy(mine.address, sizeof mine.address - 1);
    auto all = gather<introduction>(context, { mine });
    for (size_t r = 0; r < size; r++) {
        const introduction &there = all[r];
        neighbour &n = near_[r];
        if (r == self || mine_ == nullptr
            || std::strncmp(there.address, mine.address, sizeof mine.address) != 0
            || !can_read(there.process, there.at, there.number))
            continue;
        n.number = there.number;
        n.at = there.at;
        n.desk = map_desk_of(there, size);
        readable[r] = n.desk != nullptr && n.desk->number == there.number;
    }
    auto judged = gather<char>(context, readable);
    for (size_t r = 0; r < size; r++)
        if (readable[r] && judged[r * size + self])
            near_[r].process = all[r].process;
    if (file >= 0)
        close(file);
}

near_ranks::~near_ranks()
{
    for (auto &n : near_)
        if (n.desk != nullptr)
            munmap(n.desk, desk_size(near_.size()));
    if (mine_ != nullptr)
        munmap(mine_, desk_size(near_.size()));
}

bool near_ranks::has(int rank) const
{
    return near_[static_cast<size_t>(rank)].process != 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void near_ranks::stop()
{
    if (mine_ == nullptr)
        return;
    mine_->stopped = 1;
    wake(mine_);
    for (auto &n : near_)
        if (n.process != 0)
            wake(n.desk);
}

/* patient: the other process has not been heard of for a while. */
void near_ranks::check(int rank, bool patient) const
{
    const neighbour &n = near_[static_cast<size_t>(rank)];

    if (mine_->stopped)
        throw std::runtime_error("the communicator was stopped");
    if (n.desk->stopped)
        throw std::runtime_error("rank " + std::to_string(rank) + " has stopped");
    if (patient && !can_read(n.process, n.at, n.number))
        throw std::runtime_error("rank " + std::to_string(rank) + " has gone");
}

/* What others wait for is done meanwhile: in a ring everyone may wait for what it has sent. */
template <typename condition> void near_ranks::wait(int rank, condition done)
{
    const struct timespec patience = { 0, look_up };

    for (bool patient = false;;) {
        uint32_t seen = mine_->events;
        fetch_all();
        if (done())
            return;
        check(rank, patient);
        patient = syscall(SYS_futex, &mine_->events, FUTEX_WAIT, seen, &patience, nullptr, 0) != 0
                  && errno == ETIMEDOUT;
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

std::shared_ptr<near_message> near_ranks::send(int rank, uint64_t slot, void *bytes, size_t size)
{
    neighbour &n = near_[static_cast<size_t>(rank)];
    auto m = std::make_shared<near_message>(
        near_message{ rank, slot, n.sent++, bytes, size, false });
    note &free = n.desk->from[rank_].of[m->ticket % depth];

    if (free.state != FREE)
        throw std::runtime_error("too many messages to rank " + std::to_string(rank));
    free.slot = slot;
    free.at = reinterpret_cast<uint64_t>(bytes);
    free.size = size;
    free.state = OPEN;
    wake(n.desk);
    return m;
}

void near_ranks::wait_sent(const near_message &m)
{
    note &mine = near_[static_cast<size_t>(m.rank)].desk->from[rank_].of[m.ticket % depth];

    wait(m.rank, [&] { return mine.state == DONE; });
    mine.state = FREE;
}

std::shared_ptr<near_message> near_ranks::receive(int rank, uint64_t slot, void *bytes,
                                                  size_t size)
{
    neighbour &n = near_[static_cast<size_t>(rank)];
    auto m = std::make_shared<near_message>(
        near_message{ rank, slot, n.received++, bytes, size, false });

    n.expected.push_back(m);
    return m;
}

void near_ranks::wait_received(const near_message &m)
{
    wait(m.rank, [&] { return m.arrived; });
}

/* False: it has not been sent yet. */
bool near_ranks::fetch(neighbour &from, near_message &m)
{
    note &there = mine_->from[m.rank].of[m.ticket % depth];

    if (there.state != OPEN)
        return false;
    if (there.slot != m.slot || there.size != m.size)
        throw std::runtime_error("rank " + std::to_string(m.rank) + " sends "
                                 + std::to_string(there.size) + " bytes where "
                                 + std::to_string(m.size) + " were expected");
    if (!copy(from.process, m.bytes, there.at, m.size))
        throw std::runtime_error("cannot read from rank " + std::to_string(m.rank) + ": "
                                 + std::strerror(errno));
    m.arrived = true;
    there.state = DONE;
    wake(from.desk);
    return true;
}

void near_ranks::fetch_all()
{
    for (auto &n : near_)
        while (!n.expected.empty()) {
            auto m = n.expected.front().lock();
            if (m == nullptr || !fetch(n, *m))
                break;
            n.expected.pop_front();
        }
}
