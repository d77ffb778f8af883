// The demo's tools. They really do what they say, in a folder of their own.
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

/** How long the build takes: so long that the run which has started it is over by then. */
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
      description: "Demo: a tool that does not listen when it is asked to stop.",
      input: fields({}),
      execute: async (_, { clock }) => {
        await pause(clock, pace.stubbornMs, new AbortController().signal);
        return "done, whether anybody wanted it or not";
      },
    }),
  };
}

function processTools(folder: DemoFolder, stepMs: number): Readonly<Record<string, Tool>> {
  return {
    run_command: tool({
      description: "Demo: runs a command that sleeps for minutes, and does not listen when it is asked to end.",
      // The only one it runs: whoever can prompt the demo must not be able to run anything else.
      input: fields({ command: "string" }),
      execute: async ({ command }, { processes, cwd }) => {
        if (command !== SLEEPER) throw new Error(`The demo runs only this command: ${SLEEPER}`);
        await folder.make();
        const ran = await processes.run(command, placeIn(folder, cwd));
        return ran.kind === "ended" ? howItEnded(ran) : `It goes on in the background as ${ran.process.id}.`;
      },
    }),
    start_build: tool({
      description: "Demo: starts something in the background that takes its time, and reports back by itself.",
      input: fields({}),
      execute: async (_, { processes, cwd }) => {
        await folder.make();
        const seconds = ((BUILD_STEPS * stepMs) / 1_000).toFixed(2);
        const command = `echo building; sleep ${seconds}; echo 40 of 40 files are built`;
        const { id } = await processes.start(command, { ...placeIn(folder, cwd), feedback: "wake" });
        return `it goes on in the background as ${id}`;
      },
    }),
  };
}

/** In the demo's folder; but the commands of a session that has a directory of its own begin there, or not at all. */
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
      description: "Demo: writes a file into the demo's folder. People are asked first.",
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

/** Counting again from the start does no harm, so a crash may repeat it. */
function countSlowly(folder: DemoFolder, stepMs: number): Tool {
  return tool({
    description: "Demo: counts slowly, and writes down how far it is.",
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

/** An object with these fields, and nothing else. By hand: the demo brings no library along. */
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
      // Each field was checked in the lines above; that they are all of them is beyond what the compiler follows.
      return given as { readonly [N in keyof F]: Kinds[F[N]] };
    },
  };
}
