import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Gate } from "../../../testing/gate.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { spinning } from "./spinner.ts";

beforeEach(() => {
  vi.stubEnv("NO_COLOR", "");
  vi.stubEnv("TERM", "xterm");
});
afterEach(() => vi.unstubAllEnvs());

function recordedOutput({ isTTY }: { readonly isTTY: boolean }) {
  const written: string[] = [];
  const output = { isTTY, columns: 40, write: (text: string) => written.push(text) > 0 };
  return { output: output as unknown as NodeJS.WriteStream, written };
}

test("the spinner is shown while the work runs, and erased when it ends", async () => {
  const clock = manualClock();
  const { output, written } = recordedOutput({ isTTY: true });
  const work = new Gate();
  const spun = spinning(
    "stopping \u001b[31mrun_1",
    work.opened.then(() => "done"),
    { clock, output },
  );
  await clock.advance(299);
  expect(written).toEqual([]);
  await clock.advance(2_000);
  expect(written.at(-1)?.startsWith("\r\u001b[2K")).toBe(true);
  expect(written.at(-1)?.endsWith(" stopping run_1 (2 s)")).toBe(true);
  work.open();
  expect(await spun).toBe("done");
  expect(written.at(-1)).toBe("\r\u001b[2K");
  expect(clock.pending).toEqual([]);
});

test("the spinner is erased when the work fails", async () => {
  const clock = manualClock();
  const { output, written } = recordedOutput({ isTTY: true });
  const work = new Gate();
  const spun = spinning(
    "x",
    work.opened.then(() => Promise.reject(new Error("no"))),
    { clock, output },
  );
  await clock.advance(1_000);
  work.open();
  await expect(spun).rejects.toThrow("no");
  expect(written.at(-1)).toBe("\r\u001b[2K");
  expect(clock.pending).toEqual([]);
});

test.each([
  ["no terminal", { isTTY: false }, {}],
  ["NO_COLOR", { isTTY: true }, { NO_COLOR: "1" }],
  ["a terminal that cannot move its cursor", { isTTY: true }, { TERM: "dumb" }],
])("with %s no spinner is shown", async (_, stream, env) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const clock = manualClock();
  const { output, written } = recordedOutput(stream);
  await spinning("x", Promise.resolve(), { clock, output });
  expect(written).toEqual([]);
  expect(clock.pending).toEqual([]);
});
