import { spawn } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { settled } from "../../testing/manual-clock.ts";
import { COOKIE_NAME } from "../launch/environment.ts";
import type { Seen } from "./proc.ts";
import { SharedScan } from "./shared-scan.ts";

/** Looks that come back when they are told to, each with a number of its own. */
function looks() {
  const begun: PromiseWithResolvers<readonly Seen[]>[] = [];
  const sharedScan = new SharedScan(() => {
    const look = Promise.withResolvers<readonly Seen[]>();
    begun.push(look);
    return look.promise;
  });
  return {
    census: sharedScan,
    begun,
    end: (at: number) => begun[at]?.resolve([{ pid: at }] as unknown as readonly Seen[]),
  };
}

const pidsOf = async (taken: Promise<readonly Seen[]>): Promise<readonly number[]> =>
  (await taken).map((one) => one.pid);

test("whoever asks while a look goes on is told of the next, together with all who ask meanwhile", async () => {
  const { census: sharedScan, begun, end } = looks();
  const first = sharedScan.take();
  const second = sharedScan.take();
  const third = sharedScan.take();
  expect(begun).toHaveLength(1);
  end(0);
  expect(await pidsOf(first)).toEqual([0]);
  await settled();
  expect(begun).toHaveLength(2);
  const fourth = sharedScan.take();
  end(1);
  expect(await Promise.all([pidsOf(second), pidsOf(third)])).toEqual([[1], [1]]);
  await settled();
  end(2);
  expect(await pidsOf(fourth)).toEqual([2]);
  expect(begun).toHaveLength(3);
});

test("who asks while two looks go on waits for the later one, also when the earlier is over", async () => {
  const { census: sharedScan, begun, end } = looks();
  // Asked for when the first is over, and thus at once; and before that, for when it is over.
  const [soon, next] = [sharedScan.take().then(() => sharedScan.take()), sharedScan.take()];
  end(0);
  await settled();
  expect(begun).toHaveLength(3);
  end(1);
  expect(await pidsOf(soon)).toEqual([1]);
  const last = sharedScan.take();
  expect(begun).toHaveLength(3);
  end(2);
  expect(await pidsOf(next)).toEqual([2]);
  await settled();
  end(3);
  expect(await pidsOf(last)).toEqual([3]);
});

test("a look sees everybody, with their marks", async () => {
  const child = spawn("sleep", ["8000710"], { stdio: "ignore", env: { [COOKIE_NAME]: "proc_census.1:x" } });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const all = await new SharedScan().take();
  expect(all.find(({ pid }) => pid === child.pid)?.cookies).toEqual(["proc_census.1:x"]);
});

test("after a look is over the next one begins when somebody asks", async () => {
  const { census: sharedScan, begun, end } = looks();
  const first = sharedScan.take();
  end(0);
  await first;
  await settled();
  expect(begun).toHaveLength(1);
  const second = sharedScan.take();
  expect(begun).toHaveLength(2);
  end(1);
  expect(await pidsOf(second)).toEqual([1]);
});

test("a look that fails is told to those it was for, and the next is begun all the same", async () => {
  const { census: sharedScan, begun, end } = looks();
  const first = sharedScan.take();
  const second = sharedScan.take();
  begun[0]?.reject(new Error("out of files"));
  await expect(first).rejects.toThrow("out of files");
  await settled();
  end(1);
  expect(await pidsOf(second)).toEqual([1]);
  const third = sharedScan.take();
  end(2);
  expect(await pidsOf(third)).toEqual([2]);
});
