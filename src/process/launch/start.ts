// Starts a leader and listens to it until its command waits at the gate. If anything goes wrong on the way, nothing is
// left, and the error says what.
import type { ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LaunchPlan, Wrapped } from "../containment/containment.ts";
import { within } from "../tree/poll-until.ts";
import { signalName } from "../tree/signal.ts";
import { FILES_OF_COMMAND, isShortOfFiles } from "./file-limit.ts";
import { FILTER_FD, READY } from "./gate.ts";
import { spawnCovered } from "./inherited-descriptors.ts";
import type { Pipe, PipePool } from "./pipe-pool.ts";

/** How long a leader may take to reach the gate, on a machine that is very busy. It takes some ten milliseconds. */
export const START_MS_MAX = 15_000;

/** How often a start is tried for which the machine had no room, and how long all the pauses are together. */
const RETRY_PAUSES_MS = [25, 50, 100, 200, 400];

/** A line of the leader has some ten characters. Whoever says more is not it. */
const STATUS_CHARS_MAX = 256;

/** How long what is left of a start that failed may take to end. */
const ABANDON_MS_MAX = 1_000;

/** What is kept of a leader's complaint. */
const COMPLAINT_BYTES_MAX = 4 * 1024;

export interface Streams {
  readonly stdin: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** A leader that is on its way, or there. */
export interface Started extends Streams {
  readonly child: ChildProcess & { readonly pid: number };
  readonly control: Writable;
  readonly liveness: Readable;
  readonly status: Status;
  /** Resolves with how the leader ended. */
  readonly exited: Promise<Exit>;
}

export interface Exit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export interface Starting {
  readonly plan: LaunchPlan;
  readonly wrapped: Wrapped;
  readonly openInput: boolean;
  readonly pipes: PipePool;
  readonly clock: Clock;
}

/** Starts the leader. Tries again where a little patience may help. */
export async function start(starting: Starting): Promise<Started> {
  for (const pauseMs of [...RETRY_PAUSES_MS, undefined]) {
    try {
      return await startOnce(starting);
    } catch (error) {
      if (pauseMs === undefined || !isShortage(error)) throw toControlError(error, starting.plan);
      await new Promise<void>((resolve) => starting.clock.after(pauseMs, resolve));
    }
  }
  throw new ControlError("not_started", "The process was not started.");
}

async function startOnce({ plan, wrapped, openInput, pipes }: Starting): Promise<Started> {
  // A stop needs the rest.
  if (isShortOfFiles(FILES_OF_COMMAND)) throw Object.assign(new Error("Too many files are open."), { code: "EMFILE" });
  const stdin = openInput ? pipes.toChild() : undefined;
  const stdout = pipes.fromChild();
  const stderr = pipes.fromChild();
  const own = [stdin, stdout, stderr].filter((pipe) => pipe !== undefined);
  try {
    const child = spawnCovered(wrapped.file, wrapped.args, {
      cwd: plan.cwd,
      env: plan.env,
      // A session of its own: what is typed at the server's terminal is not for it.
      detached: true,
      windowsHide: true,
      stdio: [
        openInput ? (stdin?.fd ?? "pipe") : "ignore",
        stdout?.fd ?? "pipe",
        stderr?.fd ?? "pipe",
        ...(["pipe", "pipe", "pipe"] as const),
        ...(wrapped.filter === undefined ? [] : (["pipe"] as const)),
      ],
    });
    await spawned(child);
    if (wrapped.filter !== undefined) giveFilter(child, wrapped.filter);
    return assemble(child, { stdin, stdout, stderr });
  } catch (error) {
    for (const pipe of own) pipe.stream.destroy();
    throw error;
  } finally {
    for (const pipe of own) closeSync(pipe.fd);
  }
}

function giveFilter(child: ChildProcess, filter: Buffer): void {
  const stdio: readonly (Readable | Writable | null | undefined)[] = child.stdio;
  const stream = stdio[FILTER_FD] as Writable;
  stream.on("error", () => undefined);
  stream.end(filter);
}

/** Rejects with what the system has said, if there was no room for it. */
export function spawned(child: ChildProcess): Promise<void> {
  // The failure comes in the next tick; there is no pid then.
  if (child.pid !== undefined) {
    child.on("error", () => undefined);
    return Promise.resolve();
  }
  return new Promise((_, reject) => {
    child.once("error", (error) => {
      // Where no file was left for its pipes it has none at all, whatever the types of Node say.
      const stdio: ChildProcess["stdio"] | undefined = child.stdio;
      for (const stream of stdio ?? []) stream?.destroy();
      reject(error);
    });
  });
}

interface OwnPipes {
  readonly stdin: Pipe | undefined;
  readonly stdout: Pipe | undefined;
  readonly stderr: Pipe | undefined;
}

function assemble(child: ChildProcess, own: OwnPipes): Started {
  // The types of Node count five of them.
  const stdio: readonly (Readable | Writable | null | undefined)[] = child.stdio;
  const [stdin, stdout, stderr, control, status, liveness] = stdio;
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }));
  });
  const streams = {
    stdin: own.stdin?.stream ?? ((stdin ?? undefined) as Writable | undefined),
    stdout: own.stdout?.stream ?? (stdout as Readable),
    stderr: own.stderr?.stream ?? (stderr as Readable),
    control: control as Writable,
    liveness: liveness as Readable,
  };
  // A pipe whose other end has died says so as an error. Everywhere here that is an end like any other.
  for (const stream of [...Object.values(streams), status]) stream?.on("error", () => undefined);
  // Whatever the tree says there is not listened to; only the end of it counts.
  streams.liveness.resume();
  const { pid } = child;
  if (pid === undefined) throw new Error("A child without a pid was started.");
  return { ...streams, child: Object.assign(child, { pid }), status: new Status(status as Readable), exited };
}

/** What the leader says of its command. */
export class Status {
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<Exit | undefined>();
  #text = "";
  /** What a shell has said before its command was there: why it could not start it. */
  complaint = "";

  constructor(stream: Readable) {
    stream.setEncoding("latin1");
    stream.on("data", (text: string) => {
      this.#text += text;
      const lines = this.#text.split("\n");
      this.#text = (lines.pop() ?? "").slice(0, STATUS_CHARS_MAX);
      for (const line of lines) this.#hear(line);
    });
    stream.on("close", () => this.#ended.resolve(undefined));
  }

  /** Resolves when the command waits at its gate. Never, if it does not get there. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** How the command ended. Undefined: it has ended, and nobody is left to say how. */
  get ended(): Promise<Exit | undefined> {
    return this.#ended.promise;
  }

  #hear(line: string): void {
    const [word, value = ""] = line.split(" ");
    if (word === READY) this.#ready.resolve();
    if (!/^\d{1,3}$/.test(value)) {
      if (word !== READY) this.complaint = `${this.complaint} ${line}`.trim().slice(0, STATUS_CHARS_MAX);
      return;
    }
    if (word === "exit") this.#ended.resolve(ofShell(Number(value)));
    if (word === "code") this.#ended.resolve({ code: Number(value), signal: undefined });
    if (word === "signal") this.#ended.resolve({ code: undefined, signal: signalName(Number(value)) });
  }
}

/** A shell says 128 and the number for a command that a signal has ended. */
function ofShell(code: number): Exit {
  const number = code - 128;
  return number >= 1 && number <= SIGNAL_MAX
    ? { code: undefined, signal: signalName(number) }
    : { code, signal: undefined };
}

/** The ordinary signals. What is above is for programs among themselves, and more often an exit code of its own. */
const SIGNAL_MAX = 31;

/** Resolves when the command waits at its gate. Otherwise ends the leader and throws its own words. */
export async function reachGate(started: Started, { clock, plan }: Starting): Promise<void> {
  const complaint = listen(started.stderr);
  const first = await within(
    clock,
    START_MS_MAX,
    Promise.race([started.status.ready.then(() => "ready"), started.exited.then(() => "exited")]),
  );
  if (first === "ready") {
    complaint.stop();
    return;
  }
  if (first === "exited") await within(clock, RETRY_PAUSES_MS[0] ?? 0, closed(started.stderr));
  await abandon(started, clock);
  const words = [complaint.text(), started.status.complaint].filter(Boolean).join(" ");
  const { exitCode, signalCode } = started.child;
  const end = exitCode === null ? `ended by ${signalCode ?? "an unknown signal"}` : `exited with code ${exitCode}`;
  const how = words === "" ? ` (it ${end})` : ` and says "${words}"`;
  throw new ControlError(
    "not_started",
    first === undefined
      ? `"${plan.argv[0]}" was not started: what holds it was not ready within ${START_MS_MAX / 1000} s.`
      : `"${plan.argv[0]}" was not started: what holds it has failed${how}.`,
    {
      hint: isForkFailure(words)
        ? NO_ROOM
        : "Run `belay doctor`: it tests what holds processes, and says how to mend it.",
    },
  );
}

/**
 * Ends a leader whose command was never let through its gate: without the word, the gate ends by itself. Answers
 * whether all of it is gone. It may not be: the kernel does not kill a process that is in the middle of a disk access.
 */
export async function abandon(started: Started, clock: Clock): Promise<boolean> {
  const { child, stdin, stdout, stderr, control } = started;
  child.kill("SIGKILL");
  for (const stream of [stdin, stdout, stderr, control]) stream?.destroy();
  return (await within(clock, ABANDON_MS_MAX, gone(started))) === true;
}

/** Resolves when the leader has ended and no process holds its liveness pipe. */
export async function gone({ exited, liveness }: Started): Promise<true> {
  await Promise.all([exited, closed(liveness)]);
  return true;
}

const closed = (stream: Readable): Promise<void> =>
  stream.closed ? Promise.resolve() : new Promise((resolve) => stream.once("close", resolve));

/** Before the gate is open nobody but the leader can have said it, so it is no output of the command. */
function listen(stream: Readable): { readonly stop: () => void; readonly text: () => string } {
  const said: Buffer[] = [];
  let bytes = 0;
  const hear = (data: Buffer): void => {
    bytes += data.length;
    if (bytes <= COMPLAINT_BYTES_MAX) said.push(data);
  };
  stream.on("data", hear);
  return {
    stop: () => stream.off("data", hear),
    text: () => Buffer.concat(said).toString("utf8").trim().replaceAll(/\s+/g, " "),
  };
}

/** As shells and bubblewrap word EAGAIN and ENOMEM of fork(2) and clone(2). */
export const isForkFailure = (words: string): boolean =>
  /fork|resource temporarily unavailable|cannot allocate memory/i.test(words);

export const NO_ROOM =
  "Wait until other processes have ended, or raise the limits on processes, open files and memory.";

export const isShortage = (error: unknown): boolean => ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"].includes(codeOf(error));

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

function toControlError(error: unknown, plan: LaunchPlan): ControlError {
  if (error instanceof ControlError) return error;
  const program = plan.argv[0];
  const code = codeOf(error);
  if (code === "E2BIG") {
    return new ControlError("invalid", `"${program}" was not started: its arguments and environment are too long.`, {
      hint: "Put the long ones into a file, and pass the file's name.",
      cause: error,
    });
  }
  if (isShortage(error)) {
    return new ControlError("not_started", `"${program}" was not started: the machine has no room for it (${code}).`, {
      hint: NO_ROOM,
      cause: error,
    });
  }
  return new ControlError("not_started", `"${program}" was not started: ${messageOf(error)}.`, { cause: error });
}
