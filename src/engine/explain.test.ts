// Why a session is busy, in every state a person may ask in.
import { expect, test } from "vitest";
import { deaf, gate, openHouse, waits } from "../../test/open-house.ts";

test("G36: an idle session says so, and that a cancel would change nothing", async () => {
  const { belay } = await openHouse();
  const session = await belay.createSession();
  expect(await session.explain()).toEqual({
    sessionId: session.id,
    asOf: 1,
    busy: false,
    live: undefined,
    queue: [],
    steers: [],
    processes: [],
    driver: expect.stringMatching(/^wrk_/),
    summary: "Idle. A cancel would change nothing.",
  });
});

test("G36: a live run is named with its calls, what is queued and what waits to be taken in", async () => {
  const called = gate();
  const { belay, began } = await openHouse({
    work: async (turn) => {
      await turn.call("build", null, ({ signal }) => {
        called.open();
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      });
      return "end";
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("work");
  await began("work");
  await called.passed;
  const queued = session.prompt("later");
  const steer = session.prompt("left", { delivery: "steer" });
  await Promise.all([queued.accepted, steer.accepted]);
  const said = await session.explain();
  expect(said).toMatchObject({
    busy: true,
    live: {
      runId: run.id,
      phase: "running",
      reason: undefined,
      attempt: 1,
      calls: [{ name: "build", phase: "running" }],
    },
    queue: [{ runId: queued.id, text: "later" }],
    steers: [{ runId: steer.id, text: "left" }],
  });
  expect(said.summary).toBe(`${run.id} is running; calls: build. A cancel would stop it. 1 queued behind it.`);
  await session.cancel();
});

test("G36: a run that is being stopped says since when, why, and what it waits for", async () => {
  const { belay, began } = await openHouse({ live: deaf }, { graceMs: 60_000 });
  const session = await belay.createSession();
  const run = session.prompt("live");
  await began("live");
  const receipt = await run.cancel({ reason: "enough" });
  const since = receipt.kind === "stopping" ? receipt.since : 0;
  const said = await session.explain();
  expect(said.live).toMatchObject({ phase: "stopping", reason: { kind: "user", note: "enough" } });
  expect(said.summary).toBe(`${run.id} has been stopping since ${since}; it waits for its turn.`);
});

test("G36: a session that waits for a slot, and one that is closed, say that", async () => {
  const { belay, began } = await openHouse({ live: waits }, { liveRunsMax: 1 });
  const [one, two] = [await belay.createSession(), await belay.createSession()];
  one.prompt("live");
  await began("live");
  await two.prompt("waits for the other").accepted;
  expect((await two.explain()).summary).toBe("Not running: 1 queued, waiting for a free slot.");
  await two.close();
  expect((await two.explain()).summary).toBe("Closed.");
  await one.cancel();
});
