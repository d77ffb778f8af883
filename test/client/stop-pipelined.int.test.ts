// Stops on one HTTP/1.1 connection, sent in one write together with the prompts before and after them.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { openBelay } from "../../src/sdk/belay.ts";
import { realServer } from "../fixtures/real-server.ts";

const STOPS = ["cancel of its session", "cancel by its key", "cancel of everything"] as const;

test.each(STOPS)("G7: a pipelined stop covers the prompt before it, and not the one after it: %s", async (stop) => {
  const belay = await openBelay({
    store: ":memory:",
    graceMs: 50,
    agent: ({ signal, prompt }) =>
      prompt.text === "after" ? "done" : new Promise((_, no) => signal.addEventListener("abort", no)),
  });
  const server = await realServer(belay);
  const session = await belay.createSession();
  const base = `/v1/sessions/${session.id}`;
  const path = { [STOPS[0]]: `${base}/cancel`, [STOPS[1]]: `${base}/prompts/k/cancel`, [STOPS[2]]: "/v1/cancel" }[stop];
  const request = (to: string, body: object | undefined, key: string): string => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const head = [`POST ${to} HTTP/1.1`, `Host: ${new URL(server.url).host}`, `Authorization: Bearer ${server.token}`];
    const type = body === undefined ? [] : ["Content-Type: application/json"];
    return [...head, ...type, `Idempotency-Key: ${key}`, `Content-Length: ${text.length}`, "", text].join("\r\n");
  };
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write(
    request(`${base}/runs`, { prompt: "before" }, "k") +
      request(path, undefined, "s") +
      request(`${base}/runs`, { prompt: "after" }, "l"),
  );
  const ends = new Map<string, string>();
  for await (const event of session.events()) {
    if (event.type === "run.settled") ends.set(event.runId, event.outcome.kind);
    if (ends.size === 2) break;
  }
  expect([...ends.values()]).toEqual(["cancelled", "completed"]);
  socket.destroy();
  await server.close();
  await belay.close({ mode: "cancel" });
});
