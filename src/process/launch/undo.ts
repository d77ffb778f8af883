/** Cleanup steps of a start that fails, run last first. A step must not throw: the steps before it would not run. */
export class Undo {
  readonly #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  all(): void {
    for (const step of this.#steps.toReversed()) step();
  }
}
