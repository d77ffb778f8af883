// Pages of a stream as it grows, for any number of readers, none of which anybody waits for.
//
// Nothing is queued for a reader: it reads by offset where the bytes are anyway, later pages later. One that falls
// behind what is kept is told how much it has missed.
import type { OutputPage, OutputPageOptions } from "../../ports/spawner.ts";
import { readPage } from "./output-page.ts";
import type { Source } from "./source.ts";

/** Those who wait for more. Each is told once and asks again; a reader that is busy elsewhere is not in here. */
export class Growth {
  readonly #waiting = new Set<() => void>();

  /** There is more, or there will not be. */
  tell(): void {
    if (this.#waiting.size === 0) return;
    const told = [...this.#waiting];
    this.#waiting.clear();
    for (const tell of told) tell();
  }

  /** Settles once, when there is more. */
  wait(): { readonly more: Promise<void>; readonly dispose: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    return { more: promise, dispose: () => void this.#waiting.delete(resolve) };
  }
}

/** The last page says `end`, even if it has nothing else to say; a reader that is stopped by its signal gets none. */
export async function* follow(
  source: Source,
  growth: Growth,
  options: OutputPageOptions & { readonly signal?: AbortSignal },
): AsyncGenerator<OutputPage, void> {
  const { signal } = options;
  let offset = options.offset ?? 0;
  while (!signal?.aborted) {
    const seen = source.total;
    const page = await untilAborted(signal, readPage(source, { ...options, offset }));
    if (page === undefined) return;
    if (page.to > page.from || page.missing > 0 || page.end) yield page;
    if (page.end) return;
    offset = page.to;
    if (page.to > page.from) continue;
    // Not "is there more than I have": the first half of a character is more, and is not a page.
    if (source.total > seen || source.ended) continue;
    const { more, dispose: takeBack } = growth.wait();
    await untilAborted(signal, more);
    takeBack();
  }
}

/**
 * What the promise comes to, or undefined as soon as the signal aborts. A listener per wait, taken back after it: a
 * race against one promise for all of them would remember every wait there ever was.
 */
async function untilAborted<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T | undefined> {
  if (signal === undefined) return promise;
  if (signal.aborted) return undefined;
  const aborted = Promise.withResolvers<undefined>();
  const stop = (): void => aborted.resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
