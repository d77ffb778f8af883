import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { endsBetweenLooks } from "../../../test/fixtures/vanishing-process.ts";
import { askGroup, askTerminal } from "./polite-signal.ts";
import { childrenOf, descendantsOf, identityOf, stateOf } from "./proc.ts";
import { type SignalPort, send } from "./signal.ts";

/** A real program that has said `up`, and whose further lines are heard. All of its tree ends with the test. */
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

test("a group is asked, and then told to go on: who is stopped could not answer", () => {
  const sent: (readonly [number, string])[] = [];
  const means: SignalPort = {
    ...{ presenceOf: () => "there", pinsGroup: () => "there", pid: 100, group: () => 90 },
    kill: (pid, signal) => void sent.push([pid, signal]),
  };
  askGroup({ pid: 4711, startTime: 1, bootId: "boot" }, means);
  expect(sent).toEqual([
    [-4711, "SIGTERM"],
    [-4711, "SIGCONT"],
  ]);
});

describe("at a terminal", () => {
  test("who sits there is asked, and what makes the terminal stays for the last word", async () => {
    const inside = "setsid sh -c 'sleep 8000701 & echo up; wait'";
    const { lines, identity } = await spoken(`${inside} & wait $!; echo ended $?; exec sleep 8000701`);
    askTerminal(identity);
    expect((await lines.next()).value).toBe("ended 143");
    expect(identityOf(identity.pid)).toEqual(identity);
  });

  test("where nobody sits, what makes it is asked, and told to go on", async () => {
    const { child, identity, exited } = await spoken("echo up; exec sleep 8000702");
    child.kill("SIGSTOP");
    await expect.poll(() => stateOf(identity.pid)).toBe("T");
    askTerminal(identity);
    expect((await exited)[1]).toBe("SIGTERM");
  });

  test("who has left it meanwhile is not taken for somebody: what makes it is asked", async () => {
    const { identity, exited } = await spoken("sleep 8000703 & echo up; wait");
    endsBetweenLooks(Number(childrenOf(identity.pid)[0]));
    askTerminal(identity);
    expect((await exited)[1]).toBe("SIGTERM");
  });
});
