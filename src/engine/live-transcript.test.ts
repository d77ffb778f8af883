import { expect, test } from "vitest";
import type { Recorded } from "../core/event.ts";
import type { Run } from "../core/run.ts";
import type { Page, Store } from "../ports.ts";
import { LiveTranscript } from "./live-transcript.ts";

const said = (seq: number, runId: `run_${string}`, text: string): Recorded => ({
  ...{ type: "run.accepted", runId, prompt: { text }, delivery: "queue", seq, at: 0 },
});
const started = (seq: number, runId: `run_${string}`): Recorded => ({ type: "run.started", runId, seq, at: 0 });

test("G17: a conversation of which the middle is removed while it is read begins behind what was removed", async () => {
  const pages: Page[] = [
    { events: [said(1, "run_a", "before"), started(2, "run_a")] },
    { events: [said(6, "run_b", "now"), started(7, "run_b")], gapTo: 5 },
  ];
  const read = (): Promise<Page> => Promise.resolve(pages.shift() ?? { events: [] });
  const store = { read } as Partial<Store> as Store;
  const lane = { id: "ses_1", durable: { head: 7 } } as const;
  const run = { id: "run_b", prompt: { text: "now" }, acceptedAt: 6 } as Partial<Run> as Run;
  const messages = await new LiveTranscript().read(store, lane, run);
  expect(messages).toMatchObject([{ role: "user", runId: "run_b", text: "now" }]);
});
