// `belay` in the environment of a container: as the first process, without a home directory, with too few descriptors
// or processes, with a read-only root. It works, or refuses with an error that says what to do.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";
import { FILES_FOR_STOPS } from "../../src/process/launch/file-limit.ts";
import { until } from "../../src/process/tree/poll-until.ts";
import { childrenOf, stateOf } from "../../src/process/tree/proc.ts";
import { openFiles } from "../../src/system/open-files.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { ROOT } from "../fixtures/repository.ts";
import { AGENT } from "../fixtures/shell.ts";

const PROGRAM = join(ROOT, "test/fixtures/embedded-program.ts");

const { root, programs } = lookAtMachine();
const folder = mkdtempSync(join(tmpdir(), "belay-container-"));
chmodSync(folder, 0o755);
// The installed program, with the sources of the repository.
mkdirSync(join(folder, "bin"));
copyFileSync(join(ROOT, "bin/belay.js"), join(folder, "bin/belay.js"));
symlinkSync(join(ROOT, "src"), join(folder, "src"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BELAY = [process.execPath, join(folder, "bin/belay.js")];

/** How long a start may take on a busy machine. */
const START_MS_MAX = 20_000;

class Started {
  readonly child: ChildProcess;
  readonly exit: Promise<number | string>;
  output = "";

  constructor([file = "", ...args]: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.child = spawn(file, args, { env, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (data: Buffer) => {
        this.output += data.toString();
      });
    }
    this.exit = once(this.child, "close").then(([code, signal]) => code ?? signal);
    onTestFinished(async () => {
      this.child.kill("SIGKILL");
      await this.exit;
    });
  }

  ready(): Promise<void> {
    return this.prints(/is ready/);
  }

  async prints(what: RegExp): Promise<void> {
    const isOver = (): boolean => what.test(this.output) || this.child.exitCode !== null;
    await until(isOver, { clock: systemClock, waitMs: START_MS_MAX });
    if (!what.test(this.output)) throw new Error(`It did not start: ${this.output}`);
  }
}

let homes = 0;
function home(uid?: number): string {
  homes += 1;
  const path = join(folder, `home-${homes}`);
  mkdirSync(path, { mode: 0o700 });
  if (uid !== undefined) chownSync(path, uid, uid);
  return path;
}

const serveArguments = (dir: string): readonly string[] => ["--home", dir, "--port", "0"];
const serve = (dir: string): readonly string[] => [...BELAY, "serve", ...serveArguments(dir)];

/** The command line of a script of the package, as npm runs it. */
function npmScript(name: "start" | "belay"): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const [, ...args] = String(scripts[name]).split(" ");
  return [process.execPath, ...args];
}

/** Whether a program listens on this port. */
async function port(number: number): Promise<"open" | "closed"> {
  const { promise, resolve } = Promise.withResolvers<"open" | "closed">();
  const socket = createConnection(number, "127.0.0.1", () => resolve("open"));
  socket.on("error", () => resolve("closed"));
  const found = await promise;
  socket.destroy();
  return found;
}

describe.skipIf(!root || programs.unshare === undefined)(
  "belay serve as the first process (where root may unshare)",
  () => {
    const first = (dir: string): readonly string[] => [
      "unshare",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
      ...serve(dir),
    ];

    /** Resolves with the first process of the namespace, once it has started. */
    async function initOf({ child }: Started): Promise<number> {
      await until(() => childrenOf(child.pid ?? 0).length > 0, { clock: systemClock, waitMs: START_MS_MAX });
      return childrenOf(child.pid ?? 0)[0] ?? 0;
    }

    test("leaves no zombies of the process trees it has ended, and exits 0 on SIGTERM", async () => {
      const server = new Started(first(home()));
      await server.ready();
      const init = await initOf(server);
      const zombies = (): number => childrenOf(init).filter((pid) => stateOf(pid) === "Z").length;
      expect(await until(() => zombies() === 0, { clock: systemClock, waitMs: 2_000 })).toBe(true);
      const all = readFileSync(`/proc/${init}/task/${init}/children`, "utf8").trim().split(" ").filter(Boolean);
      expect(all.filter((pid) => stateOf(Number(pid)) === "Z")).toEqual([]);
      process.kill(init, "SIGTERM");
      expect(await server.exit).toBe(0);
    });

    test("exits on a SIGTERM before it is ready", async () => {
      const server = new Started(first(home()));
      const init = await initOf(server);
      // From here on the first process is the init that reaps zombies and handles signals.
      const isInit = (): boolean => readFileSync(`/proc/${init}/cmdline`, "latin1").startsWith("belay-init");
      expect(await until(isInit, { clock: systemClock, waitMs: START_MS_MAX })).toBe(true);
      await until(() => childrenOf(init).length > 0, { clock: systemClock, waitMs: START_MS_MAX });
      process.kill(init, "SIGTERM");
      expect(await server.exit).not.toBe("SIGKILL");
      expect(server.output).not.toContain("is ready");
    });
  },
);

describe("belay serve", () => {
  test.each([
    ["belay serve", [...BELAY, "serve"]],
    ["npm start", npmScript("start")],
  ])("%s keeps Node's debugger closed on SIGUSR1", async (_, args) => {
    const server = new Started([...args, ...serveArguments(home())]);
    await server.ready();
    server.child.kill("SIGUSR1");
    expect(await port(9229)).toBe("closed");
    server.child.kill("SIGTERM");
    expect(await server.exit).toBe(0);
    expect(server.output).not.toContain("Debugger listening");
  });

  test("npm start keeps the debugger closed on SIGUSR1 at any moment of its start", async () => {
    // An ignored signal stays ignored until Node handles it, so that no signal ends the process earlier.
    const ignoring = ["sh", "-c", 'trap "" USR1; echo ignored; exec "$@"', "sh"];
    const server = new Started([...ignoring, ...npmScript("start"), ...serveArguments(home())]);
    await server.prints(/ignored/);
    const signalled = (): boolean => server.child.kill("SIGUSR1") && /is ready/.test(server.output);
    expect(await until(signalled, { clock: systemClock, waitMs: START_MS_MAX })).toBe(true);
    expect(await port(9229)).toBe("closed");
    server.child.kill("SIGTERM");
    expect(await server.exit).toBe(0);
    expect(server.output).not.toContain("Debugger listening");
  });

  test.each([
    ["belay", BELAY],
    ["npm run belay", npmScript("belay")],
  ])("%s refuses to start with a debugger from NODE_OPTIONS, unless BELAY_INSPECT=1", async (_, args) => {
    const env = { ...process.env, NODE_OPTIONS: "--inspect=127.0.0.1:0" };
    const refused = new Started([...args, "--version"], env);
    expect(await refused.exit).toBe(2);
    expect(refused.output).toContain("Remove --inspect from NODE_OPTIONS");
    const allowed = new Started([...args, "--version"], { ...env, BELAY_INSPECT: "1" });
    expect(await allowed.exit).toBe(0);
  });
});

describe("G40: with 96 open files and 200 idle clients on each listener", { timeout: 60_000 }, () => {
  const FEW = 96;
  const few = (args: readonly string[]): readonly string[] => [
    ...["sh", "-c", `ulimit -n ${FEW}; exec "$@"`, "sh", ...args],
  ];

  /** Connects and sends nothing. A lost connection is not replaced. */
  async function idle(place: { readonly path: string } | { readonly port: number }): Promise<void> {
    const socket = createConnection({ host: "127.0.0.1", ...place });
    socket.on("error", () => {});
    onTestFinished(() => void socket.destroy());
    await Promise.race([once(socket, "connect"), once(socket, "close")]);
  }

  test("belay serve carries out a stop on its socket, and one on its port", async () => {
    const dir = home();
    const server = new Started(few([...serve(dir), "--agent", AGENT]));
    await server.ready();
    // The address is on another stream than the ready message.
    const address = /http:\/\/[\d.]+:\d+(?=\D)/;
    await server.prints(address);
    const url = address.exec(server.output)?.[0] ?? "";
    const token = readFileSync(join(dir, "token"), "utf8").trim();
    for (const reached of [{ socket: join(dir, "belay.sock") }, { url, token }]) {
      const before = await connectBelay(reached);
      const run = (await before.createSession()).prompt("wait here");
      await run.accepted;
      await before.close();
      for (let count = 0; count < 200; count += 1) {
        await idle({ path: join(dir, "belay.sock") });
        await idle({ port: Number(new URL(url).port) });
      }
      const client = await connectBelay(reached);
      expect(await client.cancel(run.id)).toMatchObject({ kind: "stopping" });
      expect((await (await client.run(run.id)).outcome).kind).toBe("cancelled");
      await client.close();
    }
    expect(server.output).not.toMatch(/EMFILE|a request has failed/);
    expect(openFiles(`/proc/${server.child.pid}`)).toBeLessThanOrEqual(FEW - FILES_FOR_STOPS);
    server.child.kill("SIGTERM");
    expect(await server.exit).toBe(0);
  });

  test("a program that embeds Belay and serves its directory carries out a stop", async () => {
    const dir = home();
    const program = new Started(few([process.execPath, PROGRAM, join(dir, "belay.db")]));
    await program.prints(/is open/);
    for (let count = 0; count < 200; count += 1) await idle({ path: join(dir, "belay.sock") });
    const client = await connectBelay({ socket: join(dir, "belay.sock") });
    await client.cancelAll();
    await program.prints(/its run: cancelled/);
    await client.close();
    expect(openFiles(`/proc/${program.child.pid}`)).toBeLessThanOrEqual(FEW - FILES_FOR_STOPS);
  });
});

const UID = 12_345;
/** Another user cannot read, and so not run, a clone in a private directory of root. */
const isReadable = (): boolean =>
  spawnSync("setpriv", [`--reuid=${UID}`, "--clear-groups", "test", "-r", join(ROOT, "src/cli/main.ts")]).status === 0;

describe.skipIf(!root || programs.setpriv === undefined || !isReadable())(
  "belay of a user without an entry (where root may change, and that user can read the repository)",
  () => {
    const as = (...args: readonly string[]): readonly string[] => [
      ...["setpriv", `--reuid=${UID}`, `--regid=${UID}`, "--clear-groups", "--", ...args],
    ];
    const bare = { PATH: process.env.PATH ?? "" };

    test("starts with a data directory; without one the error names --home", async () => {
      const server = new Started(as(...serve(home(UID))), bare);
      await server.ready();
      server.child.kill("SIGTERM");
      expect(await server.exit).toBe(0);
      const lost = new Started(as(...BELAY, "ps"), bare);
      expect(await lost.exit).toBe(2);
      expect(lost.output).toContain("--home DIR");
      expect(lost.output).not.toContain("    at ");
    });

    test.each([
      ["descriptors", "--nofile=48"],
      ["processes", "--nproc=14"],
    ])("with too few %s refuses to start, and with enough starts with the same tier", async (_, limit) => {
      const dir = home(UID);
      const short = new Started(as("prlimit", limit, ...serve(dir)), bare);
      expect(await short.exit).not.toBe(0);
      expect(short.output).not.toContain("is ready");
      const server = new Started(as(...serve(dir)), bare);
      await server.prints(/held by tier (namespace|cgroup|anchor)/);
      server.child.kill("SIGTERM");
      expect(await server.exit).toBe(0);
    });
  },
);

describe.skipIf(programs.bwrap === undefined)(
  "belay serve with a read-only root (where bubblewrap is installed)",
  () => {
    test("starts with a writable data directory, and exits 0", async () => {
      const dir = home();
      const mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", dir, dir, "--unshare-pid"];
      const server = new Started(["bwrap", ...mounts, "--die-with-parent", "--", ...serve(dir)]);
      await server.ready();
      const [inner = 0] = childrenOf(server.child.pid ?? 0);
      const belay = childrenOf(inner)[0] ?? inner;
      process.kill(belay, "SIGTERM");
      expect(await server.exit).toBe(0);
    });
  },
);
