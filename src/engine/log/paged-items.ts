// The items of pages, one by one.
import type { Stoppable } from "./stoppable-generator.ts";

type Step<T> = IteratorResult<T, void>;

/**
 * Yields each item of each page. Once the pages have been stopped it yields nothing more, not even of the last page.
 */
export const pagedItems = <T>(pages: Stoppable<readonly T[]>): AsyncGenerator<T, void> => new OneByOne(pages);

/** Not an async generator: an item that is available costs one promise instead of two generators' steps. */
class OneByOne<T> implements AsyncGenerator<T, void> {
  readonly #pages: Stoppable<readonly T[]>;
  #page: readonly T[] = [];
  #at = 0;
  /** Number of calls of `next()` that wait for a page, and the last of them, which the next call waits for. */
  #count = 0;
  #last: Promise<Step<T>> | undefined;

  constructor(pages: Stoppable<readonly T[]>) {
    this.#pages = pages;
  }

  next(): Promise<Step<T>> {
    if (this.#count === 0 && this.#at < this.#page.length) return Promise.resolve(this.#take());
    this.#count += 1;
    this.#last =
      this.#last === undefined
        ? this.#pages.next().then(this.#arrive, this.#fail)
        : this.#last.then(this.#proceed, this.#proceed);
    return this.#last;
  }

  async return(): Promise<Step<T>> {
    await this.#pages.return();
    return DONE;
  }

  throw(error: unknown): Promise<Step<T>> {
    return this.#pages.throw(error).then(() => DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  readonly #proceed = (): Step<T> | Promise<Step<T>> => {
    if (this.#at >= this.#page.length) return this.#pages.next().then(this.#arrive, this.#fail);
    this.#answered();
    return this.#take();
  };

  readonly #arrive = (next: Step<readonly T[]>): Step<T> | Promise<Step<T>> => {
    this.#page = next.done === true ? [] : next.value;
    this.#at = 0;
    if (next.done !== true) return this.#proceed();
    this.#answered();
    return DONE;
  };

  readonly #fail = (error: unknown): never => {
    this.#answered();
    throw error;
  };

  #answered(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#last = undefined;
  }

  #take(): Step<T> {
    if (this.#pages.stopped) return DONE;
    const value = this.#page[this.#at] as T;
    this.#at += 1;
    return { done: false, value };
  }
}

const DONE = { done: true, value: undefined } as const;
