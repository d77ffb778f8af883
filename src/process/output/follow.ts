// Pages of a stream as it grows, for any number of readers, without delaying the writer.
//
// Nothing is queued for a reader: it reads by offset from memory or disk. A reader that falls behind the kept bytes
// learns how much it has missed.
import type { OutputPage, OutputPageOptions } from "../../ports/spawner.ts";
import { readPage } from "./output-page.ts";
import type { Source } from "./source.ts";

/** Readers that wait for more. Each is woken once and registers again. */
export class Growth {
  readonly #waiting = new Set<() => void>();

  /** Call when the stream has grown or ended. */
  notify(): void {
    if (this.#waiting.size === 0) return;
    const woken = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of woken) wake();
  }

  /** Resolves once, when there is more. */
  wait(): { readonly more: Promise<void>; readonly dispose: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    return { more: promise, dispose: () => void this.#waiting.delete(resolve) };
  }
}

/** The last page has `end`, even if it is empty otherwise; a reader stopped by its signal gets no last page. */
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
    // Compared with `seen`, not with `offset`: the first half of a character is more, but not a page.
    if (source.total > seen || source.ended) continue;
    const { more, dispose } = growth.wait();
    await untilAborted(signal, more);
    dispose();
  }
}

/**
 * The promise's value, or undefined as soon as the signal aborts. Each wait adds and removes its own listener: racing
 * against one shared promise would accumulate a reaction for every wait.
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
