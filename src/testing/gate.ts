// A promise that a test resolves. Code under test waits at the gate until the test opens it, so no test sleeps.

export class Gate<T = void> {
  /** Resolves once the gate is open, with the value it was opened with. */
  readonly opened: Promise<T>;
  #open!: (value: T) => void;
  #isOpen = false;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Opens the gate for all present and future waiters. Opening it again has no effect. */
  open(value: T): void {
    this.#isOpen = true;
    this.#open(value);
  }
}
