import childProcess from "node:child_process";
import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { COOKIE_NAME } from "../launch/environment.ts";
import { SHELL } from "../launch/gate.ts";
import { openFile } from "./open-files.ts";
import { childrenOf } from "./proc.ts";
import { type Ward, Watchdog } from "./watchdog.ts";

const { spawn } = childProcess;

const cookieNow = (): string => `proc_dog.1:${randomBytes(9).toString("base64url")}`;

/** A tree that says `up`, and whose stdout ends when all of it is gone. */
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
  test("G20: when its server is gone, ends groups, and those who have left them but carry the cookie", {
    meta: { id: "G20/watchdog-ends-marked-trees" },
  }, async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("setsid sh -c '(sleep 8000201 &); echo up' & sleep 8000201", cookie);
    const dog = new Watchdog(() => undefined);
    dog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    // The end of its input is all it learns of the end of its server.
    dog.close();
    expect(await gone).toBe("gone");
  });

  test("finds by its open pipe who has shed everything else", {
    meta: { id: "G20/watchdog-finds-open-pipe" },
  }, async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("env -i setsid sh -c '(sleep 8000202 &); echo up'; sleep 8000202", cookie);
    const dog = new Watchdog(() => undefined);
    dog.watch({ pid, cookie, livenessLink: openFile(pid, 1), cgroup: undefined });
    dog.close();
    expect(await gone).toBe("gone");
  });

  test("leaves alone what it was told is over", async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("echo up; sleep 8000203", cookie);
    const dog = new Watchdog(() => undefined);
    const forget = dog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    forget();
    const [own] = ours();
    dog.close();
    // It has nothing to do, and ends.
    while (own !== undefined && ours().includes(own)) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([gone, Promise.resolve("alive")])).toBe("alive");
    process.kill(-pid, "SIGKILL");
    await gone;
  });

  test("G21: ends no group whose leader does not carry the cookie", async () => {
    const stranger = await tree("echo up; sleep 8000204", cookieNow());
    const dog = new Watchdog(() => undefined);
    dog.watch({ pid: stranger.pid, cookie: cookieNow(), livenessLink: undefined, cgroup: undefined });
    const [own] = ours();
    dog.close();
    while (own !== undefined && ours().includes(own)) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([stranger.gone, Promise.resolve("alive")])).toBe("alive");
    process.kill(-stranger.pid, "SIGKILL");
    await stranger.gone;
  });

  test("that is killed is replaced, told everything again, and the operator hears of it", async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("echo up; sleep 8000205", cookie);
    const heard = Promise.withResolvers<string>();
    const dog = new Watchdog(heard.resolve);
    dog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    for (const one of ours()) process.kill(one, "SIGKILL");
    expect(await heard.promise).toContain("was killed");
    dog.close();
    expect(await gone).toBe("gone");
  });
});

interface Dog {
  readonly dies: () => void;
  readonly heard: () => readonly string[];
  /** Who fails when a signal or a word does not reach it. */
  readonly failing: readonly EventEmitter[];
}

/** Watchdogs that are no processes, until the test ends. `without`: what the next ones lack, as Node has them then. */
function kennel() {
  const dogs: Dog[] = [];
  const without: object[] = [];
  const make = (): unknown => {
    const stdin = new PassThrough();
    const child = Object.assign(new EventEmitter(), { pid: 4_194_305, stdin, unref: () => undefined });
    const lack = without.shift();
    if (lack !== undefined) return Object.assign(child, lack);
    const heard = (): readonly string[] => String(stdin.read() ?? "").match(/.+/g) ?? [];
    dogs.push({ dies: () => child.emit("exit", null, "SIGKILL"), heard, failing: [child, stdin] });
    return child;
  };
  const system = (instead: unknown): void => {
    Object.assign(childProcess, { spawn: instead });
    syncBuiltinESMExports();
  };
  system(make);
  onTestFinished(() => system(spawn));
  return { dogs, without };
}

describe("what a watchdog is told", () => {
  const ward = (pid: number, more: Partial<Ward> = {}): Ward => ({
    ...{ pid, cookie: `proc_dog.${pid}:x`, livenessLink: undefined, cgroup: undefined },
    ...more,
  });

  test("is each tree with all that marks it, in a place that is used again when the tree is over", () => {
    const { dogs } = kennel();
    const dog = new Watchdog(() => undefined);
    const forget = dog.watch(ward(11));
    dog.watch(ward(12, { livenessLink: "pipe:[9]", cgroup: "/sys/fs/cgroup/belay.12" }));
    forget();
    dog.watch(ward(13));
    dog.watch(ward(14));
    expect(dogs.map((one) => one.heard())).toEqual([
      [
        "+ 0 11 proc_dog.11:x - -",
        "+ 1 12 proc_dog.12:x pipe:[9] /sys/fs/cgroup/belay.12",
        "- 0",
        "+ 0 13 proc_dog.13:x - -",
        "+ 2 14 proc_dog.14:x - -",
      ],
    ]);
  });

  test("may not reach it: that is no error, and its end is heard by itself", () => {
    const { dogs } = kennel();
    new Watchdog(() => undefined).watch(ward(11));
    for (const one of dogs[0]?.failing ?? []) {
      expect(() => one.emit("error", new Error("EPIPE"))).not.toThrow();
    }
    expect(dogs).toHaveLength(1);
  });

  test("in place of one that was killed, is the trees that are not over", () => {
    const { dogs } = kennel();
    const dog = new Watchdog(() => undefined);
    const forget = dog.watch(ward(11));
    dog.watch(ward(12));
    forget();
    dogs[0]?.dies();
    expect(dogs).toHaveLength(2);
    expect(dogs[1]?.heard()).toEqual(["+ 1 12 proc_dog.12:x - -"]);
  });

  test("is every tree there is, also if it comes late, because none could be had when the last one was killed", () => {
    const { dogs, without } = kennel();
    const notices: string[] = [];
    const dog = new Watchdog((text) => void notices.push(text));
    dog.watch(ward(11));
    without.push({ pid: undefined });
    dogs[0]?.dies();
    expect(dogs).toHaveLength(1);
    expect(notices).toEqual([expect.stringMatching(/was killed\. The next process that starts brings another one;/)]);
    dog.watch(ward(12));
    expect(dogs[1]?.heard()).toEqual(["+ 0 11 proc_dog.11:x - -", "+ 1 12 proc_dog.12:x - -"]);
  });

  test("is nothing where none can be had: the tree is refused, and it is said why, also for want of files", () => {
    const { dogs, without } = kennel();
    const dog = new Watchdog(() => undefined);
    // Without room for another process it has no pid; without files it has no pipes either.
    without.push({ pid: undefined }, { pid: undefined, stdin: undefined });
    for (const _ of [...without]) {
      expect(() => dog.watch(ward(11))).toThrow(
        expect.objectContaining({
          code: "not_started",
          message: "The watchdog, which ends processes should the server die, did not start.",
        }),
      );
    }
    dog.watch(ward(12));
    expect(dogs[0]?.heard()).toEqual(["+ 0 12 proc_dog.12:x - -"]);
  });

  test("when it is killed over and over, is heard by a hundred others, and then by one for the next tree", () => {
    const { dogs } = kennel();
    const notices: string[] = [];
    const dog = new Watchdog((text) => void notices.push(text));
    dog.watch(ward(11));
    for (let at = 0; at < dogs.length && at < 200; at += 1) dogs[at]?.dies();
    expect([dogs.length, notices.length]).toEqual([101, 101]);
    expect(notices.filter((text) => text.endsWith("was killed. Another one was started."))).toHaveLength(100);
    expect(notices.at(-1)).toContain("The next process that starts brings another one");
    dog.watch(ward(12));
    expect(dogs[101]?.heard()).toEqual(["+ 0 11 proc_dog.11:x - -", "+ 1 12 proc_dog.12:x - -"]);
  });
});
