import childProcess from "node:child_process";
import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { COOKIE_NAME } from "../launch/environment.ts";
import { SHELL } from "../launch/gate.ts";
import { childrenOf } from "./proc.ts";
import { openFile } from "./proc-process-table.ts";
import { type Ward, Watchdog } from "./watchdog.ts";

const { spawn } = childProcess;

const cookieNow = (): string => `proc_dog.1:${randomBytes(9).toString("base64url")}`;

/** A tree that prints `up`, and whose stdout closes when all of it is gone. */
async function tree(script: string, cookie: string) {
  const child = spawn(SHELL, ["-c", script], {
    ...{ detached: true, stdio: ["ignore", "pipe", "ignore"] },
    env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
  });
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const gone = new Promise<string>((resolve) => child.stdout?.once("close", () => resolve("gone")));
  child.stdout?.resume();
  return { pid: child.pid ?? 0, gone };
}

const ours = (): readonly number[] =>
  childrenOf(process.pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("belay-watchdog"));

describe("the watchdog", () => {
  test("G20: ends groups when its server is gone, and processes that have left them but carry the cookie", {
    meta: { id: "G20/watchdog-ends-marked-trees" },
  }, async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("setsid sh -c '(sleep 8000201 &); echo up' & sleep 8000201", cookie);
    const watchdog = new Watchdog(() => undefined);
    watchdog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    // The watchdog learns of its server's end only by the end of its input.
    watchdog.close();
    expect(await gone).toBe("gone");
  });

  test("finds a process that has shed everything else by its open pipe", {
    meta: { id: "G20/watchdog-finds-open-pipe" },
  }, async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("env -i setsid sh -c '(sleep 8000202 &); echo up'; sleep 8000202", cookie);
    const watchdog = new Watchdog(() => undefined);
    watchdog.watch({ pid, cookie, livenessLink: openFile(pid, 1), cgroup: undefined });
    watchdog.close();
    expect(await gone).toBe("gone");
  });

  test("leaves trees alone that were removed", async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("echo up; sleep 8000203", cookie);
    const watchdog = new Watchdog(() => undefined);
    const forget = watchdog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    forget();
    const [own] = ours();
    watchdog.close();
    // It has nothing to do, and exits.
    while (own !== undefined && ours().includes(own)) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([gone, Promise.resolve("alive")])).toBe("alive");
    process.kill(-pid, "SIGKILL");
    await gone;
  });

  test("G21: ends no group whose leader does not carry the cookie", async () => {
    const stranger = await tree("echo up; sleep 8000204", cookieNow());
    const watchdog = new Watchdog(() => undefined);
    watchdog.watch({ pid: stranger.pid, cookie: cookieNow(), livenessLink: undefined, cgroup: undefined });
    const [own] = ours();
    watchdog.close();
    while (own !== undefined && ours().includes(own)) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([stranger.gone, Promise.resolve("alive")])).toBe("alive");
    process.kill(-stranger.pid, "SIGKILL");
    await stranger.gone;
  });

  test("that is killed is replaced with all trees, and the operator gets a notice", async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("echo up; sleep 8000205", cookie);
    const notice = Promise.withResolvers<string>();
    const watchdog = new Watchdog(notice.resolve);
    watchdog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    for (const one of ours()) process.kill(one, "SIGKILL");
    expect(await notice.promise).toContain("was killed");
    watchdog.close();
    expect(await gone).toBe("gone");
  });
});

interface FakeWatchdog {
  readonly dies: () => void;
  readonly lines: () => readonly string[];
  /** Streams that fail when a signal or a line does not arrive. */
  readonly failing: readonly EventEmitter[];
}

/** Fake watchdogs, until the test ends. `without`: what the next ones lack, as Node has them then. */
function fakeWatchdogs() {
  const fakes: FakeWatchdog[] = [];
  const without: object[] = [];
  const make = (): unknown => {
    const stdin = new PassThrough();
    const child = Object.assign(new EventEmitter(), { pid: 4_194_305, stdin, unref: () => undefined });
    const lack = without.shift();
    if (lack !== undefined) return Object.assign(child, lack);
    const lines = (): readonly string[] => String(stdin.read() ?? "").match(/.+/g) ?? [];
    fakes.push({ dies: () => child.emit("exit", null, "SIGKILL"), lines, failing: [child, stdin] });
    return child;
  };
  const system = (instead: unknown): void => {
    Object.assign(childProcess, { spawn: instead });
    syncBuiltinESMExports();
  };
  system(make);
  onTestFinished(() => system(spawn));
  return { fakes, without };
}

describe("the input of a watchdog", () => {
  const ward = (pid: number, more: Partial<Ward> = {}): Ward => ({
    ...{ pid, cookie: `proc_dog.${pid}:x`, livenessLink: undefined, cgroup: undefined },
    ...more,
  });

  test("is each tree with all its marks, in a slot that is reused when the tree is gone", () => {
    const { fakes } = fakeWatchdogs();
    const watchdog = new Watchdog(() => undefined);
    const forget = watchdog.watch(ward(11));
    watchdog.watch(ward(12, { livenessLink: "pipe:[9]", cgroup: "/sys/fs/cgroup/belay.12" }));
    forget();
    watchdog.watch(ward(13));
    watchdog.watch(ward(14));
    expect(fakes.map((one) => one.lines())).toEqual([
      [
        "+ 0 11 proc_dog.11:x - -",
        "+ 1 12 proc_dog.12:x pipe:[9] /sys/fs/cgroup/belay.12",
        "- 0",
        "+ 0 13 proc_dog.13:x - -",
        "+ 2 14 proc_dog.14:x - -",
      ],
    ]);
  });

  test("may fail to arrive: that is not an error, and the exit is detected separately", () => {
    const { fakes } = fakeWatchdogs();
    new Watchdog(() => undefined).watch(ward(11));
    for (const one of fakes[0]?.failing ?? []) {
      expect(() => one.emit("error", new Error("EPIPE"))).not.toThrow();
    }
    expect(fakes).toHaveLength(1);
  });

  test("for a replacement is all current trees", () => {
    const { fakes } = fakeWatchdogs();
    const watchdog = new Watchdog(() => undefined);
    const forget = watchdog.watch(ward(11));
    watchdog.watch(ward(12));
    forget();
    fakes[0]?.dies();
    expect(fakes).toHaveLength(2);
    expect(fakes[1]?.lines()).toEqual(["+ 1 12 proc_dog.12:x - -"]);
  });

  test("is every current tree, even if the replacement comes late because none could be started", () => {
    const { fakes, without } = fakeWatchdogs();
    const notices: string[] = [];
    const watchdog = new Watchdog((text) => void notices.push(text));
    watchdog.watch(ward(11));
    without.push({ pid: undefined });
    fakes[0]?.dies();
    expect(fakes).toHaveLength(1);
    expect(notices).toEqual([
      expect.stringContaining("was killed. None could be started; the next start of a process retries."),
    ]);
    watchdog.watch(ward(12));
    expect(fakes[1]?.lines()).toEqual(["+ 0 11 proc_dog.11:x - -", "+ 1 12 proc_dog.12:x - -"]);
  });

  test("is empty if none can be started: the tree is refused with the reason, even without file descriptors", () => {
    const { fakes, without } = fakeWatchdogs();
    const watchdog = new Watchdog(() => undefined);
    // Without room for another process it has no pid; without file descriptors it has no pipes either.
    without.push({ pid: undefined }, { pid: undefined, stdin: undefined });
    for (const _ of [...without]) {
      expect(() => watchdog.watch(ward(11))).toThrow(
        expect.objectContaining({
          code: "not_started",
          message: "The watchdog, which ends processes if the server dies, did not start.",
        }),
      );
    }
    watchdog.watch(ward(12));
    expect(fakes[0]?.lines()).toEqual(["+ 0 12 proc_dog.12:x - -"]);
  });

  test("goes to a hundred replacements of killed watchdogs, and after that only to one for the next tree", () => {
    const { fakes } = fakeWatchdogs();
    const notices: string[] = [];
    const watchdog = new Watchdog((text) => void notices.push(text));
    watchdog.watch(ward(11));
    for (let at = 0; at < fakes.length && at < 200; at += 1) fakes[at]?.dies();
    expect([fakes.length, notices.length]).toEqual([101, 101]);
    expect(notices.filter((text) => text.endsWith("was killed. Another one was started."))).toHaveLength(100);
    expect(notices.at(-1)).toContain("None could be started; the next start");
    watchdog.watch(ward(12));
    expect(fakes[101]?.lines()).toEqual(["+ 0 11 proc_dog.11:x - -", "+ 1 12 proc_dog.12:x - -"]);
  });
});
