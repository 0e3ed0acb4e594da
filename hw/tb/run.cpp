// Runs input slots through a unit and writes its output slots. For developers; the crate's tests use the shim itself.
//
//   run SEED LEAST MOST WITHHELD IN OUT [IN OUT ...]
//
// A name that begins with "twice:" runs twice in a row, to see that nothing stays behind; with "abort:N:" or "reset:N:" the
// unit is told to stop N cycles after the doorbell. A reset set has no output. "as:BYTES:TAG:" in front of the file gives the
// size of the output slot and the tag of the command, which else are taken from the header. Prints a line for each slot: code, cycles, logical
// bytes a cycle, lost cycles by cause. Ends with 1 if the bus was not used as agreed or a unit did not end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Card;
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define NAME(f) GLUE(GLUE(MODEL, _), f)
extern "C" {
Card *NAME(create)(uint64_t, uint64_t, uint64_t, uint64_t, uint32_t);
void NAME(destroy)(Card *);
uint32_t NAME(read_register)(Card *, uint32_t);
void NAME(write_register)(Card *, uint32_t, uint32_t);
int NAME(write_memory)(Card *, uint64_t, const uint8_t *, uint64_t);
int NAME(read_memory)(const Card *, uint64_t, uint8_t *, uint64_t);
void NAME(advance)(Card *, uint64_t);
void NAME(confine)(Card *, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t NAME(cycles)(const Card *);
uint64_t NAME(breaches)(const Card *);
const char *NAME(first_breach)(const Card *);
}

static uint32_t u32(const std::vector<uint8_t> &b, size_t at) {
  uint32_t v;
  std::memcpy(&v, &b[at], 4);
  return v;
}

static std::vector<uint8_t> load(const std::string &path) {
  FILE *f = std::fopen(path.c_str(), "rb");
  if (!f) {
    std::perror(path.c_str());
    std::exit(2);
  }
  std::vector<uint8_t> bytes;
  uint8_t part[65536];
  for (size_t n; (n = std::fread(part, 1, sizeof part, f)) != 0;)
    bytes.insert(bytes.end(), part, part + n);
  std::fclose(f);
  return bytes;
}

int main(int argc, char **argv) {
  if (argc < 7 || argc % 2 == 0) {
    std::fprintf(stderr, "run SEED LEAST MOST WITHHELD IN OUT [IN OUT ...]\n");
    return 2;
  }
  const uint64_t guard = 4096;
  uint64_t seed = std::strtoull(argv[1], nullptr, 0);
  const uint64_t size = 64ull << 20;
  Card *card = NAME(create)(size, seed, std::strtoull(argv[2], nullptr, 0),
                            std::strtoull(argv[3], nullptr, 0), std::atoi(argv[4]));
  NAME(write_register)(card, 0x040, 1);
  uint32_t commands = 0;
  int bad = 0;
  for (int i = 5; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    int times = 1;
    bool abort = name.rfind("abort:", 0) == 0, reset = name.rfind("reset:", 0) == 0;
    uint64_t after = 0;
    if (abort || reset) {
      after = std::strtoull(name.c_str() + 6, nullptr, 10);
      name = name.substr(name.find(':', 6) + 1);
    }
    if (name.rfind("twice:", 0) == 0) {
      times = 2;
      name = name.substr(6);
    }
    uint64_t out_bytes = 0, tag = 0;
    bool told = name.rfind("as:", 0) == 0;
    if (told) {
      char *rest;
      out_bytes = std::strtoull(name.c_str() + 3, &rest, 10);
      tag = std::strtoull(rest + 1, &rest, 10);
      name = rest + 1;
    }
    std::vector<uint8_t> in = load(name);
    if (!told) {
      out_bytes = u32(in, 36);
      std::memcpy(&tag, &in[8], 8);
    }
    // The places differ with the seed, so that lines of 4 KiB fall elsewhere.
    uint64_t in_at = guard + 64 * (seed * 7 + i) % 4096, out_at = (in_at + in.size() + guard + 64 * (seed % 61)) / 64 * 64;
    if (out_at + out_bytes + guard > size || out_bytes > size) {
      std::fprintf(stderr, "%s: too large\n", name.c_str());
      return 2;
    }
    for (int t = 0; t < times; t++) {
      std::vector<uint8_t> fill(out_bytes + 2 * guard, 0xa5);
      NAME(write_memory)(card, out_at - guard, fill.data(), fill.size());
      NAME(write_memory)(card, in_at, in.data(), in.size());
      uint32_t words[8] = {uint32_t(in_at), uint32_t(in_at >> 32), uint32_t(out_at), uint32_t(out_at >> 32),
                           uint32_t(in.size()), uint32_t(out_bytes), uint32_t(tag), uint32_t(tag >> 32)};
      NAME(confine)(card, in_at, in.size(), out_at, out_bytes);
      for (int w = 0; w < 8; w++)
        NAME(write_register)(card, 0x400 + 64 * (commands % 16) + 4 * w, words[w]);
      uint64_t from = NAME(cycles)(card);
      NAME(write_register)(card, 0x050, ++commands);
      if (abort || reset) {
        NAME(advance)(card, after);
        NAME(write_register)(card, 0x040, abort ? 3 : 4);
      }
      if (reset) {
        for (int polls = 0; NAME(read_register)(card, 0x044) & 4; polls++) {
          NAME(advance)(card, 50);
          if (polls == 100000) {
            std::printf("%s: does not reset\n", name.c_str());
            return 1;
          }
        }
        if (NAME(read_register)(card, 0x054) || NAME(read_register)(card, 0x050)) {
          std::printf("%s: the ring is not empty after a reset\n", name.c_str());
          bad = 1;
        }
        NAME(write_register)(card, 0x040, 1);
        commands = 0;
        std::printf("%s: reset\n", name.c_str());
        continue;
      }
      uint64_t most = 1000000 + 200ull * (in.size() + out_bytes);
      while (NAME(read_register)(card, 0x054) != commands && NAME(cycles)(card) - from < most)
        NAME(advance)(card, 50);
      if (NAME(read_register)(card, 0x054) != commands) {
        std::printf("%s: hangs\n", name.c_str());
        return 1;
      }
      std::vector<uint8_t> all(out_bytes + 2 * guard);
      NAME(read_memory)(card, out_at - guard, all.data(), all.size());
      for (uint64_t b = 0; b < guard; b++)
        if (all[b] != 0xa5 || all[guard + out_bytes + b] != 0xa5) {
          std::printf("%s: writes outside of its slot\n", name.c_str());
          bad = 1;
          break;
        }
      std::vector<uint8_t> out(all.begin() + guard, all.end() - guard);
      uint64_t cycles;
      std::memcpy(&cycles, &out[out_bytes - 256 + 208], 8);
      const uint8_t *status = &out[out_bytes - 256];
      uint64_t bytes_in;
      std::memcpy(&bytes_in, status + 32, 8);
      std::printf("%s: code %u, %llu cycles, %.2f bytes a cycle; lost", name.c_str(), status[6],
                  (unsigned long long)cycles, cycles ? double(bytes_in) / double(cycles) : 0.0);
      for (int k = 0; k < 5; k++) std::printf(" %u", u32(out, out_bytes - 256 + 216 + 4 * k));
      std::printf("\n");
      FILE *f = std::fopen(argv[i + 1], "wb");
      if (!f || std::fwrite(out.data(), 1, out.size(), f) != out.size()) return 2;
      std::fclose(f);
    }
  }
  if (NAME(breaches)(card)) {
    std::printf("bus: %llu breaches, first: %s\n", (unsigned long long)NAME(breaches)(card),
                NAME(first_breach)(card));
    bad = 1;
  }
  NAME(destroy)(card);
  return bad;
}
