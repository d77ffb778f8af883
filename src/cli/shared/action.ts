// Runs the action of a command and sets the exit code.

/**
 * Runs a command: `.action((id, flags) => act(async () => (await import("../ps.ts")).runPs(id, flags)))`. The work
 * returns the exit code. `main.ts` prints what it throws, and each error code has its own exit code. The implementation
 * is imported inside, so that `belay --help` loads none of it.
 */
export async function act(work: () => Promise<number>): Promise<void> {
  process.exitCode = await work();
}
