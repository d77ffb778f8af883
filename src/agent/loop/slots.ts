// A counting semaphore: limits how many calls run at once.
//
// Invariants
// 1. Never more slots are taken than exist.
// 2. Slots are granted in the order in which they were requested.
// 3. A cancelled request is never granted, and a slot that is released twice is released once.
import { ControlError } from "../../core/errors.ts";
import type { Slots } from "../../ports/agent.ts";

interface SlotRequest {
  readonly taken: (giveBack: () => void) => void;
}

/** A semaphore with `max` slots. A free slot is granted synchronously, within `take`. */
export function slots(max: number): Slots {
  if (!Number.isInteger(max) || max < 1) {
    throw new ControlError("invalid", "The number of slots must be a whole number of at least 1.");
  }
  // A set keeps the order, and a cancelled request is removed without a search.
  const waiting = new Set<SlotRequest>();
  let free = max;
  let granting = false;

  // A loop instead of recursion: a holder that releases at once would nest the next grant in its own stack.
  const grantFree = (): void => {
    if (granting) return;
    granting = true;
    try {
      for (const options of waiting) {
        if (free === 0) return;
        waiting.delete(options);
        free -= 1;
        options.taken(once(giveBack));
      }
    } finally {
      granting = false;
    }
  };
  const giveBack = (): void => {
    free += 1;
    grantFree();
  };

  return {
    take(taken) {
      const options: SlotRequest = { taken };
      waiting.add(options);
      grantFree();
      return () => void waiting.delete(options);
    },
  };
}

/** A semaphore with `max` slots for each key, kept while a slot of the key is held or awaited. */
export function slotsByKey<K>(max: number): (key: K) => Slots {
  const open = new Map<K, { readonly places: Slots; users: number }>();
  return (key) => ({
    take(taken) {
      const one = open.get(key) ?? { places: slots(max), users: 0 };
      open.set(key, one);
      one.users += 1;
      const leave = once(() => {
        one.users -= 1;
        if (one.users === 0) open.delete(key);
      });
      let granted = false;
      const dispose = one.places.take((giveBack) => {
        granted = true;
        taken(() => {
          giveBack();
          leave();
        });
      });
      return () => {
        dispose();
        if (!granted) leave();
      };
    },
  });
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    act();
  };
}
