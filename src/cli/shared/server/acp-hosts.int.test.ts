import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import { ControlError } from "../../../core/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { RunControl } from "../../../ports/control.ts";
import { type DataDir, readServer, socketOf } from "../../../sdk/data-dir.ts";
import { takeLock } from "../../../store/sqlite/file/owner.ts";
import { openSqliteStore } from "../../../store/sqlite/sqlite-store.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { openLog } from "../../../telemetry/log.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { manualClock, settled } from "../../../testing/manual-clock.ts";
import { openControl } from "../connect.ts";
import type { HostOptions, OpenedServer } from "./acp-host.ts";
import { AcpHosts } from "./acp-hosts.ts";
import { composeServer } from "./compose-server.ts";
import { makePlan } from "./runtime.ts";

const AGENT = join(import.meta.dirname, "../../../../test/fixtures/obedient-agent.ts");

const log = openLog({
  redact: redactor(),
  clock: systemClock,
  stream: { write: () => true, on: () => undefined, writableLength: 0 },
});

async function openHere(home: DataDir): Promise<OpenedServer> {
  const plan = await makePlan({
    home,
    flags: { agent: AGENT, config: false },
    server: { socket: socketOf(home) },
  });
  const server = await composeServer({ plan, tcp: false, log, redact: redactor(), version: "0" });
  return { server, store: plan.store };
}

const LIMIT_MS = 2_000;

async function editor(home: DataDir, options: Partial<HostOptions> = {}): Promise<AcpHosts> {
  const defaults = { agentDigest: "an agent", kind: "editor", log, clock: systemClock } as const;
  const hosts = await AcpHosts.open({ home, ...defaults, open: () => openHere(home), ...options });
  onTestFinished(async () => void (await hosts.close(LIMIT_MS)));
  return hosts;
}

/** A run that has sent a delta, and completes when the next host resumes it. */
async function begun(hosts: AcpHosts): Promise<RunControl> {
  const session = await hosts.control.createSession();
  const run = session.prompt("resume");
  for await (const event of run) if (event.type === "delta") break;
  return run;
}

/** A clock that advances by itself for each timer. `onPause` is called before each advance. */
function passingClock(onPause: (elapsedMs: number) => unknown = () => {}) {
  const clock = manualClock();
  const after: Clock["after"] = (ms, call) => {
    onPause(clock.elapsed());
    const dispose = clock.after(ms, call);
    void clock.advance(ms);
    return dispose;
  };
  return { clock, passing: { now: () => clock.now(), elapsed: () => clock.elapsed(), after } };
}

describe("the host of the editors of a data directory", { timeout: 30_000 }, () => {
  test("the first editor becomes the host and writes server.json; the second connects to it", async () => {
    const home = emptyHome();
    const first = await editor(home);
    const second = await editor(home);
    expect([first.hosts, second.hosts]).toEqual([true, false]);
    expect([first.kind, second.kind]).toEqual(["editors", "editors"]);
    expect(readServer(home)).toMatchObject({
      pid: process.pid,
      socket: socketOf(home),
      host: "editor",
      agent: "an agent",
    });
    const session = await second.control.createSession({ title: "of the second" });
    expect(await first.control.session(session.id).row()).toMatchObject({ title: "of the second" });
  });

  test("of two that start at the same time one becomes the host, and the other connects to it", async () => {
    const home = emptyHome();
    const both = await Promise.all([editor(home), editor(home)]);
    expect(both.filter(({ hosts }) => hosts)).toHaveLength(1);
    const [one, other] = both;
    const session = await one.control.createSession();
    expect((await other.control.session(session.id).row()).id).toBe(session.id);
  });

  test("G25: when the host exits, a client becomes the host, resumes its run and gets the outcome once", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const client = await editor(home);
    const run = await begun(client);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(client.hosts).toBe(true);
    expect(await run.text()).toContain("taken up again");
  });

  test("G26: when the host exits, exactly one of two clients becomes the host, and both get their outcomes", {
    meta: { id: "G26/next-editor-becomes-host" },
  }, async () => {
    const home = emptyHome();
    const host = await editor(home);
    const clients = [await editor(home), await editor(home)];
    const runs = await Promise.all(clients.map(begun));
    await host.close(LIMIT_MS);
    const outcomes = await Promise.all(runs.map(({ outcome }) => outcome));
    expect(outcomes).toMatchObject([{ kind: "completed" }, { kind: "completed" }]);
    expect(clients.filter(({ hosts }) => hosts)).toHaveLength(1);
    // The same for the next change of hosts.
    const [left = host] = clients.filter(({ hosts }) => hosts);
    const [last = host] = clients.filter((one) => one !== left);
    const run = await begun(last);
    await left.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(last.hosts).toBe(true);
  });

  test("G1: the next host carries out a prompt that a client sent while there was no host", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const opened = Promise.withResolvers<void>();
    const client = await editor(home, {
      open: async () => {
        await opened.promise;
        return openHere(home);
      },
    });
    const session = await client.control.createSession();
    await host.close(LIMIT_MS);
    const run = session.prompt("say hello");
    opened.resolve();
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(await run.text()).toBe("hello");
  });

  test("a closing host lingers so that windows that close with it can cancel their runs", async () => {
    const home = emptyHome();
    const clock = manualClock();
    const host = await editor(home, { clock });
    const client = await editor(home);
    const run = await begun(client);
    const left = host.close(LIMIT_MS);
    await settled();
    // Idle timers keep no program alive and do not count.
    expect(clock.pending.filter(({ idle }) => !idle)).toHaveLength(1);
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    await clock.advance(1_000);
    await left;
  });

  test("a directory whose path is too long for a socket has one elsewhere, the same for every host", async () => {
    const home = emptyHome("x".repeat(100));
    expect(home.socketFile).toBeUndefined();
    onTestFinished(() => rmSync(dirname(socketOf(home)), { recursive: true, force: true }));
    const host = await editor(home);
    const client = await editor(home);
    const run = await begun(client);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
  });

  test("a client that cannot become the host logs the reason once and retries", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const errors: unknown[] = [];
    let tries = 0;
    const client = await editor(home, {
      log: { info: () => {}, warn: () => {}, error: (_, fields) => void errors.push(fields) },
      open: async () => {
        tries += 1;
        if (tries < 3) throw new ControlError("invalid", "not today");
        return openHere(home);
      },
    });
    const run = await begun(client);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(errors).toMatchObject([{ error: { message: "not today" } }]);
  });

  test("the last host leaves neither server.json nor a lock behind", async () => {
    const home = emptyHome();
    const hosts = await editor(home);
    await hosts.close(LIMIT_MS);
    expect(readServer(home)).toBeUndefined();
    takeLock(home.storeFile).release();
  });

  test("the exit of a former host's program does not remove the socket of the next host", async () => {
    const home = emptyHome();
    const opened = await openHere(home);
    await opened.server.close({ mode: "park", limitMs: LIMIT_MS });
    await editor(home);
    opened.server.listeners.forget();
    const found = await openControl({ socket: socketOf(home) });
    await found.close();
  });

  test("a host with another agent is refused", async () => {
    const home = emptyHome();
    await editor(home);
    await expect(editor(home, { agentDigest: "another agent" })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("with another agent"),
    });
  });

  test("a store whose holder does not answer is waited for, then refused with `store_locked`", async () => {
    const home = emptyHome();
    const store = await openSqliteStore({ file: home.storeFile });
    onTestFinished(() => store.close());
    const { clock, passing } = passingClock();
    const opening = editor(home, { clock: passing });
    await expect(opening).rejects.toMatchObject({ code: "store_locked", message: expect.stringMatching(/in use by/) });
    expect(clock.elapsed()).toBeGreaterThan(3_000);
    expect(clock.elapsed()).toBeLessThan(10_000);
  });

  test("a program that is still opening the store is waited for longer, with a message", async () => {
    const home = emptyHome();
    const lock = takeLock(home.storeFile);
    let isFree = false;
    const free = (): void => {
      if (!isFree) lock.release();
      isFree = true;
    };
    const warnings: string[] = [];
    const { passing } = passingClock((elapsedMs) => elapsedMs > 20_000 && free());
    const noted = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
    const opened = await editor(home, { clock: passing, log: noted });
    expect(opened.hosts).toBe(true);
    expect(warnings).toEqual(["waiting for the program that opens the store"]);
  });
});
