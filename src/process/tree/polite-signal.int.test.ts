import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { endsBetweenLooks } from "../../../test/fixtures/vanishing-process.ts";
import { sigtermGroup, sigtermTerminal } from "./polite-signal.ts";
import { childrenOf, descendantsOf, identityOf, stateOf } from "./proc.ts";
import { type SignalPort, send } from "./signal.ts";

/** A real program that has printed `up`, and its further lines. All of its tree ends with the test. */
async function spoken(script: string) {
  const child = spawn("/bin/sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child.stdout, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const pid = Number(child.pid);
  const all = [pid, ...descendantsOf(pid)].flatMap((one) => identityOf(one) ?? []);
  onTestFinished(async () => {
    for (const one of all) send(one, "SIGKILL");
    await closed;
  });
  const [identity] = all;
  if (identity === undefined) throw new Error("A program that has spoken is there.");
  return { child, lines, identity, exited: once(child, "exit") };
}

test("a group receives SIGTERM and then SIGCONT, because a stopped process cannot handle SIGTERM", () => {
  const sent: (readonly [number, string])[] = [];
  const means: SignalPort = {
    ...{ presenceOf: () => "there", pinsGroup: () => "there", pid: 100, group: () => 90 },
    kill: (pid, signal) => void sent.push([pid, signal]),
  };
  sigtermGroup({ pid: 4711, startTime: 1, bootId: "boot" }, means);
  expect(sent).toEqual([
    [-4711, "SIGTERM"],
    [-4711, "SIGCONT"],
  ]);
});

describe("at a terminal", () => {
  test("the processes on it are signalled, and the program that makes it stays for the last output", async () => {
    const inside = "setsid sh -c 'sleep 8000701 & echo up; wait'";
    const { lines, identity } = await spoken(`${inside} & wait $!; echo ended $?; exec sleep 8000701`);
    sigtermTerminal(identity);
    expect((await lines.next()).value).toBe("ended 143");
    expect(identityOf(identity.pid)).toEqual(identity);
  });

  test("without a process on it, the program that makes it receives SIGTERM and SIGCONT", async () => {
    const { child, identity, exited } = await spoken("echo up; exec sleep 8000702");
    child.kill("SIGSTOP");
    await expect.poll(() => stateOf(identity.pid)).toBe("T");
    sigtermTerminal(identity);
    expect((await exited)[1]).toBe("SIGTERM");
  });

  test("a process that has left it meanwhile is ignored, and the program that makes it is signalled", async () => {
    const { identity, exited } = await spoken("sleep 8000703 & echo up; wait");
    endsBetweenLooks(Number(childrenOf(identity.pid)[0]));
    sigtermTerminal(identity);
    expect((await exited)[1]).toBe("SIGTERM");
  });
});
