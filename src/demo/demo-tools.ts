// The demo's tools. They are real, and work in the demo's own folder.
import { type Tool, tool } from "../agent/tools/tool.ts";
import type { PlainSchema } from "../agent/tools/tool-schema.ts";
import type { Json } from "../core/model/prompt.ts";
import type { ProcessResult } from "../ports/spawner.ts";
import type { DemoFolder } from "./demo-folder.ts";
import { type DemoPace, pause } from "./pace.ts";
import { SLEEPER } from "./script.ts";

export interface DemoToolsOptions {
  readonly folder: DemoFolder;
  readonly pace: Pick<DemoPace, "stepMs" | "stubbornMs">;
}

const COUNT_MAX = 9_999;

/** How long the build takes: longer than the run that starts it. */
const BUILD_STEPS = 8;

export function demoTools({ folder, pace }: DemoToolsOptions): Readonly<Record<string, Tool>> {
  return {
    ...fileTools(folder),
    count_slowly: countSlowly(folder, pace.stepMs),
    ...processTools(folder, pace.stepMs),
    ask_colour: tool({
      description: "Demo: asks the user for a colour.",
      input: fields({}),
      execute: async (_, { ask }) => {
        const answer = await ask({ text: "Which colour do you like best?", options: ["red", "green", "blue"] });
        return answer.kind === "answered" ? { colour: answer.value } : { colour: null, because: answer.kind };
      },
    }),
    stubborn: tool({
      description: "Demo: a tool that ignores the request to stop.",
      input: fields({}),
      execute: async (_, { clock }) => {
        await pause(clock, pace.stubbornMs, new AbortController().signal);
        return "done, although it was stopped";
      },
    }),
  };
}

function processTools(folder: DemoFolder, stepMs: number): Readonly<Record<string, Tool>> {
  return {
    run_command: tool({
      description: "Demo: runs a command that sleeps for minutes and ignores SIGTERM.",
      // The only command it runs: a prompt must not be able to run any other.
      input: fields({ command: "string" }),
      execute: async ({ command }, { processes, cwd }) => {
        if (command !== SLEEPER) throw new Error(`The demo runs only this command: ${SLEEPER}`);
        await folder.make();
        const ran = await processes.run(command, placeIn(folder, cwd));
        return ran.kind === "ended" ? howItEnded(ran) : `It continues in the background as ${ran.process.id}.`;
      },
    }),
    start_build: tool({
      description: "Demo: starts a background process that takes a while, and reports back by itself.",
      input: fields({}),
      execute: async (_, { processes, cwd }) => {
        await folder.make();
        const seconds = ((BUILD_STEPS * stepMs) / 1_000).toFixed(2);
        const command = `echo building; sleep ${seconds}; echo 40 of 40 files are built`;
        const { id } = await processes.start(command, { ...placeIn(folder, cwd), feedback: "wake" });
        return `it runs in the background as ${id}`;
      },
    }),
  };
}

/** Commands run in the demo's folder, but those of a session with its own directory must run there. */
const placeIn = ({ path }: DemoFolder, own: string | undefined): { readonly cwd?: string } =>
  own === undefined ? { cwd: path } : {};

function howItEnded({ outcome, exit }: ProcessResult): string {
  const how = exit?.signal === undefined ? `with exit code ${exit?.code ?? "unknown"}` : `by ${exit.signal}`;
  return outcome.kind === "completed" ? `it ended ${how}` : `it was stopped, and ended ${how}`;
}

function fileTools(folder: DemoFolder): Readonly<Record<string, Tool>> {
  return {
    list_files: tool({
      description: "Demo: lists the files of the demo's folder.",
      input: fields({}),
      idempotent: true,
      execute: () => folder.list(),
    }),
    read_file: tool({
      description: "Demo: reads a file of the demo's folder.",
      input: fields({ name: "string" }),
      idempotent: true,
      execute: ({ name }) => folder.read(name),
    }),
    write_file: tool({
      description: "Demo: writes a file into the demo's folder. Needs an approval.",
      input: fields({ name: "string", text: "string" }),
      approval: { note: "It writes into the demo's own folder, which is removed with the demo." },
      execute: async ({ name, text }, { changed }) => {
        await folder.write(name, text);
        changed(name);
        return { written: name };
      },
    }),
  };
}

/** Idempotent: after a crash, counting can start again. */
function countSlowly(folder: DemoFolder, stepMs: number): Tool {
  return tool({
    description: "Demo: counts slowly, and writes its progress to a file.",
    input: fields({ to: "number" }),
    idempotent: true,
    execute: async ({ to }, { clock, signal, progress, partial, changed }) => {
      if (!Number.isInteger(to) || to < 1 || to > COUNT_MAX)
        throw new Error(`It counts to 1 at least and ${COUNT_MAX} at most.`);
      const name = `count-to-${to}.txt`;
      for (let counted = 1; counted <= to; counted += 1) {
        await pause(clock, stepMs, signal);
        await folder.write(name, `${counted}\n`);
        if (counted === 1) changed(name);
        progress({ counted, of: to });
        partial({ counted, of: to });
      }
      return { counted: to };
    },
  });
}

interface Kinds {
  readonly string: string;
  readonly number: number;
}

/** The schema of an object with exactly these fields. Written by hand, so that the demo needs no library. */
function fields<F extends Readonly<Record<string, keyof Kinds>>>(
  kinds: F,
): PlainSchema<{ readonly [N in keyof F]: Kinds[F[N]] }> {
  const names = Object.keys(kinds);
  return {
    jsonSchema: {
      type: "object",
      properties: Object.fromEntries(Object.entries(kinds).map(([name, type]) => [name, { type }])),
      required: names,
      additionalProperties: false,
    },
    validate: (input: Json) => {
      const given: Readonly<Record<string, unknown>> = typeof input === "object" && input !== null ? { ...input } : {};
      const wrong = names.find((name) => typeof given[name] !== kinds[name]);
      if (wrong !== undefined) throw new Error(`${wrong} is a ${kinds[wrong]}`);
      // Each field was checked above, which the compiler cannot follow.
      return given as { readonly [N in keyof F]: Kinds[F[N]] };
    },
  };
}
