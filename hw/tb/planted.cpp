// Which bug of mutants.py is planted: the number in BUG, 0 for none.
#include <cstdlib>

extern "C" int planted() {
  const char *number = std::getenv("BUG");
  return number ? std::atoi(number) : 0;
}
