// G13, G17: a run over a model is stopped at every place where it can wait, with every provider package, over real
// sockets: the provider's connection is closed, there is one outcome, the partial text is kept, and the provider's own
// rules accept the conversation that follows.
import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { startDeafListener } from "../fixtures/provider/deaf-listener.ts";
import { MODEL_NAMES } from "../fixtures/provider/models.ts";
import type { Script } from "../fixtures/provider/script.ts";
import { startProvider } from "../fixtures/provider/server.ts";
import { cancelAndWatch, checkLog, goesOn, openModelFixture } from "./model-fixture.ts";

const alice = { kind: "user", by: "alice", note: "enough" } as const;
const stopped = { kind: "cancelled", reason: alice } as const;

interface Place {
  readonly script: Script;
  /** What of the answer had come by then. */
  readonly kept: string;
}

const places: Readonly<Record<string, Place>> = {
  "before the headers": { script: [{ hold: "here" }], kept: "" },
  "before the first byte": { script: [{ headers: true }, { hold: "here" }], kept: "" },
  "before the first token": { script: [{ begin: true }, { hold: "here" }], kept: "" },
  "in reasoning": { script: [{ reasoning: "hm, " }, { hold: "here" }], kept: "" },
  "in text": { script: [{ text: "So far so" }, { hold: "here" }], kept: "So far so" },
  "in text after reasoning": {
    script: [{ reasoning: "hm" }, { endBlock: true }, { text: "So far" }, { hold: "here" }],
    kept: "So far",
  },
  "in the arguments of a call": {
    script: [{ text: "I look." }, { call: { name: "read", input: { path: "a" } }, holdInside: "here" }],
    kept: "I look.",
  },
  "after a call, before the finish": {
    script: [{ text: "I look." }, { call: { name: "read", input: { path: "a" } } }, { hold: "here" }],
    kept: "I look.",
  },
  "in a silent stream": { script: [{ text: "Wait" }, { hold: "here" }, { silence: true }], kept: "Wait" },
};

describe.each(MODEL_NAMES)("%s", (name) => {
  test.each(Object.entries(places))("stopped %s", async (_, { script, kept }) => {
    await using server = await startProvider([script]);
    await using stage = await openModelFixture(server, name);
    const { session } = stage;
    const run = session.prompt("go");
    const request = await server.request(0);
    await server.reached("here");
    if (kept !== "") await said(run, kept);
    await cancelAndWatch(run, request.closed);
    expect(await run.outcome).toEqual(stopped);
    expect(await run.text()).toBe(kept);
    const [, assistant] = await session.transcript();
    expect(assistant).toMatchObject({
      role: "assistant",
      text: kept,
      calls: [],
      finish: { kind: "cancelled", reason: alice },
      usage: { estimated: true },
    });
    const body = await goesOn(server, session);
    if (kept !== "") expect(body).toContain(kept);
    expect(body).toContain("stopped by alice: enough");
    expect(server.requests.length).toBe(2);
    await checkLog(session, run);
  });

  test("stopped between two turns: the call is ended, and no second request is made", async () => {
    await using server = await startProvider([[{ text: "I wait." }, { call: { name: "wait", input: {} } }]]);
    await using stage = await openModelFixture(server, name);
    const { session } = stage;
    const run = session.prompt("go");
    await expect.poll(async () => (await session.explain()).live?.calls.map((call) => call.name)).toEqual(["wait"]);
    await run.cancel({ reason: alice });
    expect(await run.outcome).toEqual(stopped);
    expect(server.requests.length).toBe(1);
    const body = await goesOn(server, session);
    expect(body).toContain("waited a little");
    expect(body).toContain("stopped by alice: enough");
    await checkLog(session, run);
  });

  test("one call stopped: the run continues, and the model learns who stopped it, once as a reminder", async () => {
    await using server = await startProvider([
      [{ text: "I do both." }, { call: { name: "wait", input: {} } }, { call: { name: "read", input: { path: "b" } } }],
      [{ text: "Understood." }],
    ]);
    await using stage = await openModelFixture(server, name);
    const { session, belay } = stage;
    const run = session.prompt("go");
    await expect.poll(async () => (await session.explain()).live?.calls.map((call) => call.name)).toEqual(["wait"]);
    const [call] = (await session.explain()).live?.calls ?? [];
    expect(await belay.cancel(call?.callId ?? "", { reason: alice })).toMatchObject({
      ended: { kind: "settled", outcome: stopped },
    });
    expect(await run.outcome).toEqual({ kind: "completed" });
    const body = JSON.stringify(server.requests[1]?.body);
    expect(body).toContain("contents of b");
    expect(body).toContain("waited a little");
    expect(body.split("Do not repeat it").length - 1).toBe(1);
    expect(server.violations).toEqual([]);
    await checkLog(session, run);
  });

  test("stopped in a backoff: the request is not made again", async () => {
    const clock = manualClock();
    await using server = await startProvider([[{ status: 529, message: "busy" }]]);
    await using stage = await openModelFixture(server, name, { clock });
    const { session } = stage;
    const run = session.prompt("go");
    await server.request(0);
    // The pause has begun when its timer is there.
    await expect.poll(() => clock.pending.some((timer) => timer.inMs === 500)).toBe(true);
    await run.cancel({ reason: alice });
    expect(await run.outcome).toEqual(stopped);
    await clock.advance(60_000);
    expect(server.requests.length).toBe(1);
    await checkLog(session, run);
  });

  test("stopped while it connects to a server that never answers", async () => {
    await using deaf = await startDeafListener();
    await using stage = await openModelFixture(deaf, name);
    const run = stage.session.prompt("go");
    const connection = await deaf.connection(0);
    const receipt = run.cancel({ reason: alice });
    await connection.closed();
    expect(await receipt).toMatchObject({ kind: "stopping" });
    expect(await run.outcome).toEqual(stopped);
    await checkLog(stage.session, run);
  });
});

/** Until this text has arrived here: what the server has sent may still be on its way. */
async function said(run: AsyncIterable<object>, text: string): Promise<void> {
  let heard = "";
  for await (const event of run) {
    if ("type" in event && event.type === "delta" && "text" in event && !("kind" in event)) heard += String(event.text);
    if (heard.includes(text)) return;
  }
}
