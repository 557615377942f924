// What the calls of kv_events.hpp take: texts, media, objects. Include kv_events.hpp.
//
// No argument is taken for another: a text is never a set of media, a set of media never a text, and what was before a
// mutation never what is now. So arguments in the wrong order do not compile.
#pragma once

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "kv_events.hpp needs C++17 or newer: -std=c++17"
#endif

#include <kv_events.h>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Deleted, with the reason: compilers from C++26 on print it, the others show the line it stands on.
#if defined(__cpp_deleted_function)
#define KV_EVENTS_DELETED(reason) = delete(reason)
#else
#define KV_EVENTS_DELETED(reason) = delete
#endif

namespace kv_events {

namespace internal {

template <typename T>
inline constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view> && !std::is_null_pointer_v<T>;

// What somebody could write where media belong, having a name or bits in mind.
template <typename T>
inline constexpr bool kIsNoList =
    kIsText<T> || std::is_arithmetic_v<T> || std::is_null_pointer_v<T> || std::is_pointer_v<T>;

// Whether T has a begin and an end.
template <typename T, typename = void>
inline constexpr bool kIsRange = false;
template <typename T>
inline constexpr bool
    kIsRange<T, std::void_t<decltype(std::begin(std::declval<const T&>()) != std::end(std::declval<const T&>()))>> = true;

template <typename T>
using ElementOf = std::decay_t<decltype(*std::begin(std::declval<const T&>()))>;

class Nothing {
  Nothing() = delete;
};

}  // namespace internal

// A text of the caller's, for as long as the call lasts: made of a literal, a std::string, a std::string_view, or whatever
// becomes one. It needs no NUL at its end and may contain some. A null `const char*` is an empty text.
class Text {
 public:
  template <typename T, std::enable_if_t<internal::kIsText<T>, int> = 0>
  constexpr Text(const T& text) noexcept : view_(ViewOf(text)) {}

  // clang-format off
  template <typename T>
  Text(std::initializer_list<T>) KV_EVENTS_DELETED("this argument is one text, not in braces; {...} is a list of media");
  Text(std::initializer_list<internal::Nothing>) KV_EVENTS_DELETED("this argument is one text: \"\" if there is none, not {}");
  Text(std::nullptr_t) KV_EVENTS_DELETED("this argument is one text: \"\" if there is none, not nullptr");
  // clang-format on

  constexpr std::string_view view() const noexcept { return view_; }

 private:
  template <typename T>
  static constexpr std::string_view ViewOf(const T& text) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      if (text == nullptr) return {};
    }
    return text;
  }

  std::string_view view_;
};

// A tier on which an object can be readable: memory, and everything that is not memory.
enum class Medium : uint32_t { kCpu = KV_EVENTS_CPU, kDisk = KV_EVENTS_DISK };

namespace internal {

inline constexpr uint32_t kUnknownMedium = uint32_t{1} << 31;

// A medium or the name of one, in a list. Empty names are ignored.
class Listed {
 public:
  constexpr Listed(Medium medium) noexcept : bits_(static_cast<uint32_t>(medium)) {}
  template <typename T, std::enable_if_t<kIsText<T>, int> = 0>
  constexpr Listed(const T& name) noexcept : bits_(BitsOf(Text(name).view())) {}

  constexpr uint32_t bits() const noexcept { return bits_; }

 private:
  static constexpr uint32_t BitsOf(std::string_view name) noexcept {
    const char* at = name.data();
    switch (name.size()) {
      case 0:
        return 0;
      case 3:
        return at[0] == 'c' && at[1] == 'p' && at[2] == 'u' ? KV_EVENTS_CPU : kUnknownMedium;
      case 4:
        return at[0] == 'd' && at[1] == 'i' && at[2] == 's' && at[3] == 'k' ? KV_EVENTS_DISK : kUnknownMedium;
      default:
        return kUnknownMedium;
    }
  }

  uint32_t bits_;
};

}  // namespace internal

// The media an object is readable on. Made of a medium, of media joined by `|`, of a list of media or of names ({"cpu"},
// {"cpu", "disk"}), or of any range of either. Empty names are ignored. A set with an unknown name is refused, and
// counted, by the call that gets it.
class MediaSet {
 public:
  constexpr MediaSet() noexcept = default;
  constexpr MediaSet(Medium medium) noexcept : bits_(static_cast<uint32_t>(medium)) {}
  constexpr MediaSet(std::initializer_list<internal::Listed> list) noexcept {
    for (internal::Listed listed : list) bits_ |= listed.bits();
  }
  // Any other range of media or names: std::vector<Medium>, std::set<std::string> ...
  template <typename Range,
            std::enable_if_t<!internal::kIsNoList<Range> && internal::kIsRange<Range>, int> = 0,
            std::enable_if_t<internal::kIsText<internal::ElementOf<Range>> ||
                                 std::is_same_v<internal::ElementOf<Range>, Medium>, int> = 0>
  constexpr MediaSet(const Range& range) noexcept {
    for (const auto& element : range) bits_ |= internal::Listed(element).bits();
  }

  // clang-format off
  template <typename T, std::enable_if_t<internal::kIsNoList<T>, int> = 0>
  MediaSet(const T&) KV_EVENTS_DELETED("media are a list or a Medium: {\"cpu\"} or Medium::kCpu, not a bare text, number or nullptr");
  // clang-format on

  // The set of two bits: KV_EVENTS_CPU, KV_EVENTS_DISK.
  static constexpr MediaSet FromBits(uint32_t bits) noexcept {
    MediaSet set;
    set.bits_ = bits;
    return set;
  }

  constexpr uint32_t bits() const noexcept { return bits_; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr bool contains(Medium medium) const noexcept { return (bits_ & static_cast<uint32_t>(medium)) != 0; }
  // False if it was made with an unknown name or bit.
  constexpr bool valid() const noexcept { return (bits_ & ~uint32_t{KV_EVENTS_CPU | KV_EVENTS_DISK}) == 0; }

  constexpr MediaSet& operator|=(MediaSet other) noexcept {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr MediaSet operator|(MediaSet a, MediaSet b) noexcept { return a |= b; }
  friend constexpr bool operator==(MediaSet a, MediaSet b) noexcept { return a.bits_ == b.bits_; }
  friend constexpr bool operator!=(MediaSet a, MediaSet b) noexcept { return a.bits_ != b.bits_; }

 private:
  uint32_t bits_ = 0;
};

constexpr MediaSet operator|(Medium a, Medium b) noexcept { return MediaSet(a) | b; }

// What an object was readable on before a mutation. Take it before you touch the metadata: nobody else remembers it.
// It has to be named, Before::Mutation(media), so that it is not taken for what the object is readable on now.
class [[nodiscard]] Before {
 public:
  static constexpr Before Mutation(MediaSet media) noexcept { return Before(media); }
  constexpr MediaSet media() const noexcept { return media_; }

 private:
  constexpr explicit Before(MediaSet media) noexcept : media_(media) {}

  MediaSet media_;
};

// One cached object, as the master names it. Nothing here is parsed; the texts are the caller's, for as long as the call
// lasts.
struct Object {
  // Tenant that owns the object; empty is `default`.
  Text tenant = "";
  // The store's key. An object with an empty key is suppressed.
  Text key = "";
  // The store's group identity; empty for none.
  Text group = "";
  // The session that stored it, told with what is stored; empty for none.
  Text session = "";
};

namespace internal {

inline kv_events_text_t Raw(Text text) noexcept {
  kv_events_text_t raw;
  raw.data = text.view().data();
  raw.len = text.view().size();
  return raw;
}

inline kv_events_object_t Raw(const Object& object) noexcept {
  kv_events_object_t raw;
  raw.tenant = Raw(object.tenant);
  raw.key = Raw(object.key);
  raw.group = Raw(object.group);
  return raw;
}

}  // namespace internal

}  // namespace kv_events
