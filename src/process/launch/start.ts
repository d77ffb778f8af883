// Starts a leader and waits until its command is at the gate. A failed start leaves nothing behind, and its error has
// the reason.
import type { ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LaunchPlan, Leader, Wrapped } from "../containment/containment.ts";
import { within } from "../tree/poll-until.ts";
import type { Identity } from "../tree/proc.ts";
import { signalName } from "../tree/signal.ts";
import { FILES_OF_COMMAND, isShortOfFiles } from "./file-limit.ts";
import { FILTER_FD, READY } from "./gate.ts";
import { spawnCovered } from "./inherited-descriptors.ts";
import type { Pipe, PipePool } from "./pipe-pool.ts";

/** How long a leader may take to reach the gate, on a very busy machine. It takes some ten milliseconds. */
export const START_MS_MAX = 15_000;

/** The pauses between retries of a start for which the machine lacked resources. */
const RETRY_PAUSES_MS = [25, 50, 100, 200, 400];

/** A line of the leader has some ten characters. A longer one is not from the leader. */
const STATUS_CHARS_MAX = 256;

/** How long the rest of a failed start may take to end. */
const ABANDON_MS_MAX = 1_000;

/** How much of a leader's stderr is kept. */
const COMPLAINT_BYTES_MAX = 4 * 1024;

export interface Streams {
  readonly stdin: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** A leader that is starting or running. */
export interface Started extends Streams {
  readonly child: ChildProcess & { readonly pid: number };
  readonly control: Writable;
  readonly liveness: Readable;
  readonly status: Status;
  /** Resolves with the exit status of the leader. */
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

/** Starts the leader. Retries where resources were short. */
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
  // The rest is reserved for stops.
  if (isShortOfFiles(FILES_OF_COMMAND)) throw Object.assign(new Error("Too many files are open."), { code: "EMFILE" });
  const stdin = openInput ? pipes.toChild() : undefined;
  const stdout = pipes.fromChild();
  const stderr = pipes.fromChild();
  const own = [stdin, stdout, stderr].filter((pipe) => pipe !== undefined);
  try {
    const child = spawnCovered(wrapped.file, wrapped.args, {
      cwd: plan.cwd,
      env: plan.env,
      // A separate session, so that input at the server's terminal does not reach it.
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

/** Rejects with the system's error if the child could not be created. */
export function spawned(child: ChildProcess): Promise<void> {
  // The error event comes in the next tick; there is no pid then.
  if (child.pid !== undefined) {
    child.on("error", () => undefined);
    return Promise.resolve();
  }
  return new Promise((_, reject) => {
    child.once("error", (error) => {
      // Without free file descriptors for the pipes there is no stdio at all, contrary to Node's types.
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
  // Node's types allow five of them.
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
  // The error of a pipe whose other end has died. Here that is an ordinary end.
  for (const stream of [...Object.values(streams), status]) stream?.on("error", () => undefined);
  // Data from the tree on this pipe is discarded; only its end matters.
  streams.liveness.resume();
  const { pid } = child;
  if (pid === undefined) throw new Error("A child without a pid was started.");
  return { ...streams, child: Object.assign(child, { pid }), status: new Status(status as Readable), exited };
}

/** The leader as a containment uses it. */
export function toLeader(started: Pick<Started, "child" | "liveness" | "control">, identity: Identity): Leader {
  const { child, liveness, control } = started;
  return {
    identity,
    kill: (signal: NodeJS.Signals): void => {
      child.kill(signal);
    },
    get exit() {
      const { exitCode: code, signalCode: signal } = child;
      return code === null && signal === null ? undefined : { code, signal };
    },
    get released(): boolean {
      return liveness.readableEnded || liveness.closed;
    },
    write: (text: string): void => {
      control.write(text);
    },
  };
}

/** The leader's reports about its command. */
export class Status {
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<Exit | undefined>();
  #text = "";
  /** What a shell printed before its command ran: the reason why it could not start it. */
  complaint = "";

  constructor(stream: Readable) {
    stream.setEncoding("latin1");
    stream.on("data", (text: string) => {
      this.#text += text;
      const lines = this.#text.split("\n");
      this.#text = (lines.pop() ?? "").slice(0, STATUS_CHARS_MAX);
      for (const line of lines) this.#read(line);
    });
    stream.on("close", () => this.#ended.resolve(undefined));
  }

  /** Resolves when the command waits at its gate. Never resolves if it does not get there. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The exit status of the command. Undefined: it has ended, and no leader is left to report its status. */
  get ended(): Promise<Exit | undefined> {
    return this.#ended.promise;
  }

  #read(line: string): void {
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

/** A shell reports 128 plus the number for a command that a signal has ended. */
function ofShell(code: number): Exit {
  const number = code - 128;
  return number >= 1 && number <= SIGNAL_MAX
    ? { code: undefined, signal: signalName(number) }
    : { code, signal: undefined };
}

/** The ordinary signals. Higher numbers are realtime signals, and more often plain exit codes. */
const SIGNAL_MAX = 31;

/** Resolves when the command waits at its gate. Otherwise ends the leader and throws an error with its stderr. */
export async function reachGate(started: Started, { clock, plan }: Starting): Promise<void> {
  const complaint = collectText(started.stderr);
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
  const how = words === "" ? ` (it ${end})` : ` with "${words}"`;
  throw new ControlError(
    "not_started",
    first === undefined
      ? `"${plan.argv[0]}" was not started: its leader was not ready within ${START_MS_MAX / 1000} s.`
      : `"${plan.argv[0]}" was not started: its leader has failed${how}.`,
    {
      hint: isForkFailure(words)
        ? NO_ROOM
        : "Run `belay doctor`: it tests the containment of processes, and recommends fixes.",
    },
  );
}

/**
 * Ends a leader whose command was never let through its gate: without GO, the gate ends by itself. Returns whether all
 * of it is gone. It may not be: the kernel does not kill a process in the middle of a disk access.
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

/** Collects stderr. Before the gate is open only the leader can write there, so it is not output of the command. */
function collectText(stream: Readable): { readonly stop: () => void; readonly text: () => string } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const collect = (data: Buffer): void => {
    bytes += data.length;
    if (bytes <= COMPLAINT_BYTES_MAX) chunks.push(data);
  };
  stream.on("data", collect);
  return {
    stop: () => stream.off("data", collect),
    text: () => Buffer.concat(chunks).toString("utf8").trim().replaceAll(/\s+/g, " "),
  };
}

/** Matches the messages of shells and bubblewrap for EAGAIN and ENOMEM of fork(2) and clone(2). */
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
