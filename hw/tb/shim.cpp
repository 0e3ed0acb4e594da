// Units as a C library: a Verilator model of each, the memory of their card, and a few functions.
//
// Compiled once for each shape, with MODEL the prefix that Verilator was given: -DMODEL=n4w16 takes class Vn4w16 and
// names the functions n4w16_create and so on. Nothing is shared between shapes, and between units of one card the memory
// alone: as in `top`, each has registers and a port of its own. Ports do not slow each other down.
//
// The memory answers in order after a seeded latency and withholds ready and valid at random. It watches the bus: what
// is offered must stay until it is taken, bursts keep inside a line of 4 KiB, and `last` comes with the last beat. A breach is
// counted and described in *_fault; places outside of the memory get an error response.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)
#include TEXT(GLUE(V, MODEL).h)
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

using Model = GLUE(V, MODEL);

namespace {

// SplitMix64: the same numbers everywhere for a seed.
struct Dice {
  uint64_t at;
  uint64_t bits() {
    uint64_t z = at += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  bool percent(uint32_t p) { return p != 0 && bits() % 100 < p; }
  uint64_t up_to(uint64_t lo, uint64_t hi) { return lo + (hi > lo ? bits() % (hi - lo + 1) : 0); }
};

struct Read {
  uint64_t address;
  uint32_t beats;
  uint64_t due;
};

struct Burst {
  uint64_t address;
  uint32_t beats, taken;
};

// A beat that came before the address of its burst.
struct Early {
  uint8_t bytes[64];
  bool last;
};

}  // namespace

// A unit and its port to the memory.
struct Card {
  std::unique_ptr<VerilatedContext> context;
  std::unique_ptr<Model> model;
  std::shared_ptr<std::vector<uint8_t>> shared;
  std::vector<uint8_t> &memory;
  Dice dice;
  uint64_t latency_least, latency_most, cycles = 0;
  uint32_t withheld;
  std::deque<Read> reads;
  std::deque<Burst> bursts;
  std::deque<Early> early;
  std::deque<uint64_t> acknowledged;  // when, and in bit 63 whether with an error
  // Where the unit may read and write; anywhere if empty.
  uint64_t in_at = 0, in_bytes = 0, out_at = 0, out_bytes = 0;
  bool r_shown = false, b_shown = false, bad_burst = false;
  uint64_t faults = 0;
  std::string fault;
  // What was offered and not taken in the cycle before.
  bool ar_held = false, aw_held = false, w_held = false;
  uint64_t ar_was = 0, aw_was = 0;
  uint32_t ar_len_was = 0, aw_len_was = 0;
  uint32_t w_was[16];

  explicit Card(std::shared_ptr<std::vector<uint8_t>> of) : shared(of), memory(*of) {}
  void breach(const char *what) {
    faults++;
    if (fault.empty()) fault = std::string(what) + " at cycle " + std::to_string(cycles);
  }
  bool in_memory(uint64_t address) const {
    return address + 64 <= memory.size() && address + 64 > address;
  }
  void put(const uint8_t *bytes, bool last);
  void cycle();
};

// The next beat of the oldest burst.
void Card::put(const uint8_t *bytes, bool last) {
  Burst &b = bursts.front();
  uint64_t address = b.address + 64ull * b.taken;
  if (out_bytes && (address < out_at || address >= out_at + out_bytes)) breach("a beat is written outside of the output slot");
  if (out_bytes && address == out_at + out_bytes - 64 && (!acknowledged.empty() || bursts.size() > 1 || b_shown))
    breach("the last beat of the status record is written before all else has arrived");
  if (in_memory(address)) std::memcpy(&memory[address], bytes, 64);
  else bad_burst = true;
  b.taken++;
  if (last != (b.taken == b.beats)) breach("a burst's last beat is another than announced");
  if (b.taken < b.beats) return;
  uint64_t due = cycles + 1 + dice.up_to(latency_least, latency_most);
  acknowledged.push_back(due | (bad_burst ? 1ull << 63 : 0));
  bad_burst = false;
  bursts.pop_front();
}

void Card::cycle() {
  Model &m = *model;
  // What memory offers in this cycle. A beat once offered stays.
  if (!r_shown && !reads.empty() && reads.front().due <= cycles && !dice.percent(withheld))
    r_shown = true;
  m.r_valid = r_shown;
  if (r_shown) {
    const Read &r = reads.front();
    bool good = in_memory(r.address);
    m.r_resp = good ? 0 : 2;
    m.r_last = r.beats == 1;
    if (good) std::memcpy(&m.r_beat[0], &memory[r.address], 64);
  }
  if (!b_shown && !acknowledged.empty() && (acknowledged.front() & ~(1ull << 63)) <= cycles &&
      !dice.percent(withheld))
    b_shown = true;
  m.b_valid = b_shown;
  m.b_resp = b_shown && acknowledged.front() >> 63 ? 2 : 0;
  m.ar_ready = reads.size() < 16 && !dice.percent(withheld);
  m.aw_ready = bursts.size() < 16 && !dice.percent(withheld);
  m.w_ready = !dice.percent(withheld);
  m.eval();

  if (ar_held && (!m.ar_valid || m.ar_address != ar_was || m.ar_len != ar_len_was))
    breach("a read request changed before it was taken");
  if (aw_held && (!m.aw_valid || m.aw_address != aw_was || m.aw_len != aw_len_was))
    breach("a write request changed before it was taken");
  if (w_held && (!m.w_valid || std::memcmp(w_was, &m.w_beat[0], 64) != 0))
    breach("a beat changed before it was taken");
  ar_held = m.ar_valid && !m.ar_ready;
  aw_held = m.aw_valid && !m.aw_ready;
  w_held = m.w_valid && !m.w_ready;
  ar_was = m.ar_address, ar_len_was = m.ar_len;
  aw_was = m.aw_address, aw_len_was = m.aw_len;
  std::memcpy(w_was, &m.w_beat[0], 64);

  if (m.ar_valid && m.ar_ready) {
    uint32_t beats = m.ar_len + 1u;
    if (m.ar_address % 64 || m.ar_address / 4096 != (m.ar_address + 64ull * beats - 1) / 4096)
      breach("a read burst crosses a line");
    if (in_bytes && (m.ar_address < in_at || m.ar_address + 64ull * beats > in_at + in_bytes))
      breach("a burst reads outside of the input slot");
    uint64_t due = cycles + dice.up_to(latency_least, latency_most);
    if (!reads.empty() && due < reads.back().due) due = reads.back().due;
    reads.push_back({m.ar_address, beats, due});
  }
  if (m.r_valid && m.r_ready) {
    r_shown = false;
    Read &r = reads.front();
    r.address += 64;
    if (--r.beats == 0) reads.pop_front();
  }
  if (m.aw_valid && m.aw_ready) {
    uint32_t beats = m.aw_len + 1u;
    if (m.aw_address % 64 || m.aw_address / 4096 != (m.aw_address + 64ull * beats - 1) / 4096)
      breach("a write burst crosses a line");
    bursts.push_back({m.aw_address, beats, 0});
  }
  if (m.w_valid && m.w_ready) {
    early.push_back({});
    std::memcpy(early.back().bytes, &m.w_beat[0], 64);
    early.back().last = m.w_last;
  }
  while (!early.empty() && !bursts.empty()) {
    Early e = early.front();
    early.pop_front();
    put(e.bytes, e.last);
  }
  if (m.b_valid && m.b_ready) {
    b_shown = false;
    acknowledged.pop_front();
  }
  m.clk = 1;
  m.eval();
  m.clk = 0;
  cycles++;
}

#define NAME(f) GLUE(GLUE(MODEL, _), f)

// A unit over a memory, in reset and out of it again.
static Card *made(std::shared_ptr<std::vector<uint8_t>> memory, uint64_t seed, uint64_t least, uint64_t most, uint32_t withheld) {
  Card *card = new Card(memory);
  card->context = std::make_unique<VerilatedContext>();
  card->context->randReset(2);
  card->context->randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
  card->model = std::make_unique<Model>(card->context.get());
  card->dice.at = seed;
  card->latency_least = least;
  card->latency_most = most;
  card->withheld = withheld < 99 ? withheld : 99;
  Model &m = *card->model;
  m.clk = 0;
  m.s_aw_valid = m.s_w_valid = m.s_b_ready = m.s_ar_valid = m.s_r_ready = 0;
  m.rst = 1;
  for (int i = 0; i < 4; i++) {
    m.ar_ready = m.r_valid = m.aw_ready = m.w_ready = m.b_valid = 0;
    m.eval();
    m.clk = 1;
    m.eval();
    m.clk = 0;
  }
  m.rst = 0;
#if VM_COVERAGE
  // What chance left in registers and the reset cleared has not been passed by any set.
  card->context->coveragep()->zero();
#endif
  return card;
}

extern "C" {

// A card of one unit with so many bytes of memory. An access takes `least` to `most` cycles; ready and valid are withheld in
// `withheld` percent of the cycles. The seed decides that, and what registers hold before reset.
Card *NAME(create)(uint64_t bytes, uint64_t seed, uint64_t least, uint64_t most, uint32_t withheld) {
  return made(std::make_shared<std::vector<uint8_t>>(bytes, 0), seed, least, most, withheld);
}

// Another unit of a card: it has the card's memory. All are destroyed, one by one, and the memory with the last of them.
Card *NAME(beside)(const Card *card, uint64_t seed, uint64_t least, uint64_t most, uint32_t withheld) {
  return made(card->shared, seed, least, most, withheld);
}

void NAME(destroy)(Card *card) {
  card->model->final();
#if VM_COVERAGE
  if (const char *path = std::getenv("COVER")) card->context->coveragep()->write(path);
#endif
  delete card;
}

// From now on the unit may read and write these places alone.
void NAME(confine)(Card *card, uint64_t in_at, uint64_t in_bytes, uint64_t out_at, uint64_t out_bytes) {
  card->in_at = in_at, card->in_bytes = in_bytes, card->out_at = out_at, card->out_bytes = out_bytes;
}

void NAME(advance)(Card *card, uint64_t cycles) {
  for (uint64_t i = 0; i < cycles; i++) card->cycle();
}

// Units side by side: each has its cycle before any has its next.
void NAME(together)(Card *const *cards, uint64_t n, uint64_t cycles) {
  for (uint64_t i = 0; i < cycles; i++)
    for (uint64_t u = 0; u < n; u++) cards[u]->cycle();
}

uint64_t NAME(cycles)(const Card *card) { return card->cycles; }

uint32_t NAME(read_register)(Card *card, uint32_t address) {
  Model &m = *card->model;
  m.s_ar_address = address & 0xfff;
  m.s_ar_valid = 1;
  do {
    m.eval();
    bool taken = m.s_ar_ready;
    card->cycle();
    if (taken) break;
  } while (true);
  m.s_ar_valid = 0;
  m.s_r_ready = 1;
  m.eval();
  while (!m.s_r_valid) card->cycle();
  uint32_t word = m.s_r_word;
  card->cycle();
  m.s_r_ready = 0;
  return word;
}

void NAME(write_register)(Card *card, uint32_t address, uint32_t word) {
  Model &m = *card->model;
  m.s_aw_address = address & 0xfff;
  m.s_w_word = word;
  m.s_aw_valid = m.s_w_valid = 1;
  m.eval();
  while (!(m.s_aw_ready && m.s_w_ready)) card->cycle();
  card->cycle();
  m.s_aw_valid = m.s_w_valid = 0;
  m.s_b_ready = 1;
  m.eval();
  while (!m.s_b_valid) card->cycle();
  card->cycle();
  m.s_b_ready = 0;
}

// 0, or 1 if the range is not in memory.
int NAME(write_memory)(Card *card, uint64_t address, const uint8_t *bytes, uint64_t n) {
  if (address > card->memory.size() || n > card->memory.size() - address) return 1;
  std::memcpy(&card->memory[address], bytes, n);
  return 0;
}

int NAME(read_memory)(const Card *card, uint64_t address, uint8_t *bytes, uint64_t n) {
  if (address > card->memory.size() || n > card->memory.size() - address) return 1;
  std::memcpy(bytes, &card->memory[address], n);
  return 0;
}

// Breaches of the bus so far, and the first one in words.
uint64_t NAME(breaches)(const Card *card) { return card->faults; }
const char *NAME(first_breach)(const Card *card) { return card->fault.c_str(); }
}
