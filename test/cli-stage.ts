// A stage for the command line: the real server on a real socket, in a home of its own, with an agent that does what
// the test says; and somebody who types.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock } from "../src/engine/system-clock.ts";
import { type Belay, openBelay } from "../src/library/belay.ts";
import type { Session } from "../src/library/session.ts";
import type { AgentMode } from "../src/ports.ts";
import { Guard } from "../src/server/guard.ts";
import { type Handler, makeHandler } from "../src/server/handler.ts";
import { type Listener, listen } from "../src/server/listener.ts";
import { type ScriptedAgent, type ScriptedTurn, scriptedAgent } from "../src/testing/scripted-agent.ts";
import { ROOT } from "./house.ts";

export const MAIN: string = join(ROOT, "src", "cli", "main.ts");

export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Live {
  readonly id: string;
  readonly turn: ScriptedTurn;
}

export class CliStage {
  readonly folder: string;
  readonly agent: ScriptedAgent;
  readonly belay: Belay;
  readonly handler: Handler;
  readonly session: Session;
  readonly #listener: Listener;
  readonly #children: ChildProcess[] = [];

  private constructor(parts: Pick<CliStage, "folder" | "agent" | "belay" | "handler" | "session">, listener: Listener) {
    this.folder = parts.folder;
    this.agent = parts.agent;
    this.belay = parts.belay;
    this.handler = parts.handler;
    this.session = parts.session;
    this.#listener = listener;
  }

  static async open(modes: readonly AgentMode[] = []): Promise<CliStage> {
    const folder = mkdtempSync(join(tmpdir(), "bc-"));
    const home = join(folder, "home");
    mkdirSync(home, { mode: 0o700 });
    const agent = Object.assign(scriptedAgent(), { modes });
    const belay = await openBelay({ agent, store: ":memory:" });
    const guard = new Guard({ tokens: { verify: () => undefined }, clock: systemClock });
    const handler = makeHandler({ control: belay, guard, clock: systemClock, version: "0" });
    const socket = join(home, "s");
    const listener = await listen(handler.handle, { place: { kind: "socket", path: socket }, clock: systemClock });
    const note = { pid: process.pid, socket, startedAt: 1, version: "0" };
    writeFileSync(join(home, "server.json"), JSON.stringify(note), { mode: 0o600 });
    const session = await belay.createSession({ title: "a title" });
    return new CliStage({ folder, agent, belay, handler, session }, listener);
  }

  /** The environment of whoever types here. */
  get env(): NodeJS.ProcessEnv {
    return { ...process.env, BELAY_HOME: join(this.folder, "home"), NO_COLOR: "1", BELAY_TOKEN: "" };
  }

  start(...words: readonly string[]): ChildProcess {
    return this.keep(spawn(process.execPath, [MAIN, ...words], { env: this.env, stdio: ["ignore", "pipe", "pipe"] }));
  }

  /** Ended with the stage, if not before. */
  keep(child: ChildProcess): ChildProcess {
    this.#children.push(child);
    return child;
  }

  type(...words: readonly string[]): Promise<Said> {
    return said(this.start(...words));
  }

  /** One JSON document on stdout, and nothing else there. */
  async json(...words: readonly string[]): Promise<{ readonly code: number | null; readonly value: unknown }> {
    const { code, out } = await this.type(...words, "--json");
    expect(out.endsWith("\n")).toBe(true);
    expect(out.trimEnd()).not.toContain("\n");
    return { code, value: JSON.parse(out) };
  }

  /** A run with a turn in the hands of the test. */
  async live(text = "do it"): Promise<Live> {
    const run = this.session.prompt(text);
    run.outcome.catch(() => undefined);
    return { id: run.id, turn: await this.agent.nextTurn() };
  }

  /** A call that waits for an approval of exactly this. */
  async asks(turn: ScriptedTurn, input: Parameters<ScriptedTurn["given"]["call"]>[1]): Promise<string> {
    void turn.given.call("write_file", input, () => "written", { approval: { note: "a note" } });
    for await (const event of this.session.events()) if (event.type === "question.asked") return event.questionId;
    return expect.fail("nobody was asked");
  }

  /** How the first call that ended has ended. */
  async settledCall(): Promise<unknown> {
    for await (const event of this.session.events()) if (event.type === "call.settled") return event.outcome;
    return undefined;
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    await this.handler.drain();
    await this.#listener.close({ limitMs: 0 });
    await this.belay.close({ mode: "cancel", limitMs: 100 });
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What it says and leaves. `hear` is told of everything that has been said on stdout so far. */
export function said(child: ChildProcess, hear: (out: string) => void = () => {}): Promise<Said> {
  return new Promise((resolve, reject) => {
    let [out, err] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      hear(out);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}
