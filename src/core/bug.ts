// A contradiction inside Belay. It fails the run it concerns, never the worker, and is always reported with its state.

export class Bug extends Error {
  override readonly name = "Bug";
}

/** Closes a switch over a union: a variant nobody thought of is a bug, and a compile error first. */
export function unreachable(value: never): never {
  throw new Bug(`not a case: ${JSON.stringify(value)}`);
}
