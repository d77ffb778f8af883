// Named places at which the server waits for the test, and the test for the server. This is how order is forced.

interface Gate {
  readonly reached: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

export class Gates {
  readonly #gates = new Map<string, Gate>();
  #barred: Error | undefined;

  /** Settles when the server has come to this gate; rejects when it is certain that it will not. */
  reached(name: string): Promise<void> {
    return this.#gate(name).reached.promise;
  }

  /** Opens the gate for good, also for a server that has not come to it yet. */
  release(name: string): void {
    this.#gate(name).released.resolve();
  }

  /** The server's side: says that it is there, and waits. */
  pass(name: string): Promise<void> {
    const gate = this.#gate(name);
    gate.reached.resolve();
    return gate.released.promise;
  }

  /** Something went wrong, and whoever waits for a gate should hear that instead of waiting for ever. */
  bar(why: string): void {
    this.#barred ??= new Error(why);
    for (const gate of this.#gates.values()) gate.reached.reject(this.#barred);
  }

  #gate(name: string): Gate {
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    const gate: Gate = { reached: Promise.withResolvers(), released: Promise.withResolvers() };
    // A gate nobody waits for may be barred too.
    gate.reached.promise.catch(() => {});
    if (this.#barred !== undefined) gate.reached.reject(this.#barred);
    this.#gates.set(name, gate);
    return gate;
  }
}
