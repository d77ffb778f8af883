// A door in a test: whoever must wait stands in front of it until the test opens it. Instead of a sleep.

export class Gate<T = void> {
  /** Resolves once the gate is open, with what it was opened with. */
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

  /** Lets everybody through, now and later. A second time changes nothing. */
  open(value: T): void {
    this.#isOpen = true;
    this.#open(value);
  }
}
