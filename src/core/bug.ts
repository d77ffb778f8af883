// A contradiction inside Belay. It fails the run it concerns, never the worker, and is always reported with its state.

export class Bug extends Error {
  override readonly name = "Bug";
}

/** Closes a switch over a union: a variant that it does not handle is a compile error, and a `Bug` at run time. */
export function unreachable(value: never): never {
  throw new Bug(`not a case: ${JSON.stringify(value)}`);
}
