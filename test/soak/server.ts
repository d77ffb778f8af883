// The server that is soaked: a real one, in a process of its own, with a store on a disk that can be made full.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHILD_ENV } from "../fixtures/child-env.ts";
import type { EditedModule } from "../mistakes/mistake.ts";
import { within } from "./deadline.ts";
import { objectsIn } from "./heap-snapshot.ts";
import { type Ask, type Memory, MODULES_VARIABLE } from "./memory.ts";
import { commandOf, lookAt, type Outside } from "./outside.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const AGENT = join(import.meta.dirname, "agent.ts");
const INSIDE = new URL("inside.ts", import.meta.url).href;

/** A server starts within a second; a machine with other work on it may take its time. */
const READY_MS_MAX = 60_000;

/** It answers as soon as its loop comes round, and a collection takes milliseconds. */
const ANSWER_MS_MAX = 60_000;

/** It ends in order within its own limit, which is 10 s. */
const END_MS_MAX = 30_000;

/** The log grows as long as the soak goes on, and nothing is trimmed that would be in use. */
const DISK_BYTES = 1024 * 1024 * 1024;

/** Enough for the load, so that the rate is not what is soaked. */
const CROWD = ["--changes-per-second", "2000", "--streams-per-token", "512"] as const;

/** Work that does not listen is given up after this, so that a soak gives up much of it. */
const GRACE_MS = 400;

export interface ServerNote {
  readonly pid: number;
  readonly url: string;
  readonly socket: string;
  readonly store: string;
}

export class SoakServer {
  readonly note: ServerNote;
  readonly token: string;
  /** Undefined: its disk cannot be made full here. */
  readonly disk: SmallDisk | undefined;
  readonly #child: ChildProcess;
  readonly #home: string;

  private constructor(child: ChildProcess, note: ServerNote, place: Place) {
    this.#child = child;
    this.note = note;
    this.#home = place.home;
    this.disk = place.disk;
    this.token = readFileSync(join(place.home, "token"), "utf8").trim();
    process.once("exit", this.#atOnce);
  }

  /** `modules`: loaded in place of those on disk. */
  static async start(modules: readonly EditedModule[]): Promise<SoakServer> {
    const place = makePlace();
    const file = modules.length === 0 ? "" : join(place.home, "modules.json");
    if (file !== "") writeFileSync(file, JSON.stringify(modules));
    const child = spawn(process.execPath, serveWords(place.home), {
      cwd: place.home,
      env: { ...CHILD_ENV, HOME: place.home, TMPDIR: place.home, [MODULES_VARIABLE]: file },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    try {
      return new SoakServer(child, await within(READY_MS_MAX, "the server to be ready", greeting(child)), place);
    } catch (error) {
      child.kill("SIGKILL");
      removePlace(place);
      throw error;
    }
  }

  outside(): Outside {
    return lookAt(this.note.pid);
  }

  /** After a full collection. */
  memory(): Promise<Memory> {
    return this.#ask({ type: "memory" });
  }

  /** What is alive on its heap, by class. It stands still meanwhile. */
  async objects(): Promise<Readonly<Record<string, number>>> {
    const file = join(this.#home, "belay.heapsnapshot");
    await this.#ask({ type: "snapshot", file });
    const objects = objectsIn(readFileSync(file, "utf8"));
    rmSync(file);
    return objects;
  }

  /** The clock goes on and nothing else does, as on a laptop that is closed. */
  freeze(): () => void {
    this.#child.kill("SIGSTOP");
    return () => this.#child.kill("SIGCONT");
  }

  /** Asked to end, it ends; what it leaves behind is ended by us and answered. */
  async end(): Promise<readonly string[]> {
    const below = this.#child.exitCode === null ? this.outside().descendants : [];
    const gone = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGTERM");
      await within(END_MS_MAX, "the server to end", gone).catch(() => this.#child.kill("SIGKILL"));
    }
    const left = below.filter(({ pid, command }) => command !== "" && commandOf(pid) === command);
    for (const { pid } of left) process.kill(pid, "SIGKILL");
    process.off("exit", this.#atOnce);
    removePlace({ home: this.#home, disk: this.disk });
    return left.map(({ command }) => command);
  }

  /** Whoever is stopped in the middle leaves no server and no mount behind. */
  readonly #atOnce = (): void => {
    this.#child.kill("SIGKILL");
    removePlace({ home: this.#home, disk: this.disk });
  };

  async #ask(what: Ask): Promise<Memory> {
    const answered = once(this.#child, "message") as Promise<[Memory]>;
    this.#child.send(what);
    return (await within(ANSWER_MS_MAX, "the server to look into its memory", answered))[0];
  }
}

const configOf = (home: string): string => join(home, "soak.json");

function serveWords(home: string): readonly string[] {
  const node = ["--expose-gc", "--import", INSIDE];
  const where = ["--home", home, "--port", "0", "--agent", AGENT, "--log-level", "error", "--on-stop", "cancel"];
  const config = ["--config", configOf(home)];
  return [...node, MAIN, "serve", ...where, "--json", ...config, ...CROWD];
}

/** The first line it prints. What it complains of is passed on. */
function greeting(child: ChildProcess): Promise<ServerNote> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr?.on("data", (text: Buffer) => process.stderr.write(text));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) resolve(JSON.parse(said.slice(0, said.indexOf("\n"))) as ServerNote);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`The server has ended with ${code} before it was ready.`)));
  });
}

interface Place {
  readonly home: string;
  readonly disk: SmallDisk | undefined;
}

function makePlace(): Place {
  const home = mkdtempSync(join(tmpdir(), "belay-soak-"));
  const disk = SmallDisk.at(home);
  writeFileSync(configOf(home), JSON.stringify({ limits: { graceMs: GRACE_MS } }));
  return { home, disk };
}

function removePlace({ home, disk }: Place): void {
  disk?.remove();
  rmSync(home, { recursive: true, force: true });
}

/** A file system in memory: full when it is told to be, and then not any more. */
export class SmallDisk {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Undefined where nothing may be mounted. */
  static at(path: string): SmallDisk | undefined {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=700`, "tmpfs", path], { stdio: "ignore" });
      return new SmallDisk(path);
    } catch {
      return undefined;
    }
  }

  /** As large as what is on it, and no larger. The answer makes room again. */
  fill(): () => void {
    // What is written between the look and the change makes the disk smaller than what it has, which is refused.
    for (let tries = 1; !this.#shrink(tries * ROOM_KIB); tries += 1) {
      if (tries === SHRINK_TRIES_MAX) throw new Error("The disk could not be filled: too much is being written to it.");
    }
    return () => this.#resize(String(DISK_BYTES));
  }

  remove(): void {
    execFileSync("umount", ["-l", this.#path]);
  }

  #shrink(roomKiB: number): boolean {
    const used = Number(execFileSync("df", ["-k", "--output=used", this.#path], { encoding: "utf8" }).split("\n")[1]);
    try {
      this.#resize(`${used + roomKiB}k`);
      return true;
    } catch {
      return false;
    }
  }

  #resize(size: string): void {
    execFileSync("mount", ["-o", `remount,size=${size}`, this.#path], { stdio: "ignore" });
  }
}

/** Room that is left, so that a write which is under way does not get in between. */
const ROOM_KIB = 64;
const SHRINK_TRIES_MAX = 16;
