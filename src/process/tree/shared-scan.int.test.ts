import { spawn } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { settled } from "../../testing/manual-clock.ts";
import { COOKIE_NAME } from "../launch/environment.ts";
import type { Seen } from "./proc.ts";
import { SharedScan } from "./shared-scan.ts";

/** Scans that resolve on request, each with its own number. */
function controlledScans() {
  const begun: PromiseWithResolvers<readonly Seen[]>[] = [];
  const sharedScan = new SharedScan(() => {
    const scan = Promise.withResolvers<readonly Seen[]>();
    begun.push(scan);
    return scan.promise;
  });
  return {
    sharedScan,
    begun,
    end: (at: number) => begun[at]?.resolve([{ pid: at }] as unknown as readonly Seen[]),
  };
}

const pidsOf = async (taken: Promise<readonly Seen[]>): Promise<readonly number[]> =>
  (await taken).map((one) => one.pid);

test("callers during a scan share the next scan", async () => {
  const { sharedScan, begun, end } = controlledScans();
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

test("a caller while a scan runs and another is waiting gets one that began after the call", async () => {
  const { sharedScan, begun, end } = controlledScans();
  // One call when the first is over, and thus at once; one before that, which waits for it.
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

test("a scan has all processes, with their cookies", async () => {
  const child = spawn("sleep", ["8000710"], { stdio: "ignore", env: { [COOKIE_NAME]: "proc_scan.1:x" } });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const all = await new SharedScan().take();
  expect(all.find(({ pid }) => pid === child.pid)?.cookies).toEqual(["proc_scan.1:x"]);
});

test("after a scan is over the next one begins at the next call", async () => {
  const { sharedScan, begun, end } = controlledScans();
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

test("a scan that fails rejects for its own callers, and the next one begins", async () => {
  const { sharedScan, begun, end } = controlledScans();
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
