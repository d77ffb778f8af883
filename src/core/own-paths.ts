// Files of Belay's own that no command of an agent may see or change.

/** What a store in a file puts beside it, as endings of its name. The first is the file itself. */
export const STORE_ENDINGS = ["", "-wal", "-shm", "-journal", ".lock", ".mark", ".reserve"] as const;

/** A control that starts commands on this machine, and can hide files from those that start from now on. */
export const HIDE_PATHS: unique symbol = Symbol.for("agent-belay.hide-paths");

/** Does nothing for a control that starts no commands here, such as a client of another server. */
export function hidePaths(control: object, paths: readonly string[]): void {
  const hide: unknown = Reflect.get(control, HIDE_PATHS);
  if (typeof hide === "function") Reflect.apply(hide, control, [paths]);
}
