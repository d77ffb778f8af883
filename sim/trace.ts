// What happened in a schedule, as a number that is the same if and only if the same things happened; and, if somebody
// wants to read it, as lines.

export class Trace {
  /** Kept only if asked for: a million schedules do not need a million stories. */
  readonly lines: string[] | undefined;
  /** Two lanes of FNV-1a with different offsets: 64 bits without big integers. */
  #low = 0x811c9dc5;
  #high = 0x9dc5811c;

  constructor(keep: "lines" | "hash") {
    this.lines = keep === "lines" ? [] : undefined;
  }

  note(line: string): void {
    this.lines?.push(line);
    for (let index = 0; index < line.length; index += 1) {
      const unit = line.charCodeAt(index);
      this.#low = Math.imul(this.#low ^ unit, 0x01000193);
      this.#high = Math.imul(this.#high ^ (unit + index), 0x01000193);
    }
    this.#low = Math.imul(this.#low ^ 10, 0x01000193);
  }

  get hash(): string {
    return `${(this.#high >>> 0).toString(36)}.${(this.#low >>> 0).toString(36)}`;
  }
}
