// What processes of the simulation are asked, what they answer, and how they are started.
import { fork } from "node:child_process";
import type { EditedModule } from "../test/mistakes/mistake.ts";
import type { Focus } from "./schedule-options.ts";
import type { Searched } from "./search.ts";
import type { Violation } from "./violation.ts";

export type Task =
  | {
      readonly kind: "seeds";
      readonly from: number;
      readonly count: number;
      readonly focus?: Focus | undefined;
      readonly twice?: boolean | undefined;
    }
  | { readonly kind: "scopes"; readonly ops: number; readonly share: { readonly index: number; readonly of: number } }
  | {
      readonly kind: "bug";
      /** As they are with the mistake in them. */
      readonly modules: readonly EditedModule[];
      readonly seed: number;
      readonly seeds: number;
      readonly focus?: Focus | undefined;
    };

export type Answer =
  | { readonly kind: "progress"; readonly done: number; readonly hashes?: readonly string[] }
  | ({ readonly kind: "searched" } & Searched)
  | {
      readonly kind: "broken";
      readonly scope: readonly string[];
      readonly violation: Violation & { readonly choices: readonly number[] };
    }
  | { readonly kind: "explored"; readonly scopes: number; readonly interleavings: number }
  /** It could not even be tried. */
  | { readonly kind: "failed"; readonly message: string }
  /** `by`: what gave the mistake away. `seed`: the schedule in which it did; absent for one of the small scopes. */
  | { readonly kind: "hunted"; readonly by: string | undefined; readonly seed?: number | undefined };

export interface Patience {
  /** For all of it. */
  readonly limitMs?: number;
  /** Between two words of it: one schedule takes milliseconds. */
  readonly silenceMs?: number;
}

/**
 * Runs an errand in a process of its own; resolves when that has ended by itself, or has been ended for want of
 * patience: a schedule without an end says nothing, and can be stopped only from outside. Not in a thread: many of
 * them in one program, each with much code that is compiled while it runs, now and then bring the whole program down.
 */
export function runTask(
  errand: Task,
  heard: (answer: Answer) => void,
  { limitMs, silenceMs }: Patience = {},
): Promise<"ended" | "limit" | "silent"> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL("./worker.ts", import.meta.url), { execArgv: [], serialization: "advanced" });
    let over: "limit" | "silent" | undefined;
    const end = (why: "limit" | "silent") => (): void => {
      over ??= why;
      child.kill("SIGKILL");
    };
    const timer = limitMs === undefined ? undefined : setTimeout(end("limit"), limitMs);
    const silence = silenceMs === undefined ? undefined : setTimeout(end("silent"), silenceMs);
    child.on("message", (answer: Answer) => {
      silence?.refresh();
      if (answer.kind === "failed") reject(new Error(answer.message));
      else heard(answer);
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      clearTimeout(silence);
      if (over !== undefined) resolve(over);
      else if (code === 0) resolve("ended");
      else reject(new Error(`A process of the simulation ended with ${signal ?? code}.`));
    });
    child.send(errand);
  });
}
