import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { COOKIE_NAME } from "./environment.ts";
import { SHELL } from "./gate.ts";
import { openFile } from "./open-files.ts";
import { childrenOf } from "./proc.ts";
import { Watchdog } from "./watchdog.ts";

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
  test("G20: when its server is gone, ends groups, and those who have left them but carry the cookie", async () => {
    const cookie = cookieNow();
    const { pid, gone } = await tree("setsid sh -c '(sleep 8000201 &); echo up' & sleep 8000201", cookie);
    const dog = new Watchdog(() => undefined);
    dog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    // The end of its input is all it learns of the end of its server.
    dog.close();
    expect(await gone).toBe("gone");
  });

  test("finds by its open pipe who has shed everything else", async () => {
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
