// Providers quote the request in their errors. None of their keys is recorded.
import { expect, test } from "vitest";
import type { Notice } from "../../ports/hooks.ts";
import { openBelay } from "../../sdk/belay.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { manualClock } from "../../testing/manual-clock.ts";

const KEY = "sk-FAKESECRETFAKESECRET1234";
const OWN = "our-own-kind-of-key-0001";

async function recorded(redact?: (text: string) => string, onNotice?: (notice: Notice) => void): Promise<string> {
  const store = new MemoryStore({ clock: manualClock() });
  const belay = await openBelay({
    store,
    ...(redact === undefined ? {} : { redact }),
    ...(onNotice === undefined ? {} : { onNotice }),
    agent: async (turn) => {
      await turn.call("fetch", {}, () => {
        throw new Error(`401 for ${KEY} and ${OWN}`);
      });
      throw new Error(`Incorrect API key provided: Bearer ${KEY}, ${OWN}`);
    },
  });
  const session = await belay.createSession();
  const outcome = await session.prompt("go").outcome;
  const transcript = await session.transcript();
  const events: unknown[] = [];
  const { head } = await session.row();
  for await (const event of session.events({ after: 0 })) {
    events.push(event);
    if ("seq" in event && event.seq >= head) break;
  }
  await belay.close();
  return JSON.stringify({ outcome, transcript, events });
}

test("G35: a key in the error of a model or a tool is in no outcome, transcript or event", async () => {
  const text = await recorded();
  expect(text).toContain("Incorrect API key provided");
  expect(text).toContain("401 for [redacted]");
  expect(text).not.toContain(KEY);
});

test("G35: nor is a secret that only the host knows", async () => {
  const text = await recorded((error) => error.replaceAll(OWN, "***").replaceAll(KEY, "***"));
  expect(text).toContain("Incorrect API key provided: Bearer ***, ***");
  expect(text).not.toMatch(new RegExp(`${KEY}|${OWN}`));
});

test.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new Error("the host is at fault");
    },
  ],
  ["returns nothing", () => undefined],
  ["returns a promise", () => Promise.reject(new Error("too late"))],
])("G35: a redact() that %s keeps no text, loses no end of a run, and is reported once", async (_, redact) => {
  const notices: Notice[] = [];
  const text = await recorded(redact as () => string, (notice) => notices.push(notice));
  expect(JSON.parse(text).outcome).toMatchObject({ kind: "failed", message: "[redacted]" });
  expect(text).not.toMatch(new RegExp(`${KEY}|${OWN}`));
  expect(notices).toMatchObject([{ type: "bug", error: expect.any(Error) }]);
});
