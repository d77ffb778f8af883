// What processes said, followed by somebody who comes after their end: here and far away.
import { afterEach, expect, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { scriptedAgent } from "../../src/testing/scripted-agent.ts";
import { realServer } from "../fixtures/real-server.ts";

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const PLACES = ["here", "far away"] as const;

/** One that has ended, as it is found from there, and what its pages are to somebody who begins at `offset`. */
async function pagesOf(place: (typeof PLACES)[number], script: string, offset: number) {
  const belay = await openBelay({ agent: scriptedAgent(), store: ":memory:", processes: { profile: "none" } });
  closing.push(() => belay.close({ mode: "cancel" }));
  const session = await belay.createSession();
  const process = await session.processes.start(script, { profile: "none" });
  await process.wait();
  let control: BelayControl = belay;
  if (place === "far away") {
    const server = await realServer(belay);
    closing.push(() => server.close());
    control = await connectBelay({ url: server.url, token: server.token });
    closing.push(() => control.close());
  }
  const found = await control.session(session.id).processes.get(process.id);
  return Array.fromAsync(found.follow({ offset, signal: AbortSignal.timeout(5_000) }));
}

for (const place of PLACES) {
  test(`the output of a process that said nothing is at its end, and is not waited for: ${place}`, async () => {
    const last = { stream: "all", from: 0, to: 0, text: "", missing: 0, end: true };
    expect(await pagesOf(place, "true", 0)).toEqual([last]);
  });

  test(`somebody who has heard everything is told that it was everything: ${place}`, async () => {
    const last = { stream: "all", from: 6, to: 6, text: "", missing: 0, end: true };
    expect(await pagesOf(place, "echo hello", 6)).toEqual([last]);
  });
}
