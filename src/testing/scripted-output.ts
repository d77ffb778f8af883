// The output of a scripted child, held in memory and read like a real process's.
import type { Excerpt, Output, OutputCounts, OutputPage, OutputPageOptions, Stream } from "../ports/spawner.ts";

/** The default page size of a real process. */
const PAGE_BYTES = 64 * 1024;

interface Chunk {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

export class ScriptedOutput implements Output {
  readonly dir: string;
  lastAt: number;
  #chunks: Chunk[] = [];
  #ended = false;
  #sleepers: (() => void)[] = [];

  constructor(dir: string, at: number) {
    this.dir = dir;
    this.lastAt = at;
  }

  get counts(): OutputCounts {
    const of = (stream: Stream): number => this.#bytes(stream).length;
    const bytes = { stdout: of("stdout"), stderr: of("stderr"), all: of("all") };
    return { bytes, kept: bytes, lines: this.#bytes("all").filter((one) => one === NEWLINE).length };
  }

  say(text: string, stream: "stdout" | "stderr", at: number): void {
    this.#chunks.push({ stream, bytes: Buffer.from(text) });
    this.lastAt = at;
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  read(options: OutputPageOptions = {}): Promise<OutputPage> {
    return Promise.resolve(this.#page(options));
  }

  excerpt({ stream = "all", bytesMax = PAGE_BYTES, plain = false }: Omit<OutputPageOptions, "offset"> = {}): Excerpt {
    const bytes = this.#bytes(stream);
    if (bytes.length <= bytesMax) return { head: shown(bytes, plain), tail: "", omitted: 0 };
    const head = bytes.subarray(0, boundaryAt(bytes, Math.ceil(bytesMax / 2)));
    const tail = bytes.subarray(boundaryAt(bytes, bytes.length - Math.floor(bytesMax / 2)));
    const omitted = bytes.length - head.length - tail.length;
    return { head: shown(head, plain), tail: shown(tail, plain), omitted };
  }

  async *follow(options: OutputPageOptions & { readonly signal?: AbortSignal } = {}): AsyncGenerator<OutputPage, void> {
    const { signal, ...first } = options;
    let offset = first.offset ?? 0;
    const wake = (): void => this.#wake();
    signal?.addEventListener("abort", wake, { once: true });
    try {
      while (signal?.aborted !== true) {
        const page = this.#page({ ...first, offset });
        if (page.to > page.from) yield page;
        if (page.end) return;
        offset = page.to;
        if (page.to === page.from) await new Promise<void>((resolve) => this.#sleepers.push(resolve));
      }
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }

  #page({ stream = "all", offset = 0, bytesMax = PAGE_BYTES, plain = false }: OutputPageOptions): OutputPage {
    const bytes = this.#bytes(stream);
    const from = Math.min(offset, bytes.length);
    const cut = boundaryAt(bytes, Math.min(bytes.length, from + bytesMax));
    // At least one character, so that a reader with a small limit still advances.
    const to = cut > from ? cut : Math.min(bytes.length, from + CHARACTER_BYTES_MAX);
    const text = shown(bytes.subarray(from, to), plain);
    return { stream, from, to, text, missing: 0, end: this.#ended && to === bytes.length };
  }

  #bytes(stream: Stream): Buffer {
    return Buffer.concat(
      this.#chunks.filter((one) => stream === "all" || one.stream === stream).map((one) => one.bytes),
    );
  }

  #wake(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    for (const wake of sleepers) wake();
  }
}

const NEWLINE = 10;
const CHARACTER_BYTES_MAX = 4;

/** The last position at or before `at` where a character begins. */
function boundaryAt(bytes: Buffer, at: number): number {
  let place = at;
  while (place > 0 && place < bytes.length && ((bytes[place] ?? 0) & 0xc0) === 0x80) place -= 1;
  return place;
}

function shown(bytes: Buffer, plain: boolean): string {
  const text = bytes.toString("utf8");
  if (!plain) return text;
  const isShown = (char: string): boolean => char >= " " || char === "\n" || char === "\t";
  return [...text.replaceAll(ESCAPES, "")].filter(isShown).join("");
}

/** Escape sequences: colours, cursor movements and titles. */
const ESCAPES = new RegExp(
  `${String.fromCharCode(27)}(?:\\[[0-9;?]*[A-Za-z]|\\][^${String.fromCharCode(7)}]*${String.fromCharCode(7)})`,
  "g",
);
