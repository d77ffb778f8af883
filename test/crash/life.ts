// One life of a server: from its start to its end, which is never its own decision.
//
// Invariants
// 1. A child that was started does not outlive the harness: its input ends with that, and then it kills itself.
import { type ChildProcess, spawn } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { HITS_VARIABLE, MODULES_VARIABLE, POINT_VARIABLE } from "./points.ts";
import type { ServerWish } from "./server.ts";

export interface LifeWish {
  readonly server: ServerWish;
  /** The point at which it kills itself, if it passes there. */
  readonly point: string | undefined;
  /** Where it says that it does. */
  readonly hits: string;
  /** A file with edited modules, which it loads in place of those on disk. */
  readonly modules: string | undefined;
  /** Where compiled sources are kept from life to life. */
  readonly cache: string;
}

/** How a child ended. */
export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const TRIP = new URL("./trip.ts", import.meta.url).href;
const SERVER = fileURLToPath(new URL("./server.ts", import.meta.url));
const SAID_CHARS_MAX = 4_000;

export class Life {
  /** Resolves with its port once it serves; undefined if it dies before that. */
  readonly ready: Promise<number | undefined>;
  readonly died: Promise<Death>;
  /** The last of what it said on its error stream. */
  said = "";
  readonly #child: ChildProcess;
  #over = false;

  constructor({ server, point, hits, modules, cache }: LifeWish) {
    const env = {
      ...process.env,
      NODE_COMPILE_CACHE: cache,
      [HITS_VARIABLE]: hits,
      [POINT_VARIABLE]: point ?? "",
      [MODULES_VARIABLE]: modules ?? "",
    };
    const reports = ["--report-on-signal", `--report-directory=${dirname(hits)}`];
    const args = [...reports, "--import", TRIP, SERVER, JSON.stringify(server)];
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"], env });
    this.died = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.#over = true;
        resolve({ code, signal });
      });
    });
    this.#child.stderr?.on("data", (data: Buffer) => {
      this.said = (this.said + data.toString()).slice(-SAID_CHARS_MAX);
    });
    const spoke = new Promise<number>((resolve) => {
      this.#child.stdout?.once("data", (data: Buffer) => {
        // The edge: what the server says first.
        resolve((JSON.parse(data.toString()) as { readonly port: number }).port);
      });
    });
    this.ready = Promise.race([spoke, this.died.then(() => undefined)]);
  }

  get over(): boolean {
    return this.#over;
  }

  /** Has it write down what it is doing, for whoever looks into why it does not get on. */
  explain(): void {
    this.#child.kill("SIGUSR2");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** In order, if that can be done within the limit. */
  async end(limitMs: number): Promise<Death> {
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.kill(), limitMs);
    const death = await this.died;
    clearTimeout(timer);
    return death;
  }
}
