// What a start that fails has to take back.

/** What has to be taken back if the next step fails, last first. */
export class Undo {
  readonly #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  all(): void {
    for (const step of this.#steps.toReversed()) step();
  }
}
