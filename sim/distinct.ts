// How many different traces there were. A million texts in a set are a hundred megabytes; as pairs of numbers in a
// table they are sixteen.
//
// Invariants
// 1. At most half of the places are taken, so a search ends soon.
// 2. The pair 0, 0 stands for an empty place; a trace with that number is counted as 0, 1.

const PLACES_FIRST = 1 << 12;

export class Distinct {
  #low = new Uint32Array(PLACES_FIRST);
  #high = new Uint32Array(PLACES_FIRST);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A trace by the number that stands for it, as `Trace` writes it. */
  add(hash: string): void {
    const [high = "0", low = "0"] = hash.split(".");
    if (2 * this.#size >= this.#low.length) this.#grow();
    this.#put(Number.parseInt(high, 36) >>> 0, Number.parseInt(low, 36) >>> 0);
  }

  #put(high: number, given: number): void {
    const low = high === 0 && given === 0 ? 1 : given;
    const mask = this.#low.length - 1;
    for (let at = (low ^ Math.imul(high, 0x9e3779b1)) & mask; ; at = (at + 1) & mask) {
      if (this.#low[at] === low && this.#high[at] === high) return;
      if (this.#low[at] !== 0 || this.#high[at] !== 0) continue;
      this.#low[at] = low;
      this.#high[at] = high;
      this.#size += 1;
      return;
    }
  }

  #grow(): void {
    const [lows, highs] = [this.#low, this.#high];
    this.#low = new Uint32Array(2 * lows.length);
    this.#high = new Uint32Array(2 * highs.length);
    this.#size = 0;
    lows.forEach((low, at) => {
      const high = highs[at] ?? 0;
      if (low !== 0 || high !== 0) this.#put(high, low);
    });
  }
}
