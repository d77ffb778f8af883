// Starts `belay run`: reads the prompt, and finds where to run it.
import { resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { openDataDir, readServer } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { NoServer, openControl } from "../../shared/connect.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import { resolveId } from "../../shared/id-prefix.ts";
import { wholeNumber } from "../../shared/whole-number.ts";
import { type RunPlace, runPrompt } from "./run.ts";
import { type RunFlags, refuseAgent } from "./run-options.ts";
import { readPrompt } from "./run-prompt.ts";

/** A day: a longer limit is as good as none. */
const TIMEOUT_MS_MAX = 24 * 60 * 60_000;

export async function startRun(text: string | undefined, flags: RunFlags): Promise<number> {
  const limitMs = flags.timeout === undefined ? undefined : milliseconds(flags.timeout, "--timeout");
  const patienceMs = milliseconds(flags.patience, "--patience");
  let session = flags.session;
  if (flags.delivery !== undefined && session === undefined) throw deliveryWithoutSession();
  if (flags.detach === true && limitMs !== undefined) throw timeoutWithDetach();
  return runPrompt(
    async () => {
      // The prompt first, so that a mistyped file name starts nothing.
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

const deliveryWithoutSession = (): ControlError =>
  new ControlError("invalid", "--delivery says how a prompt joins a busy session, and no session was named.", {
    hint: "Name one with --session, or leave --delivery out.",
  });

/** This program enforces the limit, and with --detach it exits first. */
const timeoutWithDetach = (): ControlError =>
  new ControlError("invalid", "--timeout cannot be used with --detach: this program cancels the run, and it exits.", {
    hint: "Leave one of them out; or limit every run in the server's configuration, with `limits.runLimitMs`.",
  });

/** The named server, or the running server of this data directory; otherwise this program. */
async function findPlace(flags: RunFlags, patienceMs: number): Promise<RunPlace> {
  const { url, socket, store, local } = flags;
  if (local !== true && store === undefined) {
    const connection = await openControl(flags, process.env, { patienceMs }).catch((error: unknown) => {
      // A busy server is waited for: it has the store, so the run cannot be in this program.
      if (error instanceof NoServer && url === undefined && socket === undefined) return undefined;
      throw error;
    });
    if (connection !== undefined) {
      const isHost = url === undefined && socket === undefined && flags.detach !== true && isHosted(flags);
      // A temporary host needs the same agent, and may have to be succeeded: `runInDataDirectory` connects to it.
      if (!isHost) {
        refuseAgent(flags, connection.where);
        return { ...connection, kind: "server", options: connectionArguments(flags) };
      }
      await connection.close();
    }
  }
  if (flags.detach === true) throw cannotDetach();
  const { runInDataDirectory, runOnStore } = await import("./run-local.ts");
  return store === undefined ? runInDataDirectory(flags) : runOnStore(flags);
}

const isHosted = ({ home }: RunFlags): boolean =>
  readServer(openDataDir({ home, env: process.env }))?.host !== undefined;

/** Without a server a run ends or parks with this program. */
const cannotDetach = (): ControlError =>
  new ControlError("invalid", "No server is running, so a detached run could not continue.", {
    hint: "Start one with: belay serve. Then: belay run --detach …",
  });
