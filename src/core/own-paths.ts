// Belay's own files, which the commands of an agent may neither read nor change.

/** The suffixes of the files that belong to a store file. The first is the file itself. */
export const STORE_ENDINGS = ["", "-wal", "-shm", "-journal", ".lock", ".mark", ".reserve"] as const;

/** Marks a control that starts commands on this machine, and can hide files from those that start from now on. */
export const HIDE_PATHS: unique symbol = Symbol.for("agent-belay.hide-paths");

/** Does nothing for a control that starts no commands here, such as a client of another server. */
export function hidePaths(control: object, paths: readonly string[]): void {
  const hide: unknown = Reflect.get(control, HIDE_PATHS);
  if (typeof hide === "function") Reflect.apply(hide, control, [paths]);
}
