import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Identity, identityOf, type Presence } from "./proc.ts";
import { type SignalPort, send, sendGroup, signalName } from "./signal.ts";

const someone: Identity = { pid: 4711, startTime: 1, bootId: "boot" };

function means(presence: Presence, kill = vi.fn()) {
  return {
    presenceOf: () => presence,
    pinsGroup: () => presence,
    kill,
    pid: 100,
    group: () => 90,
  } satisfies SignalPort;
}

function thrower(code: string) {
  return vi.fn(() => {
    throw Object.assign(new Error(code), { code });
  });
}

describe.each([
  ["one process", send, 4711],
  ["a group", sendGroup, -4711],
] as const)("G21: a signal to %s", (_, to, target) => {
  test("is sent when identity is proven", () => {
    const by = means("there");
    expect(to(someone, "SIGTERM", by)).toBe("sent");
    expect(by.kill.mock.calls).toEqual([[target, "SIGTERM"]]);
  });

  test.each([
    ["gone", "gone"],
    ["unknown", "refused"],
  ] as const)("is not sent when the process is %s", (presence, answer) => {
    const by = means(presence);
    expect(to(someone, "SIGKILL", by)).toBe(answer);
    expect(by.kill).not.toHaveBeenCalled();
  });

  test.each([1, 0, -1, -4711, 1.5, Number.NaN, 100])("is never sent to pid %s", (pid) => {
    const by = means("there");
    expect(to({ ...someone, pid }, "SIGKILL", by)).toBe("refused");
    expect(by.kill).not.toHaveBeenCalled();
  });

  test("returns the result of the system call, and throws nothing", () => {
    expect(to(someone, "SIGKILL", means("there", thrower("ESRCH")))).toBe("gone");
    expect(to(someone, "SIGKILL", means("there", thrower("EPERM")))).toBe("refused");
    expect(to(someone, "SIGKILL", means("there", thrower("EINVAL")))).toBe("refused");
  });
});

test("G21: our own group is never signalled, nor any group while ours is not known", () => {
  const by = means("there");
  expect(sendGroup({ ...someone, pid: 90 }, "SIGKILL", by)).toBe("refused");
  expect(sendGroup(someone, "SIGKILL", { ...by, group: () => undefined })).toBe("refused");
  expect(by.kill).not.toHaveBeenCalled();
});

/** A shell with a child; both hold its output open, so its end is the end of both. */
async function pair() {
  const child = spawn("/bin/sh", ["-c", "sleep 4711 & echo up; wait"], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => {
    try {
      process.kill(-Number(child.pid), "SIGKILL");
    } catch {
      // All of it is gone, as it should be.
    }
  });
  const closed = once(child.stdout, "close");
  await once(child.stdout, "data");
  const identity = identityOf(Number(child.pid));
  if (identity === undefined) throw new Error("A child that has spoken is there.");
  return { child, identity, closed };
}

test("G21: a reused pid is not signalled", {
  meta: { id: "G21/reused-pid-not-signalled" },
}, async () => {
  const { child, identity } = await pair();
  const before = { ...identity, startTime: identity.startTime - 1 };
  expect([send(before, "SIGKILL"), sendGroup(before, "SIGKILL")]).toEqual(["gone", "gone"]);
  const rebooted = { ...identity, bootId: "another" };
  expect([send(rebooted, "SIGKILL"), sendGroup(rebooted, "SIGKILL")]).toEqual(["gone", "gone"]);
  expect(sendGroup(identity, "SIGTERM")).toBe("sent");
  const [code, signal] = await once(child, "exit");
  // If one of the earlier kills had been sent, SIGTERM would not be what ended it.
  expect([code, signal]).toEqual([null, "SIGTERM"]);
});

test("a signal to a group reaches all of it, and afterwards the group is gone", async () => {
  const { child, identity, closed } = await pair();
  expect(sendGroup(identity, "SIGKILL")).toBe("sent");
  await Promise.all([closed, once(child, "exit")]);
  expect([send(identity, "SIGKILL"), sendGroup(identity, "SIGKILL")]).toEqual(["gone", "gone"]);
});

test("G21: a process that leads no group is not signalled as one", {
  meta: { id: "G21/no-group-no-signal" },
}, async () => {
  const child = spawn("/bin/cat", { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.write("up");
  await once(child.stdout, "data");
  const identity = identityOf(Number(child.pid));
  if (identity === undefined) throw new Error("A child that has spoken is there.");
  expect(sendGroup(identity, "SIGKILL")).toBe("gone");
  expect(send(identity, "SIGTERM")).toBe("sent");
  expect((await once(child, "exit"))[1]).toBe("SIGTERM");
});

test("G21: this program is never signalled", () => {
  const self = identityOf(process.pid);
  if (self === undefined) throw new Error("We are here.");
  expect([send(self, "SIGKILL"), sendGroup(self, "SIGKILL")]).toEqual(["refused", "refused"]);
});

test("signals have names", () => {
  expect([signalName(15), signalName(9), signalName(6), signalName(1)]).toEqual([
    ...["SIGTERM", "SIGKILL", "SIGABRT", "SIGHUP"],
  ]);
  expect(signalName(64)).toBe("SIG64");
});
