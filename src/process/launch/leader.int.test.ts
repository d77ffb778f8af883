import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, type Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { toLeader } from "./leader.ts";

const IDENTITY = { pid: 7, startTime: 8, bootId: "boot" };

function led(command: string) {
  const child = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  // One that has ended stays open until somebody closes it, so that the two can be told apart.
  const liveness = new PassThrough({ autoDestroy: false });
  const started = { child: child as ChildProcess & { pid: number }, liveness, control: child.stdin as Writable };
  return { child, liveness, leader: toLeader(started, IDENTITY) };
}

test("a leader is told through its control pipe, and its end has a code", async () => {
  const { child, leader } = led("read word; exit $word");
  expect([leader.identity, leader.exit]).toEqual([IDENTITY, undefined]);
  leader.tell("5\n");
  await once(child, "exit");
  expect(leader.exit).toEqual({ code: 5, signal: null });
});

test("a leader that is killed gets the signal that is meant, and its end has no code", async () => {
  const { child, leader } = led("echo up; read word");
  await once(child.stdout, "data");
  leader.kill("SIGUSR1");
  await once(child, "exit");
  expect(leader.exit).toEqual({ code: null, signal: "SIGUSR1" });
});

test("a tree is released once the liveness pipe has ended, or was closed by us", async () => {
  const [one, other] = [led("exit"), led("exit")];
  expect([one.leader.released, other.leader.released]).toEqual([false, false]);
  one.liveness.resume().end();
  await once(one.liveness, "end");
  expect([one.liveness.closed, one.leader.released]).toEqual([false, true]);
  other.liveness.destroy();
  await once(other.liveness, "close");
  expect([other.liveness.readableEnded, other.leader.released]).toEqual([false, true]);
});
