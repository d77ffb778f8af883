// The limited places of one life: the real ones, and who has which.
import { slots } from "../src/agent/loop/slots.ts";
import type { Slots } from "../src/ports/agent.ts";
import type { Plan } from "./plan.ts";

export const PLACES = 1;

export class Places {
  readonly #slots = slots(PLACES);
  readonly #holders = new Set<Plan>();
  /** Wishes that were neither granted nor taken back. */
  waiting = 0;

  get held(): number {
    return this.#holders.size;
  }

  holds(plan: Plan): boolean {
    return this.#holders.has(plan);
  }

  for(plan: Plan): Slots {
    return {
      take: (taken) => {
        this.waiting += 1;
        let waits = true;
        const over = (): void => {
          if (waits) this.waiting -= 1;
          waits = false;
        };
        const dispose = this.#slots.take((giveBack) => {
          over();
          this.#holders.add(plan);
          taken(() => {
            this.#holders.delete(plan);
            giveBack();
          });
        });
        return () => {
          over();
          dispose();
        };
      },
    };
  }
}
