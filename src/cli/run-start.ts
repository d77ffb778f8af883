// `belay run`, from its words to a run: which prompt, and where it is carried out.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ControlError, messageOf } from "../core/control-error.ts";
import type { Delivery } from "../core/prompt.ts";
import { systemClock } from "../engine/system-clock.ts";
import { openControl } from "./control-door.ts";
import type { DoorOptions } from "./door-options.ts";
import { doorWords } from "./door-words.ts";
import { makeHome, openHome } from "./home.ts";
import { resolveId } from "./id-prefix.ts";
import { cannotDetach, type RunPlace, runPrompt } from "./run.ts";
import { readPrompt } from "./run-prompt.ts";
import type { AgentFlags } from "./serve-words.ts";
import { outliveStrays, STRAY } from "./stray-rejections.ts";
import { wholeNumber } from "./whole-number.ts";
import { count } from "./words.ts";

export interface RunFlags extends DoorOptions, AgentFlags {
  readonly session?: string;
  readonly title?: string;
  readonly cwd?: string;
  readonly key?: string;
  readonly file?: readonly string[];
  readonly delivery?: Delivery;
  readonly json?: boolean;
  readonly detach?: boolean;
  readonly timeout?: string;
  readonly patience: string;
  readonly local?: boolean;
}

/** A day: whoever wants a run to go on for longer does not want a limit. */
const TIMEOUT_MS_MAX = 24 * 60 * 60_000;

/** How long a program without a server may take to set everything down when its run has ended. */
const CLOSE_MS = 5_000;

export async function startRun(text: string | undefined, flags: RunFlags): Promise<number> {
  const limitMs = flags.timeout === undefined ? undefined : milliseconds(flags.timeout, "--timeout");
  const patienceMs = milliseconds(flags.patience, "--patience");
  let session = flags.session;
  if (flags.delivery !== undefined && session === undefined) throw aimless();
  return runPrompt(
    async () => {
      // The prompt first: whoever mistypes a file has not started anything yet.
      const prompt = await readPrompt({ text, files: flags.file ?? [], stdin: process.stdin });
      const place = await findPlace(flags, patienceMs);
      if (session !== undefined) session = await resolveId(place.control, session, ["session"]);
      return { prompt, place, session };
    },
    {
      ...{ key: flags.key, title: flags.title, delivery: flags.delivery, limitMs, clock: systemClock },
      cwd: flags.cwd === undefined ? undefined : resolve(flags.cwd),
      form: flags.json === true ? "lines" : "text",
      after: flags.detach === true ? "acceptance" : "outcome",
    },
  );
}

const milliseconds = (typed: string, option: string): number =>
  wholeNumber(typed, option, { from: 1, to: TIMEOUT_MS_MAX, unit: "ms" });

const aimless = (): ControlError =>
  new ControlError("invalid", "--delivery says how a prompt joins a busy session, and no session was named.", {
    hint: "Name one with --session, or leave --delivery out.",
  });

/** A server that was named, or that runs for this home; else this very program. */
async function findPlace(flags: RunFlags, patienceMs: number): Promise<RunPlace> {
  const { url, socket, store, local } = flags;
  if (local !== true && store === undefined) {
    const door = await openControl(flags, process.env, { patienceMs }).catch((error: unknown) => {
      const nobody = error instanceof ControlError && error.code === "disconnected";
      if (nobody && url === undefined && socket === undefined) return undefined;
      throw error;
    });
    if (door !== undefined) {
      refuseAgent(flags, door.where);
      return { ...door, kind: "server", options: doorWords(flags) };
    }
  }
  if (flags.detach === true) throw cannotDetach();
  return workHere(flags);
}

const AGENT_FLAGS = [
  ...(["model", "agent", "tools", "instructions", "workspace", "directories", "mode", "config", "require"] as const),
];

/** A server has an agent of its own, and who asks for another one should not get this one. */
function refuseAgent(flags: RunFlags, where: string): void {
  const given = AGENT_FLAGS.filter((name) => flags[name] !== undefined);
  if (given.length === 0) return;
  throw new ControlError("invalid", `--${given[0]} is for runs without a server, and this one goes to ${where}.`, {
    hint: "Start the server with it; or run without one, on a store of its own: --store FILE.",
  });
}

async function workHere(flags: RunFlags): Promise<RunPlace> {
  const { makePlan, openWorks } = await import("./serve-works.ts");
  const home = openHome({ home: flags.home, env: process.env });
  makeHome(home);
  const plan = await makePlan({ home, flags });
  const isNew = plan.store === ":memory:" || !existsSync(plan.store);
  outliveStrays((failure) => process.stderr.write(`belay: ${STRAY}: ${messageOf(failure)}\n`));
  const { belay, agent, notices } = await openWorks(plan, {});
  for (const notice of notices) process.stderr.write(`belay: ${notice}\n`);
  const taken = isNew ? 0 : (await belay.live()).length;
  if (taken > 0) process.stderr.write(`belay: ${goOn(taken)} of an earlier life here as well\n`);
  const close = (): Promise<unknown> => belay.close({ limitMs: CLOSE_MS });
  const where = `in this program (no server), by ${agent}, on ${plan.store}`;
  // Whoever comes later finds no server, but the file.
  return { control: belay, kind: "here", where, options: doorWords({ store: plan.store }), close };
}

const goOn = (sessions: number): string => `${count(sessions, "session")} ${sessions === 1 ? "goes" : "go"} on`;
