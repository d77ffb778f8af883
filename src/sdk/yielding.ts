// What a program is given by Belay: each promise settles through the gate that yields to the event loop. Agent code may
// hold the Belay it runs in: a loop over `session.explain()` must starve nothing, as one over `turn.ask()` must not.
import { ignoreUnhandled } from "../engine/process/process-handle.ts";
import { GatedPages, type YieldGate } from "../engine/yield-gate.ts";

type Method = (this: object, ...given: unknown[]) => unknown;

/**
 * Puts what the methods and getters of a class answer behind the gate, if it is awaited. `unheard`: those whose
 * rejection does not end the program if it is not handled, such as that of a stop without a waiter.
 */
export function yieldEach<T extends object>(
  type: { readonly prototype: T },
  gateOf: (holder: T) => YieldGate,
  unheard: readonly (keyof T)[] = [],
): void {
  const { constructor: _, ...members } = Object.getOwnPropertyDescriptors<object>(type.prototype);
  for (const name of Reflect.ownKeys(members)) {
    const member = Object.getOwnPropertyDescriptor(members, name)?.value as PropertyDescriptor;
    const { value, get } = member;
    const isUnheard = unheard.includes(name as keyof T);
    const behind = (of: Method): Method =>
      function (...given) {
        const answer = answered(gateOf(this as T), of.apply(this, given));
        if (isUnheard && answer instanceof Promise) void ignoreUnhandled(answer);
        return answer;
      };
    if (typeof value === "function") Object.defineProperty(type.prototype, name, { ...member, value: behind(value) });
    else if (get !== undefined) Object.defineProperty(type.prototype, name, { ...member, get: behind(get) });
  }
}

function answered(gate: YieldGate, answer: unknown): unknown {
  if (answer instanceof Promise) return gate.answer(answer);
  return isPages(answer) ? new GatedPages(gate, answer) : answer;
}

const isPages = (answer: unknown): answer is AsyncGenerator<unknown, void> =>
  typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer && "next" in answer;
