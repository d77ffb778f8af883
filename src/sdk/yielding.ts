// Makes every promise and event stream of the API settle through the gate that yields to the event loop. Agent code
// may hold the Belay it runs in: a loop over `session.explain()` must not starve other work, as one over `turn.ask()`
// must not.
import { ignoreUnhandled } from "../engine/process/process-handle.ts";
import { GatedPages, type YieldGate } from "../engine/yield-gate.ts";

type Method = (this: object, ...given: unknown[]) => unknown;

/**
 * Wraps the methods and getters of a class so that promises they return settle through the gate. `ignored`: members
 * whose rejection is not reported as unhandled, such as that of a stop without a waiter.
 */
export function yieldEach<T extends object>(
  type: { readonly prototype: T },
  gateOf: (holder: T) => YieldGate,
  ignored: readonly (keyof T)[] = [],
): void {
  const { constructor: _, ...members } = Object.getOwnPropertyDescriptors<object>(type.prototype);
  for (const name of Reflect.ownKeys(members)) {
    const member = Object.getOwnPropertyDescriptor(members, name)?.value as PropertyDescriptor;
    const { value, get } = member;
    const isIgnored = ignored.includes(name as keyof T);
    const gated = (of: Method): Method =>
      function (...given) {
        const result = gateResult(gateOf(this as T), of.apply(this, given));
        if (isIgnored && result instanceof Promise) void ignoreUnhandled(result);
        return result;
      };
    if (typeof value === "function") Object.defineProperty(type.prototype, name, { ...member, value: gated(value) });
    else if (get !== undefined) Object.defineProperty(type.prototype, name, { ...member, get: gated(get) });
  }
}

function gateResult(gate: YieldGate, result: unknown): unknown {
  if (result instanceof Promise) return gate.answer(result);
  return isGenerator(result) ? new GatedPages(gate, result) : result;
}

const isGenerator = (result: unknown): result is AsyncGenerator<unknown, void> =>
  typeof result === "object" && result !== null && Symbol.asyncIterator in result && "next" in result;
