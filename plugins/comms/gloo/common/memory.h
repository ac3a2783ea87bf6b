/*
 * memory.h - a header that gloo's own headers include and that Debian's libgloo-dev does not
 * install: references to buffers that somebody else may destroy, as tcp/pair.h and tcp/context.h
 * name them. Used where the library has none; nothing here takes such a reference, so it is only
 * their size that counts.
 */
#ifndef GLOO_COMMON_MEMORY_H
#define GLOO_COMMON_MEMORY_H

#include <memory>

namespace gloo {

template <typename T> class NonOwningPtr final {
    std::shared_ptr<T> ptr_;
};

template <typename T> class WeakNonOwningPtr final {
    std::weak_ptr<T> ptr_;
};

} /* namespace gloo */

#endif
