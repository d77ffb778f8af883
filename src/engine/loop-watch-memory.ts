// The memory that the main thread shares with the thread that watches it. The main thread may be unable to answer, so
// everything needed to name running work is here.

/**
 * How often the main thread counts a beat, and the watching thread checks it. A blocked loop has missed several beats.
 */
export const BEAT_MS = 250;

/** 1 while work is live: otherwise the watching thread sleeps. */
const LIVE = 0;
/** Counted by the main thread whenever its timer fires. */
const BEATS = 1;
/** 1: set by the watching thread when the loop has been blocked for too long; cleared by the main thread. */
const BLOCKED = 2;
/** The text that names what may block the loop: 0 for the list of live work, otherwise the slot of one turn or call. */
const CURRENT = 3;
const HEAD_BYTES = 16;

/** Texts are cut rather than refused, and end with a zero byte. */
const LIST_BYTES = 1_024;
const PLACE_BYTES = 256;
/**
 * Slots for the names of work that was entered recently. Writing a name costs more than entering, so names are kept.
 */
const PLACES = 64;

export class WatchMemory {
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Int32Array<SharedArrayBuffer>;
  readonly #texts: Buffer<SharedArrayBuffer>;
  #lastPlace = 0;

  constructor(shared = new SharedArrayBuffer(HEAD_BYTES + LIST_BYTES + PLACES * PLACE_BYTES)) {
    this.shared = shared;
    this.#numbers = new Int32Array(shared, 0, HEAD_BYTES / 4);
    this.#texts = Buffer.from(shared, HEAD_BYTES);
  }

  get beats(): number {
    return Atomics.load(this.#numbers, BEATS);
  }

  beat(live: boolean): void {
    Atomics.add(this.#numbers, BEATS, 1);
    const before = Atomics.exchange(this.#numbers, LIVE, live ? 1 : 0);
    if (live && before === 0) Atomics.notify(this.#numbers, LIVE);
  }

  /** The names of what may block the loop. */
  get names(): string {
    const place = Atomics.load(this.#numbers, CURRENT);
    const from = startOf(place);
    const text = this.#texts.toString("utf8", from, startOf(place + 1));
    return text.slice(0, text.indexOf("\0"));
  }

  /** Sets the names of live work, of which none has been entered since. */
  list(names: string): void {
    this.#write(0, names);
    this.enter(0);
  }

  /** Stores a name in place of the oldest one. */
  name(name: string): number {
    this.#lastPlace = (this.#lastPlace % PLACES) + 1;
    this.#write(this.#lastPlace, name);
    return this.#lastPlace;
  }

  enter(place: number): void {
    Atomics.store(this.#numbers, CURRENT, place);
  }

  #write(place: number, text: string): void {
    const from = startOf(place);
    this.#texts[from + this.#texts.write(text, from, startOf(place + 1) - from - 1, "utf8")] = 0;
  }

  get blocked(): boolean {
    return Atomics.load(this.#numbers, BLOCKED) === 1;
  }

  set blocked(blocked: boolean) {
    Atomics.store(this.#numbers, BLOCKED, blocked ? 1 : 0);
  }

  /** For the watching thread: waits until work is live. */
  untilLive(): void {
    Atomics.wait(this.#numbers, LIVE, 0);
  }

  /** For the watching thread: whether no beat came in this time while work was live. */
  missedBeat(): boolean {
    const { beats } = this;
    // Beats do not wake the thread, so this always takes the full time, unless a beat came before it began.
    Atomics.wait(this.#numbers, BEATS, beats, BEAT_MS);
    return this.beats === beats && Atomics.load(this.#numbers, LIVE) === 1;
  }
}

const startOf = (place: number): number => (place === 0 ? 0 : LIST_BYTES + (place - 1) * PLACE_BYTES);
