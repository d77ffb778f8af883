// What a command does once its words were understood: it works, and leaves an exit code.

/**
 * Carries out a command: `.action((id, flags) => act(async () => (await import("../ps.ts")).runPs(id, flags)))`. The
 * work answers with the exit code. What it throws is said by `main.ts`, in three parts, and has an exit code of its own
 * by its code. The implementation is imported inside, so that `belay --help` loads none of it.
 */
export async function act(work: () => Promise<number>): Promise<void> {
  process.exitCode = await work();
}
