// Places of which there are only so many: how many calls of one turn go on at once.
//
// Invariants
// 1. Never more places are taken than there are.
// 2. Places are handed out in the order in which they were asked for.
// 3. A wish that was taken back is never granted, and a place given back twice is given back once.
import { ControlError } from "../../core/errors.ts";
import type { Slots } from "../../ports/agent.ts";

interface SlotRequest {
  readonly taken: (giveBack: () => void) => void;
}

/** `max` places. Free ones are handed out at once, within `take`. */
export function slots(max: number): Slots {
  if (!Number.isInteger(max) || max < 1) {
    throw new ControlError("invalid", "The number of slots is a whole number of at least 1.");
  }
  // A set keeps the order, and what is taken back leaves it without a search.
  const wishes = new Set<SlotRequest>();
  let free = max;
  let handingOut = false;

  // A loop and not a recursion: whoever gives back at once would otherwise nest the next one into its own stack.
  const handOut = (): void => {
    if (handingOut) return;
    handingOut = true;
    try {
      for (const options of wishes) {
        if (free === 0) return;
        wishes.delete(options);
        free -= 1;
        options.taken(once(giveBack));
      }
    } finally {
      handingOut = false;
    }
  };
  const giveBack = (): void => {
    free += 1;
    handOut();
  };

  return {
    take(taken) {
      const options: SlotRequest = { taken };
      wishes.add(options);
      handOut();
      return () => void wishes.delete(options);
    },
  };
}

/** `max` places for each key, kept while one of them is held or waited for. */
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
