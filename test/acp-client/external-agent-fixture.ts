// A Belay whose agent is an external program.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Recorded } from "../../src/core/model/event.ts";
import type { CallId } from "../../src/core/model/ids.ts";
import type { Question } from "../../src/core/model/question.ts";
import { verify } from "../../src/core/read/verify.ts";
import type { Notice } from "../../src/ports/hooks.ts";
import { type ExternalAgentOptions, externalAgent } from "../../src/protocols/acp/client/external-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import type { BelayOptions } from "../../src/sdk/belay-options.ts";
import type { RunHandle as Run } from "../../src/sdk/run.ts";
import type { Session } from "../../src/sdk/session.ts";
import { logOf } from "../fixtures/belay.ts";
import type { Skills } from "./external-program.ts";

export const PROGRAM = join(import.meta.dirname, "external-program.ts");

export const commandOf = (skills: Skills): readonly [string, ...string[]] => [
  process.execPath,
  PROGRAM,
  JSON.stringify(skills),
];

export interface ExternalAgentFixture extends AsyncDisposable {
  readonly belay: Belay;
  readonly session: Session;
  readonly dir: string;
  /** Work that ended after it had been abandoned. */
  readonly late: readonly Notice[];
}

export interface FixtureOptions {
  readonly skills?: Skills;
  readonly agent?: Partial<ExternalAgentOptions>;
  readonly belay?: Partial<BelayOptions>;
  /** Kept across restarts; the test that passes one removes it. */
  readonly dir?: string;
}

export async function externalAgentFixture(options: FixtureOptions = {}): Promise<ExternalAgentFixture> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "belay-foreign-"));
  const command = commandOf(options.skills ?? {});
  const agent = externalAgent({ command, cwd: dir, name: "foreign", ...options.agent });
  const late: Notice[] = [];
  const belay = await openBelay({
    agent,
    onNotice: (notice) => void (notice.type === "late" && late.push(notice)),
    store: options.dir === undefined ? ":memory:" : join(dir, "belay.db"),
    processes: { workspace: dir },
    ...options.belay,
  });
  const session = await belay.createSession({ id: "ses_foreign" });
  return {
    ...{ belay, session, dir, late },
    [Symbol.asyncDispose]: async () => {
      await belay.close();
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The text and outcome of a run. */
export async function done(run: Run): Promise<{ readonly text: string; readonly outcome: object }> {
  const outcome = await run.outcome;
  return { text: await run.text(), outcome };
}

/** Resolves when the run's text contains this. */
export async function said(run: Run, text: string): Promise<void> {
  let all = "";
  for await (const event of run) {
    if (event.type === "delta" && event.kind === undefined) all += event.text;
    if (event.type === "turn.extended") all += event.text;
    if (all.includes(text)) return;
  }
  throw new Error(`The run ended without the text ${text}: ${all}`);
}

/** The events of one type, once the session is idle. */
export async function facts<T extends Recorded["type"]>(
  session: Session,
  type: T,
): Promise<readonly Extract<Recorded, { type: T }>[]> {
  const log = await logOf(session);
  return log.filter((event): event is Extract<Recorded, { type: T }> => event.type === type);
}

export async function flaws(session: Session): Promise<readonly unknown[]> {
  return verify(await logOf(session));
}

/** The next open question. */
export async function asked(session: Session): Promise<Question> {
  for await (const _ of session.events()) {
    const [question] = await session.questions();
    if (question !== undefined) return question;
  }
  throw new Error("There is no question.");
}

/** Resolves with the call of this name, once it is recorded. */
export async function called(run: Run, name: string): Promise<CallId> {
  for await (const event of run) if (event.type === "call.requested" && event.name === name) return event.callId;
  throw new Error(`The run ended without a call of ${name}.`);
}
