// A hunt among processes of its own: in a PID namespace, mutated code that ends everybody it sees sees nobody but the
// hunt, whether it signals by itself or has a shell do it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";

/** Says to the hunt that it is the inner one. */
const MARK = "BELAY_HUNT_APART";

/** With the rights of the machine's root, or of a namespace in which we are root. */
const RIGHTS = [[], ["--user", "--map-root-user"]] as const;
const OPTIONS = ["--pid", "--fork", "--mount-proc", "--kill-child"] as const;

/** The first process of a namespace inherits whoever loses its parent, and a shell that waits reaps them. */
const FIRST = '"$@" & wait $!';

export const isApart = (): boolean => isMarkedApart() && process.ppid === 1;

/** Also of a program that the inner hunt has started. */
export const isMarkedApart = (): boolean => process.env[MARK] !== undefined;

/** Runs this program again, apart, with the same words. Answers its exit code. */
export async function runApart(words: readonly string[]): Promise<number> {
  const rights = RIGHTS.find((some) => spawnSync("unshare", [...some, ...OPTIONS, "true"]).status === 0);
  if (rights === undefined) {
    throw new Error("Mutants of the supervision of processes may signal anybody, and here they cannot be kept apart.");
  }
  const inner = [process.execPath, ...process.execArgv, ...words];
  const child = spawn("unshare", [...rights, ...OPTIONS, "/bin/sh", "-c", FIRST, "hunt", ...inner], {
    stdio: "inherit",
    env: { ...process.env, [MARK]: "1" },
  });
  // With it goes its first process, and with that the whole namespace.
  process.once("exit", () => child.kill("SIGKILL"));
  return exitOf(child);
}

const exitOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
