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
  const house = await composeServer({ plan, tcp: false, log, redact: redactor(), version: "0" });
  return { house, store: plan.store };
}

const LIMIT_MS = 2_000;

async function editor(home: DataDir, wish: Partial<HostOptions> = {}): Promise<AcpHosts> {
  const open = (): Promise<OpenedServer> => openHere(home);
  const house = await AcpHosts.open({ home, mark: "an agent", kind: "editor", open, log, clock: systemClock, ...wish });
  onTestFinished(async () => void (await house.close(LIMIT_MS)));
  return house;
}

/** A run that has said something, and is done when it is taken up again. */
async function begun(house: AcpHosts): Promise<RunControl> {
  const session = await house.control.createSession();
  const run = session.prompt("resume");
  for await (const event of run) if (event.type === "delta") break;
  return run;
}

/** Time passes as soon as it is waited for. `onPause` is called at each wait. */
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

describe("the house of the editors of a home", { timeout: 30_000 }, () => {
  test("the first opens it and is found by a note; the second is its guest", async () => {
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

  test("two that come at the same moment: one opens it, the other is a guest", async () => {
    const home = emptyHome();
    const both = await Promise.all([editor(home), editor(home)]);
    expect(both.filter(({ hosts }) => hosts)).toHaveLength(1);
    const [one, other] = both;
    const session = await one.control.createSession();
    expect((await other.control.session(session.id).row()).id).toBe(session.id);
  });

  test("G25: the host leaves, a guest goes on with the run it has begun, and is told the outcome once", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const guest = await editor(home);
    const run = await begun(guest);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(guest.hosts).toBe(true);
    expect(await run.text()).toContain("taken up again");
  });

  test("G26: the host leaves two guests: one is the next host, and both hear of their runs", {
    meta: { id: "G26/next-editor-becomes-host" },
  }, async () => {
    const home = emptyHome();
    const host = await editor(home);
    const guests = [await editor(home), await editor(home)];
    const runs = await Promise.all(guests.map(begun));
    await host.close(LIMIT_MS);
    const outcomes = await Promise.all(runs.map(({ outcome }) => outcome));
    expect(outcomes).toMatchObject([{ kind: "completed" }, { kind: "completed" }]);
    expect(guests.filter(({ hosts }) => hosts)).toHaveLength(1);
    // And the next one after that.
    const [left = host] = guests.filter(({ hosts }) => hosts);
    const [last = host] = guests.filter((one) => one !== left);
    const run = await begun(last);
    await left.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(last.hosts).toBe(true);
  });

  test("G1: a prompt that a guest sends while nobody does the work is carried out by the next host", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const opened = Promise.withResolvers<void>();
    const guest = await editor(home, {
      open: async () => {
        await opened.promise;
        return openHere(home);
      },
    });
    const session = await guest.control.createSession();
    await host.close(LIMIT_MS);
    const run = session.prompt("say hello");
    opened.resolve();
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(await run.text()).toBe("hello");
  });

  test("a host that leaves gives windows that are closed with it a moment to cancel what they have begun", async () => {
    const home = emptyHome();
    const clock = manualClock();
    const host = await editor(home, { clock });
    const guest = await editor(home);
    const run = await begun(guest);
    const left = host.close(LIMIT_MS);
    await settled();
    // Besides those that keep no program alive.
    expect(clock.pending.filter(({ idle }) => !idle)).toHaveLength(1);
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    await clock.advance(1_000);
    await left;
  });

  test("a home that is too deep for a socket has one elsewhere, the same for every host", async () => {
    const home = emptyHome("x".repeat(100));
    expect(home.socketFile).toBeUndefined();
    onTestFinished(() => rmSync(dirname(socketOf(home)), { recursive: true, force: true }));
    const host = await editor(home);
    const guest = await editor(home);
    const run = await begun(guest);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
  });

  test("a guest that cannot take over says why, once, and goes on trying", async () => {
    const home = emptyHome();
    const host = await editor(home);
    const errors: unknown[] = [];
    let tries = 0;
    const guest = await editor(home, {
      log: { info: () => {}, warn: () => {}, error: (_, fields) => void errors.push(fields) },
      open: async () => {
        tries += 1;
        if (tries < 3) throw new ControlError("invalid", "not today");
        return openHere(home);
      },
    });
    const run = await begun(guest);
    await host.close(LIMIT_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(errors).toMatchObject([{ error: { message: "not today" } }]);
  });

  test("the last one leaves nothing behind by which somebody could be found", async () => {
    const home = emptyHome();
    const house = await editor(home);
    await house.close(LIMIT_MS);
    expect(readServer(home)).toBeUndefined();
    takeLock(home.storeFile).release();
  });

  test("a host that has left does not take the socket of the next one along when its program ends", async () => {
    const home = emptyHome();
    const opened = await openHere(home);
    await opened.house.close({ mode: "park", limitMs: LIMIT_MS });
    await editor(home);
    opened.house.listeners.forget();
    const found = await openControl({ socket: socketOf(home) });
    await found.close();
  });

  test("a host with another agent is not used unawares", async () => {
    const home = emptyHome();
    await editor(home);
    await expect(editor(home, { mark: "another agent" })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("with another agent"),
    });
  });

  test("a store that somebody has who does not answer: waited for a while, then said", async () => {
    const home = emptyHome();
    const store = await openSqliteStore({ file: home.storeFile });
    onTestFinished(() => store.close());
    const { clock, passing } = passingClock();
    const opening = editor(home, { clock: passing });
    await expect(opening).rejects.toMatchObject({ code: "store_locked", message: expect.stringMatching(/in use by/) });
    expect(clock.elapsed()).toBeGreaterThan(3_000);
    expect(clock.elapsed()).toBeLessThan(10_000);
  });

  test("a program that is still opening the store is waited for longer, and a message says so", async () => {
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
